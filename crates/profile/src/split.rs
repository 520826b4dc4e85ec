//! The time of the jobs' threads, divided by where it goes.
//!
//! Invariant: the parts add up to the whole, to the nanosecond. What the kernel counted in different ways and does not fit
//! together is cut where it is least exact: CPU time is kept, waiting is cut.

use fiord_stats::Capped;
use fiord_stats::OrderBy;

/// Where time goes, from fiord down to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// fiord's own work between I/Os, which is in no latency.
    Own,
    /// All other code in user mode: the engine's part of an I/O.
    Fiord,
    /// The kernel's code in system calls, or all of it if it was not divided by samples.
    SystemCall,
    /// Code of file systems and the page cache, copying included.
    FileSystem,
    /// Code of the block layer and of drivers.
    BlockCode,
    /// Ready to run, without a processor.
    ProcessorWait,
    /// Waiting while requests are in the queue of the block layer.
    Queue,
    /// Waiting while requests are at the device.
    Device,
    /// Waiting for a rate, a pause or a due time, with no I/O in flight.
    Pace,
    /// Waiting for something else.
    Other,
}

impl Part {
    /// All of them, from fiord down to the device.
    pub const ALL: [Part; 10] = [
        Part::Own,
        Part::Fiord,
        Part::SystemCall,
        Part::FileSystem,
        Part::BlockCode,
        Part::ProcessorWait,
        Part::Queue,
        Part::Device,
        Part::Pace,
        Part::Other,
    ];

    /// Its key for programs.
    pub fn key(self) -> &'static str {
        match self {
            Part::Own => "own_work",
            Part::Fiord => "fiord",
            Part::SystemCall => "system_call",
            Part::FileSystem => "file_system",
            Part::BlockCode => "block_code",
            Part::ProcessorWait => "processor_wait",
            Part::Queue => "queue",
            Part::Device => "device",
            Part::Pace => "pace",
            Part::Other => "other",
        }
    }
}

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The clock of the jobs' loops.
    Clock,
    /// What the kernel charged to the jobs' threads (`getrusage`).
    Usage,
    /// The same, divided by samples of the kernel's stacks (`perf`).
    Samples,
    /// The scheduler's counters of the threads (`schedstat`).
    Scheduler,
    /// The block layer's tracepoints.
    Tracepoints,
    /// The kernel's counters of the disks.
    DiskCounters,
    /// What is left of the whole.
    Rest,
}

impl Source {
    /// As it is printed.
    pub fn word(self) -> &'static str {
        match self {
            Source::Clock => "clock",
            Source::Usage => "rusage",
            Source::Samples => "perf",
            Source::Scheduler => "schedstat",
            Source::Tracepoints => "tracepoints",
            Source::DiskCounters => "diskstats",
            Source::Rest => "the rest",
        }
    }
}

/// For how long requests were on their way while threads may have waited for them: the time of requests, counted at each
/// moment for no more of them than there are threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InFlight {
    /// In the queue and at the device, from tracepoints.
    Traced {
        /// In the queue of the block layer, in nanoseconds.
        queue_ns: u64,
        /// At the device, in nanoseconds.
        device_ns: u64,
    },
    /// In both together, from the counters of the disks, in nanoseconds.
    Counted(u64),
    /// There is no disk below the files.
    #[default]
    NoDisk,
}

impl InFlight {
    /// From the counters of the disks: requests took `requests_ms` in all, while the busiest disk was busy for
    /// `busy_ms`. At most `threads` threads waited at a time.
    pub fn counted(requests_ms: u64, busy_ms: u64, threads: u64) -> InFlight {
        InFlight::Counted(requests_ms.min(busy_ms.saturating_mul(threads)).saturating_mul(1_000_000))
    }
}

/// Shares of the kernel's code in the jobs' threads, from samples; they add up to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelShares {
    /// System calls.
    pub system_call: f64,
    /// File systems and page cache.
    pub file_system: f64,
    /// Block layer and drivers.
    pub block_code: f64,
}

/// What of a thread's time is no I/O, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnTimes {
    /// fiord's own work.
    pub work_ns: u64,
    /// Waits for a rate, a pause or a due time.
    pub waited_ns: u64,
}

/// What is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SplitInput {
    /// The time of all threads of the jobs, in nanoseconds.
    pub total_ns: u64,
    /// Their CPU time in user mode.
    pub user_ns: u64,
    /// Their CPU time in the kernel.
    pub system_ns: u64,
    /// By their own clocks, work between I/Os, and waits with no I/O in flight; `None` if that is not known.
    pub own: Option<OwnTimes>,
    /// How the latter is divided, if it was sampled.
    pub kernel: Option<KernelShares>,
    /// How long they waited for a processor; `None` if that is not known.
    pub processor_wait_ns: Option<u64>,
    /// Requests in flight meanwhile.
    pub in_flight: InFlight,
}

