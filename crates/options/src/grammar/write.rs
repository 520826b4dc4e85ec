//! Sections to the bytes of a job file, for people to look at and for fio to run.
//!
//! Invariant: the written text has been parsed again with the same result; what a job file cannot express is refused
//! with the reason.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use fiord_stats::OrderBy;

use super::cli;
use super::environment::{Environment, KeywordValues};
use super::jobfile::application_order;
use crate::bytes::{find, is_blank};
use crate::section::{Section, Setting};
use crate::shown::shown;
use crate::table::job::{Files, General};

/// The sections as a job file, each with all its settings, so that several such texts make one job file.
///
/// # Errors
/// What cannot be written, and why.
pub fn job_file(sections: &[Section]) -> Result<Vec<u8>, String> {
    Ok(sections.iter().map(section).collect::<Result<Vec<_>, _>>()?.concat())
}

fn section(section: &Section) -> Result<Vec<u8>, String> {
    let mut settings: Vec<Setting> = section.files.iter().map(|path| of_path(path)).collect();
    let others = section.settings().filter(|setting| setting.spec != General::name);
    settings.extend(others.map(|setting| Setting { value: setting.shown_value(), ..setting.clone() }));
    let mut text = [b"[", section.name.as_bytes(), b"]\n"].concat();
    settings.iter().for_each(|setting| text.extend(line(setting)));
    settings.order_by_key(|setting| application_order(setting.spec));
    let same = |one: &Setting, other: &Setting| one.spec == other.spec && one.value == other.value;
    let is_same = read_again(&text).is_some_and(|read| {
        read.name == section.name
            && read.own.len() == settings.len()
            && read.own.iter().zip(&settings).all(|(one, other)| same(one, other))
    });
    match is_same {
        true => Ok([&text[..], b"\n"].concat()),
        false => Err(refusal(section, &settings)),
    }
}

/// A file as the setting that names it.
fn of_path(path: &Path) -> Setting {
    let bytes = path.as_os_str().as_bytes();
    let escaped = bytes.split(|byte| *byte == b':').collect::<Vec<_>>().join(&b"\\:"[..]);
    Setting::new(Files::filename, OsString::from_vec(escaped))
}

fn line(setting: &Setting) -> Vec<u8> {
    let name = setting.spec.name.as_bytes();
    match &setting.value {
        Some(value) => [name, b"=", value.as_bytes(), b"\n"].concat(),
        None => [name, b"\n"].concat(),
    }
}

/// The one section of a text, parsed with values for variables and keywords that would show if one were replaced.
fn read_again(text: &[u8]) -> Option<Section> {
    let file = |_: &OsStr| Ok(text.to_vec());
    let variable = |_: &OsStr| Some(OsString::from("\0"));
    let keywords = KeywordValues { cpus: u64::MAX, memory_mib: u64::MAX, page_bytes: u64::MAX };
    let environment = Environment { files: &file, variables: &variable, keywords, engines: &[] };
    let mut sections = cli::read(&["job"], &environment).ok()?.sections;
    sections.pop().filter(|_| sections.is_empty())
}

fn refusal(section: &Section, settings: &[Setting]) -> String {
    let name = why_not(&section.name).map(|why| (format!("the name \"{}\"", shown(&section.name)), why));
    let of_setting = |setting: &Setting| {
        let value = setting.value.as_deref()?;
        Some((format!("{}=\"{}\"", setting.spec.name, shown(value)), why_not(value)?))
    };
    let (what, why) = name
        .or_else(|| settings.iter().find_map(of_setting))
        .unwrap_or_else(|| (format!("job \"{}\"", shown(&section.name)), "it would be read otherwise"));
    format!("{what} cannot be written in a job file: {why}")
}

