//! Counters of the machine at one moment: processors, this process, the limits on it, what tasks wait for, heat.
//!
//! Invariant: counters only grow, so that the difference of two readings is what happened between them; what the kernel
//! does not count is `None`.

use fiord_sys::cgroup::Groups;
use fiord_sys::counter_file::CounterFile;
use fiord_sys::procfs::{self, CpuTicks, DirtyPages, MachineTraffic, ProcessIo};
use fiord_sys::sysfs::Sysfs;
use fiord_sys::{clock, map, thread};

/// Counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostReading {
    /// When, in nanoseconds of the monotonic clock.
    pub taken_ns: u64,
    /// The time of the processors that this process may use, summed, in ticks.
    pub cpu: CpuTicks,
    /// The number of these processors.
    pub cpus: u64,
    /// Processor time of this process, in nanoseconds.
    pub own_cpu_ns: u64,
    /// For how long some task of the machine has waited.
    pub pressure: Pressure,
    /// For how long some task of this process's own control group has waited.
    pub group_pressure: Pressure,
    /// What the page cache holds that is not on a disk.
    pub dirty: Option<DirtyReading>,
    /// Whether the kernel slows processors down at this moment in order to cool them.
    pub is_cooling: bool,
    /// The highest temperature of the zones in which it would, in degrees Celsius.
    pub temperature_celsius: Option<i64>,
    /// What is read at the beginning and at the end only, because it costs more.
    pub totals: Option<HostTotals>,
}

/// For how long some task has waited for each resource, in microseconds, where the kernel counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// For a processor.
    pub cpu_us: Option<u64>,
    /// For a disk.
    pub io_us: Option<u64>,
    /// For memory.
    pub memory_us: Option<u64>,
}

/// What is read at the beginning and at the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostTotals {
    /// Bytes that devices transferred for this process.
    pub io: Option<ProcessIo>,
    /// What the disks and the network of the machine have moved.
    pub traffic: Option<MachineTraffic>,
    /// How long limits of control groups have stopped this process and others in the group, in microseconds.
    pub throttled_us: Option<u64>,
    /// How often processors were slowed down because they were too hot.
    pub thermal_throttles: Option<u64>,
    /// The highest frequency that may be chosen for the slowest of the processors that this process may use, in kHz.
    pub frequency_khz_max: Option<u64>,
}

/// What the page cache holds that is not on a disk, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirtyReading {
    /// Dirty, or on its way to a disk, in bytes.
    pub unwritten_bytes: u64,
    /// With more than this the kernel slows down whoever writes.
    pub slowed_from_bytes: u64,
}

/// The files that the counters are read from, kept open.
#[derive(Debug)]
pub struct HostMeter {
    cpus_allowed: Vec<u32>,
    groups: Groups,
    ticks: Option<CounterFile<Vec<(u32, CpuTicks)>>>,
    dirty: Option<CounterFile<DirtyPages>>,
    pressure: PressureFiles,
    group_pressure: PressureFiles,
    cooling: Vec<CounterFile<i64>>,
    temperatures: Vec<CounterFile<i64>>,
}

#[derive(Debug)]
struct PressureFiles {
    cpu: Option<CounterFile<u64>>,
    io: Option<CounterFile<u64>>,
    memory: Option<CounterFile<u64>>,
}

impl PressureFiles {
    fn open(of: impl Fn(&str) -> Option<CounterFile<u64>>) -> PressureFiles {
        PressureFiles { cpu: of("cpu"), io: of("io"), memory: of("memory") }
    }

    fn read(&mut self) -> Pressure {
        let now = |file: &mut Option<CounterFile<u64>>| file.as_mut()?.read();
        Pressure { cpu_us: now(&mut self.cpu), io_us: now(&mut self.io), memory_us: now(&mut self.memory) }
    }
}

