//! The calling thread: its affinity, priority, user and resource usage.
//!
//! Invariant: every function acts on the calling thread alone, never on the whole process, also where the C library's
//! function of that name would act on all threads (`setresuid`) or the manual speaks of processes (`setpriority`).

use crate::errno::{check, check_long};
use crate::width::{to_u32, to_u64};
use rustix::process::setpriority_process;
use rustix::thread::{Gid, Uid, UnshareFlags};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::sync::OnceLock;

/// The kernel's id of this thread.
pub fn id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Names the thread, for `ps`, `top` and `perf`; the kernel keeps 15 bytes.
pub fn set_name(name: &str) -> io::Result<()> {
    let name = CString::new(name).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    Ok(rustix::thread::set_name(&name)?)
}

/// Has the kernel end the thread's timed sleeps at most this much late. It rounds them to 50 us otherwise, to wake the
/// processor less often.
pub fn set_timer_slack_ns(ns: NonZeroU64) -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(Some(ns))?)
}

/// Words of a mask of processors or memory nodes: 8192 of them, as many as any kernel is built for (the masks of
/// `rustix` end at 1024).
const MASK_WORDS: usize = 8192 / libc::c_ulong::BITS as usize;

type Mask = [libc::c_ulong; MASK_WORDS];

/// Binds the thread to these processors. `EINVAL` where none of them is online and allowed.
pub fn set_affinity(cpus: &[u32]) -> io::Result<()> {
    let mask = mask_of(cpus)?;
    let call = libc::SYS_sched_setaffinity;
    // SAFETY: the kernel reads the mask's bytes; thread 0 is the caller.
    check_long(unsafe { libc::syscall(call, 0, size_of::<Mask>(), mask.as_ptr()) }).map(drop)
}

/// The processors the thread may run on, in order.
pub fn affinity() -> io::Result<Vec<u32>> {
    let mut mask: Mask = [0; MASK_WORDS];
    let call = libc::SYS_sched_getaffinity;
    // SAFETY: the kernel writes at most the mask's bytes; thread 0 is the caller.
    check_long(unsafe { libc::syscall(call, 0, size_of::<Mask>(), mask.as_mut_ptr()) })?;
    Ok(members_of(&mask))
}

fn mask_of(members: &[u32]) -> io::Result<Mask> {
    let mut mask: Mask = [0; MASK_WORDS];
    for &member in members {
        let word = mask.get_mut((member / libc::c_ulong::BITS) as usize);
        let word = word.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        *word |= 1 << (member % libc::c_ulong::BITS);
    }
    Ok(mask)
}

fn members_of(mask: &Mask) -> Vec<u32> {
    let is_set =
        |bit: &u32| mask[(bit / libc::c_ulong::BITS) as usize] >> (bit % libc::c_ulong::BITS) & 1 == 1;
    (0..to_u32(MASK_WORDS) * libc::c_ulong::BITS).filter(is_set).collect()
}

/// The NUMA policy for a thread's new memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// The system's default.
    Default,
    /// One node while it has any; no node means the local one.
    Preferred,
    /// These nodes and no others.
    Bind,
    /// These nodes in rotation.
    Interleave,
    /// The node it runs on.
    Local,
}

/// Sets the policy for memory the thread touches from now on. `nodes` is empty for `Default` and `Local`. `ENOSYS` on
/// a kernel without NUMA.
pub fn set_memory_policy(policy: MemoryPolicy, nodes: &[u32]) -> io::Result<()> {
    // The kernel uses one bit less than the given number, for historical reasons.
    const MASK_BITS: libc::c_ulong = MASK_WORDS as libc::c_ulong * libc::c_ulong::BITS as libc::c_ulong;
    let mask = mask_of(nodes)?;
    let policy = match policy {
        MemoryPolicy::Default => libc::MPOL_DEFAULT,
        MemoryPolicy::Preferred => libc::MPOL_PREFERRED,
        MemoryPolicy::Bind => libc::MPOL_BIND,
        MemoryPolicy::Interleave => libc::MPOL_INTERLEAVE,
        MemoryPolicy::Local => libc::MPOL_LOCAL,
    };
    let (start, bits) = if nodes.is_empty() { (std::ptr::null(), 0) } else { (mask.as_ptr(), MASK_BITS) };
    let call = libc::SYS_set_mempolicy;
    // SAFETY: the kernel reads `bits` bits of the mask, which has that many.
    check_long(unsafe { libc::syscall(call, policy, start, bits) }).map(drop)
}

/// Sets the nice value, from -20 (highest priority) to 19. Lowering it needs a privilege.
pub fn set_nice(nice: i32) -> io::Result<()> {
    Ok(setpriority_process(None, nice)?)
}

/// The class of an I/O priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u16)]
pub enum IoClass {
    /// None set: the kernel derives it from the nice value.
    #[default]
    None = 0,
    /// Served before all others; needs a privilege.
    RealTime = 1,
    /// The default class.
    BestEffort = 2,
    /// Served when the disk is otherwise idle.
    Idle = 3,
}

