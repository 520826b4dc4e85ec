//! What each `--client` of a command line runs: the job files and jobs behind it, up to the next.
//!
//! Invariant: what stands before the first `--client` belongs to all of them, and each job to at least one.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::parsed::{JobFile, Parsed};
use crate::bytes;
use crate::place::Place;
use crate::section::{Section, Setting};
use crate::table::Spec;
use crate::table::job::Files;
use crate::table::program::ProgramOptions;

/// What one client runs.
#[derive(Debug, Clone, Default)]
pub struct ClientPart {
    /// Its jobs.
    pub sections: Vec<Section>,
    /// Indices of the sections that wait for all before them, as in [`Parsed::waiting`].
    pub waiting: Vec<usize>,
    /// The global options in force at their end.
    pub globals: Vec<Setting>,
    /// A job file of the server's own that it runs instead.
    pub remote_config: Option<OsString>,
}

/// The places of the clients on a command line: who a job or a file belongs to.
pub(super) struct Clients(Vec<u32>);

impl Clients {
    pub(super) fn of(program: &[Setting]) -> Clients {
        let clients = program.iter().filter(|setting| setting.spec == ProgramOptions::client);
        Clients(clients.map(|setting| setting.place.column).collect())
    }

    /// The client that something at this place stands behind; `None`: before all.
    pub(super) fn of_place(&self, place: &Place) -> Option<usize> {
        self.0.partition_point(|client| *client < place.column).checked_sub(1)
    }
}

/// What each client runs, in their order.
pub fn parts(parsed: &Parsed) -> Vec<ClientPart> {
    let clients = Clients::of(&parsed.program);
    let named = |file: &JobFile| file.blocks.iter().filter(|block| block.name.is_some()).count();
    let in_files: usize = parsed.files.iter().map(named).sum();
    let typed = parsed.sections.len().saturating_sub(in_files);
    let mut owners: Vec<Option<usize>> =
        parsed.sections[..typed].iter().map(|section| clients.of_place(&section.place)).collect();
    for file in &parsed.files {
        owners.extend(std::iter::repeat_n(clients.of_place(&file.place), named(file)));
    }
    let part = |number: usize| {
        let is_own = |owner: &Option<usize>| owner.is_none_or(|owner| owner == number);
        let own: Vec<usize> = (0..owners.len()).filter(|index| is_own(&owners[*index])).collect();
        let at = |section: &usize| own.iter().position(|index| index == section);
        let file = parsed.files.iter().rfind(|file| is_own(&clients.of_place(&file.place)));
        let last = |spec: &Spec| {
            let mut settings = parsed.program.iter().filter(|setting| setting.spec == spec);
            settings
                .rfind(|setting| is_own(&clients.of_place(&setting.place)))
                .and_then(|setting| setting.value.clone())
        };
        ClientPart {
            sections: own.iter().map(|index| parsed.sections[*index].clone()).collect(),
            waiting: parsed.waiting.iter().filter_map(at).collect(),
            globals: file.map_or_else(|| parsed.globals.clone(), JobFile::globals),
            remote_config: last(ProgramOptions::remote_config),
        }
    };
    (0..clients.0.len()).map(part).collect()
}

/// Names files after the client as fio does: `$clientuid` is the address of its server, and files below a `directory` begin
/// with it, so that clients with one directory have files of their own; `unique_filename=0` leaves them as they are.
pub fn name_files(sections: &mut [Section], address: &str) {
    for section in sections {
        let is = |spec: &Spec| section.settings().rfind(|setting| setting.spec == spec);
        let is_off = is(Files::unique_filename).is_some_and(|setting| setting.text() == Some("0"));
        let prefix = is(Files::directory).filter(|_| !is_off).map(|_| format!("{address}."));
        let has_format = is(Files::filename_format).is_some();
        let named = |setting: &Setting| named_after(setting, address, prefix.as_deref().unwrap_or_default());
        section.own = section.own.iter().map(named).collect();
        section.global = section.global.iter().map(named).collect();
        if let Some(prefix) = prefix.filter(|_| !has_format) {
            let format = format!("{prefix}{}", Files::filename_format.default);
            section.own.push(Setting::new(Files::filename_format, format));
        }
    }
}