/// The time of the jobs' threads by part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeSplit {
    /// The parts that are known, from fiord down to the device, with their times in nanoseconds.
    pub parts: Vec<(Part, u64, Source)>,
}

impl TimeSplit {
    /// Divides a time.
    pub fn of(input: &SplitInput) -> TimeSplit {
        let SplitInput { user_ns, system_ns, .. } = *input;
        // The kernel counts CPU time in ticks, and may be ahead of the clock in short runs.
        let total_ns = input.total_ns.max(user_ns + system_ns);
        let mut parts = Vec::with_capacity(Part::ALL.len());
        // The work was done in user mode, but for what opening files takes, and may have been interrupted.
        let own_ns = input.own.map_or(0, |own| own.work_ns.min(user_ns));
        if input.own.is_some() {
            parts.push((Part::Own, own_ns, Source::Clock));
        }
        parts.push((Part::Fiord, user_ns - own_ns, Source::Usage));
        match input.kernel {
            None => parts.push((Part::SystemCall, system_ns, Source::Usage)),
            Some(shares) => {
                let file_system_ns = scaled(system_ns, shares.file_system);
                let block_ns = scaled(system_ns, shares.block_code).min(system_ns - file_system_ns);
                parts.push((Part::SystemCall, system_ns - file_system_ns - block_ns, Source::Samples));
                parts.push((Part::FileSystem, file_system_ns, Source::Samples));
                parts.push((Part::BlockCode, block_ns, Source::Samples));
            }
        }
        let mut left_ns = total_ns - user_ns - system_ns;
        if let Some(wait_ns) = input.processor_wait_ns {
            let wait_ns = wait_ns.min(left_ns);
            left_ns -= wait_ns;
            parts.push((Part::ProcessorWait, wait_ns, Source::Scheduler));
        }
        match input.in_flight {
            InFlight::NoDisk => {}
            InFlight::Counted(ns) => {
                parts.push((Part::Device, ns.min(left_ns), Source::DiskCounters));
                left_ns -= ns.min(left_ns);
            }
            InFlight::Traced { queue_ns, device_ns } => {
                let all_ns = queue_ns.saturating_add(device_ns);
                let fits_ns = all_ns.min(left_ns);
                let queue_ns = scaled(fits_ns, queue_ns as f64 / all_ns.max(1) as f64);
                parts.push((Part::Queue, queue_ns, Source::Tracepoints));
                parts.push((Part::Device, fits_ns - queue_ns, Source::Tracepoints));
                left_ns -= fits_ns;
            }
        }
        if let Some(OwnTimes { waited_ns, .. }) = input.own.filter(|own| own.waited_ns > 0) {
            let waited_ns = waited_ns.min(left_ns);
            left_ns -= waited_ns;
            parts.push((Part::Pace, waited_ns, Source::Clock));
        }
        parts.push((Part::Other, left_ns, Source::Rest));
        TimeSplit { parts }
    }

    /// With the times of another run of the same job. A part keeps its source unless the other run has another part.
    #[must_use]
    pub fn plus(mut self, other: &TimeSplit) -> TimeSplit {
        for (part, ns, source) in &other.parts {
            match self.parts.iter_mut().find(|(known, ..)| known == part) {
                Some((_, sum_ns, _)) => *sum_ns += ns,
                None => self.parts.push((*part, *ns, *source)),
            }
        }
        self.parts.order_by_key(|(part, ..)| *part);
        self
    }

    /// The whole, in nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.parts.iter().map(|(_, ns, _)| ns).sum()
    }

    /// The time of a part, and where it comes from; `None` if it is not known.
    pub fn get(&self, part: Part) -> Option<(u64, Source)> {
        self.parts.iter().find(|(known, ..)| *known == part).map(|(_, ns, source)| (*ns, *source))
    }

    /// The share of a part, in percent; 0 if it is not known.
    pub fn percent(&self, part: Part) -> f64 {
        let ns = self.get(part).map_or(0, |(ns, _)| ns);
        100.0 * ns as f64 / self.total_ns().max(1) as f64
    }
}