/// An I/O priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoPriority {
    /// Its class.
    pub class: IoClass,
    /// From 0 (highest) to 7, within the class.
    pub level: u8,
    /// A hint to the device, from 0 (none) to 1023.
    pub hint: u16,
}

impl IoPriority {
    /// As the kernel encodes it: class in bits 13 to 15, hint in 3 to 12, level in 0 to 2.
    pub const fn encode(self) -> u16 {
        (self.class as u16) << 13 | (self.hint & 0x3ff) << 3 | (self.level as u16 & 0x7)
    }
}

/// Sets the priority of the thread's I/O.
pub fn set_io_priority(priority: IoPriority) -> io::Result<()> {
    const WHO_PROCESS: libc::c_int = 1;
    let value = libc::c_int::from(priority.encode());
    let call = libc::SYS_ioprio_set;
    // SAFETY: no memory is passed; 0 is the calling thread.
    check_long(unsafe { libc::syscall(call, WHO_PROCESS, 0, value) }).map(drop)
}

/// Gives the thread a table of file descriptors of its own: a copy of what is open now. With one user of the table
/// the kernel takes its cheapest path to a file, on every I/O.
///
/// Descriptors that the thread opens afterwards are not valid in other threads: such a file must be used and dropped
/// here. Files that were open before stay open here until the thread ends, whichever thread drops them.
///
/// The three standard streams become `/dev/null` here, so that a pipe from this process ends with the process, and is
/// not held open by a thread that hangs in the kernel.
pub fn unshare_files() -> io::Result<()> {
    // Opened in the table that is copied.
    let nothing = nothing();
    // SAFETY: descriptors opened from now on are used by this thread alone, as documented above.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FILES) }?;
    // The streams are closed in this thread's table alone.
    replace_streams(nothing)
}

/// Makes the three standard streams `/dev/null` for all threads that share this one's table, at the end of the program: what
/// is written afterwards is lost.
pub fn release_streams() -> io::Result<()> {
    replace_streams(nothing())
}

/// `/dev/null`, if it can be opened.
fn nothing() -> Option<&'static File> {
    static NOTHING: OnceLock<Option<File>> = OnceLock::new();
    NOTHING.get_or_init(|| File::options().read(true).write(true).open("/dev/null").ok()).as_ref()
}

fn replace_streams(by: Option<&File>) -> io::Result<()> {
    let Some(by) = by else { return Ok(()) };
    rustix::stdio::dup2_stdin(by)?;
    rustix::stdio::dup2_stdout(by)?;
    Ok(rustix::stdio::dup2_stderr(by)?)
}

/// Makes the thread act as this group, then as this user; `None` leaves it unchanged. Needs a privilege, and gives it up.
/// `EINVAL` for the number that is not a user's or group's (`u32::MAX`).
pub fn act_as(user: Option<u32>, group: Option<u32>) -> io::Result<()> {
    if [user, group].contains(&Some(u32::MAX)) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    if let Some(group) = group.map(Gid::from_raw) {
        rustix::thread::set_thread_res_gid(group, group, group)?;
    }
    if let Some(user) = user.map(Uid::from_raw) {
        rustix::thread::set_thread_res_uid(user, user, user)?;
    }
    Ok(())
}

/// Resources the thread has used since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in user mode, in microseconds.
    pub user_us: u64,
    /// Processor time in the kernel, in microseconds.
    pub system_us: u64,
    /// Context switches because it waited.
    pub switches_voluntary: u64,
    /// Context switches because it was preempted.
    pub switches_involuntary: u64,
    /// Page faults that waited for a disk.
    pub faults_major: u64,
    /// Page faults that did not.
    pub faults_minor: u64,
}

impl Usage {
    /// The sum of this and `other`.
    #[must_use]
    pub fn plus(&self, other: &Usage) -> Usage {
        Usage {
            user_us: self.user_us + other.user_us,
            system_us: self.system_us + other.system_us,
            switches_voluntary: self.switches_voluntary + other.switches_voluntary,
            switches_involuntary: self.switches_involuntary + other.switches_involuntary,
            faults_major: self.faults_major + other.faults_major,
            faults_minor: self.faults_minor + other.faults_minor,
        }
    }

    /// Resources used since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            user_us: self.user_us.saturating_sub(earlier.user_us),
            system_us: self.system_us.saturating_sub(earlier.system_us),
            switches_voluntary: self.switches_voluntary.saturating_sub(earlier.switches_voluntary),
            switches_involuntary: self.switches_involuntary.saturating_sub(earlier.switches_involuntary),
            faults_major: self.faults_major.saturating_sub(earlier.faults_major),
            faults_minor: self.faults_minor.saturating_sub(earlier.faults_minor),
        }
    }
}

pub(crate) fn micros(time: libc::timeval) -> u64 {
    to_u64(time.tv_sec) * 1_000_000 + to_u64(time.tv_usec)
}

