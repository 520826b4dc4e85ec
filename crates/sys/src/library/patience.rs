//! Calls of libraries that block until a server answers, which may be never.
//!
//! Invariant: the caller continues when the call has returned, or when the run is requested to stop; a call that has not
//! returned by then continues on a thread of its own, and what it returns is dropped there.

use std::thread::Builder;
use std::time::Duration;

use super::LibraryError;
use crate::channel::{self, RecvTimeoutError};
use crate::errno::Errno;
use crate::signal;

/// How often a waiting caller looks for a request to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The result of `call`, which is made on another thread; `LibraryError::Stopped` if the run is requested to stop before
/// it returns. `name` is the call's, for errors.
///
/// # Errors
/// Those of the call; `EAGAIN` if there can be no more threads.
pub fn wait_for<T: Send + 'static>(
    name: &'static str,
    call: impl FnOnce() -> Result<T, LibraryError> + Send + 'static,
) -> Result<T, LibraryError> {
    let (sender, receiver) = channel::bounded(1);
    let body = move || {
        // Nobody may be left to receive it.
        let _ = sender.send(call());
    };
    let spawned = Builder::new().name("library".to_string()).spawn(body);
    spawned.map_err(|error| LibraryError::Call(name, Errno::of(&error).unwrap_or(Errno(libc::EAGAIN))))?;
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Timeout) if signal::stop_requested().is_some() => {
                return Err(LibraryError::Stopped(name));
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The call panicked.
            Err(RecvTimeoutError::Disconnected) => return Err(LibraryError::Call(name, Errno(libc::EIO))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_that_of_the_call() {
        assert_eq!(wait_for("connect", || Ok(7)), Ok(7));
        let refused = LibraryError::Call("connect", Errno(libc::ECONNREFUSED));
        assert_eq!(wait_for::<()>("connect", move || Err(refused)), Err(refused));
    }
}
