//! rados: objects of a Ceph pool, by librados.
//!
//! Invariant: each file of the job is one object, of its name.

use std::ffi::{CString, c_void};
use std::io;

use fiord_options::job::JobOptions;
use fiord_plan::{Action, EngineDescriptor, EngineName, EngineSettings, Example, FileIndex, Op, Queueing};
use fiord_sys::errno::Errno;
use fiord_sys::library::patience::wait_for;
use fiord_sys::library::rados::{self, ObjectCommand, Pool};
use fiord_sys::library::{HandOver, Part};
use fiord_sys::width::to_usize;

use crate::boxed::BoxedQueued;
use crate::ceph::{CLUSTER, ClusterSettings, TESTED, name, shown};
use crate::contract::{NamedTarget, Outcome};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::library_engine::{LibraryEngine, Session, descriptor, sentence, usable, whole_or_error};

/// The engine.
#[derive(Debug)]
pub struct Rados;

/// Its settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The cluster.
    pub cluster: ClusterSettings,
    /// Create objects that do not exist.
    pub touches: bool,
}

impl EngineDefinition for Rados {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        settings: |options| EngineSettings::new(Settings::of(options)),
        tests: Some(TESTED),
        example: Some(Example {
            text: "Random writes to four objects, 16 at a time.",
            commands: "fiord --name=example --ioengine=rados --pool=rbd --nrfiles=4 --size=16m --iodepth=16 --rw=randwrite\n\
                 rados -p rbd rm example.0.0 example.0.1 example.0.2 example.0.3",
            needs: CLUSTER,
        }),
        ..descriptor(EngineName::Rados, "objects of a Ceph pool (librados)", Queueing::Queued, |_, errno| {
            explain(errno)
        })
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        if let Err(refused) = usable(job, rados::is_available) {
            return visitor.queued::<BoxedQueued<'_>>(Err(refused));
        }
        let session = RadosSession {
            settings: settings.clone(),
            pool: None,
            objects: (0..job.files).map(|_| None).collect(),
        };
        let engine = LibraryEngine::new(arena, Box::new(session), settings.cluster.busy);
        visitor.queued(Ok(BoxedQueued::new(engine)))
    }
}

impl Settings {
    /// Those of a job's options.
    fn of(options: &JobOptions) -> Settings {
        Settings { cluster: ClusterSettings::of(&options.ceph), touches: options.rados.touch_objects }
    }

    /// Opens the pool; blocks until the cluster answers.
    fn connect(&self) -> io::Result<Pool> {
        let pool = self.cluster.pool.clone().ok_or_else(|| io::Error::other("the engine needs pool="))?;
        let cluster = self.cluster.name.clone();
        let opened = wait_for("rados_connect", move || Pool::open(&cluster, &pool));
        opened.map_err(|error| {
            io::Error::other(sentence(error, |call, errno| self.cluster.hint(call, errno)).1)
        })
    }
}

/// The usual cause of an operation's error.
fn explain(errno: i32) -> Option<&'static str> {
    match errno {
        libc::ENOENT => Some("there is no such object; write it first, or leave out touch_objects=0"),
        libc::EFBIG | libc::E2BIG => {
            Some("the object would be larger than osd_max_object_size; use a smaller size=")
        }
        libc::EPERM | libc::EACCES => Some("the client may not do this; see `ceph auth get`"),
        _ => None,
    }
}

/// One pool, and its objects.
struct RadosSession {
    settings: Settings,
    pool: Option<Pool>,
    /// By file.
    objects: Box<[Option<CString>]>,
}

impl Session for RadosSession {
    fn open(&mut self, file: FileIndex, target: &NamedTarget<'_>) -> io::Result<()> {
        let object =
            name(target.name.as_os_str()).ok_or_else(|| io::Error::other("a name with a zero byte"))?;
        let pool = match self.pool.take() {
            Some(pool) => pool,
            None => self.settings.connect()?,
        };
        if self.settings.touches {
            let touched = object.clone();
            // The pool comes back unless the run is stopped meanwhile.
            let (pool, touched) = wait_for("rados_write", move || {
                let result = pool.touch(&touched);
                Ok((pool, result))
            })
            .map_err(|error| io::Error::other(sentence(error, |_, _| String::new()).1))?;
            self.pool = Some(pool);
            touched.map_err(|error| {
                let hint = |_: &str, errno| explain(errno).unwrap_or_default().to_string();
                io::Error::other(format!("cannot create {}: {}", shown(&object), sentence(error, hint).1))
            })?;
        } else {
            self.pool = Some(pool);
        }
        let place = self.objects.get_mut(file as usize).ok_or_else(|| io::Error::from(Errno(libc::EBADF)))?;
        *place = Some(object);
        Ok(())
    }

    fn close(&mut self, file: FileIndex) {
        if let Some(place) = self.objects.get_mut(file as usize) {
            *place = None;
        }
    }

    unsafe fn start(&mut self, op: &Op, buffer: *mut u8, ticket: *mut c_void) -> Result<(), Errno> {
        let command = match op.action {
            Action::Read => ObjectCommand::Read,
            Action::Write => ObjectCommand::Write,
            Action::Trim | Action::ResetZone => ObjectCommand::Zero,
            Action::Sync | Action::DataSync | Action::RangeSync(_) => {
                // A write has ended when all replicas have it, so that nothing is left to synchronise.
                // SAFETY: the ticket was not used.
                unsafe { HandOver::end(ticket, 0) };
                return Ok(());
            }
        };
        let part = Part { buffer, length_bytes: op.length_bytes, offset_bytes: op.offset_bytes };
        match (&self.pool, self.objects.get(op.file as usize)) {
            // SAFETY: the caller vouches for ticket and memory, and for the life of the session. A block is shorter than
            // 2 GiB, which `usable` checks.
            (Some(pool), Some(Some(object))) => unsafe { pool.start(command, object, part, ticket) },
            _ => {
                // SAFETY: the ticket was not used.
                unsafe { HandOver::cancel(ticket) };
                Err(Errno(libc::EBADF))
            }
        }
    }

    /// An object that ends before the end of a read has zeroes there, like one with a hole: reads of objects that jobs
    /// write at random offsets are whole, as in fio.
    fn outcome(&mut self, op: &Op, part: &mut [u8], result: i64) -> Outcome {
        match (op.action, whole_or_error(op, result)) {
            (Action::Read, Outcome::Done(bytes)) => {
                if let Some(beyond_end) = part.get_mut(to_usize(bytes)..) {
                    beyond_end.fill(0);
                }
                Outcome::whole(op)
            }
            (_, outcome) => outcome,
        }
    }

    fn abandon(mut self: Box<Self>) {
        if let Some(pool) = self.pool.take() {
            pool.abandon();
        }
    }
}
