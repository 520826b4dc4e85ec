//! Channels between threads: those of the standard library have three queues for each type that they carry, which made 130 KB of
//! the static binary; these have one queue and a lock. Their errors are the standard library's.
//!
//! Invariant: neither end of a bounded channel allocates, and nobody is woken where nobody waits.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

/// The end that sends; there may be several.
#[derive(Debug)]
pub struct Sender<T>(Arc<Shared<T>>);

/// The end that receives.
#[derive(Debug)]
pub struct Receiver<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    changed: [Condvar; 2],
}

/// The two things that are waited for, as indices of `changed` and `waiting`.
const RECEIVED: usize = 0;
const SENT: usize = 1;

#[derive(Debug)]
struct State<T> {
    queue: VecDeque<T>,
    /// How many the queue may have.
    capacity: usize,
    senders: usize,
    is_received: bool,
    waiting: [usize; 2],
}

/// A channel that never makes a sender wait.
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    new(VecDeque::new(), usize::MAX)
}

/// A channel whose senders wait while it holds `capacity` (at least one) that nobody has received.
#[must_use]
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let capacity = capacity.max(1);
    new(VecDeque::with_capacity(capacity), capacity)
}

fn new<T>(queue: VecDeque<T>, capacity: usize) -> (Sender<T>, Receiver<T>) {
    let state = State { queue, capacity, senders: 1, is_received: true, waiting: [0; 2] };
    let shared = Arc::new(Shared { state: Mutex::new(state), changed: Default::default() });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nothing that panics is done under it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until this has happened, or until the deadline.
    fn wait<'s>(
        &'s self,
        mut state: MutexGuard<'s, State<T>>,
        what: usize,
        deadline: Option<Instant>,
    ) -> MutexGuard<'s, State<T>> {
        state.waiting[what] += 1;
        let mut state = match deadline {
            None => self.changed[what].wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                self.changed[what].wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.waiting[what] -= 1;
        state
    }

    /// Wakes one that waits for this, once the lock is free.
    fn tell(&self, state: MutexGuard<'_, State<T>>, what: usize) {
        let is_awaited = state.waiting[what] > 0;
        drop(state);
        if is_awaited {
            self.changed[what].notify_one();
        }
    }
}

impl<T> Sender<T> {
    /// Sends, and waits while a bounded channel is full.
    ///
    /// # Errors
    /// If nobody receives any more.
    pub fn send(&self, item: T) -> Result<(), SendError<T>> {
        let mut state = self.0.lock();
        while state.is_received && state.queue.len() >= state.capacity {
            state = self.0.wait(state, RECEIVED, None);
        }
        if !state.is_received {
            return Err(SendError(item));
        }
        state.queue.push_back(item);
        self.0.tell(state, SENT);
        Ok(())
    }

    /// Sends unless that would wait.
    ///
    /// # Errors
    /// If nobody receives any more, or if the channel is full.
    pub fn try_send(&self, item: T) -> Result<(), TrySendError<T>> {
        let mut state = self.0.lock();
        if !state.is_received {
            return Err(TrySendError::Disconnected(item));
        }
        if state.queue.len() >= state.capacity {
            return Err(TrySendError::Full(item));
        }
        state.queue.push_back(item);
        self.0.tell(state, SENT);
        Ok(())
    }
}

impl<T> Receiver<T> {
    /// Waits for an item.
    ///
    /// # Errors
    /// If there is none, and nobody sends any more.
    pub fn recv(&self) -> Result<T, RecvError> {
        self.by(None).map_err(|_| RecvError)
    }

    /// Waits for an item for this long.
    ///
    /// # Errors
    /// If there was none, or nobody sends any more.
    pub fn recv_timeout(&self, longest: Duration) -> Result<T, RecvTimeoutError> {
        match Instant::now().checked_add(longest) {
            None => self.recv().map_err(|RecvError| RecvTimeoutError::Disconnected),
            Some(deadline) => self.by(Some(deadline)).map_err(|why| match why {
                TryRecvError::Empty => RecvTimeoutError::Timeout,
                TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            }),
        }
    }

    /// An item that is there.
    ///
    /// # Errors
    /// If there is none, or nobody sends any more.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.take(self.0.lock()).map_err(|(why, _)| why)
    }

    fn by(&self, deadline: Option<Instant>) -> Result<T, TryRecvError> {
        let mut state = self.0.lock();
        loop {
            match self.take(state) {
                Ok(item) => return Ok(item),
                Err((TryRecvError::Empty, _))
                    if deadline.is_some_and(|deadline| Instant::now() >= deadline) =>
                {
                    return Err(TryRecvError::Empty);
                }
                Err((TryRecvError::Empty, still)) => state = self.0.wait(still, SENT, deadline),
                Err((why, _)) => return Err(why),
            }
        }
    }

    fn take<'s>(
        &'s self,
        mut state: MutexGuard<'s, State<T>>,
    ) -> Result<T, (TryRecvError, MutexGuard<'s, State<T>>)> {
        match state.queue.pop_front() {
            Some(item) => {
                self.0.tell(state, RECEIVED);
                Ok(item)
            }
            None if state.senders == 0 => Err((TryRecvError::Disconnected, state)),
            None => Err((TryRecvError::Empty, state)),
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.0.lock().senders += 1;
        Sender(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.senders -= 1;
        if state.senders == 0 {
            drop(state);
            self.0.changed[SENT].notify_all();
        }
    }
}

impl<T> Drop for Receiver<T> {
    /// What nobody receives is dropped now, not when the last sender ends.
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_received = false;
        let rest = std::mem::take(&mut state.queue);
        drop(state);
        self.0.changed[RECEIVED].notify_all();
        drop(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_arrive_in_their_order_and_then_the_end() {
        let (sender, receiver) = channel();
        let other = sender.clone();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                (0..1000).try_for_each(|item| sender.send(item)).unwrap();
                drop(sender);
                other.send(1000).unwrap();
            });
            (0..=1000).for_each(|item| assert_eq!(receiver.recv(), Ok(item)));
            assert_eq!(receiver.recv(), Err(RecvError));
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
            assert_eq!(receiver.recv_timeout(Duration::MAX), Err(RecvTimeoutError::Disconnected));
        });
    }

    #[test]
    fn a_full_channel_makes_its_sender_wait_until_there_is_room_or_nobody_receives() {
        let (sender, receiver) = bounded(1);
        sender.send(0).unwrap();
        assert_eq!(sender.try_send(1), Err(TrySendError::Full(1)));
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| (1..=100).take_while(|item| sender.send(*item).is_ok()).count());
            (0..50).for_each(|item| assert_eq!(receiver.recv(), Ok(item)));
            drop(receiver);
            let sent = sending.join().unwrap();
            assert!((49..=50).contains(&sent), "{sent}");
        });
        assert_eq!(sender.try_send(7), Err(TrySendError::Disconnected(7)));
    }

    #[test]
    fn whoever_waits_for_an_item_for_a_time_waits_no_longer() {
        let (sender, receiver) = bounded::<u8>(1);
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(receiver.recv_timeout(Duration::from_millis(1)), Err(RecvTimeoutError::Timeout));
        sender.send(9).unwrap();
        assert_eq!(receiver.recv_timeout(Duration::ZERO), Ok(9));
    }

    #[test]
    fn what_nobody_receives_is_dropped() {
        let (sender, receiver) = channel();
        let item = Arc::new(());
        sender.send(Arc::clone(&item)).unwrap();
        drop(receiver);
        assert_eq!(Arc::strong_count(&item), 1);
    }
}
