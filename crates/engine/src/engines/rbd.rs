//! rbd: an image of Ceph's block device, by librbd, without a device of this machine.
//!
//! Invariant: the image is opened with the job's first file, and closed when nothing of it is in flight.

use std::ffi::{CString, c_void};
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fiord_options::job::JobOptions;
use fiord_plan::{
    Action, EngineDescriptor, EngineName, EngineSettings, Example, FileIndex, Geometry, NoGeometry, Op,
    Queueing,
};
use fiord_sys::errno::Errno;
use fiord_sys::library::Part;
use fiord_sys::library::patience::wait_for;
use fiord_sys::library::rbd::{self, Encryption, EncryptionFormat, Image, ImageCommand, ImageName};

use crate::boxed::BoxedQueued;
use crate::ceph::{CLUSTER, ClusterSettings, TESTED, shown, text};
use crate::contract::{NamedTarget, Outcome};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::library_engine::{LibraryEngine, Session, descriptor, sentence, whole_or_error};

/// How long the size of an image that was asked for is taken as known: as long as jobs on the same image are planned.
const KNOWN_FOR: Duration = Duration::from_secs(10);

/// The engine.
#[derive(Debug)]
pub struct Rbd;

/// Its settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The cluster.
    pub cluster: ClusterSettings,
    /// The image.
    pub image: Option<CString>,
    /// The format of its encryption.
    pub format: Option<CString>,
    /// The passphrase of its encryption.
    pub passphrase: Option<CString>,
}

impl Settings {
    /// Those of a job's options.
    fn of(options: &JobOptions) -> Settings {
        let own = &options.rbd;
        Settings {
            cluster: ClusterSettings::of(&options.ceph),
            image: own.rbdname.as_ref().and_then(text),
            format: own.rbd_encryption_format.as_ref().and_then(text),
            passphrase: own.rbd_encryption_passphrase.as_ref().and_then(text),
        }
    }

    /// The image that they name; otherwise which option is missing or wrong.
    fn name(&self) -> Result<ImageName, String> {
        let missing = |what: &str| format!("the engine needs {what}");
        let encryption = match (&self.format, &self.passphrase) {
            (None, None) => None,
            (Some(format), Some(passphrase)) => {
                let format = match format.to_bytes() {
                    b"luks" => EncryptionFormat::Luks,
                    b"luks1" => EncryptionFormat::Luks1,
                    b"luks2" => EncryptionFormat::Luks2,
                    _ => {
                        let format = shown(format);
                        return Err(format!("rbd_encryption_format={format} is not luks, luks1 or luks2"));
                    }
                };
                Some(Encryption { format, passphrase: passphrase.clone() })
            }
            _ => {
                return Err(missing(
                    "both rbd_encryption_format= and rbd_encryption_passphrase=, or neither",
                ));
            }
        };
        Ok(ImageName {
            cluster: self.cluster.name.clone(),
            pool: self.cluster.pool.clone().ok_or_else(|| missing("pool="))?,
            image: self.image.clone().ok_or_else(|| missing("rbdname="))?,
            encryption,
        })
    }

    /// Opens the image; blocks until the cluster answers.
    fn connect(&self, writable: bool) -> Result<Image, (Errno, String)> {
        let name = self.name().map_err(|wrong| (Errno(libc::EINVAL), wrong))?;
        let opened = wait_for("rbd_open", move || Image::open(&name, writable));
        opened.map_err(|error| sentence(error, |call, errno| self.hint(call, errno)))
    }

    /// The usual cause of an error, and what to do.
    fn hint(&self, call: &str, errno: i32) -> String {
        let text = |name: &Option<CString>| name.as_ref().map_or_else(String::new, shown);
        let (pool, image) = (text(&self.cluster.pool), text(&self.image));
        match (call, errno) {
            ("rbd_open", libc::ENOENT) => {
                format!(
                    "the pool {pool} has no image {image}; create it: rbd create {pool}/{image} --size SIZE"
                )
            }
            ("rbd_encryption_load", _) => {
                format!("the image {image} is not encrypted in this format and with this passphrase")
            }
            _ => self.cluster.hint(call, errno),
        }
    }

    /// The size of the image in bytes.
    fn size_bytes(&self) -> Result<u64, (Errno, String)> {
        type Answer = Result<u64, (Errno, String)>;
        static KNOWN: Mutex<Option<(Settings, Instant, Answer)>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((settings, since, answer)) if settings == self && since.elapsed() < KNOWN_FOR => {
                return answer.clone();
            }
            _ => {}
        }
        let size = |image: Image| {
            image.size_bytes().map_err(|error| sentence(error, |call, errno| self.hint(call, errno)))
        };
        let answer = self.connect(false).and_then(size);
        *known = Some((self.clone(), Instant::now(), answer.clone()));
        answer
    }
}

