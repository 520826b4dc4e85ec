//! The search for the highest queue depth at which enough I/Os meet a latency (`latency_target`).
//!
//! Invariant: a depth is judged by one whole window at that depth; the depth in use is from 1 to the job's `iodepth`.

use fiord_plan::LatencyTarget;

/// What follows from a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DepthDecision {
    /// Stay at the depth.
    Stay,
    /// Go on at this depth.
    Change(u32),
    /// The depth in use is the highest that meets the target, and the job was to find it.
    Found,
}

/// The search of one job.
#[derive(Debug, Clone)]
pub(crate) struct DepthSearch {
    target: LatencyTarget,
    depth: u32,
    depth_max: u32,
    /// The highest depth known to meet the target; 0 for none.
    met: u32,
    /// The lowest depth known to miss it.
    missed: Option<u32>,
    window_ends_ns: u64,
    within: u64,
    beyond: u64,
}

impl DepthSearch {
    /// Begins at depth 1.
    pub(crate) fn new(target: LatencyTarget, depth_max: u32) -> DepthSearch {
        let depth_max = depth_max.max(1);
        DepthSearch {
            target,
            depth: 1,
            depth_max,
            met: 0,
            missed: None,
            window_ends_ns: 0,
            within: 0,
            beyond: 0,
        }
    }

    /// The depth in use.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether the statistics of the depths that were tried are dropped: all but the last, unless the job goes on.
    pub(super) fn drops_statistics(&self) -> bool {
        !self.target.continues
    }

    /// When the window ends.
    pub(super) fn window_ends_ns(&self) -> u64 {
        self.window_ends_ns
    }

    /// Begins a window.
    pub(super) fn begin_window(&mut self, now_ns: u64) {
        self.window_ends_ns = now_ns.saturating_add(self.target.window_ns);
        (self.within, self.beyond) = (0, 0);
    }

    /// Counts an I/O.
    pub(super) fn note(&mut self, latency_ns: u64) {
        match latency_ns <= self.target.target_ns {
            true => self.within += 1,
            false => self.beyond += 1,
        }
    }

    /// Judges the window if it is over at `now_ns` and had an I/O, and begins the next.
    pub(super) fn judge(&mut self, now_ns: u64) -> DepthDecision {
        let ios = self.within + self.beyond;
        if now_ns < self.window_ends_ns || ios == 0 {
            return DepthDecision::Stay;
        }
        let meets = self.within as f64 * 100.0 >= self.target.percentile * ios as f64;
        let step = if meets { self.after_meeting() } else { self.after_missing() };
        if let DepthDecision::Change(depth) = step {
            self.depth = depth;
        }
        self.begin_window(now_ns);
        step
    }

    fn after_meeting(&mut self) -> DepthDecision {
        self.met = self.depth;
        let next = match self.missed {
            Some(missed) => self.depth + missed.saturating_sub(self.depth) / 2,
            None => self.depth.saturating_mul(2).min(self.depth_max),
        };
        match (next > self.depth, self.target.continues) {
            (true, _) => DepthDecision::Change(next),
            (false, true) => DepthDecision::Stay,
            (false, false) => DepthDecision::Found,
        }
    }

    fn after_missing(&mut self) -> DepthDecision {
        self.missed = Some(self.depth);
        // A depth that met the target before may miss it now.
        if self.met >= self.depth {
            self.met = 0;
        }
        let next = match self.met {
            0 => self.depth / 2,
            met => met + (self.depth - met) / 2,
        };
        if next == 0 || next == self.depth { DepthDecision::Stay } else { DepthDecision::Change(next) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_NS: u64 = 1000;

    fn search(continues: bool, depth_max: u32) -> DepthSearch {
        let target = LatencyTarget { target_ns: 100, window_ns: WINDOW_NS, percentile: 90.0, continues };
        let mut search = DepthSearch::new(target, depth_max);
        search.begin_window(0);
        search
    }

    /// The depths tried on a device on which I/Os take `latency_ns(depth, window)`, until one is found or `windows`
    /// are over; and whether one was found.
    fn depths(
        search: &mut DepthSearch,
        windows: u64,
        latency_ns: impl Fn(u32, u64) -> u64,
    ) -> (Vec<u32>, bool) {
        let mut depths = vec![search.depth()];
        for window in 0..windows {
            (0..10).for_each(|_| search.note(latency_ns(search.depth(), window)));
            match search.judge((window + 1) * WINDOW_NS) {
                DepthDecision::Stay => {}
                DepthDecision::Change(depth) => depths.push(depth),
                DepthDecision::Found => return (depths, true),
            }
        }
        (depths, false)
    }

    #[test]
    fn the_highest_depth_that_meets_the_target_is_found_for_every_limit() {
        for depth_max in [1, 2, 7, 64] {
            for limit in 1..=depth_max {
                let mut search = search(false, depth_max);
                let (tried, found) =
                    depths(&mut search, 100, |depth, _| if depth <= limit { 100 } else { 101 });
                assert!(found, "limit {limit} of {depth_max}: {tried:?}");
                assert_eq!(search.depth(), limit, "{tried:?}");
            }
        }
    }

    #[test]
    fn it_doubles_and_then_halves_the_gap() {
        let (tried, _) = depths(&mut search(false, 64), 100, |depth, _| u64::from(depth) * 5);
        assert_eq!(tried, [1, 2, 4, 8, 16, 32, 24, 20, 22, 21, 20]);
        let (tried, _) = depths(&mut search(false, 6), 100, |_, _| 1);
        assert_eq!(tried, [1, 2, 4, 6]);
    }

    #[test]
    fn a_target_that_no_depth_meets_leaves_the_job_at_depth_1() {
        let (tried, found) = depths(&mut search(false, 64), 100, |_, _| 101);
        assert_eq!((tried, found), (vec![1], false));
    }

    #[test]
    fn the_share_of_ios_is_judged_over_whole_windows() {
        for (within, beyond, step) in
            [(9, 1, DepthDecision::Change(2)), (8, 2, DepthDecision::Stay), (0, 0, DepthDecision::Stay)]
        {
            let mut search = search(false, 8);
            (0..within).for_each(|_| search.note(100));
            (0..beyond).for_each(|_| search.note(101));
            assert_eq!(search.judge(WINDOW_NS - 1), DepthDecision::Stay, "before its end");
            assert_eq!(search.judge(WINDOW_NS), step, "{within} of {}", within + beyond);
        }
    }

    #[test]
    fn a_job_that_continues_stays_at_its_depth_and_goes_lower_when_the_device_slows_down() {
        let mut search = search(true, 8);
        let latency_ns = |depth, window| match window {
            0..20 => u64::from(depth) * 20,
            _ => u64::from(depth) * 40,
        };
        let (tried, found) = depths(&mut search, 60, latency_ns);
        assert!(!found);
        assert_eq!(tried[..6], [1, 2, 4, 8, 6, 5]);
        assert_eq!(search.depth(), 2, "{tried:?}");
    }
}
