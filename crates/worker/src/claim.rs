//! The exclusive claims of a run: while one is held, the kernel lets nobody mount the device or claim it otherwise.
//!
//! Invariant: a device is claimed once for the whole run, however many workers write to it, and for as long as one of
//! them does. The descriptors are those of a thread of its own with a table of its own, since workers share no table
//! that all of them could open and close in.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};

use fiord_sys::clock;
use fiord_sys::file::{self, OpenHow};
use fiord_sys::stat::{self, DeviceNumber, Kind};
use fiord_sys::thread;

/// Whoever looks whether a device is claimed claims it for a moment: this often a claim is tried again.
const TRIES: u32 = 5;

/// How long after.
const TRY_AGAIN_NS: u64 = 20_000_000;

/// The claims of a run, or the way to whoever keeps them.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    keeper: Mutex<Option<Sender<Ask>>>,
}

/// Devices that are claimed for as long as this lives.
#[derive(Debug)]
pub(crate) struct Held {
    keeper: Sender<Ask>,
    numbers: Vec<DeviceNumber>,
}

/// What the keeper is asked to do; it says when it is done.
#[derive(Debug)]
enum Ask {
    Take(PathBuf, DeviceNumber, Sender<io::Result<()>>),
    Give(DeviceNumber, Sender<()>),
    List(Sender<Vec<DeviceNumber>>),
}

impl Claims {
    /// Claims all of these devices, each given with a path that leads to it.
    ///
    /// # Errors
    /// Which could not be claimed, and the kernel's error: EBUSY where somebody else has it.
    pub(crate) fn take(
        &self,
        devices: &[(PathBuf, DeviceNumber)],
    ) -> Result<Option<Held>, (PathBuf, io::Error)> {
        let Some((first, _)) = devices.first() else { return Ok(None) };
        let keeper = self.keeper().map_err(|error| (first.clone(), error))?;
        let mut held = Held { keeper, numbers: Vec::new() };
        for (path, number) in devices {
            let (tell, told) = mpsc::channel();
            let asked = held.keeper.send(Ask::Take(path.clone(), *number, tell));
            let taken = asked.map_err(gone).and_then(|()| told.recv().map_err(gone)?);
            taken.map_err(|error| (path.clone(), error))?;
            held.numbers.push(*number);
        }
        Ok(Some(held))
    }

    /// The devices that are claimed now.
    pub(crate) fn held(&self) -> Vec<DeviceNumber> {
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (tell, told) = mpsc::channel();
        let asked = keeper.and_then(|keeper| keeper.send(Ask::List(tell)).ok());
        asked.and_then(|()| told.recv().ok()).unwrap_or_default()
    }

    /// The way to the keeper, who begins with the first claim and ends with the last way to it.
    fn keeper(&self) -> io::Result<Sender<Ask>> {
        let mut keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = keeper.as_ref() {
            return Ok(known.clone());
        }
        let (ask, asked) = mpsc::channel();
        std::thread::Builder::new().name("claims".to_string()).spawn(move || keep(&asked))?;
        Ok(keeper.insert(ask).clone())
    }
}

fn gone<E>(_: E) -> io::Error {
    io::Error::other("the thread that keeps the claims has ended")
}

impl Drop for Held {
    fn drop(&mut self) {
        for number in &self.numbers {
            let (tell, told) = mpsc::channel();
            // What runs next may want the device for itself, so this waits until it is free.
            if self.keeper.send(Ask::Give(*number, tell)).is_ok() {
                let _ = told.recv();
            }
        }
    }
}

/// Keeps claims until nobody can ask any more.
fn keep(asked: &Receiver<Ask>) {
    // Without a table of its own the claims of others would last until the last worker that copied them has ended.
    let _ = thread::unshare_files();
    let mut held: BTreeMap<DeviceNumber, (File, usize)> = BTreeMap::new();
    for ask in asked {
        // Whoever asked may be gone.
        match ask {
            Ask::Take(path, number, tell) => {
                let _ = tell.send(take(&mut held, &path, number));
            }
            Ask::Give(number, tell) => {
                if let Some((_, users)) = held.get_mut(&number) {
                    *users -= 1;
                    if *users == 0 {
                        held.remove(&number);
                    }
                }
                let _ = tell.send(());
            }
            Ask::List(tell) => {
                let _ = tell.send(held.keys().copied().collect());
            }
        }
    }
}

