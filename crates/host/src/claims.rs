//! Other users of a block device or a file: reasons not to write to it.
//!
//! Invariant: each reason is based on the kernel (mount table, swap list, holders, loop devices, an exclusive open) or
//! on bytes on the device; if there is no other user, the list is empty. Devices and files are identified by their
//! numbers, never by the name they were given by.

use fiord_sys::file::{self, OpenHow};
use fiord_sys::procfs::Mount;
use fiord_sys::stat::{self, DeviceNumber};
use fiord_sys::sysfs::BlockDevice;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// One reason why a device is not free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It, or a partition of it, is mounted.
    Mounted {
        /// Which device: the target itself or one of its partitions.
        device: PathBuf,
        /// Where.
        point: PathBuf,
    },
    /// It, or a partition of it, is in use as swap.
    Swap {
        /// Which device.
        device: PathBuf,
    },
    /// Another device is built on it (or on a partition of it): a logical volume, a RAID, an encrypted volume.
    Held {
        /// Which device.
        device: PathBuf,
        /// The kernel's name of the other.
        holder: String,
    },
    /// Another program has mapped it: persistent memory.
    Mapped {
        /// Which device.
        device: PathBuf,
        /// The number and name of the process.
        process: String,
    },
    /// The kernel refuses to open it exclusively, for a reason other than those above (a ZFS pool, another program).
    Exclusive,
    /// It backs a loop device that is in use.
    Backs {
        /// The loop device.
        device: PathBuf,
        /// How that is used.
        claim: Box<Claim>,
    },
    /// Its backing file or device is in use.
    BackedBy {
        /// What: the file or device behind a loop device.
        what: PathBuf,
        /// How that is used.
        claim: Box<Claim>,
    },
    /// It is not in use now, but contains data.
    Holds {
        /// What: `ext2/3/4 file system`.
        what: &'static str,
    },
}

impl Claim {
    /// Whether the device is in use at this moment. Otherwise it only contains data that a write would destroy.
    pub fn is_live(&self) -> bool {
        !matches!(self, Claim::Holds { .. })
    }
}

impl fmt::Display for Claim {
    /// `/dev/sda1 is mounted at /home`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Claim::Mounted { device, point } => {
                write!(f, "{} is mounted at {}", device.display(), point.display())
            }
            Claim::Swap { device } => write!(f, "{} is in use as swap", device.display()),
            Claim::Held { device, holder } => write!(f, "{} is a part of {holder}", device.display()),
            Claim::Mapped { device, process } => {
                write!(f, "process {process} has mapped {}", device.display())
            }
            Claim::Exclusive => f.write_str("another program or the kernel has it open exclusively"),
            Claim::Backs { device, claim } => write!(f, "it backs {}, and {claim}", device.display()),
            Claim::BackedBy { what, claim } => write!(f, "it is backed by {}, and {claim}", what.display()),
            Claim::Holds { what } => write!(f, "found on it: {what}"),
        }
    }
}

/// The claims that any user can read: mounts, swap and holders, of the device and its partitions.
pub(crate) fn listed(
    path: &Path,
    device: Option<&BlockDevice>,
    number: DeviceNumber,
    mounts: &[Mount],
    swaps: &[PathBuf],
) -> Vec<Claim> {
    let mut claims = on_number(path, number, mounts, swaps);
    if let Some(device) = device {
        claims.extend(held(path, device));
        for part in device.partitions() {
            if let Some(number) = part.number() {
                claims.extend(on_number(&part.path(), number, mounts, swaps));
            }
            claims.extend(held(&part.path(), &part));
        }
    }
    claims
}

/// Mounts and swap on the device with this number.
fn on_number(path: &Path, number: DeviceNumber, mounts: &[Mount], swaps: &[PathBuf]) -> Vec<Claim> {
    let mounted = mounts.iter().filter(|mount| is_of(mount, number));
    let mut claims: Vec<Claim> =
        mounted.map(|mount| Claim::Mounted { device: path.to_owned(), point: mount.point.clone() }).collect();
    if swaps.iter().any(|swap| is_device(swap, number)) {
        claims.push(Claim::Swap { device: path.to_owned() });
    }
    claims
}

