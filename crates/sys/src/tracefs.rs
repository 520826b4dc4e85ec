//! The kernel's tracepoints, through an instance of tracefs of its own.
//!
//! Invariant: the buffers and events of others are not touched, nothing is mounted where others see it, and the instance is
//! removed on drop; one that a killed process has left is removed by the next.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::poll::{self, Until};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Where it is mounted, if it is: the second by debugfs, alone before Linux 4.1.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Instances are called by this, and the process id.
const PREFIX: &str = "fiord-";

/// The file that could not be used, and why.
pub type TraceError = (PathBuf, io::Error);

/// What the kernel hands out at a time at most; pages are as large as the processor's unless someone has enlarged them.
const PAGE_BYTES: usize = 64 << 10;

/// How many pages of a processor are taken at a time at most, so that an end is reached where events are made faster than taken.
const PAGES_MAX: usize = 4096;

/// The pages of an instance, of all processors.
#[derive(Debug)]
pub struct TracePages {
    files: Vec<File>,
    page: Vec<u8>,
}

impl TracePages {
    /// Takes the pages that were recorded since the last call, with the place of their processor among all, those of each in
    /// turn and in the order of time, also the one being filled. Returns whether these are all.
    ///
    /// # Errors
    /// A page cannot be read.
    pub fn take(&mut self, mut page: impl FnMut(usize, &[u8])) -> io::Result<bool> {
        let mut are_all = true;
        for (processor, file) in self.files.iter().enumerate() {
            let mut pages = 0;
            loop {
                match rustix::io::read(file, &mut self.page) {
                    Ok(0) => break,
                    Ok(bytes) => page(processor, &self.page[..bytes]),
                    Err(rustix::io::Errno::AGAIN) => break,
                    Err(rustix::io::Errno::INTR) => continue,
                    Err(error) => return Err(error.into()),
                }
                pages += 1;
                if pages == PAGES_MAX {
                    are_all = false;
                    break;
                }
            }
        }
        Ok(are_all)
    }
}

impl TracePages {
    /// Waits until something was recorded, at most this long; a signal ends it.
    pub fn wait(&self, limit: Duration) {
        let awaited: Vec<_> = self.files.iter().map(|file| (file.as_fd(), Until::Readable)).collect();
        // Whatever ends it, the pages are taken next.
        let _ = poll::wait_for_any(&awaited, Some(limit));
    }
}

/// An instance of tracefs. It records once `start` is called.
#[derive(Debug)]
pub struct TraceInstance {
    directory: PathBuf,
    /// The file system, if it is mounted for this process alone.
    _mount: Option<OwnedFd>,
}

impl TraceInstance {
    /// Makes an instance with this much room for each processor.
    ///
    /// # Errors
    /// The file that cannot be read or written, and why: without tracefs in the kernel, or without permission.
    pub fn create(buffer_bytes: u64) -> Result<TraceInstance, TraceError> {
        let (root, mount) = root()?;
        let instances = root.join("instances");
        remove_left(&instances);
        let directory = instances.join(format!("{PREFIX}{}", std::process::id()));
        at(&directory, fs::create_dir(&directory))?;
        let instance = TraceInstance { directory, _mount: mount };
        instance.write("tracing_on", "0")?;
        instance.write("trace_clock", "mono")?;
        instance.write("buffer_size_kb", &(buffer_bytes / 1024).to_string())?;
        Ok(instance)
    }

    /// Records events of this name, `block_rq_issue` of `block`, that this filter accepts.
    ///
    /// # Errors
    /// The file that cannot be written, and why: a kernel without this event.
    pub fn enable(&self, system: &str, event: &str, filter: &str) -> Result<(), TraceError> {
        self.write(&format!("events/{system}/{event}/filter"), filter)?;
        self.write(&format!("events/{system}/{event}/enable"), "1")
    }

    /// Whether this kernel has an event.
    pub fn has(&self, system: &str, event: &str) -> bool {
        self.directory.join(format!("events/{system}/{event}")).is_dir()
    }

    /// Records only these threads from now on, and those that they start; who waits for pages is woken by the first event.
    ///
    /// # Errors
    /// The file that cannot be written, and why.
    pub fn follow(&self, threads: &[i32]) -> Result<(), TraceError> {
        self.write("buffer_percent", "0")?;
        self.write("options/event-fork", "1")?;
        let threads: Vec<String> = threads.iter().map(i32::to_string).collect();
        self.write("set_event_pid", &threads.join(" "))
    }

