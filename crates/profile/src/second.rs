//! Counters of the machine, the disks and the jobs at one moment, and what happened between two of them.
//!
//! Invariant: shares of the processors add up to 100 %, or all are 0 if no time was counted.

/// The time of processors since boot, summed over them, in ticks of the kernel's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTicks {
    /// In user mode.
    pub user: u64,
    /// In the kernel, without interrupts.
    pub system: u64,
    /// In interrupts, hard and soft.
    pub interrupt: u64,
    /// Idle, with I/O outstanding.
    pub io_wait: u64,
    /// Used by the hypervisor for other guests.
    pub steal: u64,
    /// Idle.
    pub idle: u64,
}

impl ProcessorTicks {
    fn since(&self, earlier: &ProcessorTicks) -> ProcessorTicks {
        ProcessorTicks {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            interrupt: self.interrupt.saturating_sub(earlier.interrupt),
            // The kernel may count time as waiting first and as idle later.
            io_wait: self.io_wait.saturating_sub(earlier.io_wait),
            steal: self.steal.saturating_sub(earlier.steal),
            idle: self.idle.saturating_sub(earlier.idle),
        }
    }

    fn total(&self) -> u64 {
        let ProcessorTicks { user, system, interrupt, io_wait, steal, idle } = *self;
        user + system + interrupt + io_wait + steal + idle
    }
}

/// What the disks below the files have done since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskTotals {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Time during which the busiest disk had requests in flight, in milliseconds.
    pub busy_ms: u64,
    /// Time all requests took, summed over them, in milliseconds.
    pub requests_ms: u64,
}

impl DiskTotals {
    fn since(&self, earlier: &DiskTotals) -> DiskTotals {
        DiskTotals {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            write_bytes: self.write_bytes.saturating_sub(earlier.write_bytes),
            busy_ms: self.busy_ms.saturating_sub(earlier.busy_ms),
            requests_ms: self.requests_ms.saturating_sub(earlier.requests_ms),
        }
    }
}

/// All counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// When, in nanoseconds since the run began.
    pub at_ns: u64,
    /// The processors that the jobs may use.
    pub ticks: ProcessorTicks,
    /// Context switches of all processors since boot.
    pub context_switches: u64,
    /// Interrupts of all processors since boot.
    pub interrupts: u64,
    /// I/Os that the jobs have completed.
    pub ios: u64,
    /// Bytes that they transferred.
    pub bytes: u64,
    /// The disks; `None` if there are none below the files.
    pub disks: Option<DiskTotals>,
}

/// What happened between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// Its end, in seconds since the run began.
    pub until_s: f64,
    /// Its length in seconds.
    pub length_s: f64,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Shares of the processors' time, in percent.
    pub user_percent: f64,
    /// In the kernel, without interrupts.
    pub system_percent: f64,
    /// Idle, with I/O outstanding.
    pub io_wait_percent: f64,
    /// In interrupts.
    pub interrupt_percent: f64,
    /// Used by other guests.
    pub steal_percent: f64,
    /// Idle.
    pub idle_percent: f64,
    /// Context switches per second.
    pub context_switches_per_s: f64,
    /// Interrupts per second.
    pub interrupts_per_s: f64,
    /// Bytes per second that the disks read; `None` without disks.
    pub disk_read_bytes_per_s: Option<f64>,
    /// Bytes per second that they wrote.
    pub disk_write_bytes_per_s: Option<f64>,
    /// Share of the time during which the busiest disk was busy, in percent.
    pub busy_percent: Option<f64>,
}

impl Second {
    /// From one reading to a later one; `None` if no time passed.
    pub fn between(from: &Reading, to: &Reading) -> Option<Second> {
        let length_s = to.at_ns.checked_sub(from.at_ns).filter(|length| *length > 0)? as f64 / 1e9;
        let per_s = |from: u64, to: u64| to.saturating_sub(from) as f64 / length_s;
        let ticks = to.ticks.since(&from.ticks);
        let share = |part: u64| 100.0 * part as f64 / ticks.total().max(1) as f64;
        let disks = to.disks.map(|disks| disks.since(&from.disks.unwrap_or_default()));
        Some(Second {
            until_s: to.at_ns as f64 / 1e9,
            length_s,
            iops: per_s(from.ios, to.ios),
            bytes_per_s: per_s(from.bytes, to.bytes),
            user_percent: share(ticks.user),
            system_percent: share(ticks.system),
            io_wait_percent: share(ticks.io_wait),
            interrupt_percent: share(ticks.interrupt),
            steal_percent: share(ticks.steal),
            idle_percent: share(ticks.idle),
            context_switches_per_s: per_s(from.context_switches, to.context_switches),
            interrupts_per_s: per_s(from.interrupts, to.interrupts),
            disk_read_bytes_per_s: disks.map(|disks| disks.read_bytes as f64 / length_s),
            disk_write_bytes_per_s: disks.map(|disks| disks.write_bytes as f64 / length_s),
            // The kernel counts in whole ticks, and may be one ahead.
            busy_percent: disks.map(|disks| (disks.busy_ms as f64 / 10.0 / length_s).min(100.0)),
        })
    }

