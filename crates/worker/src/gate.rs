//! Rates and think time: when the next I/O may go.
//!
//! Invariant: a worker without limits has no gate, and pays one predictable branch for that.

use fiord_plan::{Action, Direction, Op, Pace, PerDirection};
use fiord_stats::Random;

/// What one direction has to keep to: the cost of an I/O in nanoseconds of its budget.
#[derive(Debug, Clone, Copy, Default)]
struct Budget {
    ns_per_byte: f64,
    ns_per_io: f64,
    due_ns: f64,
}

impl Budget {
    fn new(bytes_per_s: Option<u64>, ios_per_s: Option<u64>) -> Budget {
        let cost = |per_s: Option<u64>| per_s.filter(|rate| *rate > 0).map_or(0.0, |rate| 1e9 / rate as f64);
        Budget { ns_per_byte: cost(bytes_per_s), ns_per_io: cost(ios_per_s), due_ns: 0.0 }
    }

    fn spend(&mut self, bytes: u64, stretch: f64) {
        self.due_ns += (self.ns_per_byte * bytes as f64).max(self.ns_per_io) * stretch;
    }
}

/// How long to stay away, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pause {
    /// Nanoseconds in all.
    pub ns: u64,
    /// Nanoseconds at its beginning that are spent spinning.
    pub spin_ns: u64,
}

/// How long to stay away when only completions can tell.
const UNTIL_COMPLETED: Pause = Pause { ns: u64::MAX, spin_ns: 0 };

/// Rates and think time of one worker. Times are nanoseconds on the monotonic clock.
#[derive(Debug)]
pub(crate) struct Gate {
    budgets: PerDirection<Budget>,
    limits_rates: bool,
    poisson: Option<Random>,
    pace: Pace,
    start_ns: u64,
    /// I/Os counted since the last pause.
    counted: u32,
    /// I/Os issued since the last pause: where completions are counted, no more than that go before it.
    issued: u32,
    last_pause_ns: u64,
    thinking_until_ns: u64,
    spinning_until_ns: u64,
}

impl Gate {
    /// `None` when nothing is limited.
    pub(crate) fn new(pace: &Pace, seed: u64) -> Option<Gate> {
        let limited = |rates: &PerDirection<Option<u64>>| rates.iter().any(Option::is_some);
        let limits_rates = limited(&pace.bytes_per_s) || limited(&pace.ios_per_s);
        if !limits_rates && pace.think.is_none() {
            return None;
        }
        Some(Gate {
            budgets: [0, 1, 2].map(|d: usize| Budget::new(pace.bytes_per_s[d], pace.ios_per_s[d])),
            limits_rates,
            poisson: pace.poisson.then(|| Random::new(seed)),
            pace: pace.clone(),
            start_ns: 0,
            counted: 0,
            issued: 0,
            last_pause_ns: 0,
            thinking_until_ns: 0,
            spinning_until_ns: 0,
        })
    }