/// Reads the thread's resource usage.
pub fn usage() -> io::Result<Usage> {
    let mut raw = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the kernel fills the structure when it answers 0.
    check(unsafe { libc::getrusage(libc::RUSAGE_THREAD, raw.as_mut_ptr()) })?;
    // SAFETY: the call succeeded.
    let raw = unsafe { raw.assume_init() };
    Ok(Usage {
        user_us: micros(raw.ru_utime),
        system_us: micros(raw.ru_stime),
        switches_voluntary: to_u64(raw.ru_nvcsw),
        switches_involuntary: to_u64(raw.ru_nivcsw),
        faults_major: to_u64(raw.ru_majflt),
        faults_minor: to_u64(raw.ru_minflt),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `body` on a thread of its own.
    fn apart(body: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(body).join()).unwrap();
    }

    #[test]
    fn masks_and_lists_convert_both_ways() {
        for list in [vec![], vec![0], vec![0, 63, 64, 127, 8191]] {
            assert_eq!(members_of(&mask_of(&list).unwrap()), list);
        }
        assert!(mask_of(&[8192]).is_err());
    }

    #[test]
    fn a_thread_runs_where_it_is_bound() {
        apart(|| {
            for cpu in affinity().unwrap() {
                set_affinity(&[cpu]).unwrap();
                assert_eq!(affinity().unwrap(), [cpu]);
            }
        });
        assert!(set_affinity(&[]).is_err());
    }

    #[test]
    fn priorities_are_encoded_as_the_kernel_has_them() {
        let idle = IoPriority { class: IoClass::Idle, ..IoPriority::default() };
        assert_eq!(idle.encode(), 3 << 13);
        let hinted = IoPriority { class: IoClass::BestEffort, level: 7, hint: 1023 };
        assert_eq!(hinted.encode(), 2 << 13 | 0x1fff);
        apart(move || set_io_priority(idle).unwrap());
    }

    #[test]
    fn a_nice_value_applies_to_one_thread() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        apart(move || {
            set_nice(19).unwrap();
            assert_eq!(nice(), 19);
        });
        assert_eq!(nice(), before, "other threads are left alone");
    }

    #[test]
    fn memory_policies_are_accepted_on_numa_kernels() {
        apart(|| {
            let cases: [(MemoryPolicy, &[u32]); 4] = [
                (MemoryPolicy::Bind, &[0]),
                (MemoryPolicy::Interleave, &[0]),
                (MemoryPolicy::Preferred, &[]),
                (MemoryPolicy::Default, &[]),
            ];
            for (policy, nodes) in cases {
                match set_memory_policy(policy, nodes) {
                    Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                        fiord_testing::skipped(format_args!("{policy:?}: {error}"));
                    }
                    result => result.unwrap(),
                }
            }
        });
    }

    #[test]
    fn a_descriptor_closed_after_unsharing_stays_open_elsewhere() {
        use std::os::fd::AsRawFd;
        let temp = crate::testing::TempFile::new("unshare");
        let fd = temp.file.as_raw_fd();
        apart(move || {
            unshare_files().unwrap();
            let stream = |number: i32| std::fs::read_link(format!("/proc/thread-self/fd/{number}")).unwrap();
            assert_eq!([0, 1, 2].map(stream), ["/dev/null"; 3].map(std::path::PathBuf::from));
            // SAFETY: this closes the copy in this thread's own table; the owner's stays.
            assert_eq!(unsafe { libc::close(fd) }, 0);
        });
        assert!(crate::stat::fstat(&temp.file).is_ok());
    }

    #[test]
    fn one_thread_can_act_as_another_user() {
        let me = || rustix::process::geteuid().as_raw();
        if me() != 0 {
            fiord_testing::skip!("only root may act as others");
        }
        apart(move || {
            act_as(Some(65_534), Some(65_534)).unwrap();
            assert_eq!(me(), 65_534);
            assert!(act_as(Some(0), None).is_err(), "the way back is closed");
            assert_eq!(act_as(Some(u32::MAX), None).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        });
        assert_eq!(me(), 0, "other threads are left alone");
    }

    #[test]
    fn usage_grows_and_can_be_subtracted() {
        let before = usage().unwrap();
        let pages = crate::map::Mapping::anonymous(1 << 20, crate::map::Sharing::Private, None).unwrap();
        for page in (0..1 << 20).step_by(4096) {
            // SAFETY: inside the mapping, which no other code uses.
            unsafe { pages.as_ptr().add(page).write(1) };
        }
        let used = usage().unwrap().since(&before);
        assert!(used.faults_minor > 0);
        assert_eq!(before.since(&usage().unwrap()).faults_minor, 0);
        assert_eq!(before.plus(&used).since(&before), used);
    }

    #[test]
    fn names_and_ids_belong_to_the_thread() {
        let main = id();
        apart(move || {
            assert_ne!(id(), main);
            set_name("fiord-test").unwrap();
            let path = format!("/proc/self/task/{}/comm", id());
            assert_eq!(std::fs::read_to_string(path).unwrap().trim(), "fiord-test");
        });
    }
}
