//! The kernel's counters during a run: processors and disks about once a second, the scheduler's more often.
//!
//! Invariant: the first reading is from before the first worker was released, the last from after the last has ended.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use fiord_host::{CpuTicks, DiskWatch};
use fiord_profile::{DelayReading, DiskTotals, Observation, OwnTimes, ProcessorTicks, Reading, ThreadDelays};
use fiord_report::RunReport;
use fiord_stats::Capped;
use fiord_sys::counter_file::CounterFile;
use fiord_sys::procfs::{self, MachineActivity};
use fiord_sys::{clock, thread};
use fiord_worker::{View, WorkerReport};

/// Interval between two readings of processors and disks.
const EVERY: Duration = Duration::from_secs(1);

/// Most threads whose counters are read.
const THREADS_MAX: usize = 256;

const SECTOR_BYTES: u64 = 512;

/// The counters of a run in progress.
pub(super) struct MachineSampler {
    began_ns: u64,
    activity: Option<CounterFile<MachineActivity>>,
    cpus_allowed: Vec<u32>,
    disks: DiskWatch,
    readings: Vec<Reading>,
    delays: ThreadDelays,
}

impl MachineSampler {
    /// Takes the first readings; `files` are those of the jobs.
    pub(super) fn start(files: &[PathBuf]) -> MachineSampler {
        let mut sampler = MachineSampler {
            activity: procfs::machine_activity(),
            cpus_allowed: thread::affinity().unwrap_or_default(),
            disks: DiskWatch::start(files),
            readings: Vec::new(),
            delays: ThreadDelays::default(),
            began_ns: clock::monotonic_ns(),
        };
        sampler.read_delays();
        let first = sampler.read(0, 0);
        sampler.readings.push(first);
        sampler
    }

    /// Takes the readings that are due.
    pub(super) fn look(&mut self, view: &View<'_>) {
        self.read_delays();
        let last_ns = self.readings.last().map_or(0, |reading| reading.at_ns);
        if self.now_ns() < last_ns + u64::capped(EVERY.as_nanos()) {
            return;
        }
        let counters = view.workers.iter().map(|worker| &worker.counters);
        let (ios, bytes) = counters.fold((0, 0), |(ios, bytes), worker| {
            (ios + worker.ios.iter().sum::<u64>(), bytes + worker.bytes.iter().sum::<u64>())
        });
        let reading = self.read(ios, bytes);
        self.readings.push(reading);
    }

    /// Takes the last readings, and completes the observation with all of them.
    pub(super) fn finish(
        mut self,
        report: &RunReport,
        workers: &[WorkerReport],
        observation: &mut Observation,
    ) {
        let directions = || report.jobs.iter().flat_map(|job| &job.stats.directions);
        let ios = directions().map(|direction| direction.ios).sum();
        let bytes = directions().map(|direction| direction.bytes).sum();
        let last = self.read(ios, bytes);
        // A short rest is not a window of its own.
        let before = self.readings.last().map_or(0, |reading| reading.at_ns);
        if self.readings.len() > 1 && last.at_ns - before < u64::capped(EVERY.as_nanos()) / 2 {
            self.readings.pop();
        }
        self.readings.push(last);
        observation.own = Some(OwnTimes {
            work_ns: workers.iter().map(|worker| worker.own.work_ns()).sum(),
            waited_ns: workers.iter().map(|worker| worker.own.waited_ns()).sum(),
        });
        let threads = workers.iter().map(|worker| (worker.thread_id, worker.elapsed_ms));
        observation.processor_wait_ns = self.delays.waited_ns(threads);
        if observation.processor_wait_ns.is_none() {
            let why = match fs::read_to_string("/proc/self/schedstat") {
                Ok(_) => "the run was too short, a second or more is needed",
                Err(_) => {
                    "the kernel does not count it (CONFIG_SCHED_INFO, which task delay accounting selects)"
                }
            };
            observation.lacking.push(format!("how long threads waited for a processor: {why}"));
        }
        observation.readings = self.readings;
    }

    fn now_ns(&self) -> u64 {
        clock::monotonic_ns().saturating_sub(self.began_ns)
    }

    fn read(&mut self, ios: u64, bytes: u64) -> Reading {
        let activity = self.activity.as_mut().and_then(CounterFile::read).unwrap_or_default();
        let used = activity.processors.iter().filter(|(number, _)| self.cpus_allowed.contains(number));
        let disks = self.disks.so_far();
        Reading {
            at_ns: self.now_ns(),
            ticks: used.fold(ProcessorTicks::default(), |sum, (_, ticks)| plus(sum, ticks)),
            context_switches: activity.context_switches,
            interrupts: activity.interrupts,
            ios,
            bytes,
            disks: (!disks.is_empty()).then(|| DiskTotals {
                read_bytes: disks.iter().map(|disk| disk.done.read_sectors * SECTOR_BYTES).sum(),
                write_bytes: disks.iter().map(|disk| disk.done.write_sectors * SECTOR_BYTES).sum(),
                busy_ms: disks.iter().map(|disk| disk.done.busy_ms).max().unwrap_or(0),
                requests_ms: disks.iter().map(|disk| disk.done.in_queue_ms).sum(),
            }),
        }
    }

    /// The scheduler's counters of the threads of this process, which has few others than the jobs'.
    fn read_delays(&mut self) {
        let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten().take(THREADS_MAX);
        for thread in threads {
            let Some(number) = thread.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A thread may end at any moment.
            let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            if let Some(waited_ns) = DelayReading::parse(&text) {
                self.delays.add(number, DelayReading { at_ns: clock::monotonic_ns(), waited_ns });
            }
        }
    }
}

fn plus(sum: ProcessorTicks, ticks: &CpuTicks) -> ProcessorTicks {
    ProcessorTicks {
        user: sum.user + ticks.user,
        system: sum.system + ticks.system.saturating_sub(ticks.interrupt),
        interrupt: sum.interrupt + ticks.interrupt,
        io_wait: sum.io_wait + ticks.io_wait,
        steal: sum.steal + ticks.steal,
        idle: sum.idle + ticks.idle,
    }
}