/// A setting that names files, with this before each name.
fn named_after(setting: &Setting, address: &str, prefix: &str) -> Setting {
    let Some(value) = &setting.value else { return setting.clone() };
    let value = bytes::trim(value.as_bytes());
    let value = if setting.spec == Files::filename_format {
        [prefix.as_bytes(), &bytes::replace(value, b"$clientuid", address.as_bytes())].concat()
    } else if setting.spec == Files::filename {
        // A colon separates names, unless it is written `\:`.
        let colons = bytes::replace(value, b"\\:", b"\0");
        let names: Vec<Vec<u8>> =
            colons.split(|byte| *byte == b':').map(|name| [prefix.as_bytes(), name].concat()).collect();
        bytes::replace(&names.join(&b':'), b"\0", b"\\:")
    } else {
        return setting.clone();
    };
    Setting { value: Some(OsString::from_vec(value)), ..setting.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::testing::{read_with, settings, settings as settings_of};

    const FILES: [(&str, &str); 2] =
        [("j.fio", "[global]\nbs=1k\n[j]\nrw=read\n"), ("k.fio", "[k]\n[l]\nrw=write\n")];

    fn of(arguments: &[&str]) -> Vec<String> {
        let shown = |part: ClientPart| {
            let names: Vec<String> = part
                .sections
                .iter()
                .map(|section| format!("{}[{}]", section.name.display(), settings(&section.global)))
                .collect();
            let globals = settings(&part.globals);
            format!("{} {:?} {globals} {:?}", names.join(" "), part.waiting, part.remote_config)
        };
        parts(&read_with(arguments, &FILES).unwrap()).into_iter().map(shown).collect()
    }

    #[test]
    fn job_files_belong_to_the_client_before_them() {
        assert_eq!(
            of(&["--client=a", "j.fio", "--client=b", "j.fio", "k.fio"]),
            ["j[bs=1k] [] bs=1k None", "j[bs=1k] k[] l[] [1]  None"]
        );
        assert_eq!(of(&["j.fio", "--client=a", "--client=b"]), ["j[bs=1k] [] bs=1k None"; 2]);
    }

    // divergence: options of jobs behind the file of a `--client`
    #[test]
    fn options_of_jobs_hold_in_the_first_file_of_each_client() {
        assert_eq!(
            of(&["--client=a", "k.fio", "--client=b", "k.fio", "j.fio", "--size=1m"]),
            ["k[size=1m] l[size=1m] [] size=1m None", "k[size=1m] l[size=1m] j[bs=1k] [2] bs=1k None"]
        );
    }

    // Observed of fio 3.33.
    #[test]
    fn files_below_a_directory_begin_with_the_address() {
        let named = |settings: &[(&'static Spec, &str)]| {
            let mut sections = [Section::new("a").with(settings.iter().copied())];
            name_files(&mut sections, "db1");
            settings_of(&sections[0].own)
        };
        let directory = (Files::directory, "/d");
        assert_eq!(named(&[directory]), "directory=/d filename_format=db1.$jobname.$jobnum.$filenum");
        assert_eq!(
            named(&[directory, (Files::filename_format, "$clientuid.x")]),
            "directory=/d filename_format=db1.db1.x"
        );
        assert_eq!(
            named(&[directory, (Files::filename, r"n:m\:o")]),
            concat!(
                r"directory=/d filename=db1.n:db1.m\:o ",
                "filename_format=db1.$jobname.$jobnum.$filenum"
            )
        );
        assert_eq!(named(&[(Files::filename_format, "$clientuid.y")]), "filename_format=db1.y");
        assert_eq!(named(&[directory, (Files::unique_filename, "0")]), "directory=/d unique_filename=0");
        assert_eq!(named(&[(Files::filename, "/dev/sdb")]), "filename=/dev/sdb");
    }

    // divergence: `--remote-config` with several `--client`
    #[test]
    fn jobs_and_files_of_the_server_belong_to_the_client_before_them() {
        assert_eq!(
            of(&["--client=a", "--name=x", "--client=b", "--remote-config=/s.fio"]),
            ["x[] []  None", " []  Some(\"/s.fio\")"]
        );
    }
}
