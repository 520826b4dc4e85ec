//! The tests of the specification: what is written before each, what a round measures, and what has to become steady.
//!
//! Invariant: a phase begins with one run that prepares the device, unless it has none, and goes on in whole rounds.

use std::time::Duration;

use fiord_options::{Section, job};
use fiord_report::table::shown_bytes;

use super::kept::{FILLS, Kept};
use super::settings::{Class, Settings, Test};
use crate::step::Step;
use crate::study::shown_time;
use crate::study_target::StudyTarget;

/// The shares of reads of the test of IOPS, in percent.
const IOPS_READS: [u32; 7] = [100, 95, 65, 50, 35, 5, 0];
/// Its block sizes, in bytes.
const IOPS_BLOCKS: [u64; 8] = [1 << 20, 128 << 10, 64 << 10, 32 << 10, 16 << 10, 8 << 10, 4 << 10, 512];
/// The shares of reads of the test of latency, in percent.
const LATENCY_READS: [u32; 3] = [100, 65, 0];
/// Its block sizes, in bytes.
const LATENCY_BLOCKS: [u64; 3] = [8 << 10, 4 << 10, 512];
/// The block size by whose writes IOPS and latency are judged; by its reads where random writes are left out.
const JUDGED_BLOCK: u64 = 4 << 10;
/// The block of the preconditioning that is independent of the workload.
const PRECONDITION_BLOCK: u64 = 128 << 10;
/// I/Os in flight of one sequential job.
const SEQUENTIAL_DEPTH: &str = "32";
/// The write saturation ends once the capacity was written this often, or after this time.
pub(super) const SATURATION_FILLS: u64 = 4;
const SATURATION_TIME: Duration = Duration::from_secs(24 * 3600);

/// The block size and minutes of each part of the cross-stimulus recovery, and whether its writes are in sequence.
const STIMULI: [(u64, usize, bool); 3] = [(1 << 20, 480, true), (8 << 10, 360, false), (1 << 20, 480, true)];
/// The pauses of the host idle recovery, as multiples of the burst before each.
const PAUSES: [u32; 5] = [1, 2, 3, 5, 10];
/// How many bursts there are with each pause, and measurements without pauses after them.
const BURSTS: usize = 360;
const AFTER_BURSTS: usize = 30;
/// Bursts in the time of a measurement.
const BURSTS_PER_MEASUREMENT: u32 = 12;
/// What is written between two measurements of the way to the steady state, in measurements.
const BETWEEN: u32 = 29;

/// Which figure has to become steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Iops,
    MibPerS,
    MeanNs,
}

/// When a phase is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// When it is steady, and its drift is confirmed to be small if that is asked for, or after so many rounds.
    Steady { rounds_max: usize, confirmed: bool },
    /// When so much was written, or after so many rounds.
    Written { bytes: u64, rounds_max: usize },
    /// After so many rounds.
    Rounds(usize),
}

impl End {
    pub(super) fn rounds_max(self) -> usize {
        match self {
            End::Steady { rounds_max, .. } | End::Written { rounds_max, .. } | End::Rounds(rounds_max) => {
                rounds_max
            }
        }
    }
}

/// One measurement of a round.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub reads_percent: u32,
    pub block_bytes: u64,
    pub step: Step,
    /// Whether it has to become steady.
    pub is_tracked: bool,
    /// Whether it only keeps the device at work until the next one.
    pub is_between: bool,
}

impl Point {
    /// Has it take this time, after a pause.
    fn lasts(&mut self, time: Duration, pause: Duration) {
        let text = |time: Duration| format!("{}us", time.as_micros().max(1));
        self.with([(job::Time::runtime, text(time))]);
        self.with((pause > Duration::ZERO).then(|| (job::Time::startdelay, text(pause))));
        self.step.time = time + pause;
    }

