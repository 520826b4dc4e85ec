//! Machines without something that an engine needs: the error has the call, its cause and a remedy.
//!
//! Invariant: restrictions apply to a single thread, which exists only for the test.

use crate::common::{BLOCK_BYTES, FILES, skip, with_arena};
use fiord_engine::engines::{
    io_uring::{IoUringEngine, Settings as UringSettings},
    libaio::{LibaioEngine, Settings as LibaioSettings},
};
use fiord_engine::registry::probe;
use fiord_engine::{Arena, SetupError};
use fiord_sys::errno::Errno;
use fiord_sys::memory::{MemorySource, Region};

fn on_a_thread_of_its_own<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::spawn(body).join().unwrap()
}

fn uring_error(settings: UringSettings) -> SetupError {
    with_arena(|arena| error_of(IoUringEngine::new(&settings, arena, FILES, true)))
}

fn aio_error() -> SetupError {
    with_arena(|arena| error_of(LibaioEngine::new(&LibaioSettings::default(), arena, FILES)))
}

fn error_of<E>(made: Result<E, SetupError>) -> SetupError {
    made.err().expect("the engine was set up nevertheless")
}

/// Makes the system calls of the calling thread fail with `errno`, as a container's filter does.
fn forbid(calls: &[libc::c_long], errno: i32) {
    let statement = |code: u32, jump_true: u8, jump_false: u8, value: u32| libc::sock_filter {
        code: code as u16,
        jt: jump_true,
        jf: jump_false,
        k: value,
    };
    // Offset 0 of the filter's data is the number of the call.
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
    for call in calls {
        program.push(statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, *call as u32));
        program.push(statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32));
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program outlives the call, which copies it; both calls affect only this thread.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        assert_eq!(libc::syscall(libc::SYS_seccomp, mode, 0, &raw const filter), 0);
    }
}

#[test]
fn a_sandbox_is_named_as_the_likely_cause() {
    on_a_thread_of_its_own(|| {
        forbid(&[libc::SYS_io_uring_setup, libc::SYS_io_setup], libc::EPERM);
        let uring = uring_error(UringSettings::default());
        assert_eq!((uring.call, uring.errno), ("io_uring_setup", Errno(libc::EPERM)));
        assert!(uring.cause.contains("seccomp") && uring.remedy.contains("libaio"), "{uring}");
        let aio = aio_error();
        assert_eq!((aio.call, aio.errno), ("io_setup", Errno(libc::EPERM)));
        assert!(aio.cause.contains("seccomp") && aio.remedy.contains("psync"), "{aio}");
    });
}

#[test]
fn a_kernel_without_the_call_is_named_as_the_likely_cause() {
    on_a_thread_of_its_own(|| {
        forbid(&[libc::SYS_io_uring_setup, libc::SYS_io_setup], libc::ENOSYS);
        let uring = uring_error(UringSettings::default()).to_string();
        assert!(uring.contains("(ENOSYS)") && uring.contains("CONFIG_IO_URING"), "{uring}");
        let aio = aio_error().to_string();
        assert!(aio.contains("(ENOSYS)") && aio.contains("CONFIG_AIO"), "{aio}");
    });
}

#[test]
fn an_engine_works_only_where_its_calls_are_carried_out() {
    let engines = [
        ("pvsync2", libc::SYS_preadv2, "4.6"),
        ("pvsync2", libc::SYS_pwritev2, "4.6"),
        ("splice", libc::SYS_splice, "a sandbox hides it"),
        ("splice", libc::SYS_vmsplice, "a sandbox hides it"),
    ];
    for (engine, call, absent) in engines {
        for (errno, cause) in [(libc::ENOSYS, absent), (libc::EPERM, "seccomp")] {
            let probed = on_a_thread_of_its_own(move || {
                forbid(&[call], errno);
                probe().unwrap()
            });
            let of = |name| probed.iter().find(|probed| probed.engine.name.word() == name).unwrap().works;
            let refused = of(engine).unwrap_err();
            assert!(refused.errno == Errno(errno) && refused.cause.contains(cause), "{refused}");
            assert!(refused.remedy.contains("use ioengine=p"), "{refused}");
            assert_eq!(of("psync"), Ok(()));
        }
    }
}

#[test]
fn a_queue_deeper_than_the_system_allows_is_refused_with_the_limit() {
    let limit = std::fs::read_to_string("/proc/sys/fs/aio-max-nr").unwrap();
    let limit: u32 = limit.trim().parse().unwrap();
    if limit > 1 << 22 {
        return skip("aio-max-nr", &"too high here to go beyond");
    }
    let count = limit + 1;
    let region = Region::allocate(&MemorySource::Mmap, Arena::region_bytes(count, 16, 16), 4096).unwrap();
    let settings = LibaioSettings::default();
    let refused =
        Arena::with(region, count, 16, 16, |arena| error_of(LibaioEngine::new(&settings, arena, FILES)));
    assert_eq!(refused.errno, Errno(libc::EAGAIN));
    assert!(refused.cause.contains("aio-max-nr"), "{refused}");
}

#[test]
fn buffers_beyond_the_limit_on_locked_memory_are_refused_with_the_limit() {
    const NOBODY: libc::uid_t = 65_534;
    // SAFETY: no memory is passed.
    if unsafe { libc::geteuid() } != 0 {
        return skip("RLIMIT_MEMLOCK", &"only root can become an unprivileged user");
    }
    on_a_thread_of_its_own(|| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the limit lives through the calls. The other threads of this test are root's, whom it does not bind;
        // the raw call changes the user of this thread alone.
        unsafe {
            assert_eq!(libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit), 0);
            limit.rlim_cur = limit.rlim_max.min(65_536);
            assert_eq!(libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit), 0);
            assert_eq!(libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY), 0);
        }
        let (count, bytes) = (64, BLOCK_BYTES as usize);
        let region =
            Region::allocate(&MemorySource::Mmap, Arena::region_bytes(count, bytes, bytes), bytes).unwrap();
        let settings = UringSettings { fixed_buffers: true, ..Default::default() };
        Arena::with(region, count, bytes, bytes, |arena| {
            match IoUringEngine::new(&settings, arena, FILES, true) {
                Err(refused) if refused.call == "io_uring_setup" => skip("io_uring for nobody", &refused),
                made => {
                    let refused = error_of(made);
                    assert_eq!(refused.errno, Errno(libc::ENOMEM), "{refused}");
                    assert!(refused.cause.contains("locked memory"), "{refused}");
                }
            }
        });
    });
}

#[test]
fn a_processor_that_is_not_there_cannot_poll() {
    let (submission_thread, submission_thread_cpu) = (true, Some(1_000_000));
    let settings = UringSettings { submission_thread, submission_thread_cpu, ..Default::default() };
    let refused = uring_error(settings);
    if refused.errno == Errno(libc::EINVAL) {
        assert!(refused.cause.contains("sqthread_poll_cpu"), "{refused}");
    } else {
        skip("sqthread_poll_cpu", &refused);
    }
}
