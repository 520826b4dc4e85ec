//! The figures of the last second: differences of counters that only grow.
//!
//! Invariant: a difference is taken between two readings of the same thing; the first reading yields no figure.

use std::path::Path;

use fiord_host::{DeviceUse, DiskWatch, HostMeter, HostReading};
use fiord_live::{Cpu, DeviceRow, DirectionRow, JobRow, Model};
use fiord_plan::FileKind;
use fiord_stats::job::DIRECTIONS;
use fiord_stats::{Capped, DirectionStats, Histogram, JobStats, Latency, Moments, syncs_each_write};
use fiord_wire::Rates;
use fiord_worker::{Counters, State, View, WorkerReport};

/// The readings, and the figures made of them.
#[derive(Default)]
pub(crate) struct Figures {
    /// Whether what is read first counts from zero.
    from_zero: bool,
    /// When the workers' counters were read, in nanoseconds of the run, and what they were.
    counted: Option<(u64, Vec<Counters>)>,
    /// The latencies of each worker or host in each direction and of its syncs, as known last.
    latencies: Vec<Option<[Latency; 4]>>,
    disks: Option<DiskWatch>,
    devices: Option<Vec<DeviceUse>>,
    meter: Option<HostMeter>,
    host: Option<HostReading>,
    /// The 99th percentile of each job or host.
    p99s_ns: Vec<Option<u64>>,
    /// Mean and percentiles of each direction.
    of_directions: [(Option<u64>, Option<[u64; 4]>); 3],
    model: Model,
}

impl Figures {
    /// Forgets all readings, because others follow that are not comparable. The map of latencies goes on. `from_zero`: the
    /// workers have not begun, so that their first counters are figures.
    pub(super) fn begin(&mut self, from_zero: bool) {
        let heat = std::mem::take(&mut self.model.heat);
        *self = Figures { from_zero, model: Model { heat, ..Model::default() }, ..Figures::default() };
    }

    /// Everything that is made here; the rest is empty.
    pub(super) fn model(&self) -> Model {
        self.model.clone()
    }

    /// Reads the counters of workers, devices and processors.
    pub(super) fn read(&mut self, view: &View<'_>) {
        let now: Vec<Counters> = view.workers.iter().map(|worker| worker.counters).collect();
        let before = self.counted.replace((view.elapsed_ns, now.clone()));
        let before = before.or_else(|| self.from_zero.then(|| (0, vec![Counters::default(); now.len()])));
        if let Some((then_ns, then)) = before.filter(|(_, then)| then.len() == now.len()) {
            let seconds = view.elapsed_ns.saturating_sub(then_ns).max(1) as f64 / 1e9;
            let rates: Vec<Rates> =
                now.iter().zip(&then).map(|(now, then)| rates_between(now, then, seconds)).collect();
            self.set_jobs(view, &rates);
            self.set_directions(&rates);
        }
        self.read_devices(view);
        self.read_processors();
    }

    fn set_jobs(&mut self, view: &View<'_>, rates: &[Rates]) {
        let rows = view.workers.iter().zip(rates).enumerate().map(|(number, (worker, rates))| JobRow {
            name: fiord_report::path::text(&worker.job.name),
            state: word(worker.state).into(),
            iops: rates.iops.iter().sum(),
            bytes_per_s: rates.bytes_per_s.iter().sum(),
            p99_ns: self.p99s_ns.get(number).copied().flatten(),
            done: worker.done,
        });
        self.model.jobs = rows.collect();
    }

    fn set_directions(&mut self, rates: &[Rates]) {
        let sum =
            |of: fn(&Rates) -> [f64; 3], direction: usize| rates.iter().map(|one| of(one)[direction]).sum();
        let row = |(direction, name): (usize, &&'static str)| {
            let (mean_ns, percentiles_ns) = self.of_directions[direction];
            let iops: f64 = sum(|rates| rates.iops, direction);
            let bytes_per_s = sum(|rates| rates.bytes_per_s, direction);
            (iops > 0.0).then_some(DirectionRow { name, iops, bytes_per_s, mean_ns, percentiles_ns })
        };
        self.model.directions = DIRECTIONS.iter().enumerate().filter_map(row).collect();
    }

    /// Takes the statistics that the workers published, and adds what is new in them to the map.
    pub(super) fn statistics(&mut self, reports: &[WorkerReport]) {
        self.set_latencies(reports.iter().map(|report| Some(latencies_of([&*report.stats]))).collect());
    }

