//! A few reads of each device while it is watched, so that one that nobody uses has latencies as well.
//!
//! Invariant: the only thing of watching that adds I/O. It reads alone, one block at a time on each device, at the lowest
//! priority, never more often than asked for, and a device that does not answer holds up nothing else.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use fiord_report::path::shown;
use fiord_stats::{Capped, Latency, Random};
use fiord_sys::clock;
use fiord_sys::errno::error_text;
use fiord_sys::file::{self, OpenHow};
use fiord_sys::spawn::{self, Thread};
use fiord_sys::sysfs::BlockDevice;
use fiord_sys::thread::{self, IoClass, IoPriority};
use fiord_watch::ProbeFigures;

const STACK_BYTES: usize = 64 << 10;
/// Of a read; the block of a device if that is larger.
const READ_BYTES: usize = 4096;

/// The probe of a device.
pub(super) struct Probe {
    shared: Arc<Mutex<Shared>>,
    /// Detached when it is dropped: its last read may never end.
    _thread: Thread,
}

#[derive(Debug, Default)]
struct Shared {
    /// The thread that reads; 0 before it has begun.
    thread: i32,
    figures: ProbeFigures,
    /// When the read that has not ended began, in nanoseconds.
    began_ns: Option<u64>,
    is_over: bool,
}

/// A device that was opened to be read.
pub(super) struct Opened {
    file: File,
    pub(super) name: String,
    blocks: u64,
    block_bytes: usize,
}

impl Probe {
    /// Begins to read so many times a second.
    ///
    /// # Errors
    /// Why that cannot be, and what to do.
    pub(super) fn start(device: Opened, per_s: u32) -> Result<Probe, String> {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let of_thread = Arc::clone(&shared);
        let name = device.name.clone();
        let thread = spawn::spawn("fiord-probe", STACK_BYTES, move || device.read_on(&of_thread, per_s));
        let refused =
            |error| format!("the probe of {name}: no thread: {}; raise ulimit -u", error_text(&error));
        Ok(Probe { shared, _thread: thread.map_err(refused)? })
    }

    /// Its thread; 0 before it has read anything.
    pub(super) fn thread(&self) -> i32 {
        locked(&self.shared, |shared| shared.thread)
    }

    /// Ends it.
    pub(super) fn stop(&self) {
        locked(&self.shared, |shared| shared.is_over = true);
    }

    /// What it has found.
    pub(super) fn figures(&self) -> ProbeFigures {
        locked(&self.shared, |shared| {
            let waiting_ns = shared.began_ns.map_or(0, |began_ns| clock::monotonic_ns() - began_ns);
            ProbeFigures { waiting_ns, ..shared.figures.clone() }
        })
    }
}

impl Opened {
    /// Opens a device.
    ///
    /// # Errors
    /// Why it cannot be read, and what to do.
    #[allow(
        clippy::disallowed_methods,
        reason = "it is opened to be read alone, and nothing is left to overwrite"
    )]
    pub(super) fn new(device: &BlockDevice) -> Result<Opened, String> {
        let refused = |error: io::Error| {
            let (path, why) = (device.path(), error_text(&error));
            format!(
                "the probe of {}: {}: {why}; run as root where the device may be read, or leave out --probe",
                device.name(),
                shown(&path)
            )
        };
        let block_bytes = READ_BYTES.max(usize::capped(device.queue().logical_block_bytes));
        let how = OpenHow { direct: true, ..OpenHow::READ };
        Ok(Opened {
            file: file::open(&device.path(), &how).map_err(refused)?,
            name: device.name().to_owned(),
            blocks: device.size_bytes().map_err(refused)? / block_bytes as u64,
            block_bytes,
        })
    }

    fn read_on(&self, shared: &Mutex<Shared>, per_s: u32) {
        // Where the kernel knows no priorities there is none to lower.
        let _ = thread::set_io_priority(IoPriority { class: IoClass::Idle, ..IoPriority::default() });
        let mut random = Random::new(clock::realtime_ns());
        // A direct read needs an aligned buffer.
        let mut buffer = vec![0; 2 * self.block_bytes];
        let begin = buffer.as_ptr().align_offset(self.block_bytes).min(self.block_bytes);
        let buffer = &mut buffer[begin..begin + self.block_bytes];
        locked(shared, |shared| {
            shared.thread = thread::id();
            shared.figures.read_bytes = self.block_bytes as u64;
            shared.figures.calls = Latency::with_histogram();
        });
        let every_ns = 1_000_000_000 / u64::from(per_s);
        loop {
            let began_ns = clock::monotonic_ns();
            if locked(shared, |shared| {
                shared.began_ns = Some(began_ns);
                shared.is_over
            }) {
                return;
            }
            let offset_bytes = random.below(self.blocks) * self.block_bytes as u64;
            let read = self.file.read_exact_at(buffer, offset_bytes);
            let ended_ns = clock::monotonic_ns();
            locked(shared, |shared| shared.ended(offset_bytes, &read, ended_ns - began_ns));
            while clock::monotonic_ns() < began_ns + every_ns {
                clock::sleep_until_ns(began_ns + every_ns);
            }
        }
    }
}

impl Shared {
    fn ended(&mut self, offset_bytes: u64, read: &io::Result<()>, took_ns: u64) {
        // What ends afterwards is of no one's time.
        if self.is_over {
            return;
        }
        self.began_ns = None;
        match read {
            Ok(()) => {
                self.figures.calls.record(took_ns);
            }
            Err(error) => {
                self.figures.failed += 1;
                let first = || format!("at byte {offset_bytes}: {}", error_text(error));
                self.figures.first_failure.get_or_insert_with(first);
            }
        }
    }
}

/// The figures stay usable if a thread panicked.
fn locked<T>(shared: &Mutex<Shared>, with: impl FnOnce(&mut Shared) -> T) -> T {
    with(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
}
