//! Sections as they travel: option, spelling, value and place of every setting, as typed. No text is parsed again.
//!
//! Invariant: sections that are read back are equal to those sent, and share what they inherit; an option that this
//! program does not have is an error that names it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;

use fiord_options::table::{Lookup, find_job_option};
use fiord_options::value::EngineName;
use fiord_options::{Globals, Origin, Place, Scope, Section, Setting, Spec};
use serde::{Deserialize, Serialize};

/// Sections, and which of them wait for all before them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sections {
    sections: Vec<Sent>,
    /// Indices of the sections that begin as if with `stonewall`.
    pub waiting: Vec<usize>,
}

/// One section. What it inherits is that of the section before, up to a point, and more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Sent {
    name: Vec<u8>,
    place: SentPlace,
    inherits_of_the_one_before: usize,
    inherits_more: Vec<SentSetting>,
    own: Vec<SentSetting>,
    files: Vec<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SentSetting {
    option: String,
    /// An engine that has it, of an option that is private to engines.
    engine: Option<String>,
    spelling: String,
    value: Option<Vec<u8>>,
    place: SentPlace,
    value_place: SentPlace,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum SentPlace {
    CommandLine(u32, u32),
    File(Vec<u8>, u32, u32),
    Derived,
}

impl Sections {
    /// To be sent.
    pub fn of(sections: &[Section], waiting: &[usize]) -> Sections {
        let mut before = &Globals::default();
        let mut sent = Vec::with_capacity(sections.len());
        for section in sections {
            let global = &section.global;
            let (kept, more) = match global.since(before) {
                Some(more) => (before.len(), more),
                None => (0, &global[..]),
            };
            sent.push(Sent {
                name: section.name.as_bytes().to_vec(),
                place: SentPlace::of(&section.place),
                inherits_of_the_one_before: kept,
                inherits_more: more.iter().map(SentSetting::of).collect(),
                own: section.own.iter().map(SentSetting::of).collect(),
                files: section.files.iter().map(|path| path.as_os_str().as_bytes().to_vec()).collect(),
            });
            before = global;
        }
        Sections { sections: sent, waiting: waiting.to_vec() }
    }

    /// As they were.
    ///
    /// # Errors
    /// An option that this program does not have.
    pub fn read(&self) -> Result<Vec<Section>, String> {
        let mut before = Globals::default();
        let mut sections = Vec::with_capacity(self.sections.len());
        for sent in &self.sections {
            let kept = before.first(sent.inherits_of_the_one_before);
            let global = match sent.inherits_more.as_slice() {
                [] => kept,
                more => {
                    let more: Vec<Setting> = more.iter().map(SentSetting::read).collect::<Result<_, _>>()?;
                    kept.iter().cloned().chain(more).collect()
                }
            };
            sections.push(Section {
                name: OsString::from_vec(sent.name.clone()),
                global: global.clone(),
                own: sent.own.iter().map(SentSetting::read).collect::<Result<_, _>>()?,
                place: sent.place.read(),
                files: sent.files.iter().map(|path| PathBuf::from(OsStr::from_bytes(path))).collect(),
            });
            before = global;
        }
        Ok(sections)
    }
}

impl SentSetting {
    fn of(setting: &Setting) -> SentSetting {
        let engine = match setting.spec.scope {
            Scope::Engine(names) => names.first().map(|name| name.word().to_string()),
            Scope::Job | Scope::Program => None,
        };
        SentSetting {
            option: setting.spec.name.to_string(),
            engine,
            spelling: setting.spelling.clone(),
            value: setting.value.as_ref().map(|value| value.as_bytes().to_vec()),
            place: SentPlace::of(&setting.place),
            value_place: SentPlace::of(&setting.value_place),
        }
    }

    fn read(&self) -> Result<Setting, String> {
        Ok(Setting {
            spec: self.spec().ok_or_else(|| {
                format!("{}: fiord here does not have the option {}", self.place.read(), self.option)
            })?,
            spelling: self.spelling.clone(),
            value: self.value.clone().map(OsString::from_vec),
            place: self.place.read(),
            value_place: self.value_place.read(),
        })
    }

    fn spec(&self) -> Option<&'static Spec> {
        let engine = match &self.engine {
            Some(word) => vec![EngineName::from_word(word)?],
            None => Vec::new(),
        };
        match find_job_option(&self.option, false, &engine) {
            Lookup::Found(spec) => Some(spec),
            _ => None,
        }
    }
}

impl SentPlace {
    fn of(place: &Place) -> SentPlace {
        let Place { source, line, column } = place;
        match source {
            Origin::CommandLine => SentPlace::CommandLine(*line, *column),
            Origin::File(name) => SentPlace::File(name.as_bytes().to_vec(), *line, *column),
            Origin::Derived => SentPlace::Derived,
        }
    }

    fn read(&self) -> Place {
        match self {
            SentPlace::CommandLine(line, column) => {
                Place { source: Origin::CommandLine, line: *line, column: *column }
            }
            SentPlace::File(name, line, column) => Place {
                source: Origin::File(Arc::from(OsStr::from_bytes(name))),
                line: *line,
                column: *column,
            },
            SentPlace::Derived => Place::derived(),
        }
    }
}

#[cfg(test)]
mod tests {
    use fiord_options::cli;
    use fiord_options::environment::{Environment, KeywordValues};

    use super::*;

    fn sections(file: &'static str) -> (Vec<Section>, Vec<usize>) {
        let environment = Environment {
            files: &move |_| Ok(file.as_bytes().to_vec()),
            variables: &|_| None,
            keywords: KeywordValues { cpus: 2, memory_mib: 1024, page_bytes: 4096 },
            engines: EngineName::ALL,
        };
        let parsed = cli::read(&["j.fio", "k.fio"], &environment).unwrap();
        (parsed.sections, parsed.waiting)
    }

    #[test]
    fn sections_arrive_as_they_were_with_their_places() {
        let text =
            "[global]\nbs=4k\nioengine=io_uring\n[a]\nhipri\n[global]\nrw=read\n[b]\nfilename=/d/x\n[c]\n";
        let (before, waiting) = sections(text);
        let sent = Sections::of(&before, &waiting);
        let bytes = postcard::to_allocvec(&sent).unwrap();
        let after = postcard::from_bytes::<Sections>(&bytes).unwrap();
        assert_eq!(after, sent);
        let after = after.read().unwrap();
        for (before, after) in before.iter().zip(&after) {
            let whole =
                |section: &Section| format!("{section:?} {:?}", section.settings().collect::<Vec<_>>());
            let without_list = |section: &Section| Section { global: Globals::default(), ..section.clone() };
            assert_eq!(format!("{:?}", &before.global[..]), format!("{:?}", &after.global[..]));
            assert_eq!(whole(&without_list(before)), whole(&without_list(after)));
        }
        assert_eq!(before.len(), after.len());
        assert_eq!(after[1].own[0].place.to_string(), "j.fio:9:1");
        assert!(after[2].global.since(&after[1].global).is_some_and(<[Setting]>::is_empty), "they share");
    }

    #[test]
    fn an_option_that_is_not_there_is_named_with_its_place() {
        let (before, waiting) = sections("[a]\nbs=4k\n");
        let mut sent = Sections::of(&before, &waiting);
        sent.sections[0].own[0].option = "warp".to_string();
        let why = sent.read().unwrap_err();
        assert_eq!(why, "j.fio:2:1: fiord here does not have the option warp");
    }
}
