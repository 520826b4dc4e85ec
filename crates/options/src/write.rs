//! Sections to the text of a job file, for people to look at and for fio to run.
//!
//! Invariant: what is written has been read again and says the same; what a job file cannot say is refused with the
//! reason, never written as something else.

use std::path::Path;

use crate::cli;
use crate::expand::{Environment, Machine};
use crate::jobfile::application_order;
use crate::section::{Section, Setting};

/// The sections as a job file, each with all its settings, so that several such texts make one job file.
///
/// # Errors
/// What cannot be written, and why.
pub fn job_file(sections: &[Section]) -> Result<String, String> {
    sections.iter().map(section).collect()
}

fn section(section: &Section) -> Result<String, String> {
    let mut settings = section.files.iter().map(|path| of_path(path)).collect::<Result<Vec<_>, _>>()?;
    settings.extend(section.settings().filter(|setting| setting.spec.name != "name").cloned());
    let lines: String = settings.iter().map(line).collect();
    let text = format!("[{}]\n{lines}", section.name);
    settings.sort_by_key(|setting| application_order(setting.spec));
    let same = |one: &Setting, other: &Setting| one.spec.is(other.spec) && one.value == other.value;
    let is_same = read_again(&text).is_some_and(|read| {
        read.name == section.name
            && read.own.len() == settings.len()
            && read.own.iter().zip(&settings).all(|(one, other)| same(one, other))
    });
    match is_same {
        true => Ok(text + "\n"),
        false => Err(refusal(section, &settings)),
    }
}

/// A file as the setting that names it.
fn of_path(path: &Path) -> Result<Setting, String> {
    match path.to_str() {
        Some(text) => Ok(Setting::of("filename", text.replace(':', "\\:"))),
        None => Err(format!("{path:?} cannot be written in a job file: it is not UTF-8")),
    }
}

fn line(setting: &Setting) -> String {
    match &setting.value {
        Some(value) => format!("{}={value}\n", setting.spec.name),
        None => format!("{}\n", setting.spec.name),
    }
}

/// The one section of a text, read where every variable and every keyword stands for something that is not there.
fn read_again(text: &str) -> Option<Section> {
    let file = |_: &str| Ok(text.as_bytes().to_vec());
    let variable = |_: &str| Some("\0".to_string());
    let machine = Machine { cpus: u64::MAX, memory_mib: u64::MAX, page_bytes: u64::MAX };
    let environment = Environment { files: &file, variables: &variable, machine };
    let mut sections = cli::read(&["job".to_string()], &environment).ok()?.sections;
    sections.pop().filter(|_| sections.is_empty())
}

fn refusal(section: &Section, settings: &[Setting]) -> String {
    let name = why_not(&section.name).map(|why| (format!("the name {:?}", section.name), why));
    let of_setting = |setting: &Setting| {
        let value = setting.value.as_deref()?;
        Some((format!("{}={value:?}", setting.spec.name), why_not(value)?))
    };
    let (what, why) = name
        .or_else(|| settings.iter().find_map(of_setting))
        .unwrap_or_else(|| (format!("job {:?}", section.name), "it would be read otherwise"));
    format!("{what} cannot be written in a job file: {why}")
}

/// What in a text would not be taken as it stands.
fn why_not(text: &str) -> Option<&'static str> {
    const KEYWORDS: [&str; 3] = ["$pagesize", "$mb_memory", "$ncpus"];
    let blank = |letter: char| letter.is_ascii_whitespace() || letter == '\x0b';
    [
        (text.contains('\n'), "a line ends where it does"),
        (text.contains([';', '#']), "a ; or # begins a comment"),
        (text.split_once("${").is_some_and(|(_, rest)| rest.contains('}')), "${...} stands for a variable"),
        (KEYWORDS.iter().any(|keyword| text.contains(keyword)), "$ncpus and its like stand for numbers"),
        (text.ends_with(blank), "blanks at the end of a line are dropped"),
    ]
    .into_iter()
    .find_map(|(is_so, why)| is_so.then_some(why))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;
    use crate::testing::{read_text, settings};

    fn on(path: &str) -> Section {
        Section { files: vec![PathBuf::from(path)], ..Section::new("a").with([("bs", "4k".to_string())]) }
    }

    #[test]
    fn what_can_be_written_reads_back() {
        assert_eq!(job_file(&[on("/d/a b")]).as_deref(), Ok("[a]\nfilename=/d/a b\nbs=4k\n\n"));
        assert_eq!(job_file(&[on("/d/a:b")]).as_deref(), Ok("[a]\nfilename=/d/a\\:b\nbs=4k\n\n"));
        let parsed =
            read_text("[global]\nrw=read\n[a]\nioengine=io_uring\nsqthread_poll=1\nthread\n").unwrap();
        let written = job_file(&parsed.sections).unwrap();
        assert_eq!(written, "[a]\nrw=read\nioengine=io_uring\nthread\nsqthread_poll=1\n\n");
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

    #[test]
    fn what_is_not_utf_8_is_refused() {
        use std::os::unix::ffi::OsStrExt;
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(b"/d/\xff"));
        let section = Section { files: vec![path], ..Section::new("a") };
        assert!(job_file(&[section]).unwrap_err().contains("it is not UTF-8"));
    }

    proptest! {
        #[test]
        fn no_text_is_written_as_another(text in "[ -~\\n\\t;#$:\\\\{}]{1,12}") {
            let section = Section::new("a").with([("description", text.clone())]);
            if let Ok(written) = job_file(&[section]) {
                let read = read_text(&written).unwrap().sections.remove(0);
                prop_assert_eq!(settings(&read.own), format!("description={text}"));
            }
        }
    }
}