    /// How the kernel lays out the records of an event: the text of its `format` file.
    ///
    /// # Errors
    /// The file that cannot be read, and why.
    pub fn format(&self, system: &str, event: &str) -> Result<String, TraceError> {
        let path = self.directory.join(format!("events/{system}/{event}/format"));
        at(&path, fs::read_to_string(&path))
    }

    /// What was recorded, page by page while it is recorded.
    ///
    /// # Errors
    /// The file that cannot be opened, and why.
    pub fn pages(&self) -> Result<TracePages, TraceError> {
        let processors = self.directory.join("per_cpu");
        let mut files = Vec::new();
        for entry in at(&processors, fs::read_dir(&processors))? {
            let path = at(&processors, entry)?.path().join("trace_pipe_raw");
            let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
            files.push(at(&path, opened)?);
        }
        Ok(TracePages { files, page: vec![0; PAGE_BYTES] })
    }

    /// Starts recording. The oldest events are overwritten if there is no more room.
    ///
    /// # Errors
    /// The file that cannot be written, and why.
    pub fn start(&self) -> Result<(), TraceError> {
        self.write("tracing_on", "1")
    }

    /// Stops recording; the pages that were filled can still be taken.
    ///
    /// # Errors
    /// The file that cannot be written, and why.
    pub fn stop(&self) -> Result<(), TraceError> {
        self.write("tracing_on", "0")
    }

    fn write(&self, name: &str, text: &str) -> Result<(), TraceError> {
        let path = self.directory.join(name);
        at(&path, fs::write(&path, text))
    }
}

impl Drop for TraceInstance {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next.
        let _ = self.write("tracing_on", "0");
        let _ = self.write("events/enable", "0");
        let _ = fs::remove_dir(&self.directory);
    }
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, TraceError> {
    result.map_err(|error| (path.to_path_buf(), error))
}

/// The file system, mounted for this process alone if it is not mounted.
fn root() -> Result<(PathBuf, Option<OwnedFd>), TraceError> {
    let mounted = MOUNTED.map(PathBuf::from);
    if let Some(mounted) = mounted.iter().find(|place| place.join("instances").is_dir()) {
        return Ok((mounted.clone(), None));
    }
    let mount = || -> io::Result<OwnedFd> {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
    };
    let mount = at(&mounted[0], mount())?;
    Ok((PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())), Some(mount)))
}

/// Removes instances of processes that have ended.
fn remove_left(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if process.is_some_and(has_ended) {
            drop(TraceInstance { directory: entry.path(), _mount: None });
        }
    }
}

/// Whether a process has ended, also if nobody has waited for it.
fn has_ended(process: u32) -> bool {
    let program = fs::read_link(format!("/proc/{process}/exe"));
    program.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn an_instance_records_and_leaves_nothing_behind() {
        let instance = match TraceInstance::create(256 << 10) {
            Ok(instance) => instance,
            Err((path, error)) => fiord_testing::skip!("{}: {error}", path.display()),
        };
        let directory = instance.directory.clone();
        let dead = directory.with_file_name(format!("{PREFIX}4194999"));
        fs::create_dir(&dead).unwrap();
        remove_left(directory.parent().unwrap());
        assert!(!dead.exists() && directory.exists());
        // One that has ended and was not waited for.
        let mut child = Command::new("true").stdout(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Read::read_to_end(child.stdout.as_mut().unwrap(), &mut Vec::new()).unwrap();
        while !has_ended(child.id()) {
            std::thread::yield_now();
        }
        let unwaited = directory.with_file_name(format!("{PREFIX}{}", child.id()));
        fs::create_dir(&unwaited).unwrap();
        remove_left(directory.parent().unwrap());
        assert!(!unwaited.exists() && directory.exists());
        child.wait().unwrap();
        instance.enable("sched", "sched_process_exec", "0").unwrap();
        instance.start().unwrap();
        assert!(Command::new("true").status().unwrap().success());
        let (path, error) = instance.enable("sched", "no_such_event", "0").unwrap_err();
        assert!(path.ends_with("events/sched/no_such_event/filter"), "{}: {error}", path.display());
        let format = instance.format("sched", "sched_process_exec").unwrap();
        assert!(format.contains("field:"), "{format}");
        let (mut bytes, mut pages) = (0, instance.pages().unwrap());
        instance.stop().unwrap();
        pages.take(|_, page| bytes += page.len()).unwrap();
        assert!(bytes >= 16, "{bytes} bytes of pages");
        drop((pages, instance));
        assert!(!directory.exists());
    }
}