/// Whether the device with this number is mounted there. Files on btrfs and the like have an artificial device number;
/// there the source of the mount identifies it.
pub(crate) fn is_of(mount: &Mount, number: DeviceNumber) -> bool {
    mount.device == number || is_device(&mount.source, number)
}

fn is_device(path: &Path, number: DeviceNumber) -> bool {
    path.is_absolute()
        && stat::stat(path).is_ok_and(|found| found.kind == stat::InodeKind::Block && found.special == number)
}

fn held(path: &Path, device: &BlockDevice) -> Vec<Claim> {
    let name = |holder: BlockDevice| holder.name().to_owned();
    let holders = device.holders().into_iter().map(name);
    holders.map(|holder| Claim::Held { device: path.to_owned(), holder }).collect()
}

/// How long is waited before it is looked again whether a device is claimed.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(2), Duration::from_millis(10), Duration::from_millis(50)];

/// Opens the device for reading with `O_EXCL`, which succeeds only if it is not claimed. Who asks in this way claims it for a
/// moment, and so does a loop device that is set up: only a claim that lasts is one.
pub(crate) fn is_exclusively_open(path: &Path) -> bool {
    let how = OpenHow { exclusive: true, nonblocking: true, ..OpenHow::READ };
    let is_busy = || file::open(path, &how).is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy);
    lasts(is_busy, thread::sleep)
}

fn lasts(mut is_so: impl FnMut() -> bool, pause: impl Fn(Duration)) -> bool {
    let mut is_so_after = |time: &Duration| {
        pause(*time);
        is_so()
    };
    is_so_after(&Duration::ZERO) && PAUSES.iter().all(is_so_after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::mount;

    fn number(major: u32, minor: u32) -> DeviceNumber {
        DeviceNumber { major, minor }
    }

    #[test]
    fn a_claim_that_is_gone_when_it_is_looked_again_is_none() {
        let after = |looks: usize| {
            let mut asked = 0;
            let is_busy = || {
                asked += 1;
                asked <= looks
            };
            (lasts(is_busy, |_| {}), asked)
        };
        assert_eq!([0, 1, 3].map(after), [(false, 1), (false, 2), (false, 4)]);
        assert_eq!(after(9), (true, 4));
    }

    #[test]
    fn a_mount_is_known_by_its_number_whatever_its_source_is_called() {
        let mounts = [mount("254:0", "/", "ext4", "/dev/root"), mount("0:22", "/tmp", "tmpfs", "tmpfs")];
        let path = Path::new("/dev/vda");
        let claims = on_number(path, number(254, 0), &mounts, &[]);
        assert_eq!(claims, [Claim::Mounted { device: path.into(), point: "/".into() }]);
        assert_eq!(on_number(path, number(254, 1), &mounts, &[]), []);
    }

    #[test]
    fn claims_are_sentences() {
        let device = PathBuf::from("/dev/sda1");
        let texts = [
            (
                Claim::Mounted { device: device.clone(), point: "/home".into() },
                "/dev/sda1 is mounted at /home",
            ),
            (Claim::Swap { device: device.clone() }, "/dev/sda1 is in use as swap"),
            (
                Claim::Backs {
                    device: "/dev/loop0".into(),
                    claim: Box::new(Claim::Swap { device: "/dev/loop0".into() }),
                },
                "it backs /dev/loop0, and /dev/loop0 is in use as swap",
            ),
            (
                Claim::BackedBy { what: "/f".into(), claim: Box::new(Claim::Swap { device: "/f".into() }) },
                "it is backed by /f, and /f is in use as swap",
            ),
            (Claim::Held { device, holder: "dm-0".into() }, "/dev/sda1 is a part of dm-0"),
            (
                Claim::Mapped { device: "/dev/dax0.0".into(), process: "7 (qemu)".into() },
                "process 7 (qemu) has mapped /dev/dax0.0",
            ),
        ];
        for (claim, text) in texts {
            assert_eq!(claim.to_string(), text);
            assert!(claim.is_live());
        }
        assert!(!Claim::Holds { what: "swap area" }.is_live());
    }
}
