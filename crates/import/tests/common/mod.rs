//! Compares what two formats of one run say.
//!
//! Invariant: a figure that both have must agree as far as the coarser format prints it; one that either lacks is not
//! compared, so the caller also counts what was.

use fiord_import::{DirectionFigures, JobFigures, LatencyFigures, Report, ReportFormat, SampleMoments};

/// How far a format's figures may be from the exact ones: relative, in bytes, and in counts.
struct Precision {
    share: f64,
    bytes: f64,
    count: f64,
    unit: Unit,
}

/// The unit of times.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Nanosecond,
    Microsecond,
    /// The largest of which the shortest time has 2000 of the next smaller one.
    Suitable,
}

impl Unit {
    /// In nanoseconds.
    fn ns(self, shortest_ns: Option<u64>) -> f64 {
        match (self, shortest_ns.unwrap_or(0)) {
            (Unit::Nanosecond, _) | (Unit::Suitable, 0..=2000) => 1.0,
            (Unit::Microsecond, _) | (Unit::Suitable, 2001..=2_000_000) => 1e3,
            (Unit::Suitable, _) => 1e6,
        }
    }
}

fn precision(format: ReportFormat) -> Precision {
    match format {
        ReportFormat::Json | ReportFormat::JsonPlus => {
            Precision { share: 0.0, bytes: 0.0, count: 0.0, unit: Unit::Nanosecond }
        }
        // Four digits, the point included; whole units of time, but means to 0.01 of one.
        ReportFormat::Normal => Precision { share: 0.006, bytes: 1.0, count: 1.0, unit: Unit::Suitable },
        ReportFormat::Terse(_) => {
            Precision { share: 1e-9, bytes: 1024.0, count: 1.0, unit: Unit::Microsecond }
        }
    }
}

/// Compares a report with the JSON of the same run; returns how many figures both have.
#[track_caller]
pub fn assert_agrees(exact: &Report, other: &Report) -> usize {
    assert_eq!(exact.jobs.len(), other.jobs.len(), "{other:?}");
    let mut compared = Compared { precision: precision(other.format), count: 0 };
    for (exact, other) in exact.jobs.iter().zip(&other.jobs) {
        compared.job(exact, other);
    }
    for disk in &other.disks {
        // Members of a stacked disk are separate entries in all formats.
        let known = exact.disks.iter().find(|known| known.name == disk.name).expect("a disk of the JSON");
        assert_eq!((known.ios, known.merges, known.ticks_ms), (disk.ios, disk.merges, disk.ticks_ms));
        compared.close("util", known.util_percent, disk.util_percent, 0.006);
        compared.same(known.in_queue_ms, disk.in_queue_ms);
    }
    compared.count
}

struct Compared {
    precision: Precision,
    count: usize,
}

impl Compared {
    #[track_caller]
    fn close(&mut self, what: &str, exact: Option<f64>, other: Option<f64>, distance: f64) {
        let (Some(exact), Some(other)) = (exact, other) else { return };
        let allowed = distance + self.precision.share * exact.abs() + 1e-6;
        assert!(
            (exact - other).abs() <= allowed,
            "{what}: {other} instead of {exact}, more than {allowed} apart"
        );
        self.count += 1;
    }

    #[track_caller]
    fn same<T: PartialEq + std::fmt::Debug>(&mut self, exact: Option<T>, other: Option<T>) {
        if let (Some(exact), Some(other)) = (exact, other) {
            assert_eq!(exact, other);
            self.count += 1;
        }
    }

    fn job(&mut self, exact: &JobFigures, other: &JobFigures) {
        assert_eq!(exact.name, other.name);
        self.same(exact.group_id, other.group_id);
        self.same(exact.error, other.error);
        self.same(exact.description.clone(), other.description.clone());
        self.close("usr", exact.cpu.user_percent, other.cpu.user_percent, 0.006);
        self.close("sys", exact.cpu.system_percent, other.cpu.system_percent, 0.006);
        self.same(exact.cpu.context_switches, other.cpu.context_switches);
        self.same(exact.cpu.major_faults, other.cpu.major_faults);
        self.same(exact.cpu.minor_faults, other.cpu.minor_faults);
        self.same(exact.sync.ios, other.sync.ios);
        self.latency(exact.sync.lat.as_ref(), other.sync.lat.as_ref());
        self.shares(exact.depth_percents, other.depth_percents);
        self.shares(exact.submit_percents, other.submit_percents);
        self.shares(exact.complete_percents, other.complete_percents);
        self.same(exact.errors, other.errors);
        self.same(
            exact.latency_target.map(|target| target.depth),
            other.latency_target.map(|target| target.depth),
        );
        for direction in exact.directions.iter().filter(|direction| direction.is_active()) {
            let of = other.directions.iter().find(|known| known.name == direction.name);
            // Version 3 of the terse lines has no trims.
            match of {
                Some(of) => self.direction(direction, of),
                None => assert_eq!(direction.name.name(), "trim"),
            }
        }
        self.buckets(exact, other);
    }

