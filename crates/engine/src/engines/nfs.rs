//! nfs: files of an NFS server, by libnfs, without a mount of the kernel's.
//!
//! Invariant: the library is used by the job's thread alone; it sends and receives while the engine waits.

use std::ffi::{CString, c_void};
use std::io;
use std::time::Duration;

use fiord_options::job::JobOptions;
use fiord_plan::{
    Action, EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, FileIndex, Need, Op,
    Queueing, Tested,
};
use fiord_sys::errno::Errno;
use fiord_sys::library::gluster::rooted;
use fiord_sys::library::nfs::{self, Export, ExportFile, FileCommand};
use fiord_sys::library::patience::wait_for;
use fiord_sys::library::{HandOver, LibraryError, Part};

use crate::boxed::BoxedQueued;
use crate::ceph::{name, shown, text};
use crate::contract::{NamedTarget, Outcome};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::gluster::{lay_out, outcome};
use crate::library_engine::{LibraryEngine, Session, descriptor, sentence, usable};

/// The engine.
#[derive(Debug)]
pub struct Nfs;

/// Its tests, on a directory that nfs-ganesha exports.
const TESTS: &str = "tests/servers/cases/nfs.rs";

const TESTED: EngineTests = EngineTests {
    data: Tested::By(TESTS, "data_are_those_of_the_exported_file"),
    counts: Tested::By(TESTS, "counts_are_those_of_the_jobs"),
    short: Tested::By(TESTS, "a_file_that_was_cut_off_ends_in_a_short_read"),
    interrupted: Tested::By(TESTS, "a_process_that_is_stopped_and_continued_loses_no_io"),
    error: Tested::By(TESTS, "errors_of_the_server_have_its_reasons"),
    gone: Tested::By(TESTS, "a_server_that_is_gone_fails_or_is_waited_for"),
    stuck: Tested::By(TESTS, "a_server_that_has_stopped_does_not_hold_up_the_end"),
    given_back: Tested::By(TESTS, "jobs_give_back_what_they_took"),
};

/// Its settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The exported directory.
    pub url: Option<CString>,
}

impl EngineDefinition for Nfs {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        settings: |options: &JobOptions| {
            EngineSettings::new(Settings { url: options.nfs.nfs_url.as_ref().and_then(text) })
        },
        tests: Some(TESTED),
        example: Some(Example {
            text: "Random writes to a file of a server, 16 at a time.",
            commands: "fiord --name=example --ioengine=nfs --nfs_url=nfs://localhost/example --iodepth=16 --rw=randwrite --size=16m",
            needs: &[Need {
                what: "an NFS server here that exports /example",
                check: "showmount -e localhost | grep /example",
            }],
        }),
        ..descriptor(EngineName::Nfs, "files of an NFS server (libnfs)", Queueing::Queued, |_, errno| {
            explain(errno)
        })
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        if let Err(refused) = usable(job, nfs::is_available) {
            return visitor.queued::<BoxedQueued<'_>>(Err(refused));
        }
        let files = (0..job.files).map(|_| None).collect();
        let session = NfsSession { settings: settings.clone(), export: None, files, slots: arena.count() };
        visitor.queued(Ok(BoxedQueued::new(LibraryEngine::new(arena, Box::new(session), false))))
    }
}

/// The usual cause of an operation's error.
fn explain(errno: i32) -> Option<&'static str> {
    match errno {
        libc::ECONNRESET => {
            Some("the connection is lost; see the server's log, or wait for it: autoreconnect=-1 in nfs_url")
        }
        libc::EDQUOT => Some("the quota of this user on the server is used up"),
        libc::EIO => {
            Some("the server reports an error, or the file is shorter than it was; see the server's log")
        }
        libc::ENOSPC => Some("the file system that the server exports is full"),
        libc::EOPNOTSUPP => Some("the engine nfs has no trims, since the protocol has none"),
        libc::EROFS => Some("the server exports the directory for reading only"),
        libc::ESTALE => Some("the file was removed on the server"),
        _ => None,
    }
}

/// The usual cause of an error, and what to do.
fn hint(url: Option<&CString>, call: &str, errno: i32) -> String {
    let url = url.map_or_else(String::new, shown);
    match (call, errno) {
        ("nfs_parse_url_dir", _) => {
            format!("{url} is not nfs://HOST/PATH, with ?OPTION=VALUE&... if needed; set nfs_url=")
        }
        ("nfs_mount", libc::EACCES | libc::ENOENT) => {
            format!("the server does not export the path of {url} to this machine; see `showmount -e HOST`")
        }
        ("nfs_mount", libc::EPERM) => format!("the host of {url} cannot be found"),
        ("nfs_mount", libc::EFAULT) => {
            format!("the server of {url} does not take the version of the protocol; set version=3 or 4 in it")
        }
        ("nfs_mount", _) => format!(
            "no server answers at {url}: see `rpcinfo HOST`; without a portmapper there, set nfsport= and mountport= in it"
        ),
        ("nfs_open", libc::EACCES | libc::EPERM) => {
            "the server does not let this user open it; see the squash and uid settings of its exports"
                .to_string()
        }
        ("nfs_open", libc::ENOENT) => "its directory does not exist on the server; create it".to_string(),
        ("nfs_open" | "nfs_fstat64", libc::EISDIR | libc::EINVAL) => {
            "it is not a regular file; set filename= to one".to_string()
        }
        (_, errno) => explain(errno).unwrap_or_default().to_string(),
    }
}