fn take(
    held: &mut BTreeMap<DeviceNumber, (File, usize)>,
    path: &Path,
    number: DeviceNumber,
) -> io::Result<()> {
    if let Some((_, users)) = held.get_mut(&number) {
        *users += 1;
        return Ok(());
    }
    held.insert(number, (claim(path, number)?, 1));
    Ok(())
}

/// Opens the device with this number exclusively.
fn claim(path: &Path, number: DeviceNumber) -> io::Result<File> {
    let mut tries = 0;
    loop {
        tries += 1;
        match open(path) {
            Ok(open) => {
                let found = stat::fstat(&open)?;
                let is_it = found.kind == Kind::Block && found.special == number;
                return if is_it { Ok(open) } else { Err(io::Error::other("it is another device now")) };
            }
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && tries < TRIES => {
                clock::sleep_until_ns(clock::monotonic_ns() + TRY_AGAIN_NS);
            }
            Err(error) => return Err(error),
        }
    }
}

/// For reading, which tells nobody that the device was written to; for writing where only that is allowed.
fn open(path: &Path) -> io::Result<File> {
    let how = |how: OpenHow| OpenHow { exclusive: true, nonblocking: true, ..how };
    match file::open(path, &how(OpenHow::READ)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            file::open(path, &how(OpenHow::WRITE))
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A loop device over a file of its own, detached on drop.
    struct LoopDevice {
        path: PathBuf,
        backing: PathBuf,
    }

    impl LoopDevice {
        fn new(label: &str) -> Result<LoopDevice, String> {
            let backing = std::env::temp_dir().join(format!("fiord-claim-{}-{label}", std::process::id()));
            let file = File::create(&backing).map_err(|error| error.to_string())?;
            file.set_len(1 << 20).map_err(|error| error.to_string())?;
            let output = Command::new("losetup").args(["--find", "--show"]).arg(&backing).output();
            let output = output.map_err(|error| format!("losetup: {error}"))?;
            let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
            match output.status.success() {
                true => Ok(LoopDevice { path, backing }),
                false => Err(format!("losetup: {}", String::from_utf8_lossy(&output.stderr).trim())),
            }
        }

        fn number(&self) -> DeviceNumber {
            stat::stat(&self.path).unwrap().special
        }

        fn is_free(&self) -> bool {
            open(&self.path).is_ok()
        }
    }

    impl Drop for LoopDevice {
        fn drop(&mut self) {
            let _ = Command::new("losetup").arg("--detach").arg(&self.path).status();
            let _ = std::fs::remove_file(&self.backing);
        }
    }

    #[test]
    fn a_claim_lasts_as_long_as_one_worker_holds_it_and_no_longer() {
        let device = match LoopDevice::new("lasts") {
            Ok(device) => device,
            Err(why) => {
                println!("skipped: {why}");
                return;
            }
        };
        let claims = Claims::default();
        let wanted = [(device.path.clone(), device.number())];
        assert!(claims.take(&[]).unwrap().is_none() && claims.held().is_empty());
        let first = claims.take(&wanted).unwrap();
        let second = std::thread::scope(|threads| {
            let take = || {
                thread::unshare_files().unwrap();
                claims.take(&wanted).unwrap()
            };
            threads.spawn(take).join().unwrap()
        });
        assert_eq!(claims.held(), [device.number()]);
        assert!(!device.is_free());
        drop(first);
        assert!(!device.is_free(), "another worker still holds it");
        drop(second);
        assert!(device.is_free() && claims.held().is_empty());
    }

    #[test]
    fn a_device_that_somebody_has_and_a_path_to_another_are_refused() {
        let device = match LoopDevice::new("refused") {
            Ok(device) => device,
            Err(why) => {
                println!("skipped: {why}");
                return;
            }
        };
        let claims = Claims::default();
        let other = DeviceNumber { major: 7, minor: 4095 };
        assert!(claims.take(&[(device.path.clone(), other)]).is_err());
        let somebody = open(&device.path).unwrap();
        let (path, error) = claims.take(&[(device.path.clone(), device.number())]).unwrap_err();
        assert_eq!((path, error.kind()), (device.path.clone(), io::ErrorKind::ResourceBusy));
        drop(somebody);
        assert!(claims.take(&[(device.path.clone(), device.number())]).is_ok());
    }
}