    /// Sets these options as well.
    fn with(&mut self, options: impl IntoIterator<Item = (&'static fiord_options::Spec, String)>) {
        let options: Vec<_> = options.into_iter().collect();
        let sections = std::mem::take(&mut self.step.sections).into_iter();
        self.step.sections = sections.map(|section| section.with(options.clone())).collect();
    }
}

/// A test, or the part of a test that has its own preconditioning.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub test: Test,
    /// `throughput 128KiB`.
    pub name: String,
    pub precondition: Option<Step>,
    /// What is kept instead with its block size, or which evidence is missing, if that was looked for.
    pub kept: Option<(u64, Result<Kept, String>)>,
    pub points: Vec<Point>,
    pub measure: Measure,
    pub end: End,
}

impl Phase {
    /// The preconditioning that is kept, if some is.
    pub(super) fn has_kept(&self) -> Option<&Kept> {
        self.kept.as_ref()?.1.as_ref().ok()
    }

    /// The block size of its preconditioning, if it has one.
    pub(super) fn precondition_block(&self) -> Option<u64> {
        let mut settings = self.precondition.as_ref()?.sections.first()?.settings();
        settings.find(|setting| setting.spec == job::Blocks::bs)?.text()?.parse().ok()
    }
}

/// What is left out of a test on this target; `None` if nothing is. Zones that are written in sequence take no write where
/// another was before.
pub(super) fn left_out(test: Test, target: &StudyTarget) -> Option<LeftOut> {
    target.zone_bytes?;
    match test {
        Test::WriteSaturation => Some(LeftOut { what: "random writes of 4KiB", is_all: false }),
        Test::Iops | Test::Latency => Some(LeftOut { what: "all mixes with writes", is_all: false }),
        Test::Throughput => None,
        Test::CrossStimulus | Test::IdleRecovery => Some(LeftOut { what: "all of it", is_all: true }),
    }
}

/// A part of a test.
pub(super) struct LeftOut {
    pub what: &'static str,
    /// Whether nothing is left of the test.
    pub is_all: bool,
}

/// The phases of these settings on this target, in the order in which they run.
pub(super) fn phases(target: &StudyTarget, settings: &Settings) -> Vec<Phase> {
    let maker = Maker { target, settings };
    let mut phases = Vec::new();
    let is_left = |test: &&Test| left_out(**test, target).is_none_or(|left_out| !left_out.is_all);
    for test in settings.tests.iter().filter(is_left) {
        match test {
            Test::WriteSaturation => phases.push(maker.write_saturation()),
            Test::Iops => phases.push(maker.random(Test::Iops, &IOPS_READS, &IOPS_BLOCKS, Measure::Iops)),
            Test::Latency => {
                phases.push(maker.random(Test::Latency, &LATENCY_READS, &LATENCY_BLOCKS, Measure::MeanNs));
            }
            Test::Throughput => {
                let blocks: &[u64] = match settings.class {
                    Class::Enterprise => &[128 << 10, 1 << 20],
                    Class::Client => &[1 << 20],
                };
                phases.extend(blocks.iter().map(|block| maker.throughput(*block)));
            }
            Test::CrossStimulus => phases.extend(maker.cross_stimulus()),
            Test::IdleRecovery => phases.extend(maker.idle_recovery()),
        }
    }
    phases
}

struct Maker<'a> {
    target: &'a StudyTarget,
    settings: &'a Settings,
}