/// One export, and its files.
struct NfsSession {
    settings: Settings,
    export: Option<Export>,
    /// By file.
    files: Box<[Option<ExportFile>]>,
    slots: u32,
}

impl NfsSession {
    /// Sends and receives; what is in flight ends with an error if the connection is lost.
    fn serve(&mut self, at_most: Duration) -> io::Result<bool> {
        let Some(export) = &self.export else { return Err(Errno(libc::ENOTCONN).into()) };
        match export.serve(at_most) {
            Err(_) => {
                self.export = None;
                Ok(false)
            }
            served => served,
        }
    }
}

/// An open file of this length or more: a job that only reads it finds data in it.
fn prepared(
    export: &Export,
    path: &CString,
    writable: bool,
    length_bytes: u64,
) -> Result<ExportFile, LibraryError> {
    let file = match export.open_file(path, writable, writable) {
        Err(LibraryError::Call(_, Errno(libc::ENOENT))) => {
            let made = export.open_file(path, true, true)?;
            export.close(made);
            export.open_file(path, writable, false)?
        }
        opened => opened?,
    };
    let present_bytes = export.length_bytes(&file)?;
    if present_bytes < length_bytes && writable {
        export.set_length(&file, length_bytes)?;
    } else if present_bytes < length_bytes {
        let laid_out = export.open_file(path, true, false)?;
        let write = |bytes: &[u8], offset_bytes| export.write_at(&laid_out, bytes, offset_bytes);
        let done = lay_out("nfs_pwrite", present_bytes..length_bytes, write);
        export.close(laid_out);
        done?;
    }
    Ok(file)
}

impl Session for NfsSession {
    fn open(&mut self, file: FileIndex, target: &NamedTarget<'_>) -> io::Result<()> {
        let path =
            name(target.name.as_os_str()).ok_or_else(|| io::Error::other("a name with a zero byte"))?;
        let url = self
            .settings
            .url
            .clone()
            .ok_or_else(|| io::Error::other("the engine needs nfs_url=nfs://HOST/PATH"))?;
        let (path, writable, length_bytes) = (rooted(&path), target.writable, target.length_bytes);
        let (present, slots) = (self.export.take(), self.slots);
        // The connection comes back unless the run is stopped meanwhile.
        let opened = wait_for("nfs_mount", move || {
            let export = present.map_or_else(|| Export::open(&url, slots), Ok)?;
            let file = prepared(&export, &path, writable, length_bytes);
            Ok((export, file))
        });
        let hint = |call: &str, errno| hint(self.settings.url.as_ref(), call, errno);
        let refused = |error: LibraryError| io::Error::other(sentence(error, hint).1);
        let (export, opened) = opened.map_err(refused)?;
        self.export = Some(export);
        let opened = opened.map_err(refused)?;
        let place = self.files.get_mut(file as usize).ok_or_else(|| io::Error::from(Errno(libc::EBADF)))?;
        *place = Some(opened);
        Ok(())
    }

    fn close(&mut self, file: FileIndex) {
        let open = self.files.get_mut(file as usize).and_then(Option::take);
        let (Some(export), Some(open)) = (self.export.take(), open) else { return };
        // The connection comes back unless the run is stopped meanwhile.
        self.export = wait_for("nfs_close", move || {
            export.close(open);
            Ok(export)
        })
        .ok();
    }

    unsafe fn start(&mut self, op: &Op, buffer: *mut u8, ticket: *mut c_void) -> Result<(), Errno> {
        let part = Part { buffer, length_bytes: op.length_bytes, offset_bytes: op.offset_bytes };
        let command = match op.action {
            Action::Read => Some(FileCommand::Read),
            Action::Write => Some(FileCommand::Write),
            Action::Sync | Action::DataSync | Action::RangeSync(_) => Some(FileCommand::Sync),
            Action::Trim | Action::ResetZone => None,
        };
        match (&self.export, self.files.get(op.file as usize), command) {
            (Some(export), Some(Some(file)), Some(command)) => {
                // SAFETY: the caller vouches for ticket and memory, and for the life of the session; a slot has one
                // operation at a time.
                unsafe { export.start(command, file, part, ticket) }
            }
            (export, _, command) => {
                // SAFETY: the ticket was not used.
                unsafe { HandOver::cancel(ticket) };
                Err(Errno(match (export, command) {
                    (_, None) => libc::EOPNOTSUPP,
                    (None, _) => libc::ECONNRESET,
                    (Some(_), _) => libc::EBADF,
                }))
            }
        }
    }

    fn outcome(&mut self, op: &Op, _part: &mut [u8], result: i64) -> Outcome {
        outcome(op, result)
    }

    fn wait(&mut self, _ended: &HandOver, at_most: Duration) -> io::Result<bool> {
        self.serve(at_most)
    }

    fn poll(&mut self, _ended: &HandOver) -> io::Result<()> {
        match self.export {
            // Operations fail when they are started.
            None => Ok(()),
            Some(_) => self.serve(Duration::ZERO).map(drop),
        }
    }

    fn abandon(mut self: Box<Self>) {
        if let Some(export) = self.export.take() {
            export.abandon();
        }
    }
}
