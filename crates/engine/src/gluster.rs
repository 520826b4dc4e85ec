//! What the two engines over GlusterFS's library share: the volume, and the job's files in it.
//!
//! Invariant: a file that the job may read is as long as the job expects before its first operation.

use std::ffi::{CStr, CString};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use fiord_options::job::JobOptions;
use fiord_plan::{Action, EngineTests, FileIndex, Need, Op, Tested};
use fiord_sys::errno::Errno;
use fiord_sys::library::gluster::{FileCommand, Volume, VolumeFile, rooted};
use fiord_sys::library::patience::wait_for;
use fiord_sys::library::{Connection, LibraryError, Part};
use fiord_sys::signal;
use fiord_sys::width::to_usize;

use crate::ceph::{name, shown, text};
use crate::contract::{NamedTarget, Outcome};
use crate::library_engine::{sentence, whole_or_error};

/// What the examples of these engines need.
pub(crate) const VOLUME: &[Need] = &[Need {
    what: "a GlusterFS volume named example (package glusterfs-server)",
    check: "timeout 20 gluster volume status example",
}];

const TESTS: &str = "tests/servers/cases/gluster.rs";

/// The tests of both engines, on a volume of one brick.
pub(crate) const TESTED: EngineTests = EngineTests {
    data: Tested::By(TESTS, "data_are_those_of_the_bricks_file"),
    counts: Tested::By(TESTS, "counts_are_those_of_fio"),
    short: Tested::Never("an answer is whole, or an error"),
    interrupted: Tested::By(TESTS, "a_process_that_is_stopped_and_continued_loses_no_io"),
    error: Tested::By(TESTS, "what_is_missing_is_named_and_a_brick_that_is_gone_fails"),
    gone: Tested::By(TESTS, "what_is_missing_is_named_and_a_brick_that_is_gone_fails"),
    stuck: Tested::By(TESTS, "a_brick_that_has_stopped_does_not_hold_up_the_end"),
    given_back: Tested::By(TESTS, "jobs_give_back_what_they_took"),
};

/// Bytes written at once to a file that is laid out.
const LAY_OUT_BYTES: usize = 1 << 20;

/// Which volume.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Its name.
    pub volume: Option<CString>,
    /// A host that manages it.
    pub brick: Option<CString>,
    /// One connection for all jobs that want one.
    pub shared: bool,
}

/// The volumes that jobs share.
static SHARED: Mutex<Vec<(CString, CString, Weak<Volume>)>> = Mutex::new(Vec::new());

impl Settings {
    /// Those of a job's options.
    pub(crate) fn of(options: &JobOptions) -> Settings {
        let own = &options.gluster;
        Settings {
            volume: own.volume.as_ref().and_then(text),
            brick: own.brick.as_ref().and_then(text),
            shared: own.single_instance,
        }
    }

    /// Connects to the volume; blocks until its host answers.
    fn connect(&self) -> io::Result<Arc<Volume>> {
        let (Some(volume), Some(brick)) = (self.volume.clone(), self.brick.clone()) else {
            return Err(io::Error::other("the engine needs volume= and brick="));
        };
        let mut shared = self.shared.then(|| SHARED.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(shared) = &shared {
            let same =
                |(name, host, _): &&(CString, CString, Weak<Volume>)| *name == volume && *host == brick;
            if let Some(open) = shared.iter().find(same).and_then(|(.., open)| open.upgrade()) {
                return Ok(open);
            }
        }
        let (wanted, host) = (volume.clone(), brick.clone());
        let opened = wait_for("glfs_init", move || Volume::open(&wanted, &host));
        let opened = opened
            .map_err(|error| io::Error::other(sentence(error, |call, errno| self.hint(call, errno)).1))?;
        if let Some(shared) = &mut shared {
            shared.retain(|(.., open)| open.strong_count() > 0);
            shared.push((volume, brick, Arc::downgrade(&opened)));
        }
        Ok(opened)
    }

    /// The usual cause of an error, and what to do.
    fn hint(&self, call: &str, errno: i32) -> String {
        let text = |name: &Option<CString>| name.as_ref().map_or_else(String::new, shown);
        let (volume, brick) = (text(&self.volume), text(&self.brick));
        match (call, errno) {
            ("glfs_init", libc::ENOENT) => {
                format!("{brick} has no volume {volume}, or it is not started; see `gluster volume info`")
            }
            ("glfs_init", _) => {
                format!("no glusterd answers on {brick}, port 24007; set brick= to a host of the volume")
            }
            ("glfs_creat", libc::ENOENT) => {
                "its directory does not exist in the volume; create it".to_string()
            }
            _ => String::new(),
        }
    }
}

/// The open files of a job in one volume.
pub(crate) struct VolumeFiles {
    settings: Settings,
    volume: Option<Arc<Volume>>,
    /// By file.
    open: Box<[Option<VolumeFile>]>,
}

impl VolumeFiles {
    /// None yet, of at most so many.
    pub(crate) fn new(settings: &Settings, files: usize) -> VolumeFiles {
        VolumeFiles { settings: settings.clone(), volume: None, open: (0..files).map(|_| None).collect() }
    }

