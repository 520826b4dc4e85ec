//! Threads with a small stack, whose creation may fail, and which may be abandoned.
//!
//! Invariant: failure to start a thread is an error, whatever resource the kernel lacks, and never ends the process.
//! `std`'s threads first map a signal stack, and panic if there is no memory for it. While the memory map is sealed, no
//! stack is unmapped.

use crate::errno::check_posix;
use crate::{sealed_map, thread};
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// What the body of a thread has returned, `None` before it has ended, and what is notified then.
type Ended<T> = (Mutex<Option<Result<T, Panicked>>>, Condvar);

/// The body of a thread, behind a thin pointer.
struct Work {
    name: String,
    body: Box<dyn FnOnce() + Send>,
}

/// A running thread. Dropped without `join`, it is detached.
#[derive(Debug)]
pub struct Thread<T = ()> {
    /// `None` once it is joined, or left as it is.
    handle: Option<libc::pthread_t>,
    ended: Arc<Ended<T>>,
}

// SAFETY: the handle names a thread, and any thread may join or detach it. Only musl's is a pointer, which nothing here
// follows.
unsafe impl<T: Send> Send for Thread<T> {}
// SAFETY: as above; a shared reference gives no access to the handle.
unsafe impl<T: Send> Sync for Thread<T> {}

/// Starts a thread with a stack of `stack_bytes` that runs `body`. The kernel keeps 15 bytes of `name`. A panic ends
/// only this thread.
///
/// # Errors
/// `EAGAIN` at a limit on threads (of the user, the control group or the system), or without memory for its stack.
pub fn spawn<T: Send + 'static>(
    name: &str,
    stack_bytes: usize,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Thread<T>> {
    let ended: Arc<Ended<T>> = Arc::new((Mutex::new(None), Condvar::new()));
    let notified = Arc::clone(&ended);
    let body = move || {
        // Nothing may unwind into C. The panic has been reported on standard error; `join` returns that there was one.
        let result = catch_unwind(AssertUnwindSafe(body)).map_err(|_| Panicked);
        *notified.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        notified.1.notify_all();
    };
    let work = Box::into_raw(Box::new(Work { name: name.replace('\0', ""), body: Box::new(body) }));
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut handle = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: the attributes are initialised before they are used and destroyed once. The new thread owns `work` from
    // the moment it starts.
    let started = unsafe {
        check_posix(libc::pthread_attr_init(attributes.as_mut_ptr())).and_then(|()| {
            // The C library refuses less than its minimum, which is larger on ARM.
            let stack_bytes = stack_bytes.max(libc::PTHREAD_STACK_MIN);
            let sized = check_posix(libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack_bytes));
            let started = sized.and_then(|()| {
                let attributes = attributes.as_ptr();
                check_posix(libc::pthread_create(
                    handle.as_mut_ptr(),
                    attributes,
                    main_of_thread,
                    work.cast(),
                ))
            });
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            started
        })
    };
    match started {
        // SAFETY: a thread that was started has a handle.
        Ok(()) => Ok(Thread { handle: Some(unsafe { handle.assume_init() }), ended }),
        Err(error) => {
            // SAFETY: no thread was started, so it is still ours.
            drop(unsafe { Box::from_raw(work) });
            Err(error)
        }
    }
}

extern "C" fn main_of_thread(work: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: `spawn` made it of a box, and gave it to this thread alone.
    let Work { name, body } = *unsafe { Box::from_raw(work.cast::<Work>()) };
    // Only for people: a thread without a name works.
    let _ = thread::set_name(&name);
    body();
    std::ptr::null_mut()
}

/// A thread panicked, and what it was to do is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panicked;

impl fmt::Display for Panicked {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("fiord has a bug: its thread panicked")
    }
}

impl<T> Thread<T> {
    /// Waits until it has ended and its resources are freed; while the memory map is sealed, until it has ended. Returns
    /// what its body has returned.
    ///
    /// # Errors
    /// It panicked.
    pub fn join(mut self) -> Result<T, Panicked> {
        let (result, notified) = &*self.ended;
        let guard = result.lock().unwrap_or_else(PoisonError::into_inner);
        let guard = notified.wait_while(guard, |result| result.is_none());
        let result = guard.unwrap_or_else(PoisonError::into_inner).take().unwrap_or(Err(Panicked));
        if let Some(handle) = self.handle.take().filter(|_| !sealed_map::is_sealed()) {
            // SAFETY: the handle is of a thread that was neither joined nor detached. It cannot fail.
            unsafe { libc::pthread_join(handle, std::ptr::null_mut()) };
        }
        result
    }
}

impl<T> Drop for Thread<T> {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take().filter(|_| !sealed_map::is_sealed()) {
            // SAFETY: the handle is of a thread that was neither joined nor detached. It cannot fail.
            unsafe { libc::pthread_detach(handle) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_thread_runs_under_its_name_and_is_joined() {
        let (sender, receiver) = mpsc::channel();
        let sender_clone = sender.clone();
        let comm = || std::fs::read_to_string(format!("/proc/self/task/{}/comm", thread::id()));
        let first = spawn("name-of-a-thread", 256 << 10, move || sender_clone.send(comm().unwrap()).unwrap())
            .unwrap();
        assert_eq!(first.join(), Ok(()));
        assert_eq!(receiver.try_recv().unwrap(), "name-of-a-threa\n");
        // A detached thread continues.
        drop(spawn("", 256 << 10, move || sender.send(String::new()).unwrap()).unwrap());
        assert_eq!(receiver.recv().unwrap(), "");
    }

    #[test]
    fn a_panic_ends_only_its_thread() {
        let thread = spawn("panics", 256 << 10, || -> u8 { panic!("in a thread of its own") }).unwrap();
        assert_eq!(thread.join(), Err(Panicked));
        assert_eq!(spawn("returns", 256 << 10, || 7).unwrap().join(), Ok(7));
    }

    #[test]
    fn a_thread_that_cannot_be_started_is_an_error_and_its_body_is_dropped() {
        let (kept, dropped) = mpsc::channel::<()>();
        let error = spawn("huge", 1 << 60, move || kept.send(()).unwrap()).unwrap_err();
        assert!([libc::EAGAIN, libc::ENOMEM].contains(&error.raw_os_error().unwrap()), "{error}");
        assert_eq!(dropped.recv(), Err(mpsc::RecvError), "the work was kept");
    }
}
