//! The machine's power as its management controller (BMC) tells it, which takes the controller up to seconds.
//!
//! Invariant: only a thread of its own waits for the controller. The run waits for the first answer, and no longer than
//! `PATIENCE`; a controller that did not give it is not asked again by this process.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fiord_sys::channel;
use std::thread;
use std::time::Duration;

use fiord_sys::ipmi::Ipmi;

/// For how long the beginning of a run waits for the first answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// For how long the thread waits for an answer, and between two.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
const ASKS_EVERY: Duration = Duration::from_secs(1);

/// The latest answer.
#[derive(Debug)]
struct Latest {
    /// `None` once there was none.
    power_uw: Option<u64>,
    answers: u64,
}

/// The readings of a controller, which is asked as long as this value lives.
#[derive(Debug)]
pub(crate) struct BmcPower {
    latest: Arc<Mutex<Latest>>,
    /// Answers that came before the run.
    before: u64,
}

impl BmcPower {
    /// Of this machine's controller, if it tells the power.
    pub(crate) fn open() -> Option<BmcPower> {
        static IS_MUTE: AtomicBool = AtomicBool::new(false);
        if IS_MUTE.load(Ordering::Relaxed) {
            return None;
        }
        let mut controller = Ipmi::open().ok()?;
        let opened = BmcPower::of(move || controller.power_watts(ANSWERS_WITHIN), PATIENCE, ASKS_EVERY);
        IS_MUTE.store(opened.is_none(), Ordering::Relaxed);
        opened
    }

    /// Of what answers in watts; `None` if it does not within `patience`.
    fn of(
        mut ask: impl FnMut() -> io::Result<u16> + Send + 'static,
        patience: Duration,
        every: Duration,
    ) -> Option<BmcPower> {
        let (sender, first) = channel::bounded(1);
        let latest = Arc::new(Mutex::new(Latest { power_uw: None, answers: 0 }));
        let kept = Arc::downgrade(&latest);
        let asking = move || {
            while kept.strong_count() > 0 {
                let power_uw = ask().ok().map(|watts| u64::from(watts) * 1_000_000);
                let Some(latest) = kept.upgrade() else { return };
                let mut latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
                latest.power_uw = power_uw;
                latest.answers += 1;
                drop(latest);
                let _ = sender.try_send(power_uw.is_some());
                if power_uw.is_none() {
                    return;
                }
                thread::sleep(every);
            }
        };
        thread::Builder::new().name("bmc".to_string()).spawn(asking).ok()?;
        let answers = first.recv_timeout(patience).is_ok_and(|answers| answers);
        answers.then_some(BmcPower { latest, before: 0 })
    }

    /// The power by the latest answer, in microwatts; `None` once an answer has failed to come.
    pub(crate) fn read(&self) -> Option<u64> {
        self.latest().0
    }

    /// The run begins.
    pub(crate) fn start(&mut self) {
        self.before = self.latest().1;
    }

    /// Whether an answer is of the run.
    pub(crate) fn is_current(&self) -> bool {
        self.latest().1 > self.before
    }

    fn latest(&self) -> (Option<u64>, u64) {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        (latest.power_uw, latest.answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A controller that gives these answers when they are sent, and fails when there are no more.
    fn scripted() -> (channel::Sender<u16>, impl FnMut() -> io::Result<u16> + Send + 'static) {
        let (sender, answers) = channel::channel();
        (sender, move || answers.recv().map_err(|_| io::ErrorKind::TimedOut.into()))
    }

    fn wait_until(condition: impl Fn() -> bool) {
        while !condition() {
            thread::yield_now();
        }
    }

    #[test]
    fn the_latest_answer_counts_until_one_does_not_come() {
        let (sender, ask) = scripted();
        sender.send(90).unwrap();
        let mut bmc = BmcPower::of(ask, Duration::from_secs(600), Duration::ZERO).unwrap();
        assert_eq!(
            (bmc.read(), bmc.is_current()),
            (Some(90_000_000), true),
            "it is of the time since it was opened"
        );
        bmc.start();
        assert!(!bmc.is_current(), "it is from before the run");
        sender.send(250).unwrap();
        wait_until(|| bmc.is_current());
        assert_eq!(bmc.read(), Some(250_000_000));
        drop(sender);
        wait_until(|| bmc.read().is_none());
    }

    #[test]
    fn one_that_refuses_or_is_slow_is_no_source() {
        let (sender, ask) = scripted();
        assert!(BmcPower::of(ask, Duration::ZERO, Duration::ZERO).is_none(), "it does not answer");
        // The thread ends with the next answer, because nobody wants it.
        wait_until(|| sender.send(1).is_err());
        let refuses = || Err(io::Error::from_raw_os_error(61));
        assert!(BmcPower::of(refuses, Duration::from_secs(600), Duration::ZERO).is_none());
    }
}
