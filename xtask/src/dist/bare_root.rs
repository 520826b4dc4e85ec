//! The static binary in a root file system that has nothing for it: an empty one, or one that is named, such as Alpine's.
//!
//! Invariant: what it writes is below one directory of that root, which is removed afterwards.

use std::path::Path;
use std::process::Command;

use super::chroot;
use super::tree::said;
use crate::repo;

/// The directory of the binary and its files in the root.
const PLACE: &str = "fiord-tried-here";

/// Where the kernel's file systems are mounted.
const MOUNTED: [&str; 2] = ["proc", "sys"];

/// Without the file of `verify_state_save`, which would be in the root's first directory.
const JOB: &str = "--name=mixed --directory={} --size=8m --rw=randrw --bs=4k --verify=crc32c --verify_state_save=0 \
     --output-format=json";

const STUDIES: [&str; 2] = [
    "quick --time 5s --size 16m --json --trust=off {}",
    "sweep --time 2s --json --trust=off --repeat=1 --rw=randread --bs=4k --size=8m --directory={} --over iodepth=1,4",
];

/// Runs a job, studies and the page of a run there: in `root`, or in an empty one that is made and removed.
pub fn run(binary: &Path, root: Option<&Path>) -> Result<(), String> {
    chroot::is_possible()?;
    let empty = repo::target_dir().join("bare-root");
    if let Some(lacking) = root.and_then(|root| MOUNTED.iter().find(|name| !root.join(name).is_dir())) {
        let root = root.unwrap_or(&empty).display();
        return Err(format!("{root}: no root file system: it has no directory {lacking}"));
    }
    let place = Place { root: root.unwrap_or(&empty), is_root_made: root.is_none() };
    place.make(binary)?;
    place.runs_a_job()?;
    place.runs_studies()?;
    place.makes_a_page()
}

struct Place<'a> {
    root: &'a Path,
    is_root_made: bool,
}

impl Place<'_> {
    fn make(&self, binary: &Path) -> Result<(), String> {
        let mounted: &[&str] = if self.is_root_made { &MOUNTED } else { &[] };
        for directory in mounted.iter().chain(&[PLACE]) {
            let directory = self.root.join(directory);
            std::fs::create_dir_all(&directory).map_err(|error| said(&directory, &error))?;
        }
        let copied = std::fs::copy(binary, self.root.join(PLACE).join("fiord"));
        copied.map(drop).map_err(|error| said(binary, &error))
    }

    /// fiord with these arguments, in which `{}` is the place. Its history is there as well.
    fn fiord(&self, arguments: &str) -> Command {
        let home = format!("/{PLACE}");
        let arguments = arguments.replace("{}", &home);
        let binary = format!("{home}/fiord");
        let words: Vec<&str> = [binary.as_str()].into_iter().chain(arguments.split(' ')).collect();
        let mut command = chroot::command(self.root, &words);
        command.env("HOME", home);
        command
    }

    fn runs_a_job(&self) -> Result<(), String> {
        let report = chroot::json(self.fiord(JOB))?;
        let job = &report["jobs"][0];
        let did = |direction: &str| job[direction]["total_ios"].as_u64().is_some_and(|ios| ios > 0);
        match job["error"].as_i64() == Some(0) && did("read") && did("write") {
            true => Ok(()),
            false => Err(format!("{JOB}: not every direction was measured: {report}")),
        }
    }

    fn runs_studies(&self) -> Result<(), String> {
        STUDIES.iter().try_for_each(|study| chroot::study(self.fiord(study)))
    }

    /// Of the newest run in the history.
    fn makes_a_page(&self) -> Result<(), String> {
        repo::output_of(self.fiord("report last -o {}/page.html"))?;
        let path = self.root.join(PLACE).join("page.html");
        let page = std::fs::read_to_string(&path).map_err(|error| said(&path, &error))?;
        match page.contains("</html>") {
            true => Ok(()),
            false => Err(format!("{}: the page does not end", path.display())),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // What remains is found by the next run, which writes over it.
        let _ = std::fs::remove_dir_all(self.root.join(PLACE));
        if self.is_root_made {
            let _ = std::fs::remove_dir_all(self.root);
        }
    }
}
