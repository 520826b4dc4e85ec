//! How long a worker that was asked to stop waits for a server that does not answer.
//!
//! Invariant: without a signal, a wait has no end of its own.

use std::time::{Duration, Instant};

use fiord_sys::signal;

/// How long the server may be silent after the first signal; after one that ends the run, how long its answer may take.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// The signals that have interrupted waits since the server was last heard. A worker is woken by a signal to make it stop,
/// and again and again until it has.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    interrupted: Option<Instant>,
}

impl Patience {
    /// An operation begins or has ended.
    #[inline]
    pub(crate) fn renew(&mut self) {
        self.interrupted = None;
    }

    /// The server has sent a part of an answer. It need not be quick, but when the whole run is to stop, the rest has to come
    /// in time: a server could send single bytes for ever.
    #[inline]
    pub(crate) fn heard(&mut self) {
        if signal::stop_requested().is_none() {
            self.renew();
        }
    }

    /// A signal interrupted a wait; whether it is time to give up.
    #[cold]
    pub(crate) fn is_over(&mut self) -> bool {
        self.interrupted.get_or_insert_with(Instant::now).elapsed() >= SILENCE_MAX
    }
}