impl HostMeter {
    /// Opens what there is.
    pub fn open() -> HostMeter {
        let groups = Groups::read().unwrap_or_default();
        let sysfs = Sysfs::default();
        HostMeter {
            cpus_allowed: thread::affinity().unwrap_or_default(),
            ticks: procfs::cpu_ticks_file(),
            dirty: procfs::dirty_pages(),
            pressure: PressureFiles::open(|name| procfs::pressure_us(format!("/proc/pressure/{name}"))),
            group_pressure: PressureFiles::open(|name| groups.pressure_us(name)),
            cooling: sysfs.processor_cooling(),
            temperatures: sysfs.temperatures(),
            groups,
        }
    }

    /// The counters now, without the totals.
    pub fn read(&mut self) -> HostReading {
        let each = self.ticks.as_mut().and_then(CounterFile::read).unwrap_or_default();
        let used =
            each.iter().filter(|(number, _)| self.cpus_allowed.contains(number)).map(|(_, ticks)| ticks);
        let hottest = self.temperatures.iter_mut().filter_map(CounterFile::read).max();
        HostReading {
            taken_ns: clock::monotonic_ns(),
            cpus: used.clone().count() as u64,
            cpu: used.sum(),
            own_cpu_ns: clock::process_cpu_ns(),
            pressure: self.pressure.read(),
            group_pressure: self.group_pressure.read(),
            dirty: self.dirty.as_mut().and_then(CounterFile::read).map(DirtyReading::of),
            is_cooling: self.cooling.iter_mut().filter_map(CounterFile::read).any(|state| state > 0),
            temperature_celsius: hottest.map(|thousandths| thousandths / 1000),
            totals: None,
        }
    }

    /// The counters now, with the totals.
    pub fn read_all(&mut self) -> HostReading {
        let sysfs = Sysfs::default();
        let allowed_khz = self.cpus_allowed.iter().filter_map(|cpu| sysfs.frequency_khz_max(*cpu)).min();
        let totals = HostTotals {
            io: procfs::process_io().ok(),
            traffic: procfs::machine_traffic().ok(),
            throttled_us: self.groups.throttled_us(),
            thermal_throttles: sysfs.thermal_throttles(),
            frequency_khz_max: allowed_khz,
        };
        HostReading { totals: Some(totals), ..self.read() }
    }
}

impl DirtyReading {
    fn of(pages: DirtyPages) -> DirtyReading {
        let bytes = |pages: u64| pages * map::page_bytes() as u64;
        DirtyReading {
            unwritten_bytes: bytes(pages.dirty_pages + pages.writeback_pages),
            // Below the middle of the two limits nobody is slowed down (the kernel's "freerun").
            slowed_from_bytes: bytes((pages.background_pages + pages.limit_pages) / 2),
        }
    }
}

/// Memory available without swapping, in bytes.
pub fn memory_available_bytes() -> Option<u64> {
    procfs::memory().ok().map(|memory| memory.available_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_grow() {
        let mut meter = HostMeter::open();
        let before = meter.read_all();
        let spun: u64 = (0..1_000_000_u64).fold(0, |sum, one| std::hint::black_box(sum ^ one));
        std::hint::black_box(spun);
        let (during, after) = (meter.read(), meter.read_all());
        assert!(during.totals.is_none() && after.totals.is_some());
        assert!(during.taken_ns > before.taken_ns && during.own_cpu_ns > before.own_cpu_ns);
        assert!(after.cpus > 0 && after.cpu.idle >= before.cpu.idle);
        assert!(after.pressure.cpu_us >= before.pressure.cpu_us);
        assert!(after.pressure.io_us >= before.pressure.io_us);
        assert!(after.dirty.is_some_and(|reading| reading.slowed_from_bytes > 0));
        assert!(memory_available_bytes() > Some(0));
    }

    #[test]
    fn writers_are_slowed_down_from_the_middle_of_both_limits_on() {
        let pages = DirtyPages { dirty_pages: 3, writeback_pages: 4, background_pages: 10, limit_pages: 20 };
        let page_bytes = map::page_bytes() as u64;
        let expected = DirtyReading { unwritten_bytes: 7 * page_bytes, slowed_from_bytes: 15 * page_bytes };
        assert_eq!(DirtyReading::of(pages), expected);
    }
}