    /// What happened between neighbours of these readings, in at most `count` windows of about the same length.
    pub fn windows(readings: &[Reading], count: usize) -> Vec<Second> {
        let steps = readings.len().saturating_sub(1);
        let windows = steps.min(count.max(1));
        let at = |window: usize| &readings[window * steps / windows.max(1)];
        (0..windows).filter_map(|window| Second::between(at(window), at(window + 1))).collect()
    }

    /// From the first of these readings to the last.
    pub fn whole(readings: &[Reading]) -> Option<Second> {
        Second::between(readings.first()?, readings.last()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(second: u64, ios: u64) -> Reading {
        Reading {
            at_ns: second * 1_000_000_000,
            ticks: ProcessorTicks {
                user: 10 * second,
                system: 60 * second,
                interrupt: 5 * second,
                io_wait: 20 * second,
                steal: 5 * second,
                idle: 100 * second,
            },
            context_switches: 1000 * second,
            interrupts: 500 * second,
            ios,
            bytes: ios * 4096,
            disks: Some(DiskTotals {
                busy_ms: 1001 * second,
                write_bytes: 8192 * second,
                ..DiskTotals::default()
            }),
        }
    }

    #[test]
    fn rates_are_per_second_and_shares_of_all_processors() {
        let second = Second::between(&reading(1, 100), &reading(3, 500)).unwrap();
        assert_eq!((second.until_s, second.length_s, second.iops), (3.0, 2.0, 200.0));
        assert_eq!((second.user_percent, second.system_percent, second.io_wait_percent), (5.0, 30.0, 10.0));
        assert_eq!((second.context_switches_per_s, second.interrupts_per_s), (1000.0, 500.0));
        assert_eq!((second.disk_write_bytes_per_s, second.busy_percent), (Some(8192.0), Some(100.0)));
        assert_eq!(Second::between(&reading(3, 1), &reading(3, 2)), None);
        assert_eq!(Second::between(&reading(3, 1), &reading(2, 2)), None);
    }

    #[test]
    fn many_readings_become_few_windows_without_a_gap() {
        let readings: Vec<Reading> = (0..=25).map(|second| reading(second, 100 * second)).collect();
        let windows = Second::windows(&readings, 10);
        assert_eq!(windows.len(), 10);
        assert_eq!(windows.iter().map(|window| window.length_s).sum::<f64>(), 25.0);
        assert!(windows.iter().all(|window| window.iops == 100.0));
        assert_eq!(Second::windows(&readings[..2], 10).len(), 1);
        assert!(Second::windows(&readings[..1], 10).is_empty() && Second::windows(&[], 10).is_empty());
        assert!(Second::whole(&[]).is_none());
    }

    proptest::proptest! {
        #[test]
        fn shares_add_up_whatever_the_counters_are(from in proptest::array::uniform8(0u64..1 << 40), to in proptest::array::uniform8(0u64..1 << 40)) {
            let of = |counts: [u64; 8], at_ns| Reading {
                at_ns,
                ticks: ProcessorTicks {
                    user: counts[0],
                    system: counts[1],
                    interrupt: counts[2],
                    io_wait: counts[3],
                    steal: counts[4],
                    idle: counts[5],
                },
                ios: counts[6],
                bytes: counts[7],
                ..Reading::default()
            };
            let second = Second::between(&of(from, 1), &of(to, 2)).unwrap();
            let sum = second.user_percent + second.system_percent + second.interrupt_percent
                + second.io_wait_percent + second.steal_percent + second.idle_percent;
            proptest::prop_assert!(sum == 0.0 || (sum - 100.0).abs() < 1e-6, "{}", sum);
        }
    }
}
