//! What usually causes an operation's error, where the engine's settings or the kind of operation tell more than the
//! error number does.
//!
//! Invariant: a hint is given only for an error that the setting or operation it names is known to cause.

use fiord_plan::{Action, FileUse, PlannedEngine};
use fiord_sys::errno::Errno;

use crate::gpu_errors;

/// The likely cause of an operation's error, and what to do about it: for the message that ends the job.
pub fn error_hint(engine: &PlannedEngine, action: Action, errno: Errno) -> Option<&'static str> {
    let Errno(number) = errno;
    match action {
        // Names are not devices or files of this machine.
        Action::Trim if engine.descriptor.files == FileUse::Named => {
            (engine.descriptor.explain)(&engine.settings, number)
        }
        Action::Trim => match number {
            libc::EOPNOTSUPP => Some("this device takes no discards, or this file system punches no holes"),
            libc::ENODEV | libc::ESPIPE => Some("only block devices and regular files can be trimmed"),
            _ => None,
        },
        Action::ResetZone => None,
        Action::Read | Action::Write => {
            (engine.descriptor.explain)(&engine.settings, number).or_else(|| gpu_errors::of_copy(number))
        }
        Action::RangeSync(_) if number == libc::ESPIPE => {
            Some("sync_file_range needs a file or block device")
        }
        Action::Sync | Action::DataSync | Action::RangeSync(_) => None,
    }
}

/// Settings of several engines that can cause particular errors of reads and writes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TransferFlags {
    /// `RWF_NOWAIT`.
    pub nowait: bool,
    /// `RWF_DONTCACHE`.
    pub uncached: bool,
    /// Completions are polled.
    pub hipri: bool,
    /// `RWF_ATOMIC` on writes.
    pub atomic: bool,
}

impl TransferFlags {
    /// The explanation of an errno by these settings.
    pub(crate) fn explain(self, errno: i32) -> Option<&'static str> {
        match errno {
            libc::EAGAIN if self.nowait => Some(
                "nowait=1 fails I/O that would have to wait; ignore_error=EAGAIN counts it and continues",
            ),
            libc::EOPNOTSUPP if self.atomic => Some(
                "atomic=1 needs Linux 6.11 or newer and a device or file system that offers atomic writes",
            ),
            libc::EINVAL if self.atomic => Some(
                "an atomic write has a power of two of bytes, within the limits of the device, at a multiple of its length",
            ),
            libc::EOPNOTSUPP if self.uncached => Some(
                "uncached=1 needs Linux 6.14 or newer and a file system that supports it (ext4, xfs, btrfs)",
            ),
            libc::EOPNOTSUPP if self.hipri => Some(
                "hipri=1 needs direct=1 and a device with polled queues (nvme.poll_queues=N on the kernel's command \
                 line)",
            ),
            libc::EOPNOTSUPP if self.nowait => Some("nowait=1 is not supported by this file system"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::EngineDefinition;
    use crate::engines::{
        IoUring, Psync, Pvsync2, io_uring::Settings as IoUringSettings, pvsync2::Settings as Pvsync2Settings,
    };

    #[test]
    fn a_setting_is_named_only_where_it_is_set() {
        let plain = IoUring::planned(IoUringSettings::default());
        let polled = IoUring::planned(IoUringSettings { hipri: true, ..Default::default() });
        let nowait = Pvsync2::planned(Pvsync2Settings { nowait: true, ..Default::default() });
        let hint = |engine, number| error_hint(engine, Action::Read, Errno(number));
        assert_eq!(hint(&plain, libc::EOPNOTSUPP), None);
        assert!(hint(&polled, libc::EOPNOTSUPP).is_some_and(|text| text.contains("poll_queues")));
        assert!(hint(&nowait, libc::EAGAIN).is_some_and(|text| text.contains("nowait")));
        assert_eq!(hint(&nowait, libc::EIO), None);
    }

    #[test]
    fn a_refused_trim_is_explained_on_every_engine() {
        for engine in [Psync::planned(()), IoUring::planned(IoUringSettings::default())] {
            let text = error_hint(&engine, Action::Trim, Errno(libc::EOPNOTSUPP));
            assert!(text.is_some_and(|text| text.contains("punches no holes")));
        }
    }
}