impl EngineDefinition for Rbd {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        geometry: Some(geometry),
        settings: |options| EngineSettings::new(Settings::of(options)),
        tests: Some(TESTED),
        example: Some(Example {
            text: "Random reads of an image, 32 at a time.",
            commands: "rbd create rbd/example --size 64M\n\
                 fiord --name=example --ioengine=rbd --pool=rbd --rbdname=example --iodepth=32 --rw=randread --bs=4k\n\
                 rbd rm rbd/example",
            needs: CLUSTER,
        }),
        ..descriptor(
            EngineName::Rbd,
            "image of Ceph's block device (librbd)",
            Queueing::Queued,
            |_, errno| explain(errno),
        )
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let arena = setup.arena;
        if let Err(unavailable) = rbd::is_available() {
            return visitor.queued::<BoxedQueued<'_>>(Err(unavailable.into()));
        }
        let session = Box::new(RbdSession { settings: settings.clone(), image: None });
        visitor.queued(Ok(BoxedQueued::new(LibraryEngine::new(arena, session, settings.cluster.busy))))
    }
}

fn geometry(settings: &EngineSettings, _target: &Path) -> Result<Geometry, NoGeometry> {
    let size_bytes = settings.get::<Settings>().map_or(Ok(0), Settings::size_bytes);
    match size_bytes {
        Ok(size_bytes) => Ok(Geometry { size_bytes: Some(size_bytes), block_bytes: 1 }),
        Err((errno, reason)) => Err(NoGeometry { errno, reason }),
    }
}

/// The usual cause of an operation's error.
fn explain(errno: i32) -> Option<&'static str> {
    match errno {
        libc::EINVAL => Some("the image ends before the end of this operation; see `rbd info`"),
        libc::EROFS => Some("the image is read-only: a snapshot, or the secondary of a mirror"),
        libc::EPERM | libc::EACCES => Some("the client may not do this; see `ceph auth get`"),
        libc::ESHUTDOWN => Some("the cluster has excluded this client; see `ceph osd blocklist ls`"),
        _ => None,
    }
}

/// One image.
struct RbdSession {
    settings: Settings,
    image: Option<Image>,
}

impl Session for RbdSession {
    fn open(&mut self, _file: FileIndex, target: &NamedTarget<'_>) -> io::Result<()> {
        if self.image.is_none() {
            let image = self.settings.connect(target.writable);
            self.image = Some(image.map_err(|(_, reason)| io::Error::other(reason))?);
        }
        Ok(())
    }

    fn close(&mut self, _file: FileIndex) {}

    unsafe fn start(&mut self, op: &Op, buffer: *mut u8, ticket: *mut c_void) -> Result<(), Errno> {
        let command = match op.action {
            Action::Read => ImageCommand::Read,
            Action::Write => ImageCommand::Write,
            Action::Trim | Action::ResetZone => ImageCommand::Discard,
            Action::Sync | Action::DataSync | Action::RangeSync(_) => ImageCommand::Flush,
        };
        let part = Part { buffer, length_bytes: op.length_bytes, offset_bytes: op.offset_bytes };
        match &self.image {
            // SAFETY: the caller vouches for ticket and memory, and for the life of the session.
            Some(image) => unsafe { image.start(command, part, ticket) },
            None => {
                // SAFETY: the ticket was not used.
                unsafe { fiord_sys::library::HandOver::cancel(ticket) };
                Err(Errno(libc::EBADF))
            }
        }
    }

    fn outcome(&mut self, op: &Op, _part: &mut [u8], result: i64) -> Outcome {
        whole_or_error(op, result)
    }

    fn abandon(mut self: Box<Self>) {
        if let Some(image) = self.image.take() {
            image.abandon();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let named = |text: &str| CString::new(text).ok();
        let plain = Settings {
            cluster: ClusterSettings { pool: named("p"), ..ClusterSettings::default() },
            image: named("i"),
            ..Settings::default()
        };
        assert!(plain.name().is_ok());
        let without_pool = Settings { cluster: ClusterSettings::default(), ..plain.clone() };
        let without_image = Settings { image: None, ..plain.clone() };
        let half = Settings { format: named("luks2"), ..plain.clone() };
        let unknown = Settings { format: named("aes"), passphrase: named("x"), ..plain.clone() };
        for (settings, word) in
            [(without_pool, "pool="), (without_image, "rbdname="), (half, "passphrase"), (unknown, "aes")]
        {
            let wrong = settings.name().unwrap_err();
            assert!(wrong.contains(word), "{wrong}");
        }
        let luks = Settings { format: named("luks2"), passphrase: named("x"), ..plain };
        assert!(luks.name().unwrap().encryption.is_some_and(|given| given.format == EncryptionFormat::Luks2));
    }
}