/// What in a text would not be read literally.
fn why_not(text: &OsStr) -> Option<&'static str> {
    const KEYWORDS: [&[u8]; 3] = [b"$pagesize", b"$mb_memory", b"$ncpus"];
    let text = text.as_bytes();
    [
        (text.contains(&b'\n'), "a line ends where it does"),
        (text.contains(&b';') || text.contains(&b'#'), "a ; or # begins a comment"),
        (find(text, b"${").is_some_and(|at| text[at..].contains(&b'}')), "${...} stands for a variable"),
        (
            KEYWORDS.iter().any(|keyword| find(text, keyword).is_some()),
            "$ncpus and its like stand for numbers",
        ),
        (text.last().is_some_and(|byte| is_blank(*byte)), "blanks at the end of a line are dropped"),
    ]
    .into_iter()
    .find_map(|(is_so, why)| is_so.then_some(why))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;
    use crate::grammar::testing::{read_bytes, read_text};
    use crate::table::job::Blocks;

    fn written(sections: &[Section]) -> String {
        String::from_utf8(job_file(sections).unwrap()).unwrap()
    }

    fn on(path: &str) -> Section {
        Section {
            files: vec![PathBuf::from(path)],
            ..Section::new("a").with([(Blocks::bs, "4k".to_string())])
        }
    }

    #[test]
    fn what_can_be_written_reads_back() {
        assert_eq!(written(&[on("/d/a b")]), "[a]\nfilename=/d/a b\nbs=4k\n\n");
        assert_eq!(written(&[on("/d/a:b")]), "[a]\nfilename=/d/a\\:b\nbs=4k\n\n");
        let parsed =
            read_text("[global]\nrw=read\n[a]\nioengine=io_uring\nsqthread_poll=1\nthread\n").unwrap();
        assert_eq!(written(&parsed.sections), "[a]\nrw=read\nioengine=io_uring\nthread\nsqthread_poll=1\n\n");
    }

    #[test]
    fn what_cannot_be_written_is_refused_with_the_reason() {
        for (path, why) in [
            ("/d/a;b", "begins a comment"),
            ("/d/a#b", "begins a comment"),
            ("/d/a\nfilename=/dev/loop1", "a line ends"),
            ("/d/$ncpus", "stand for numbers"),
            ("/d/${HOME}", "stands for a variable"),
            ("/d/a ", "blanks at the end"),
        ] {
            let refused = job_file(&[on(path)]).unwrap_err();
            assert!(refused.starts_with("filename=") && refused.contains(why), "{path}: {refused}");
        }
        let named = Section::new("a;b");
        assert!(job_file(&[named]).unwrap_err().starts_with("the name \"a;b\" cannot be written"));
        assert!(job_file(&[Section::new("global")]).is_err());
    }

    proptest! {
        /// A text of any bytes is written unchanged or refused.
        #[test]
        fn no_text_is_written_as_another(
            bytes in proptest::collection::vec(
                prop_oneof![
                    any::<u8>().prop_map(|byte| vec![byte]),
                    "[ -~]".prop_map(String::into_bytes),
                    proptest::sample::select(b"\n\t;#$:\\{}[]=".as_slice()).prop_map(|byte| vec![byte]),
                    Just(b"$ncpus".to_vec()), Just(b"${V}".to_vec()), Just(vec![0xc3, 0xa9]),
                ],
                1..12,
            ),
        ) {
            let text = OsString::from_vec(bytes.concat());
            let path = PathBuf::from(&text);
            let described = Section { own: vec![Setting::new(General::description, text.clone())], ..Section::new("a") };
            let named = Section::new(text.clone());
            let on_file = Section { files: vec![path.clone()], ..Section::new("a") };
            for section in [described, named, on_file] {
                let Ok(written) = job_file(std::slice::from_ref(&section)) else { continue };
                let read = read_bytes(&written).unwrap().sections.remove(0);
                prop_assert_eq!(&read.name, &section.name);
                if let Some(setting) = section.own.first() {
                    prop_assert_eq!(&read.own[0].value, &setting.value);
                }
                if let Some(path) = section.files.first() {
                    let escaped = of_path(path).value;
                    prop_assert_eq!(&read.own[0].value, &escaped);
                }
            }
        }
    }
}
