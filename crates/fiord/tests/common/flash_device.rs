//! A loop device that behaves like an SSD: a file below it (FUSE) waits for each request as long as a model of flash says.
//!
//! Invariant: it is never faster than the model, but for half a millisecond.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use super::flash::{Costs, Model};
use super::fuse::{Fuse, Reply};
use super::{Dir, LoopDevice, helper};

/// A pause counts from here on: a busy machine leaves shorter ones between two requests.
const PAUSE: Duration = Duration::from_millis(200);
/// What is waited for at once: a shorter wait would take longer than it says.
const WAIT_NS: u64 = 500_000;

/// The model, and the number of written pages at which requests are held until the test lets them go.
struct Shared {
    model: Model,
    hold_at: Option<u64>,
}

impl Shared {
    fn is_held(&self) -> bool {
        self.hold_at.is_some_and(|pages| self.model.written() >= pages)
    }
}

/// The device.
pub struct Flash {
    shared: Arc<(Mutex<Shared>, Condvar)>,
    pub device: LoopDevice,
    /// What identifies it to `--overwrite`.
    pub identity: String,
    _file: Fuse,
}

impl Flash {
    /// A fresh one in a directory. Needs root, the kernel's FUSE and `losetup`.
    pub fn new(dir: &Dir, bytes: u64, costs: Costs) -> Result<Flash, String> {
        let shared = Shared { model: Model::new(bytes, costs), hold_at: None };
        let shared = Arc::new((Mutex::new(shared), Condvar::new()));
        let (of_server, mut owed_ns, mut last) = (Arc::clone(&shared), 0_u64, Instant::now());
        let file = Fuse::mount(dir, "flash", bytes, false, move |asked| {
            let (lock, let_go) = &*of_server;
            let mut shared = let_go.wait_while(lock.lock().unwrap(), |shared| shared.is_held()).unwrap();
            let pause = last.elapsed();
            if pause >= PAUSE {
                shared.model.pause(pause);
            }
            owed_ns += shared.model.serve(asked);
            drop(shared);
            if owed_ns >= WAIT_NS {
                let begun = Instant::now();
                thread::sleep(Duration::from_nanos(owed_ns));
                owed_ns = owed_ns.saturating_sub(begun.elapsed().as_nanos() as u64);
            }
            last = Instant::now();
            Reply::Whole
        })?;
        let path = file.path.join("data");
        let device = LoopDevice::over(&path)?;
        // Requests reach the file as they are, not page by page.
        helper("losetup", &["--direct-io=on", &device.path])?;
        Ok(Flash { shared, device, identity: path.to_string_lossy().into_owned(), _file: file })
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.0.lock().unwrap()
    }

    /// The model as it is now.
    pub fn model(&self) -> Model {
        self.shared().model.clone()
    }

    /// Holds requests once so many pages were written; `None` lets them go.
    pub fn hold_at(&self, pages: Option<u64>) {
        self.shared().hold_at = pages;
        self.shared.1.notify_all();
    }

    /// Whether requests are held.
    pub fn is_held(&self) -> bool {
        self.shared().is_held()
    }
}

impl Drop for Flash {
    fn drop(&mut self) {
        self.hold_at(None);
    }
}
