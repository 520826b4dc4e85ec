//! Rates and think time: when the next I/O may be issued.
//!
//! Invariant: a worker without limits has no limiter, and pays one predictable branch for that.

use fiord_plan::{Direction, Op, Pace, PerDirection};
use fiord_stats::count::{DROPPED_ARRIVALS, WAITING_ARRIVALS};
use fiord_stats::{Capped, Counts, Random};

use super::arrivals::Arrivals;

/// The rate limit of one direction: the cost of an I/O in nanoseconds of its budget.
///
/// In a closed loop the next I/O is due a cost after the one before it was due, however late that was issued. In an open
/// loop I/Os arrive, a cost after each other, and wait until they are issued.
#[derive(Debug, Clone)]
struct Budget {
    ns_per_byte: f64,
    ns_per_io: f64,
    /// The cost of the I/O that was issued last.
    cost_ns: f64,
    /// When the next I/O is due; in an open loop: the next that has not arrived yet.
    due_ns: f64,
    /// The highest cost of an I/O.
    cost_max_ns: f64,
    /// Those that have arrived, in an open loop.
    arrivals: Option<Arrivals>,
}

impl Budget {
    fn new(bytes_per_s: Option<u64>, ios_per_s: Option<u64>, open: bool, longest_bytes: u64) -> Budget {
        let cost = |per_s: Option<u64>| per_s.filter(|rate| *rate > 0).map_or(0.0, |rate| 1e9 / rate as f64);
        let (ns_per_byte, ns_per_io) = (cost(bytes_per_s), cost(ios_per_s));
        let arrivals = (open && ns_per_byte + ns_per_io > 0.0).then(Arrivals::new);
        let cost_max_ns = (ns_per_byte * longest_bytes as f64).max(ns_per_io);
        Budget { ns_per_byte, ns_per_io, cost_ns: ns_per_io, due_ns: 0.0, cost_max_ns, arrivals }
    }

    /// The cost of an I/O.
    #[inline]
    fn cost_ns(&self, bytes: u64) -> f64 {
        (self.ns_per_byte * bytes as f64).max(self.ns_per_io)
    }

    /// How many I/Os may be issued at `elapsed_ns` whatever their lengths, in a closed loop.
    fn allowed(&self, elapsed_ns: u64) -> usize {
        let left_ns = elapsed_ns as f64 - self.due_ns;
        if left_ns < 0.0 { 0 } else { usize::capped(left_ns / self.cost_max_ns.max(1e-3)).saturating_add(1) }
    }

    /// When the next I/O may be issued, since the loop began.
    fn due_ns(&self) -> u64 {
        self.arrivals.as_ref().and_then(Arrivals::first_ns).unwrap_or(u64::capped(self.due_ns))
    }

    /// Issues an I/O at `elapsed_ns`; `stretch` draws by how much longer than the mean it is to the next. I/Os that arrived
    /// during a stall are spaced by the length of the one that is issued after it.
    fn spend(&mut self, bytes: u64, elapsed_ns: u64, mut stretch: impl FnMut() -> f64) {
        self.cost_ns = self.cost_ns(bytes);
        self.arrive(elapsed_ns, &mut stretch);
        if !self.arrivals.as_mut().is_some_and(Arrivals::take_first) {
            self.due_ns += self.cost_ns * stretch();
        }
    }

    /// In an open loop: lets I/Os arrive until then.
    fn arrive(&mut self, elapsed_ns: u64, mut stretch: impl FnMut() -> f64) {
        let Some(arrivals) = &mut self.arrivals else { return };
        while u64::capped(self.due_ns) <= elapsed_ns {
            arrivals.arrive(u64::capped(self.due_ns));
            self.due_ns += self.cost_ns.max(1.0) * stretch();
        }
    }
}

/// By how much longer than the mean it is to the next I/O.
fn stretch(poisson: &mut Option<Random>) -> f64 {
    poisson.as_mut().map_or(1.0, |random| random.exponential(1.0))
}

/// The length of a pause, and how to spend it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pause {
    /// Total nanoseconds.
    pub ns: u64,
    /// Nanoseconds at its beginning that are spent spinning.
    pub spin_ns: u64,
}

/// The pause when the next I/O waits for completions, whose time is unknown.
const UNTIL_COMPLETED: Pause = Pause { ns: u64::MAX, spin_ns: 0 };

