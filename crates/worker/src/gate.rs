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
    /// Nanoseconds.
    pub ns: u64,
    /// Nanoseconds of it to spend spinning.
    pub spin_ns: u64,
}

/// Rates and think time of one worker. Times are nanoseconds since `start`.
#[derive(Debug)]
pub(crate) struct Gate {
    budgets: PerDirection<Budget>,
    poisson: Option<Random>,
    pace: Pace,
    start_ns: u64,
    ios_since_pause: u32,
    last_pause_ns: u64,
    thinking_until_ns: u64,
    spinning_until_ns: u64,
}

impl Gate {
    /// `None` when nothing is limited.
    pub(crate) fn new(pace: &Pace, seed: u64) -> Option<Gate> {
        let limited = |rates: &PerDirection<Option<u64>>| rates.iter().any(Option::is_some);
        if !limited(&pace.bytes_per_s) && !limited(&pace.ios_per_s) && pace.think.is_none() {
            return None;
        }
        Some(Gate {
            budgets: [0, 1, 2].map(|d: usize| Budget::new(pace.bytes_per_s[d], pace.ios_per_s[d])),
            poisson: pace.poisson.then(|| Random::new(seed)),
            pace: pace.clone(),
            start_ns: 0,
            ios_since_pause: 0,
            last_pause_ns: 0,
            thinking_until_ns: 0,
            spinning_until_ns: 0,
        })
    }

    /// Starts all budgets at `now_ns`.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.start_ns = now_ns;
        self.last_pause_ns = now_ns;
        self.ios_since_pause = 0;
        self.budgets.iter_mut().for_each(|budget| budget.due_ns = 0.0);
    }

    /// How long `op` has to wait at `now_ns`; `None` when it may go.
    pub(crate) fn pause(&self, op: &Op, now_ns: u64) -> Option<Pause> {
        let Action::Transfer(direction) = op.action else { return None };
        let due_ns = self.start_ns + self.budgets[direction.index()].due_ns as u64;
        let until_ns = due_ns.max(self.thinking_until_ns);
        if until_ns <= now_ns {
            return None;
        }
        Some(Pause { ns: until_ns - now_ns, spin_ns: self.spinning_until_ns.saturating_sub(now_ns) })
    }

    /// Accounts for an I/O that was issued.
    pub(crate) fn issued(&mut self, op: &Op, now_ns: u64) {
        let Action::Transfer(direction) = op.action else { return };
        let stretch = match &mut self.poisson {
            Some(random) => random.exponential(1.0),
            None => 1.0,
        };
        self.budgets[direction.index()].spend(op.length_bytes, stretch);
        if self.pace.think.is_some_and(|think| think.count_issued) {
            self.think(now_ns);
        }
    }

    /// Accounts for an I/O that has ended.
    pub(crate) fn completed(&mut self, _direction: Direction, now_ns: u64) {
        if self.pace.think.is_some_and(|think| !think.count_issued) {
            self.think(now_ns);
        }
    }

    fn think(&mut self, now_ns: u64) {
        let Some(think) = self.pace.think else { return };
        self.ios_since_pause += 1;
        let due = if think.io_time_us > 0 {
            now_ns - self.last_pause_ns.min(now_ns) >= think.io_time_us * 1000
        } else {
            self.ios_since_pause >= think.every_ios.max(1)
        };
        if !due {
            return;
        }
        for _ in 0..think.cycles {
            std::hint::spin_loop();
        }
        let pause_ns = think.pause_us * 1000;
        self.ios_since_pause = 0;
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
            gate.completed(Direction::Write, now_ns);
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

    #[test]
    fn a_pause_follows_each_so_many_ios() {
        let think =
            Think { pause_us: 100, spin_us: 0, cycles: 0, every_ios: 4, count_issued: false, io_time_us: 0 };
        let mut gate = Gate::new(&Pace { think: Some(think), ..Pace::default() }, 1).unwrap();
        assert_eq!(last_issue_ns(&mut gate, write(4096), 9), 200_000);
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