    /// Takes the latencies so far of all workers or hosts; `None` of one that has told none.
    pub(crate) fn set_latencies(&mut self, now: Vec<Option<[Latency; 4]>>) {
        let mut then = std::mem::replace(&mut self.latencies, now);
        then.resize(self.latencies.len(), None);
        let mut directions: [Latency; 3] = Default::default();
        let mut is_first = true;
        self.p99s_ns.clear();
        for (now, then) in self.latencies.iter().zip(then) {
            let then = then.or_else(|| self.from_zero.then(Default::default));
            let Some((now, then)) = now.as_ref().zip(then.as_ref()) else {
                self.p99s_ns.push(None);
                continue;
            };
            is_first = false;
            let mut job = Histogram::default();
            for (all, new) in directions.iter_mut().zip(new_latencies(now, then)) {
                job.merge(&new.histogram);
                all.merge(&new);
            }
            self.p99s_ns.push((job.count() > 0).then(|| job.percentiles(&[99.0], 0, u64::MAX)[0]));
        }
        if is_first {
            return;
        }
        let mut all = Histogram::default();
        for (direction, new) in directions.iter().enumerate() {
            let Moments { count, sum, .. } = new.running;
            let mean_ns = (count > 0).then(|| u64::capped(sum / u128::from(count.max(1))));
            let percentiles = || new.histogram.percentiles(&DirectionRow::PERCENTS, 0, u64::MAX);
            let percentiles = (new.histogram.count() > 0).then(percentiles);
            self.of_directions[direction] = (mean_ns, percentiles.and_then(|values| values.try_into().ok()));
            all.merge(&new.histogram);
        }
        self.model.heat.add(&all);
    }

    /// Takes what hosts do per second, in all and each.
    pub(crate) fn read_hosts(&mut self, all: &Rates, rows: Vec<(usize, JobRow)>) {
        self.set_directions(std::slice::from_ref(all));
        let with_p99 = |(number, row): (usize, JobRow)| {
            let p99_ns = self.p99s_ns.get(number).copied().flatten();
            JobRow { p99_ns, ..row }
        };
        self.model.jobs = rows.into_iter().map(with_p99).collect();
        self.model.are_hosts = true;
    }

    fn read_devices(&mut self, view: &View<'_>) {
        let disks = self.disks.get_or_insert_with(|| {
            let files = view.workers.iter().flat_map(|worker| &worker.job.files.list);
            let paths = files.filter(|file| file.kind != FileKind::None).map(|file| file.path.as_path());
            DiskWatch::start(paths.collect::<Vec<&Path>>())
        });
        let now = disks.devices();
        if let Some(then) = self.devices.replace(now.clone()) {
            self.model.devices = now.iter().zip(&then).map(|(now, then)| device(now, then)).collect();
        }
    }

    fn read_processors(&mut self) {
        let now = self.meter.get_or_insert_with(HostMeter::open).read();
        if let Some(then) = self.host.replace(now.clone()) {
            self.model.cpu = processors(&now, &then);
        }
    }
}

/// What one worker did per second, by direction.
fn rates_between(now: &Counters, then: &Counters, seconds: f64) -> Rates {
    let rate = |now: &[u64; 3], then: &[u64; 3]| {
        [0, 1, 2].map(|index: usize| now[index].saturating_sub(then[index]) as f64 / seconds)
    };
    Rates { iops: rate(&now.ios, &then.ios), bytes_per_s: rate(&now.bytes, &then.bytes) }
}

/// The latencies of these jobs as one, in each direction and of syncs.
pub(crate) fn latencies_of<'s>(jobs: impl IntoIterator<Item = &'s JobStats>) -> [Latency; 4] {
    let mut all: [Latency; 4] = Default::default();
    for stats in jobs {
        let [reads, writes, trims] = stats.directions.each_ref().map(shown_latency);
        all.iter_mut()
            .zip([reads, writes, trims, stats.sync.latency.clone()])
            .for_each(|(all, of)| all.merge(&of));
    }
    all
}

/// The latency whose percentiles the report of the job has: that of completion, as in fio, unless only the total one has.
fn shown_latency(direction: &DirectionStats) -> Latency {
    let has_total_alone =
        !direction.completion.histogram.is_allocated() && direction.total.histogram.is_allocated();
    if has_total_alone { direction.total.clone() } else { direction.completion.clone() }
}

/// What was recorded of reads, writes and trims between two readings of these and of syncs. Writes that were each followed
/// by a sync have the latency of both.
fn new_latencies(now: &[Latency; 4], then: &[Latency; 4]) -> [Latency; 3] {
    let [reads, writes, trims, syncs] = std::array::from_fn(|index| since(&now[index], &then[index]));
    let is_each = syncs_each_write(writes.running.count, syncs.running.count, 1);
    [reads, if is_each { writes.followed_by(&syncs) } else { writes }, trims]
}

/// What was recorded between two readings. Extremes of the difference are not known, and not used.
fn since(now: &Latency, then: &Latency) -> Latency {
    let running = Moments {
        count: now.running.count.saturating_sub(then.running.count),
        sum: now.running.sum.saturating_sub(then.running.sum),
        ..Moments::default()
    };
    Latency { running, histogram: now.histogram.since(&then.histogram) }
}