impl Maker<'_> {
    /// Writes twice the capacity in sequence.
    fn precondition(&self, name: &str, block_bytes: u64) -> Step {
        self.fill(name, "write", block_bytes, &[(job::General::loops, FILLS.to_string())])
    }

    /// Writes before a random test what brings the device near to its steady state.
    fn precondition_random(&self, test: Test) -> Step {
        let Some(share) = self.settings.sprandom else {
            return self.precondition(test.word(), PRECONDITION_BLOCK);
        };
        let order = [(job::Access::sprandom, "1".to_string()), (job::Access::spr_op, share.to_string())];
        self.fill(test.word(), "randwrite", JUDGED_BLOCK.max(self.target.block_bytes), &order)
    }

    /// Writes what the tests use.
    fn fill(
        &self,
        name: &str,
        rw: &str,
        block_bytes: u64,
        order: &[(&'static fiord_options::Spec, String)],
    ) -> Step {
        let (target, block) = (self.target, block_bytes.to_string());
        let before = [
            (job::Access::rw, rw),
            (job::Blocks::bs, block.as_str()),
            (job::Queue::iodepth, SEQUENTIAL_DEPTH),
        ];
        let after = [(job::Buffers::refill_buffers, "1"), (job::Files::end_fsync, "1")];
        let section = Section::new("precondition").with(target.settings(target.engine)).with(before);
        let section = section.with(order.iter().cloned()).with(after);
        let name = format!("{name}: preconditioning");
        Step::measure(name, vec![section], Duration::ZERO).on(target.file.clone())
    }

    /// A measurement of one kind of I/O, by so many jobs with so many I/Os in flight each.
    fn point(
        &self,
        name: &str,
        (reads_percent, block_bytes): (u32, u64),
        rw: &str,
        jobs: u32,
        depth: u32,
    ) -> Point {
        let [block, jobs, depth, reads] = [block_bytes, jobs.into(), depth.into(), reads_percent.into()]
            .map(|number: u64| number.to_string());
        let mut options = vec![
            (job::Access::rw, rw),
            (job::Blocks::bs, block.as_str()),
            (job::Queue::iodepth, depth.as_str()),
            (job::General::numjobs, jobs.as_str()),
            // The map of a whole device would have gigabytes.
            (job::Access::norandommap, "1"),
        ];
        if rw == "randrw" {
            options.push((job::Access::rwmixread, reads.as_str()));
        }
        let name = format!("{name} {reads_percent}/{} {}", 100 - reads_percent, shown_bytes(block_bytes));
        let step = self.target.run(&name, self.target.engine, &options, self.settings.time);
        Point { reads_percent, block_bytes, step, is_tracked: false, is_between: false }
    }

    /// Jobs of random I/O, and the I/Os in flight of each.
    fn load(&self) -> (u32, u32) {
        match self.settings.class {
            Class::Enterprise => (4, 32),
            Class::Client => (2, 16),
        }
    }

    /// Random I/O: each share of reads with each size that the device can do.
    fn random(&self, test: Test, shares: &[u32], blocks: &[u64], measure: Measure) -> Phase {
        let (jobs, depth) = if test == Test::Latency { (1, 1) } else { self.load() };
        let mut points = Vec::new();
        let judged_reads = if left_out(test, self.target).is_some() { 100 } else { 0 };
        for reads in shares.iter().filter(|reads| **reads >= judged_reads) {
            let rw = match reads {
                100 => "randread",
                0 => "randwrite",
                _ => "randrw",
            };
            for block in blocks.iter().filter(|block| **block >= self.target.block_bytes) {
                let mut point = self.point(test.word(), (*reads, *block), rw, jobs, depth);
                point.is_tracked =
                    *reads == judged_reads && *block == JUDGED_BLOCK.max(self.target.block_bytes);
                points.push(point);
            }
        }
        self.steady(test, test.word().to_string(), self.precondition_random(test), points, measure)
    }

    fn throughput(&self, block_bytes: u64) -> Phase {
        let point = |(reads, rw)| {
            let point = self.point("throughput", (reads, block_bytes), rw, 1, 32);
            Point { is_tracked: true, ..point }
        };
        let points = [(100, "read"), (0, "write")].map(point).to_vec();
        let name = format!("throughput {}", shown_bytes(block_bytes));
        let precondition = self.precondition(&name, block_bytes);
        self.steady(Test::Throughput, name, precondition, points, Measure::MibPerS)
    }

    fn until_steady(&self) -> End {
        End::Steady { rounds_max: self.settings.rounds_max, confirmed: self.settings.confirmed }
    }

    fn steady(
        &self,
        test: Test,
        name: String,
        precondition: Step,
        points: Vec<Point>,
        measure: Measure,
    ) -> Phase {
        let (end, precondition) = (self.until_steady(), Some(precondition));
        Phase { test, precondition, kept: None, name, points, measure, end }
    }

    /// From the state that the user has put the device into.
    fn write_saturation(&self) -> Phase {
        let in_zones = left_out(Test::WriteSaturation, self.target).is_some();
        let (block_bytes, jobs) = if in_zones { (PRECONDITION_BLOCK, 1) } else { (JUDGED_BLOCK, 4) };
        let mix = (0, block_bytes.max(self.target.block_bytes));
        let mut point = self.point("write saturation", mix, "randwrite", jobs, 32);
        if in_zones {
            // A zone that is drawn is filled before the next one is.
            point.with([(job::Files::job_max_open_zones, "1".to_string())]);
        }
        let rounds_max = (SATURATION_TIME.as_nanos() / self.settings.time.as_nanos().max(1)) as usize;
        let end =
            End::Written { bytes: SATURATION_FILLS * self.target.size_bytes, rounds_max: rounds_max.max(1) };
        let (test, name) = (Test::WriteSaturation, "write saturation".to_string());
        let points = vec![point];
        Phase { test, name, precondition: None, kept: None, points, measure: Measure::Iops, end }
    }

    /// So many of the rounds that a test without a steady state has, fewer if rounds are limited.
    fn share(&self, rounds: usize) -> End {
        let most = Settings::ROUNDS_MAX;
        End::Rounds((rounds * self.settings.rounds_max.min(most) / most).max(1))
    }

    /// From the state that the user has put the device into.
    fn cross_stimulus(&self) -> impl Iterator<Item = Phase> {
        let (test, (jobs, depth)) = (Test::CrossStimulus, self.load());
        STIMULI.into_iter().zip(["sequential", "random", "sequential again"]).map(move |(stimulus, what)| {
            let (block_bytes, minutes, in_sequence) = stimulus;
            let name = format!("{} {what}", test.word());
            let (rw, jobs, depth) = if in_sequence { ("write", 1, 32) } else { ("randwrite", jobs, depth) };
            let points =
                vec![self.point(&name, (0, block_bytes.max(self.target.block_bytes)), rw, jobs, depth)];
            let end = self.share(minutes);
            Phase {
                test,
                name: what.to_string(),
                precondition: None,
                kept: None,
                points,
                measure: Measure::MibPerS,
                end,
            }
        })
    }

    /// Random writes until they are steady, then with each pause, and each time without pauses afterwards.
    fn idle_recovery(&self) -> Vec<Phase> {
        let (test, measure, (jobs, depth)) = (Test::IdleRecovery, Measure::Iops, self.load());
        let mix = (0, JUDGED_BLOCK.max(self.target.block_bytes));
        let writes =
            |name: &str| self.point(&format!("{} {name}", test.word()), mix, "randwrite", jobs, depth);
        let mut between = Point { is_between: true, ..writes("between") };
        between.lasts(self.settings.time * BETWEEN, Duration::ZERO);
        let tracked = Point { is_tracked: true, ..writes("steady") };
        let end = self.until_steady();
        let (name, points) = (test.word().to_string(), vec![between, tracked]);
        let first = Phase { test, name, precondition: None, kept: None, points, measure, end };
        let mut phases = vec![first.clone()];
        let burst = self.settings.time / BURSTS_PER_MEASUREMENT;
        for pause in PAUSES.map(|times| burst * times) {
            let pauses = format!("pauses of {}", shown_time(pause));
            let mut bursts = writes(&pauses);
            bursts.lasts(burst, pause);
            let after = format!("after {pauses}");
            for (name, point, rounds) in
                [(pauses.clone(), bursts, BURSTS), (after.clone(), writes(&after), AFTER_BURSTS)]
            {
                let (points, end) = (vec![point], self.share(rounds));
                phases.push(Phase { name, points, end, ..first.clone() });
            }
        }
        phases
    }
}