    /// Opens a file, and creates or extends it as the job needs it.
    ///
    /// # Errors
    /// What failed, and what to do.
    pub(crate) fn open(&mut self, file: FileIndex, target: &NamedTarget<'_>) -> io::Result<()> {
        let path =
            name(target.name.as_os_str()).ok_or_else(|| io::Error::other("a name with a zero byte"))?;
        let volume = match &self.volume {
            Some(volume) => Arc::clone(volume),
            None => Arc::clone(self.volume.insert(self.settings.connect()?)),
        };
        let (path, writable, length_bytes) = (rooted(&path), target.writable, target.length_bytes);
        let opened = wait_for("glfs_open", move || prepared(&volume, &path, writable, length_bytes));
        let opened = opened.map_err(|error| {
            io::Error::other(sentence(error, |call, errno| self.settings.hint(call, errno)).1)
        })?;
        let place = self.open.get_mut(file as usize).ok_or_else(|| io::Error::from(Errno(libc::EBADF)))?;
        *place = Some(opened);
        Ok(())
    }

    /// Closes a file.
    pub(crate) fn close(&mut self, file: FileIndex) {
        if let Some(place) = self.open.get_mut(file as usize) {
            *place = None;
        }
    }

    /// An open file.
    pub(crate) fn get(&self, file: FileIndex) -> Option<&VolumeFile> {
        self.open.get(file as usize)?.as_ref()
    }

    /// Leaves all as it is, because operations are in flight that may never end.
    pub(crate) fn abandon(&mut self) {
        std::mem::take(&mut self.open).into_iter().flatten().for_each(VolumeFile::abandon);
        std::mem::forget(self.volume.take());
        Connection::abandon_all();
    }
}

/// An open file of this length or more: a job that only reads it finds data in it, as in fio.
fn prepared(
    volume: &Arc<Volume>,
    path: &CStr,
    writable: bool,
    length_bytes: u64,
) -> Result<VolumeFile, LibraryError> {
    let present = VolumeFile::open(volume, path, writable, false);
    let file = match present {
        Err(LibraryError::Call(_, Errno(libc::ENOENT))) => VolumeFile::open(volume, path, writable, true)?,
        present => present?,
    };
    let present_bytes = file.length_bytes()?;
    if present_bytes >= length_bytes {
        return Ok(file);
    }
    if writable {
        file.set_length(length_bytes)?;
        return Ok(file);
    }
    // A file that is open for reading alone cannot be written.
    let laid_out = VolumeFile::open(volume, path, true, false)?;
    lay_out("glfs_pwrite", present_bytes..length_bytes, |bytes, offset_bytes| {
        laid_out.write_at(bytes, offset_bytes)
    })?;
    Ok(file)
}

/// Writes data that does not repeat to a part of a file, by `write`, which is `call` of a library: what it wrote of the bytes,
/// at an offset.
pub(crate) fn lay_out(
    call: &'static str,
    part_bytes: Range<u64>,
    write: impl Fn(&[u8], u64) -> Result<usize, Errno>,
) -> Result<(), LibraryError> {
    let mut state = part_bytes.start ^ 0x9e37_79b9_7f4a_7c15;
    let mut buffer = vec![0_u8; LAY_OUT_BYTES];
    let mut at_bytes = part_bytes.start;
    while at_bytes < part_bytes.end {
        if signal::stop_requested().is_some() {
            return Err(LibraryError::Stopped(call));
        }
        for word in buffer.chunks_exact_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_ne_bytes());
        }
        let length = to_usize((part_bytes.end - at_bytes).min(LAY_OUT_BYTES as u64));
        match write(&buffer[..length], at_bytes).map_err(|errno| LibraryError::Call(call, errno))? {
            0 => return Err(LibraryError::Call(call, Errno(libc::ENOSPC))),
            written => at_bytes += written as u64,
        }
    }
    Ok(())
}

/// What the library is asked for, and with which part of a file.
pub(crate) fn command(op: &Op, buffer: *mut u8) -> (FileCommand, Part) {
    let command = match op.action {
        Action::Read => FileCommand::Read,
        Action::Write => FileCommand::Write,
        Action::Trim | Action::ResetZone => FileCommand::Discard,
        Action::Sync | Action::RangeSync(_) => FileCommand::Sync,
        Action::DataSync => FileCommand::DataSync,
    };
    (command, Part { buffer, length_bytes: op.length_bytes, offset_bytes: op.offset_bytes })
}

/// How an operation ended, by the library's result: bytes transferred, 0, or the negative error number.
pub(crate) fn outcome(op: &Op, result: i64) -> Outcome {
    match result {
        0.. if op.action.transfers() => Outcome::from_result(result),
        _ => whole_or_error(op, result),
    }
}

/// The usual cause of an operation's error.
pub(crate) fn explain(errno: i32) -> Option<&'static str> {
    match errno {
        libc::ENOTCONN => Some("the volume's brick is gone; see `gluster volume status`"),
        libc::EIO => Some("the volume reports an error; see `gluster volume status` and the brick's log"),
        libc::EROFS => Some("the volume is read-only, or has lost its quorum; see `gluster volume status`"),
        _ => None,
    }
}