    /// Starts all budgets at `now_ns`.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.start_ns = now_ns;
        self.last_pause_ns = now_ns;
        (self.counted, self.issued) = (0, 0);
        self.budgets.iter_mut().for_each(|budget| budget.due_ns = 0.0);
    }

    /// Whether directions are held to rates of their own.
    pub(crate) fn limits_rates(&self) -> bool {
        self.limits_rates
    }

    /// What a mixed job does at `now_ns` instead of a write and of a read: the other one, when that may go earlier.
    /// So the direction without a limit, or with the larger one, is not held back by the other.
    pub(crate) fn either(&self, now_ns: u64) -> [Direction; 2] {
        let (read, write) = (Direction::Read, Direction::Write);
        let (read_ns, write_ns) = (self.due_ns(read), self.due_ns(write));
        [
            if write_ns > now_ns && read_ns < write_ns { read } else { write },
            if read_ns > now_ns && write_ns < read_ns { write } else { read },
        ]
    }

    fn due_ns(&self, direction: Direction) -> u64 {
        self.start_ns + self.budgets[direction.index()].due_ns as u64
    }

    /// How long `op` has to wait at `now_ns`; `None` when it may go.
    pub(crate) fn pause(&self, op: &Op, now_ns: u64) -> Option<Pause> {
        let Action::Transfer(direction) = op.action else { return None };
        if self.waits_for_completions() {
            return Some(UNTIL_COMPLETED);
        }
        let until_ns = self.due_ns(direction).max(self.thinking_until_ns);
        if until_ns <= now_ns {
            return None;
        }
        Some(Pause { ns: until_ns - now_ns, spin_ns: self.spinning_until_ns.saturating_sub(now_ns) })
    }

    /// Whether as many I/Os are in flight as may come before the pause that follows their completion.
    fn waits_for_completions(&self) -> bool {
        self.pace
            .think
            .is_some_and(|think| !think.count_issued && think.every_ios > 0 && self.issued >= think.every_ios)
    }

    /// Accounts for an I/O that was issued.
    pub(crate) fn issued(&mut self, op: &Op, now_ns: u64) {
        let Action::Transfer(direction) = op.action else { return };
        let stretch = match &mut self.poisson {
            Some(random) => random.exponential(1.0),
            None => 1.0,
        };
        self.budgets[direction.index()].spend(op.length_bytes, stretch);
        self.issued += 1;
        if self.pace.think.is_some_and(|think| think.count_issued) {
            self.think(now_ns);
        }
    }

    /// Accounts for an I/O that has ended, well or not.
    pub(crate) fn completed(&mut self, now_ns: u64) {
        if self.pace.think.is_some_and(|think| !think.count_issued) {
            self.think(now_ns);
        }
    }

    /// Begins a pause when it is due.
    fn think(&mut self, now_ns: u64) {
        let Some(think) = self.pace.think else { return };
        self.counted += 1;
        let by_count = think.every_ios > 0 && self.counted >= think.every_ios;
        let io_time_ns = think.io_time_us * 1000;
        let by_time = io_time_ns > 0 && now_ns.saturating_sub(self.last_pause_ns) >= io_time_ns;
        if !by_count && !by_time {
            return;
        }
        for cycle in 0..think.cycles {
            std::hint::black_box(cycle);
        }
        let pause_ns = think.pause_us * 1000;
        (self.counted, self.issued) = (0, 0);
        self.last_pause_ns = now_ns + pause_ns;
        self.thinking_until_ns = now_ns + pause_ns;
        self.spinning_until_ns = now_ns + think.spin_us.min(think.pause_us) * 1000;
        if self.pace.ignore_think_time {
            self.budgets.iter_mut().for_each(|budget| budget.due_ns += pause_ns as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_plan::Think;

    fn write(length_bytes: u64) -> Op {
        Op {
            action: Action::Transfer(Direction::Write),
            file: 0,
            offset_bytes: 0,
            length_bytes,
            buffer_offset_bytes: 0,
        }
    }

    /// Issues `count` I/Os that take no time and returns when the last one went.
    fn last_issue_ns(gate: &mut Gate, op: Op, count: u32) -> u64 {
        let mut now_ns = 0;
        gate.begin(now_ns);
        for _ in 0..count {
            now_ns += gate.pause(&op, now_ns).map_or(0, |pause| pause.ns);
            gate.issued(&op, now_ns);
            gate.completed(now_ns);
        }
        now_ns
    }

    #[test]
    fn a_job_without_limits_has_no_gate() {
        assert!(Gate::new(&Pace::default(), 1).is_none());
    }

    #[test]
    fn ios_are_spaced_by_their_rate() {
        let pace = Pace { ios_per_s: [None, Some(1000), None], ..Pace::default() };
        let mut gate = Gate::new(&pace, 1).unwrap();
        assert_eq!(last_issue_ns(&mut gate, write(4096), 501), 500_000_000);
    }

    #[test]
    fn bytes_are_spaced_by_their_rate() {
        let pace = Pace { bytes_per_s: [None, Some(1 << 20), None], ..Pace::default() };
        let mut gate = Gate::new(&pace, 1).unwrap();
        assert_eq!(last_issue_ns(&mut gate, write(1 << 18), 5), 1_000_000_000);
    }

    #[test]
    fn poisson_arrivals_keep_the_mean() {
        let pace = Pace { ios_per_s: [None, Some(1000), None], poisson: true, ..Pace::default() };
        let mut gate = Gate::new(&pace, 7).unwrap();
        let took_ns = last_issue_ns(&mut gate, write(4096), 20_001) as f64;
        assert!((took_ns / 20e9 - 1.0).abs() < 0.03, "{took_ns}");
    }

    const THINK: Think =
        Think { pause_us: 100, spin_us: 0, cycles: 0, every_ios: 4, count_issued: false, io_time_us: 0 };

    fn thinking(think: Think) -> Gate {
        Gate::new(&Pace { think: Some(think), ..Pace::default() }, 1).unwrap()
    }

    #[test]
    fn a_pause_follows_each_so_many_ios() {
        assert_eq!(last_issue_ns(&mut thinking(THINK), write(4096), 9), 200_000);
    }

    #[test]
    fn no_more_ios_are_in_flight_than_come_before_a_pause() {
        let (mut gate, op) = (thinking(THINK), write(4096));
        gate.begin(0);
        (0..4).for_each(|_| gate.issued(&op, 0));
        assert_eq!(gate.pause(&op, 0), Some(UNTIL_COMPLETED));
        (0..3).for_each(|_| gate.completed(0));
        assert_eq!(gate.pause(&op, 0), Some(UNTIL_COMPLETED), "one is still in flight");
        gate.completed(7);
        assert_eq!(gate.pause(&op, 7), Some(Pause { ns: 100_000, spin_ns: 0 }));
        assert_eq!(gate.pause(&op, 100_007), None);
    }

    #[test]
    fn counted_when_issued_a_pause_waits_for_nobody() {
        let (mut gate, op) = (thinking(Think { count_issued: true, ..THINK }), write(4096));
        gate.begin(0);
        (0..4).for_each(|_| gate.issued(&op, 5));
        assert_eq!(gate.pause(&op, 5), Some(Pause { ns: 100_000, spin_ns: 0 }));
        gate.completed(6);
        assert_eq!(gate.pause(&op, 100_005), None);
    }

    #[test]
    fn a_pause_follows_so_much_time_of_io_or_so_many_ios() {
        let by_time = Think { every_ios: 0, io_time_us: 1000, ..THINK };
        for (think, second_pause_ns) in [(by_time, None), (Think { every_ios: 2, ..by_time }, Some(100_000))]
        {
            let (mut gate, op) = (thinking(think), write(4096));
            gate.begin(0);
            gate.issued(&op, 0);
            gate.completed(1_000_000);
            assert_eq!(gate.pause(&op, 1_000_000).map(|pause| pause.ns), Some(100_000));
            let now_ns = 1_100_000;
            for _ in 0..2 {
                assert_eq!(gate.pause(&op, now_ns), None);
                gate.issued(&op, now_ns);
                gate.completed(now_ns);
            }
            assert_eq!(gate.pause(&op, now_ns).map(|pause| pause.ns), second_pause_ns);
        }
    }

    #[test]
    fn spinning_comes_first() {
        let (mut gate, op) = (thinking(Think { spin_us: 30, every_ios: 1, ..THINK }), write(4096));
        gate.begin(0);
        gate.issued(&op, 0);
        gate.completed(0);
        assert_eq!(gate.pause(&op, 10_000), Some(Pause { ns: 90_000, spin_ns: 20_000 }));
        assert_eq!(gate.pause(&op, 40_000), Some(Pause { ns: 60_000, spin_ns: 0 }));
    }

    #[test]
    fn a_limited_direction_does_not_hold_back_the_other() {
        let (read, write_direction) = (Direction::Read, Direction::Write);
        let pace = Pace { ios_per_s: [None, Some(1000), None], ..Pace::default() };
        let mut gate = Gate::new(&pace, 1).unwrap();
        gate.begin(0);
        assert_eq!(gate.either(0), [write_direction, read]);
        gate.issued(&write(1), 0);
        assert_eq!(gate.either(0), [read, read]);
        assert_eq!(gate.either(1_000_000), [write_direction, read]);
        let pace = Pace { ios_per_s: [Some(100), Some(1000), None], ..Pace::default() };
        let mut gate = Gate::new(&pace, 1).unwrap();
        gate.begin(0);
        gate.issued(&write(1), 0);
        gate.issued(&Op { action: Action::Transfer(read), ..write(1) }, 0);
        assert_eq!(gate.either(0), [write_direction, write_direction], "the one that may go first");
    }

    #[test]
    fn time_spent_behind_is_caught_up() {
        let pace = Pace { ios_per_s: [None, Some(1000), None], ..Pace::default() };
        let mut gate = Gate::new(&pace, 1).unwrap();
        gate.begin(0);
        gate.issued(&write(1), 0);
        assert_eq!(gate.pause(&write(1), 10_000_000), None);
    }
}
