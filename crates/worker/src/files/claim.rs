//! The exclusive claims of a run: while a device is claimed, the kernel refuses to mount it and refuses other claims.
//!
//! Invariant: a device is claimed once for the whole run, however many workers write to it, for as long as any of them
//! does. The descriptors belong to a keeper thread with its own descriptor table, since workers share no table in which
//! all of them could open and close them.

#![allow(clippy::disallowed_methods, reason = "this is the opener of targets")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use fiord_sys::channel::{self, Receiver, Sender};
use fiord_sys::clock;
use fiord_sys::file::{self, OpenHow};
use fiord_sys::stat::{self, DeviceNumber, InodeKind};
use fiord_sys::thread;

/// Number of retries: programs that check whether a device is claimed briefly claim it themselves.
const TRIES: u32 = 25;

/// Delay between two tries.
const TRY_AGAIN_NS: u64 = 20_000_000;

/// The claims of a run, held by the keeper thread.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    keeper: Mutex<Option<Sender<Request>>>,
}

/// Devices that are claimed until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    keeper: Sender<Request>,
    numbers: Vec<DeviceNumber>,
}

/// A request to the keeper, with the channel for its reply.
#[derive(Debug)]
enum Request {
    Take(PathBuf, DeviceNumber, Sender<io::Result<()>>),
    Release(DeviceNumber, Sender<()>),
    List(Sender<Vec<DeviceNumber>>),
}

impl Claims {
    /// Claims all of these devices, each given with a path that leads to it.
    ///
    /// # Errors
    /// The path that could not be claimed and the kernel's error: EBUSY if another process has claimed it.
    pub(crate) fn take(
        &self,
        devices: &[(PathBuf, DeviceNumber)],
    ) -> Result<Option<Held>, (PathBuf, io::Error)> {
        let Some((first, _)) = devices.first() else { return Ok(None) };
        let keeper = self.keeper().map_err(|error| (first.clone(), error))?;
        let mut held = Held { keeper, numbers: Vec::new() };
        for (path, number) in devices {
            let (reply_to, reply) = channel::channel();
            let sent = held.keeper.send(Request::Take(path.clone(), *number, reply_to));
            let taken = sent.map_err(keeper_ended).and_then(|()| reply.recv().map_err(keeper_ended)?);
            taken.map_err(|error| (path.clone(), error))?;
            held.numbers.push(*number);
        }
        Ok(Some(held))
    }

    /// The devices that are currently claimed.
    pub(crate) fn held(&self) -> Vec<DeviceNumber> {
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(keeper) = keeper else { return Vec::new() };
        let (reply_to, reply) = channel::channel();
        let held = keeper.send(Request::List(reply_to)).ok().and_then(|()| reply.recv().ok());
        // Without it a device of this run would be taken for another program's.
        assert!(held.is_some(), "the thread that keeps the claims panicked");
        held.unwrap_or_default()
    }

    /// The channel to the keeper, which starts with the first claim and ends when the last sender is dropped.
    fn keeper(&self) -> io::Result<Sender<Request>> {
        let mut keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = keeper.as_ref() {
            return Ok(known.clone());
        }
        let (requests, receiver) = channel::channel();
        std::thread::Builder::new().name("claims".to_string()).spawn(move || keep_claims(&receiver))?;
        Ok(keeper.insert(requests).clone())
    }
}

fn keeper_ended<E>(_: E) -> io::Error {
    io::Error::other("the thread that keeps the claims has ended")
}

impl Drop for Held {
    fn drop(&mut self) {
        for number in &self.numbers {
            let (reply_to, reply) = channel::channel();
            // Another program may need the device exclusively next, so this waits until it is released.
            if self.keeper.send(Request::Release(*number, reply_to)).is_ok() {
                let _ = reply.recv();
            }
        }
    }
}

/// Serves requests until all senders are dropped.
fn keep_claims(requests: &Receiver<Request>) {
    // In a shared descriptor table, claims would last until the last worker that copied the table has ended.
    let _ = thread::unshare_files();
    let mut held: BTreeMap<DeviceNumber, (File, usize)> = BTreeMap::new();
    while let Ok(request) = requests.recv() {
        // The requester may have ended.
        match request {
            Request::Take(path, number, reply_to) => {
                let _ = reply_to.send(take(&mut held, &path, number));
            }
            Request::Release(number, reply_to) => {
                if let Some((_, users)) = held.get_mut(&number) {
                    *users -= 1;
                    if *users == 0 {
                        held.remove(&number);
                    }
                }
                let _ = reply_to.send(());
            }
            Request::List(reply_to) => {
                let _ = reply_to.send(held.keys().copied().collect());
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
                let is_it = found.kind == InodeKind::Block && found.special == number;
                return if is_it { Ok(open) } else { Err(io::Error::other("it is another device now")) };
            }
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && tries < TRIES => {
                clock::sleep_until_ns(clock::monotonic_ns() + TRY_AGAIN_NS);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Opens for reading, so that udev does not see a close after writing; for writing if only that is permitted.
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

        /// Waits until it is free: a process that another test starts has the descriptors of this one for a moment.
        fn becomes_free(&self) -> bool {
            let mut looks = std::iter::repeat_with(|| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                self.is_free()
            });
            self.is_free() || looks.by_ref().take(250).any(|is_free| is_free)
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
        let device = fiord_testing::need!(LoopDevice::new("lasts"));
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
        assert!(device.becomes_free() && claims.held().is_empty());
    }

    #[test]
    fn a_device_in_use_and_a_path_to_another_are_refused() {
        let device = fiord_testing::need!(LoopDevice::new("refused"));
        let claims = Claims::default();
        let other = DeviceNumber { major: 7, minor: 4095 };
        assert!(claims.take(&[(device.path.clone(), other)]).is_err());
        let somebody = open(&device.path).unwrap();
        let (path, error) = claims.take(&[(device.path.clone(), device.number())]).unwrap_err();
        assert_eq!((path, error.kind()), (device.path.clone(), io::ErrorKind::ResourceBusy));
        drop(somebody);
        assert!(device.becomes_free());
        claims.take(&[(device.path.clone(), device.number())]).unwrap();
    }
}