    /// Terse lines count what is below a microsecond as below two.
    fn buckets(&mut self, exact: &JobFigures, other: &JobFigures) {
        let of = |job: &JobFigures| {
            let from = |least: u64| move |below: Option<u64>| below.is_none_or(|below| below >= least);
            let sum = |from: &dyn Fn(Option<u64>) -> bool| {
                job.latency_buckets.iter().filter(|of| from(of.below_ns)).map(|of| of.percent).sum::<f64>()
            };
            [sum(&from(0)), sum(&from(4_000)), sum(&from(1_000_000_000))]
        };
        for (exact, other) in of(exact).into_iter().zip(of(other)) {
            self.close("share below a latency", Some(exact), Some(other), 0.2);
        }
    }

    fn shares(&mut self, exact: Option<[f64; 7]>, other: Option<[f64; 7]>) {
        if let (Some(exact), Some(other)) = (exact, other) {
            exact
                .iter()
                .zip(other)
                .for_each(|(exact, other)| self.close("share", Some(*exact), Some(other), 0.06));
        }
    }

    fn direction(&mut self, exact: &DirectionFigures, other: &DirectionFigures) {
        let float = |figure: Option<u64>| figure.map(|figure| figure as f64);
        let bytes = self.precision.bytes;
        self.close("bytes", float(exact.bytes), float(other.bytes), bytes);
        self.close("bandwidth", float(exact.bandwidth), float(other.bandwidth), bytes);
        self.close("iops", exact.iops, other.iops, self.precision.count);
        self.same(exact.runtime_ms, other.runtime_ms);
        self.same(exact.ios, other.ios);
        self.same(exact.short_ios, other.short_ios);
        self.same(exact.dropped_ios, other.dropped_ios);
        self.latency(exact.slat.as_ref(), other.slat.as_ref());
        self.latency(exact.lat.as_ref(), other.lat.as_ref());
        // The one list of percentiles in terse lines is of total latencies if those are requested.
        let totals = exact.lat.as_ref().map_or(&[][..], |lat| &lat.percentiles);
        let clat = exact.clat.clone().map(|clat| match self.precision.unit {
            Unit::Microsecond if !totals.is_empty() => {
                LatencyFigures { percentiles: totals.to_vec(), ..clat }
            }
            _ => clat,
        });
        self.latency(clat.as_ref(), other.clat.as_ref());
        self.latency(exact.response.as_ref(), other.response.as_ref());
        let counts = |of: &DirectionFigures| Some(of.counts.clone()).filter(|counts| !counts.is_empty());
        self.same(counts(exact), counts(other));
        self.samples(exact.bandwidth_samples.as_ref(), other.bandwidth_samples.as_ref(), bytes.max(1024.0));
        self.samples(exact.iops_samples.as_ref(), other.iops_samples.as_ref(), 1.0);
    }

    fn latency(&mut self, exact: Option<&LatencyFigures>, other: Option<&LatencyFigures>) {
        let (Some(exact), Some(other)) = (exact, other) else { return };
        let float = |figure: Option<u64>| figure.map(|figure| figure as f64);
        let unit = self.precision.unit;
        let ns = unit.ns(exact.min_ns);
        self.close("min", float(exact.min_ns), float(other.min_ns), ns);
        self.close("max", float(exact.max_ns), float(other.max_ns), ns);
        self.close("mean", exact.mean_ns, other.mean_ns, ns / 100.0);
        self.close("stddev", exact.stddev_ns, other.stddev_ns, ns / 100.0);
        if exact.percentiles.len() == other.percentiles.len() {
            let ns = unit.ns(exact.percentiles.first().map(|least| least.ns));
            for (exact, other) in exact.percentiles.iter().zip(&other.percentiles) {
                self.close("percentile", Some(exact.percent), Some(other.percent), 0.0);
                self.close("percentile", Some(exact.ns as f64), Some(other.ns as f64), ns);
            }
        }
    }

    fn samples(&mut self, exact: Option<&SampleMoments>, other: Option<&SampleMoments>, distance: f64) {
        let (Some(exact), Some(other)) = (exact, other) else { return };
        let float = |figure: Option<u64>| figure.map(|figure| figure as f64);
        self.close("min of samples", float(exact.min), float(other.min), distance);
        self.close("max of samples", float(exact.max), float(other.max), distance);
        self.close("mean of samples", exact.mean, other.mean, distance);
        self.close("stddev of samples", exact.stddev, other.stddev, distance);
        // In terse lines it is of the group's whole KiB per second, of which there may be none.
        if self.precision.unit != Unit::Microsecond {
            self.close("share of the group", exact.share_percent, other.share_percent, 0.2);
        }
        self.same(exact.count, other.count);
    }
}