/// Rates and think time of one worker. Times are nanoseconds on the monotonic clock.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    budgets: PerDirection<Budget>,
    limits_rates: bool,
    /// Whether I/Os wait for nothing but rates, each for a time that the one before it has set.
    is_plain: bool,
    poisson: Option<Random>,
    pace: Pace,
    start_ns: u64,
    /// I/Os counted since the last pause.
    counted: u32,
    /// I/Os issued since the last pause: limits them if completions are counted.
    issued: u32,
    last_pause_ns: u64,
    thinking_until_ns: u64,
    spinning_until_ns: u64,
}

impl RateLimiter {
    /// For I/Os of at most these lengths, in bytes; `None` when nothing is limited.
    pub(crate) fn new(pace: &Pace, seed: u64, longest_bytes: PerDirection<u64>) -> Option<RateLimiter> {
        let limits_rates = pace.has_rates();
        if !limits_rates && pace.think.is_none() {
            return None;
        }
        Some(RateLimiter {
            budgets: [0, 1, 2].map(|d: usize| {
                Budget::new(pace.bytes_per_s[d], pace.ios_per_s[d], pace.open, longest_bytes[d])
            }),
            limits_rates,
            is_plain: pace.think.is_none() && !pace.open && !pace.poisson,
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

    /// With arrivals only in the directions that the job issues: a rate is often given for all three.
    #[must_use]
    pub(crate) fn with_arrivals_of(mut self, issues: impl Fn(Direction) -> bool) -> RateLimiter {
        for direction in Direction::ALL.into_iter().filter(|direction| !issues(*direction)) {
            self.budgets[direction.index()].arrivals = None;
        }
        self
    }

    /// Starts all budgets at `now_ns`.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.start_ns = now_ns;
        self.last_pause_ns = now_ns;
        (self.counted, self.issued) = (0, 0);
        for budget in &mut self.budgets {
            budget.due_ns = 0.0;
            budget.arrivals.iter_mut().for_each(Arrivals::clear);
        }
    }

    /// Counts dropped arrivals from now on.
    pub(crate) fn begin_measuring(&mut self) {
        self.arrivals_mut().for_each(Arrivals::restart_counting);
    }

    fn arrivals_mut(&mut self) -> impl Iterator<Item = &mut Arrivals> {
        self.budgets.iter_mut().filter_map(|budget| budget.arrivals.as_mut())
    }

    /// In an open loop: the I/Os that were never issued, for each direction with a rate. `until_ns` is the end of the
    /// run time, if that ended the loop; with `is_done` the job had done all its I/O, and those waiting do not count.
    pub(crate) fn unserved(&mut self, until_ns: Option<u64>, is_done: bool) -> PerDirection<Counts> {
        let until_ns = until_ns.map(|until_ns| until_ns.saturating_sub(self.start_ns));
        let Self { budgets, poisson, .. } = self;
        budgets.each_mut().map(|budget| {
            let mut counts = Counts::default();
            if let (Some(until_ns), false, true) = (until_ns, is_done, budget.arrivals.is_some()) {
                budget.arrive(until_ns, || stretch(poisson));
            }
            if let Some((dropped, waiting)) = budget.arrivals.as_ref().map(Arrivals::counts) {
                counts.add(&DROPPED_ARRIVALS, dropped);
                counts.add(&WAITING_ARRIVALS, if is_done { 0 } else { waiting });
            }
            counts
        })
    }

    /// Whether any direction has a rate limit.
    pub(crate) fn limits_rates(&self) -> bool {
        self.limits_rates
    }

    /// What a mixed job issues at `now_ns` in place of a write and of a read: the other one, if that may be issued
    /// earlier. So a direction without a limit, or with a higher one, is not delayed by the other.
    pub(crate) fn preferred_directions(&self, now_ns: u64) -> [Direction; 2] {
        let (read, write) = (Direction::Read, Direction::Write);
        let (read_ns, write_ns) = (self.due_ns(read), self.due_ns(write));
        [
            if write_ns > now_ns && read_ns < write_ns { read } else { write },
            if read_ns > now_ns && write_ns < read_ns { write } else { read },
        ]
    }

    /// How many I/Os a mixed job may issue from `now_ns` on before one of its directions may have to wait; 0 if one has to
    /// now, or it is not known.
    pub(crate) fn allowed(&self, now_ns: u64) -> usize {
        let elapsed_ns = now_ns.saturating_sub(self.start_ns);
        let allowed = |direction: Direction| self.budgets[direction.index()].allowed(elapsed_ns);
        if self.is_plain { allowed(Direction::Read).min(allowed(Direction::Write)) } else { 0 }
    }

    /// Whether I/Os wait for nothing but rates, so that `take_turn` may be asked.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Issues `op` if its rate allows it at `now_ns`, of a limiter that is plain: `pause`, `intended_ns` and `issued` in
    /// one. Returns its intended start in nanoseconds since `begin`; `None` if it has to wait.
    #[inline]
    pub(crate) fn take_turn(&mut self, op: &Op, now_ns: u64) -> Option<u64> {
        let budget = &mut self.budgets[op.action.direction()?.index()];
        let due_ns = u64::capped(budget.due_ns);
        if due_ns > now_ns.saturating_sub(self.start_ns) {
            return None;
        }
        budget.due_ns += budget.cost_ns(op.length_bytes);
        Some(due_ns)
    }

    fn due_ns(&self, direction: Direction) -> u64 {
        self.start_ns + self.budgets[direction.index()].due_ns()
    }

    /// How long `op` has to wait at `now_ns`; `None` if it may be issued.
    pub(crate) fn pause(&self, op: &Op, now_ns: u64) -> Option<Pause> {
        let direction = op.action.direction()?;
        if self.waits_for_completions() {
            return Some(UNTIL_COMPLETED);
        }
        let until_ns = self.due_ns(direction).max(self.thinking_until_ns);
        if until_ns <= now_ns {
            return None;
        }
        Some(Pause { ns: until_ns - now_ns, spin_ns: self.spinning_until_ns.saturating_sub(now_ns) })
    }

    /// The intended start of `op`, which may be issued now, in nanoseconds since `begin`: when its rate allowed it, and
    /// the pause before it was over. `None` without a rate.
    pub(crate) fn intended_ns(&self, op: &Op) -> Option<u64> {
        let direction = op.action.direction().filter(|direction| self.pace.has_rate(*direction))?;
        let due_ns = self.due_ns(direction);
        let intended_ns = if self.pace.open { due_ns } else { due_ns.max(self.thinking_until_ns) };
        Some(intended_ns - self.start_ns)
    }

    /// Whether all I/Os allowed before the next pause have been issued, and the pause waits for their completion.
    fn waits_for_completions(&self) -> bool {
        self.pace
            .think
            .is_some_and(|think| !think.count_issued && think.every_ios > 0 && self.issued >= think.every_ios)
    }

    /// Accounts for an I/O that was issued.
    pub(crate) fn issued(&mut self, op: &Op, now_ns: u64) {
        let Some(direction) = op.action.direction() else { return };
        let elapsed_ns = now_ns.saturating_sub(self.start_ns);
        let Self { budgets, poisson, .. } = self;
        budgets[direction.index()].spend(op.length_bytes, elapsed_ns, || stretch(poisson));
        self.issued += 1;
        if self.pace.think.is_some_and(|think| think.count_issued) {
            self.think(now_ns);
        }
    }

    /// Accounts for an I/O that has completed, successfully or not.
    pub(crate) fn completed(&mut self, now_ns: u64) {
        if self.pace.think.is_some_and(|think| !think.count_issued) {
            self.think(now_ns);
        }
    }

    /// Begins a pause if one is due.
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
    use crate::hot::arrivals::WAITING_MAX;
    use fiord_plan::{Action, Think};

    fn limiter_of(pace: &Pace, seed: u64) -> Option<RateLimiter> {
        RateLimiter::new(pace, seed, [1 << 20; 3])
    }

    fn write(length_bytes: u64) -> Op {
        Op::new(Action::Write, 0, 0, length_bytes)
    }

    /// Issues `count` I/Os that take no time and returns when the last was issued.
    fn last_issue_ns(limiter: &mut RateLimiter, op: Op, count: u32) -> u64 {
        let mut now_ns = 0;
        limiter.begin(now_ns);
        for _ in 0..count {
            now_ns += limiter.pause(&op, now_ns).map_or(0, |pause| pause.ns);
            limiter.issued(&op, now_ns);
            limiter.completed(now_ns);
        }
        now_ns
    }

    #[test]
    fn a_job_without_limits_has_no_limiter() {
        assert!(limiter_of(&Pace::default(), 1).is_none());
    }

    #[test]
    fn ios_are_spaced_by_their_rate() {
        let pace = Pace { ios_per_s: [None, Some(1000), None], ..Pace::default() };
        let mut limiter = limiter_of(&pace, 1).unwrap();
        assert_eq!(last_issue_ns(&mut limiter, write(4096), 501), 500_000_000);
    }

    #[test]
    fn bytes_are_spaced_by_their_rate() {
        let pace = Pace { bytes_per_s: [None, Some(1 << 20), None], ..Pace::default() };
        let mut limiter = limiter_of(&pace, 1).unwrap();
        assert_eq!(last_issue_ns(&mut limiter, write(1 << 18), 5), 1_000_000_000);
    }

    #[test]
    fn poisson_arrivals_keep_the_mean() {
        let pace = Pace { ios_per_s: [None, Some(1000), None], poisson: true, ..Pace::default() };
        let mut limiter = limiter_of(&pace, 7).unwrap();
        let took_ns = last_issue_ns(&mut limiter, write(4096), 20_001) as f64;
        assert!((took_ns / 20e9 - 1.0).abs() < 0.03, "{took_ns}");
    }

    const THINK: Think =
        Think { pause_us: 100, spin_us: 0, cycles: 0, every_ios: 4, count_issued: false, io_time_us: 0 };

    fn thinking(think: Think) -> RateLimiter {
        limiter_of(&Pace { think: Some(think), ..Pace::default() }, 1).unwrap()
    }

    #[test]
    fn a_pause_follows_every_block_of_ios() {
        assert_eq!(last_issue_ns(&mut thinking(THINK), write(4096), 9), 200_000);
    }

    #[test]
    fn no_more_ios_are_in_flight_than_come_before_a_pause() {
        let (mut limiter, op) = (thinking(THINK), write(4096));
        limiter.begin(0);
        (0..4).for_each(|_| limiter.issued(&op, 0));
        assert_eq!(limiter.pause(&op, 0), Some(UNTIL_COMPLETED));
        (0..3).for_each(|_| limiter.completed(0));
        assert_eq!(limiter.pause(&op, 0), Some(UNTIL_COMPLETED), "one is still in flight");
        limiter.completed(7);
        assert_eq!(limiter.pause(&op, 7), Some(Pause { ns: 100_000, spin_ns: 0 }));
        assert_eq!(limiter.pause(&op, 100_007), None);
    }

    #[test]
    fn a_pause_after_issued_ios_does_not_wait_for_completions() {
        let (mut limiter, op) = (thinking(Think { count_issued: true, ..THINK }), write(4096));
        limiter.begin(0);
        (0..4).for_each(|_| limiter.issued(&op, 5));
        assert_eq!(limiter.pause(&op, 5), Some(Pause { ns: 100_000, spin_ns: 0 }));
        limiter.completed(6);
        assert_eq!(limiter.pause(&op, 100_005), None);
    }

    #[test]
    fn a_pause_follows_an_interval_of_io_or_a_block_of_ios() {
        let by_time = Think { every_ios: 0, io_time_us: 1000, ..THINK };
        for (think, second_pause_ns) in [(by_time, None), (Think { every_ios: 2, ..by_time }, Some(100_000))]
        {
            let (mut limiter, op) = (thinking(think), write(4096));
            limiter.begin(0);
            limiter.issued(&op, 0);
            limiter.completed(1_000_000);
            assert_eq!(limiter.pause(&op, 1_000_000).map(|pause| pause.ns), Some(100_000));
            let now_ns = 1_100_000;
            for _ in 0..2 {
                assert_eq!(limiter.pause(&op, now_ns), None);
                limiter.issued(&op, now_ns);
                limiter.completed(now_ns);
            }
            assert_eq!(limiter.pause(&op, now_ns).map(|pause| pause.ns), second_pause_ns);
        }
    }

    #[test]
    fn spinning_comes_first() {
        let (mut limiter, op) = (thinking(Think { spin_us: 30, every_ios: 1, ..THINK }), write(4096));
        limiter.begin(0);
        limiter.issued(&op, 0);
        limiter.completed(0);
        assert_eq!(limiter.pause(&op, 10_000), Some(Pause { ns: 90_000, spin_ns: 20_000 }));
        assert_eq!(limiter.pause(&op, 40_000), Some(Pause { ns: 60_000, spin_ns: 0 }));
    }

    #[test]
    fn a_limited_direction_does_not_delay_the_other() {
        let (read, write_direction) = (Direction::Read, Direction::Write);
        let pace = Pace { ios_per_s: [None, Some(1000), None], ..Pace::default() };
        let mut limiter = limiter_of(&pace, 1).unwrap();
        limiter.begin(0);
        assert_eq!(limiter.preferred_directions(0), [write_direction, read]);
        limiter.issued(&write(1), 0);
        assert_eq!(limiter.preferred_directions(0), [read, read]);
        assert_eq!(limiter.preferred_directions(1_000_000), [write_direction, read]);
        let pace = Pace { ios_per_s: [Some(100), Some(1000), None], ..Pace::default() };
        let mut limiter = limiter_of(&pace, 1).unwrap();
        limiter.begin(0);
        limiter.issued(&write(1), 0);
        limiter.issued(&Op { action: read.into(), ..write(1) }, 0);
        assert_eq!(
            limiter.preferred_directions(0),
            [write_direction, write_direction],
            "the one that may go first"
        );
    }

    #[test]
    fn a_late_job_catches_up_with_its_rate() {
        let pace = Pace { ios_per_s: [None, Some(1000), None], ..Pace::default() };
        let mut limiter = limiter_of(&pace, 1).unwrap();
        limiter.begin(0);
        limiter.issued(&write(1), 0);
        assert_eq!(limiter.pause(&write(1), 10_000_000), None);
    }

    #[test]
    fn arrivals_of_an_open_loop_go_on_up_to_a_bound() {
        let pace = Pace { ios_per_s: [None, Some(1_000_000), None], open: true, ..Pace::default() };
        let (mut limiter, op) = (limiter_of(&pace, 1).unwrap(), write(1));
        limiter.begin(7);
        let issue = |limiter: &mut RateLimiter, now_ns: u64| {
            assert_eq!(limiter.pause(&op, now_ns), None);
            let intended_ns = limiter.intended_ns(&op).unwrap();
            limiter.issued(&op, now_ns);
            intended_ns
        };
        assert_eq!(issue(&mut limiter, 7), 0);
        // 100,000 arrive in a tenth of a second, of which 65,536 wait.
        let after_ns = 100_000_007;
        let waited: Vec<u64> = (0..WAITING_MAX).map(|_| issue(&mut limiter, after_ns)).collect();
        assert_eq!((waited[0], waited[1], waited[WAITING_MAX - 1]), (1_000, 2_000, 65_536_000));
        assert_eq!(limiter.pause(&op, after_ns).unwrap().ns, 1_000, "the others are not caught up with");
        assert_eq!(issue(&mut limiter, after_ns + 1_000), 100_001_000);
        let unserved = |limiter: &mut RateLimiter, until_ns, is_done| {
            let counts = &limiter.unserved(until_ns, is_done)[1];
            [&DROPPED_ARRIVALS, &WAITING_ARRIVALS].map(|count| counts.get(count).unwrap())
        };
        let dropped = 100_000 - WAITING_MAX as u64;
        assert_eq!(unserved(&mut limiter, None, false), [dropped, 0]);
        // Five more arrive until the end; they are not wanted if all I/O is done.
        let end_ns = Some(after_ns + 6_000);
        assert_eq!(unserved(&mut limiter, end_ns, true), [dropped, 0]);
        assert_eq!(unserved(&mut limiter, end_ns, false), [dropped, 5]);
        limiter.begin_measuring();
        assert_eq!(unserved(&mut limiter, None, false), [0, 5]);
        assert!(limiter.unserved(end_ns, false)[0].is_empty(), "no rate");
        limiter.begin(0);
        assert_eq!((unserved(&mut limiter, None, false)[1], issue(&mut limiter, 0)), (0, 0));
    }

    #[test]
    fn nothing_arrives_in_a_direction_that_the_job_does_not_issue() {
        let pace = Pace { ios_per_s: [Some(1000); 3], open: true, ..Pace::default() };
        let limiter = limiter_of(&pace, 1).unwrap();
        let mut limiter = limiter.with_arrivals_of(|direction| direction == Direction::Write);
        limiter.begin(0);
        let waiting = limiter.unserved(Some(10_000_000), false).map(|counts| counts.get(&WAITING_ARRIVALS));
        assert_eq!(waiting, [None, Some(11), None]);
    }

    #[test]
    fn a_closed_loop_catches_up_without_a_bound_and_drops_nothing() {
        let pace = Pace { ios_per_s: [None, Some(1_000_000), None], ..Pace::default() };
        let (mut limiter, op) = (limiter_of(&pace, 1).unwrap(), write(1));
        limiter.begin(0);
        (0..100_000).for_each(|_| limiter.issued(&op, 100_000_000));
        assert_eq!(limiter.intended_ns(&op), Some(100_000_000));
        assert!(limiter.unserved(Some(1 << 40), false).iter().all(Counts::is_empty));
    }

    #[test]
    fn random_arrivals_of_an_open_loop_keep_the_mean() {
        let pace = Pace { ios_per_s: [None, Some(1000), None], poisson: true, open: true, ..Pace::default() };
        let mut limiter = limiter_of(&pace, 7).unwrap();
        let took_ns = last_issue_ns(&mut limiter, write(4096), 20_001) as f64;
        assert!((took_ns / 20e9 - 1.0).abs() < 0.03, "{took_ns}");
    }

    /// A limiter of reads and writes, and the I/Os that it is asked for.
    fn limited(random: &mut Random) -> (RateLimiter, Vec<Op>) {
        let mut rate = |most: u64| (random.below(3) > 0).then(|| 1 + random.below(most));
        let pace = Pace {
            ios_per_s: [rate(1 << 20), rate(1 << 20), None],
            bytes_per_s: [rate(1 << 32), Some(1 << 30), None],
            ..Pace::default()
        };
        let mut op = || {
            let action = if random.below(2) == 0 { Action::Read } else { Action::Write };
            Op::new(action, 0, 0, 512 + random.below((1 << 20) - 511))
        };
        let ops = (0..200).map(|_| op()).collect();
        (limiter_of(&pace, 1).unwrap(), ops)
    }

    #[test]
    fn a_turn_is_taken_when_there_is_no_pause_and_counts_as_an_issue() {
        let mut random = Random::new(5);
        for _ in 0..200 {
            let (mut limiter, ops) = limited(&mut random);
            limiter.begin(1000);
            let mut short = limiter_of(&limiter.pace.clone(), 1).unwrap();
            short.begin(1000);
            let mut now_ns = 1000;
            for op in ops {
                now_ns += random.below(2_000_000);
                while let Some(pause) = limiter.pause(&op, now_ns) {
                    assert_eq!(short.take_turn(&op, now_ns), None);
                    now_ns += pause.ns;
                }
                let intended_ns = limiter.intended_ns(&op);
                let taken_ns = short.take_turn(&op, now_ns);
                assert!(
                    taken_ns.is_some() && (intended_ns.is_none() || taken_ns == intended_ns),
                    "{taken_ns:?}"
                );
                limiter.issued(&op, now_ns);
            }
        }
    }

    #[test]
    fn none_of_the_ios_that_are_allowed_at_once_waits_or_is_replaced() {
        let mut random = Random::new(6);
        let mut most = 0;
        for _ in 0..200 {
            let (mut limiter, ops) = limited(&mut random);
            limiter.begin(0);
            let now_ns = random.below(1_000_000_000);
            let allowed = limiter.allowed(now_ns).min(ops.len());
            for op in &ops[..allowed] {
                assert_eq!(limiter.preferred_directions(now_ns), [Direction::Write, Direction::Read]);
                assert_eq!(limiter.pause(op, now_ns), None);
                limiter.issued(op, now_ns);
            }
            most = most.max(allowed);
        }
        assert!(most > 100, "{most}");
    }

    #[test]
    fn how_many_are_allowed_is_not_known_of_arrivals_and_pauses() {
        let rates = Pace { ios_per_s: [Some(10), Some(10), None], ..Pace::default() };
        let paces = [
            Pace { open: true, ..rates.clone() },
            Pace { poisson: true, ..rates.clone() },
            Pace { think: Some(THINK), ..rates.clone() },
        ];
        assert!(paces.iter().all(|pace| limiter_of(pace, 1).unwrap().allowed(u64::MAX / 2) == 0));
        assert!(limiter_of(&rates, 1).unwrap().allowed(1_000_000_000) == 11);
    }
}
