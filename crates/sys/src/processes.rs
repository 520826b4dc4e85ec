//! The processes of this machine, from `/proc`.
//!
//! Invariant: one that ends meanwhile, or that this user may not look at, is absent.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Longer than any chain of parents: a limit in case processes change while it is followed.
const PARENTS_MAX: usize = 256;

/// A thread, and the process that it belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadFacts {
    /// The process.
    pub process: i32,
    /// The name of the process.
    pub name: String,
    /// Its control group of version 2, or of the controller `blkio` of version 1: `/system.slice/db.service`.
    pub cgroup: Option<String>,
    /// Whether it is a thread of the kernel.
    pub is_kernel: bool,
}

/// Of a thread by its number.
///
/// # Errors
/// It has ended.
pub fn of_thread(thread: i32) -> io::Result<ThreadFacts> {
    let status = fs::read_to_string(format!("/proc/{thread}/status"))?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    let process = process.unwrap_or(thread);
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
    Ok(ThreadFacts {
        process,
        name: name_of(process)?,
        cgroup: parse_group(&groups),
        is_kernel: is_kernel(&fs::read_to_string(format!("/proc/{thread}/stat"))?),
    })
}

/// Whether a process is one of these, or was started by one or by its descendants, as far as their parents still run.
pub fn descends_from(process: i32, ancestors: &[i32]) -> bool {
    let parent = |child: &i32| {
        let status = fs::read_to_string(format!("/proc/{child}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
    };
    std::iter::successors(Some(process), parent).take(PARENTS_MAX).any(|one| ancestors.contains(&one))
}

/// Whether a process is in this control group or one below it, in any hierarchy.
pub fn is_in_group(process: i32, group: &Path) -> bool {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
    groups.lines().filter_map(|line| line.splitn(3, ':').nth(2)).any(|own| Path::new(own).starts_with(group))
}

/// What each process, its threads that have ended included, has had written to disks or made dirty in the page cache, in bytes:
/// number, name, bytes without what was taken back.
pub fn written_bytes() -> Vec<(i32, String, u64)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let written = processes.filter_map(|process| {
        let text = fs::read_to_string(format!("/proc/{process}/io")).ok()?;
        let field = |name: &str| -> Option<u64> {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok())
        };
        let bytes = field("write_bytes")?.saturating_sub(field("cancelled_write_bytes")?);
        Some((process, name_of(process).ok()?, bytes))
    });
    written.collect()
}

/// The processes of this user: number, name, and the words that they were started with.
pub fn command_lines(user: u32) -> Vec<(u32, String, Vec<Vec<u8>>)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let own = entries.filter(|entry| entry.metadata().is_ok_and(|known| known.uid() == user));
    let process = |entry: fs::DirEntry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let words = line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        Some((id, name_of(id.cast_signed()).ok()?, words))
    };
    own.filter_map(process).collect()
}

/// The variables that a process was started with; `None` if it does not tell.
pub fn environment(process: u32) -> Option<BTreeMap<OsString, OsString>> {
    let bytes = fs::read(format!("/proc/{process}/environ")).ok()?;
    let variable = |text: &[u8]| {
        let equals = text.iter().position(|byte| *byte == b'=')?;
        let word = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        Some((word(&text[..equals]), word(&text[equals + 1..])))
    };
    Some(bytes.split(|byte| *byte == 0).filter_map(variable).collect())
}

fn name_of(process: i32) -> io::Result<String> {
    let name = fs::read(format!("/proc/{process}/comm"))?;
    Ok(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}

/// The flags are the seventh field behind the name, which may contain anything.
fn is_kernel(stat: &str) -> bool {
    const PF_KTHREAD: u64 = 0x0020_0000;
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    let flags: Option<u64> = behind.split_whitespace().nth(6).and_then(|flags| flags.parse().ok());
    flags.is_some_and(|flags| flags & PF_KTHREAD != 0)
}

/// Lines are `4:memory:/a/b`; of version 2 `0::/a/b`, which only counts if it is not the root.
fn parse_group(text: &str) -> Option<String> {
    let fields = |line: &'_ str| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        Some((controllers.to_owned(), path.to_owned()))
    };
    let groups: Vec<(String, String)> = text.lines().filter_map(fields).collect();
    let unified = groups.iter().find(|(controllers, path)| controllers.is_empty() && path != "/");
    let blkio = || groups.iter().find(|(controllers, _)| controllers.split(',').any(|one| one == "blkio"));
    unified.or_else(blkio).or(groups.first()).map(|(_, path)| path.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_is_of_this_process() {
        let found = of_thread(crate::thread::id()).unwrap();
        assert_eq!((found.process, found.is_kernel), (std::process::id().cast_signed(), false));
        assert!(!found.name.is_empty());
        assert!(of_thread(-1).is_err());
        let lines = command_lines(crate::process::effective_user());
        let (_, name, words) = lines.into_iter().find(|(id, ..)| *id == std::process::id()).unwrap();
        let program = std::env::args_os().next().unwrap();
        let path = environment(std::process::id()).unwrap().remove(std::ffi::OsStr::new("PATH"));
        assert_eq!(path, std::env::var_os("PATH"));
        assert_eq!((name, words[0].as_slice()), (found.name.clone(), program.as_encoded_bytes()));
        let ours = written_bytes().into_iter().find(|(process, ..)| *process == found.process);
        assert!(ours.is_none_or(|(_, name, _)| name == found.name));
    }

    #[test]
    fn parents_and_groups_are_followed() {
        let own = std::process::id().cast_signed();
        assert!(
            descends_from(own, &[own])
                && descends_from(own, &[-1, std::os::unix::process::parent_id().cast_signed()])
        );
        assert!(!descends_from(own, &[-1]) && !descends_from(own, &[]) && !descends_from(-1, &[own]));
        assert!(is_in_group(own, Path::new("/")) && !is_in_group(own, Path::new("/fiord-no-such-group")));
        assert!(!is_in_group(-1, Path::new("/")));
    }

    #[test]
    fn a_thread_of_the_kernel_is_known_by_its_flags() {
        assert!(is_kernel("12 (kworker/0:1) ) I 2 0 0 0 -1 69238880 0"));
        assert!(!is_kernel("12 (kworker) S 1 12 12 0 -1 4194304 0"));
        assert!(!is_kernel(""));
    }

    #[test]
    fn the_group_is_the_one_whose_io_is_counted() {
        let of = |text| parse_group(text);
        assert_eq!(of("0::/system.slice/db.service\n").as_deref(), Some("/system.slice/db.service"));
        assert_eq!(of("5:cpu:/a\n4:blkio:/b\n0::/\n").as_deref(), Some("/b"));
        assert_eq!((of("0::/\n").as_deref(), of("")), (Some("/"), None));
    }
}
