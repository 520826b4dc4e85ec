//! What a qualification consists of.
//!
//! Invariant: the defaults are the specification's.

use std::time::Duration;

/// A test of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Test {
    /// Random 4 KiB writes from a purged device until it is saturated. It comes first, because no other leaves the device
    /// purged.
    WriteSaturation,
    /// Random I/O of seven mixes and eight sizes.
    Iops,
    /// Sequential reads and writes.
    Throughput,
    /// Random I/O of three mixes and three sizes, one at a time.
    Latency,
    /// Large sequential writes, small random ones, and large sequential ones again.
    CrossStimulus,
    /// Random 4 KiB writes with pauses between bursts, and without.
    IdleRecovery,
}

impl Test {
    /// All of them, in the order in which they run.
    pub const ALL: [Test; 6] = [
        Test::WriteSaturation,
        Test::Iops,
        Test::Throughput,
        Test::Latency,
        Test::CrossStimulus,
        Test::IdleRecovery,
    ];

    /// Whether `sprandom` can precondition for it.
    pub fn is_random(self) -> bool {
        matches!(self, Test::Iops | Test::Latency)
    }

    /// Its name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Test::WriteSaturation => "saturation",
            Test::Iops => "iops",
            Test::Throughput => "throughput",
            Test::Latency => "latency",
            Test::CrossStimulus => "cross-stimulus",
            Test::IdleRecovery => "idle-recovery",
        }
    }
}

/// The kind of device, which decides how many jobs there are, how deep their queues, and how much of the device is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Four jobs of depth 32.
    Enterprise,
    /// Two jobs of depth 16.
    Client,
}

impl Class {
    /// How much of the device its tests use.
    pub fn active_percent(self) -> u32 {
        match self {
            Class::Enterprise => 100,
            Class::Client => 75,
        }
    }

    /// Its name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Class::Enterprise => "enterprise",
            Class::Client => "client",
        }
    }
}

/// The settings of a qualification.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The tests, each once, in the order of [`Test::ALL`].
    pub tests: Vec<Test>,
    /// The kind of device.
    pub class: Class,
    /// How long each measurement takes.
    pub time: Duration,
    /// After how many rounds a test ends without being steady.
    pub rounds_max: usize,
    /// Whether a test goes on until it is confirmed as well that its drift is small.
    pub confirmed: bool,
    /// Whether random tests are preconditioned by one pass of `sprandom`, on a device with this share of flash to spare.
    pub sprandom: Option<f64>,
}

impl Settings {
    /// How long a measurement takes by the specification.
    pub const TIME: Duration = Duration::from_secs(60);

    /// The share of flash to spare if nothing else is known: that of the option `spr_op`.
    pub const SPARE_SHARE: f64 = 0.15;

    /// After how many rounds a test ends by the specification.
    pub const ROUNDS_MAX: usize = 25;
}