/// A share of a time, and never more than it.
fn scaled(ns: u64, share: f64) -> u64 {
    u64::capped((ns as f64 * share.clamp(0.0, 1.0)).round()).min(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input() -> SplitInput {
        SplitInput {
            total_ns: 1000,
            user_ns: 100,
            system_ns: 200,
            own: None,
            kernel: None,
            processor_wait_ns: Some(50),
            in_flight: InFlight::Counted(600),
        }
    }

    fn times(input: &SplitInput) -> Vec<(Part, u64)> {
        TimeSplit::of(input).parts.into_iter().map(|(part, ns, _)| (part, ns)).collect()
    }

    #[test]
    fn what_is_left_of_the_whole_is_other_waiting() {
        use Part::*;
        let expected = [(Fiord, 100), (SystemCall, 200), (ProcessorWait, 50), (Device, 600), (Other, 50)];
        assert_eq!(times(&input()), expected);
        let traced = InFlight::Traced { queue_ns: 300, device_ns: 900 };
        let traced = SplitInput { in_flight: traced, processor_wait_ns: None, ..input() };
        // Background requests took longer than the threads waited at all.
        assert_eq!(times(&traced)[2..], [(Queue, 175), (Device, 525), (Other, 0)]);
        let busy = SplitInput { user_ns: 900, ..input() };
        assert_eq!(TimeSplit::of(&busy).total_ns(), 1100, "CPU time is kept");
        let none = SplitInput { in_flight: InFlight::NoDisk, ..input() };
        assert_eq!(times(&none)[3..], [(Other, 650)]);
    }

    #[test]
    fn own_work_is_part_of_the_time_in_user_mode_and_a_rate_part_of_waiting() {
        use Part::*;
        let with =
            |work_ns, waited_ns| times(&SplitInput { own: Some(OwnTimes { work_ns, waited_ns }), ..input() });
        assert_eq!(with(30, 0)[..2], [(Own, 30), (Fiord, 70)]);
        assert_eq!(with(300, 0)[..2], [(Own, 100), (Fiord, 0)], "it was interrupted");
        assert_eq!(with(30, 20)[5..], [(Pace, 20), (Other, 30)]);
        assert_eq!(with(30, 90)[5..], [(Pace, 50), (Other, 0)], "requests of others were under way");
    }

    #[test]
    fn samples_divide_the_time_in_the_kernel() {
        use Part::*;
        let kernel = KernelShares { system_call: 0.25, file_system: 0.5, block_code: 0.25 };
        let split = TimeSplit::of(&SplitInput { kernel: Some(kernel), ..input() });
        assert_eq!(split.get(SystemCall), Some((50, Source::Samples)));
        assert_eq!(split.get(FileSystem), Some((100, Source::Samples)));
        assert_eq!((split.percent(BlockCode), split.percent(Queue)), (5.0, 0.0));
        let both = split.plus(&TimeSplit::of(&input()));
        assert_eq!((both.get(Fiord).unwrap().0, both.get(SystemCall).unwrap().0), (200, 250));
        assert_eq!(both.total_ns(), 2000);
    }

    #[test]
    fn no_more_requests_than_threads_are_waited_for() {
        assert_eq!(InFlight::counted(900, 100, 1), InFlight::Counted(100_000_000));
        assert_eq!(InFlight::counted(900, 100, 16), InFlight::Counted(900_000_000));
    }

    proptest::proptest! {
        #[test]
        fn parts_add_up_whatever_was_counted(
            times in proptest::array::uniform4(0u64..1 << 50),
            shares in proptest::array::uniform3(0.0f64..1.0),
            in_flight in proptest::array::uniform2(0u64..1 << 50),
            own in proptest::array::uniform2(0u64..1 << 50),
            has in proptest::array::uniform4(proptest::bool::ANY),
        ) {
            let [total_ns, user_ns, system_ns, wait_ns] = times;
            let [system_call, file_system, block_code] = shares;
            let [queue_ns, device_ns] = in_flight;
            let input = SplitInput {
                total_ns,
                user_ns,
                system_ns,
                own: has[3].then_some(OwnTimes { work_ns: own[0], waited_ns: own[1] }),
                kernel: has[0].then_some(KernelShares { system_call, file_system, block_code }),
                processor_wait_ns: has[1].then_some(wait_ns),
                in_flight: if has[2] { InFlight::Traced { queue_ns, device_ns } } else { InFlight::Counted(queue_ns) },
            };
            let split = TimeSplit::of(&input);
            proptest::prop_assert_eq!(split.total_ns(), total_ns.max(user_ns + system_ns));
            let percent: f64 = Part::ALL.iter().map(|part| split.percent(*part)).sum();
            proptest::prop_assert!(split.total_ns() == 0 || (percent - 100.0).abs() < 1e-6);
        }
    }
}
