//! What usually stands behind an operation's error, where the engine's settings or its kind tell more than the error
//! does.
//!
//! Invariant: a hint is given only for an error that the setting or operation it names is known to cause.

use fiord_plan::{Action, Direction, EngineSettings};
use fiord_sys::errno::Errno;

/// The likely cause of an operation's error, and what to do about it: for the message that ends the job.
pub fn hint(settings: &EngineSettings, action: Action, errno: Errno) -> Option<&'static str> {
    let Errno(number) = errno;
    match action {
        Action::Transfer(Direction::Trim) => match number {
            libc::ENOTTY => Some("only block devices can be trimmed, not files"),
            libc::EOPNOTSUPP => Some("this device does not take discards"),
            _ => None,
        },
        Action::Transfer(_) => of_transfer(settings, number),
        Action::RangeSync(_) if number == libc::ESPIPE => {
            Some("sync_file_range needs a file or block device")
        }
        Action::Sync | Action::DataSync | Action::RangeSync(_) => None,
    }
}

fn of_transfer(settings: &EngineSettings, errno: i32) -> Option<&'static str> {
    let flags = Flags::of(settings);
    match errno {
        libc::EAGAIN if flags.nowait => {
            Some("nowait=1 fails what would have to wait; ignore_error=EAGAIN counts it and goes on")
        }
        libc::EOPNOTSUPP if flags.uncached => {
            Some("uncached=1 needs Linux 6.14 or newer and a file system that supports it (ext4, xfs, btrfs)")
        }
        libc::EOPNOTSUPP if flags.hipri => Some(
            "hipri=1 needs direct=1 and a device with polled queues (nvme.poll_queues=N on the kernel's command line)",
        ),
        libc::EOPNOTSUPP if flags.nowait => Some("nowait=1 is not supported by this file system"),
        libc::EIO if matches!(settings, EngineSettings::Mmap(_)) => {
            Some("a mapped page could not be had: the file was cut short meanwhile, or its disk failed")
        }
        _ => None,
    }
}

/// The settings that change how the kernel answers.
struct Flags {
    nowait: bool,
    uncached: bool,
    hipri: bool,
}

impl Flags {
    fn of(settings: &EngineSettings) -> Flags {
        let (nowait, uncached, hipri) = match settings {
            EngineSettings::Pvsync2(own) => (own.nowait, own.uncached, own.hipri_percent > 0),
            EngineSettings::Libaio(own) => (own.nowait, false, false),
            EngineSettings::IoUring(own) => (own.nowait, own.uncached, own.hipri),
            EngineSettings::Null
            | EngineSettings::Sync
            | EngineSettings::Psync
            | EngineSettings::Vsync
            | EngineSettings::Pvsync
            | EngineSettings::Mmap(_) => (false, false, false),
        };
        Flags { nowait, uncached, hipri }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_plan::{IoUring, Pvsync2};

    const READ: Action = Action::Transfer(Direction::Read);

    #[test]
    fn a_setting_is_named_only_where_it_is_set() {
        let plain = EngineSettings::IoUring(IoUring::default());
        let polled = EngineSettings::IoUring(IoUring { hipri: true, ..IoUring::default() });
        let nowait = EngineSettings::Pvsync2(Pvsync2 { nowait: true, ..Pvsync2::default() });
        assert_eq!(hint(&plain, READ, Errno(libc::EOPNOTSUPP)), None);
        assert!(
            hint(&polled, READ, Errno(libc::EOPNOTSUPP)).is_some_and(|text| text.contains("poll_queues"))
        );
        assert!(hint(&nowait, READ, Errno(libc::EAGAIN)).is_some_and(|text| text.contains("nowait")));
        assert_eq!(hint(&nowait, READ, Errno(libc::EIO)), None);
    }

    #[test]
    fn a_trim_of_a_file_is_explained_on_every_engine() {
        let trim = Action::Transfer(Direction::Trim);
        for settings in [EngineSettings::Psync, EngineSettings::IoUring(IoUring::default())] {
            let text = hint(&settings, trim, Errno(libc::ENOTTY));
            assert!(text.is_some_and(|text| text.contains("block devices")));
        }
    }
}