/// The figures of iostat between two readings of a device.
fn device(now: &DeviceUse, then: &DeviceUse) -> DeviceRow {
    const SECTOR_BYTES: f64 = 512.0;
    let done = now.end.since(&then.end);
    let elapsed_ms = now.elapsed_ns.saturating_sub(then.elapsed_ns).max(1) as f64 / 1e6;
    let per_s = |count: u64| count as f64 * 1e3 / elapsed_ms;
    let mean = |time_ms: u64, count: u64| if count == 0 { 0.0 } else { time_ms as f64 / count as f64 };
    DeviceRow {
        name: now.device.name.clone(),
        ios_per_s: [per_s(done.read_ios), per_s(done.write_ios)],
        bytes_per_s: [done.read_sectors, done.write_sectors].map(|sectors| per_s(sectors) * SECTOR_BYTES),
        await_ms: [mean(done.read_ms, done.read_ios), mean(done.write_ms, done.write_ios)],
        queue_length: done.in_queue_ms as f64 / elapsed_ms,
        util_percent: (done.busy_ms as f64 * 100.0 / elapsed_ms).min(100.0),
    }
}

/// Shares of the time between two readings; `None` if no tick has passed.
fn processors(now: &HostReading, then: &HostReading) -> Option<Cpu> {
    let ticks = now.cpu.since(&then.cpu);
    let elapsed_ns = now.taken_ns.saturating_sub(then.taken_ns);
    if ticks.all() == 0 || elapsed_ns == 0 {
        return None;
    }
    let percent = |part: u64| part as f64 * 100.0 / ticks.all() as f64;
    Some(Cpu {
        count: now.cpus,
        user: percent(ticks.user),
        system: percent(ticks.system),
        io_wait: percent(ticks.io_wait),
        steal: percent(ticks.steal),
        idle: percent(ticks.idle),
        own: now.own_cpu_ns.saturating_sub(then.own_cpu_ns) as f64 * 100.0 / elapsed_ns as f64,
    })
}

fn word(state: State) -> &'static str {
    match state {
        State::Waiting => "waiting",
        State::SettingUp => "setting up",
        State::Ready => "ready",
        State::PreReading => "reading in",
        State::Ramping => "ramp",
        State::Running => "running",
        State::Syncing => "syncing",
        State::Finishing => "finishing",
        State::Ended => "ended",
        State::Failed => "failed",
    }
}

#[cfg(test)]
mod tests {
    use fiord_host::CpuTicks;

    use super::*;

    #[test]
    fn figures_are_of_the_time_between_two_readings() {
        let mut then = Latency::with_histogram();
        for _ in 0..90 {
            then.record(100);
        }
        let mut now = then.clone();
        for _ in 0..10 {
            now.record(50_000);
        }
        let new = since(&now, &then);
        assert_eq!((new.running.count, new.running.sum), (10, 500_000));
        // Each of them was synced, unlike the writes before.
        let mut syncs = Latency::with_histogram();
        (0..10).for_each(|_| {
            syncs.record(2_000_000);
        });
        let of = |writes: &Latency, syncs: &Latency| {
            [Latency::default(), writes.clone(), Latency::default(), syncs.clone()]
        };
        let [_, writes, _] = new_latencies(&of(&now, &syncs), &of(&then, &Latency::default()));
        assert_eq!((writes.running.count, writes.running.sum), (10, 20_500_000));
        let p50_ns = new.histogram.percentiles(&[50.0], 0, u64::MAX)[0];
        assert!(p50_ns.abs_diff(50_000) < 500, "{p50_ns}: not that of all I/Os, which is 100");
    }

    #[test]
    fn a_device_has_the_figures_of_iostat() {
        let then = DeviceUse { elapsed_ns: 1_000_000_000, ..DeviceUse::default() };
        let mut now = DeviceUse { elapsed_ns: 3_000_000_000, ..DeviceUse::default() };
        (now.end.read_ios, now.end.read_sectors, now.end.read_ms) = (100, 4096, 50);
        (now.end.busy_ms, now.end.in_queue_ms) = (500, 1000);
        let row = device(&now, &then);
        assert_eq!((row.ios_per_s, row.bytes_per_s), ([50.0, 0.0], [1_048_576.0, 0.0]));
        assert_eq!((row.await_ms, row.queue_length, row.util_percent), ([0.5, 0.0], 0.5, 25.0));
    }

    #[test]
    fn processors_are_shares_of_all_ticks() {
        let cpu = CpuTicks { user: 50, system: 25, interrupt: 5, idle: 100, io_wait: 20, steal: 5 };
        let now = HostReading {
            taken_ns: 2_000_000_000,
            cpu,
            cpus: 2,
            own_cpu_ns: 500_000_000,
            ..HostReading::default()
        };
        let cpu = processors(&now, &HostReading::default()).unwrap();
        assert_eq!((cpu.user, cpu.system, cpu.io_wait, cpu.steal, cpu.idle), (25.0, 12.5, 10.0, 2.5, 50.0));
        assert_eq!((cpu.count, cpu.own), (2, 25.0));
        assert_eq!(processors(&now, &now), None);
    }
}
