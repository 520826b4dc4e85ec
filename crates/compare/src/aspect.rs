//! In what two results may differ so that their figures do not answer the same question.
//!
//! Invariant: results differ in an aspect only if both are known; what a report does not say is not held against it.

use fiord_import::DirectionName;
use fiord_report::table::{Cell, shown_bytes};
use fiord_stats::Capped;

use crate::side::{Measured, Row, Side};

/// One aspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aspect {
    /// Reads or writes, in order or at random.
    Pattern,
    /// The size of an I/O.
    BlockSize,
    /// I/Os in flight.
    Depth,
    /// How I/O is issued.
    Engine,
    /// Past the page cache or through it.
    Direct,
    /// How many jobs did it at the same time.
    Jobs,
    /// The machine.
    Host,
    /// The kernel.
    Kernel,
    /// A finding that voids the figures of one of them.
    Findings,
}

impl Aspect {
    /// All of them.
    pub const ALL: [Aspect; 9] = [
        Aspect::Pattern,
        Aspect::BlockSize,
        Aspect::Depth,
        Aspect::Engine,
        Aspect::Direct,
        Aspect::Jobs,
        Aspect::Host,
        Aspect::Kernel,
        Aspect::Findings,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Aspect::Pattern => "pattern",
            Aspect::BlockSize => "block-size",
            Aspect::Depth => "depth",
            Aspect::Engine => "engine",
            Aspect::Direct => "direct",
            Aspect::Jobs => "jobs",
            Aspect::Host => "host",
            Aspect::Kernel => "kernel",
            Aspect::Findings => "findings",
        }
    }

    /// The aspect of this name.
    pub fn from_name(name: &str) -> Option<Aspect> {
        Aspect::ALL.into_iter().find(|aspect| aspect.name() == name)
    }
}

/// Average sizes that differ by less are the same mix of sizes.
const BLOCK_SHARE: f64 = 0.02;

/// How a row of one side differs from that of another, other than in what `across` allows: a few words each.
pub(crate) fn differences(
    one: (&Side, &Row<'_>),
    other: (&Side, &Row<'_>),
    across: &[Aspect],
) -> Vec<String> {
    let looked_at = Aspect::ALL.into_iter().filter(|aspect| !across.contains(aspect));
    looked_at.filter_map(|aspect| difference(aspect, one, other)).collect()
}

fn difference(aspect: Aspect, one: (&Side, &Row<'_>), other: (&Side, &Row<'_>)) -> Option<String> {
    let ((side, row), (other_side, other_row)) = (one, other);
    let (run, other_run) = (row.measured.last()?, other_row.measured.last()?);
    match aspect {
        Aspect::Pattern => {
            let (one, other) = (directions(run), directions(other_run));
            differ("the direction", Some(one), Some(other))
                .or_else(|| differ("the pattern", pattern(run), pattern(other_run)))
        }
        Aspect::BlockSize => DirectionName::ALL.into_iter().find_map(|name| {
            let (one, other) = (block_bytes(run, name)?, block_bytes(other_run, name)?);
            let is_same = (one - other).abs() <= BLOCK_SHARE * one.max(other);
            let shown = |bytes: f64| shown_bytes(u64::capped(bytes.round()));
            if is_same { None } else { differ("the block size", Some(shown(one)), Some(shown(other))) }
        }),
        Aspect::Depth => {
            differ("the depth", number(run, &["iodepth"], "1"), number(other_run, &["iodepth"], "1"))
        }
        Aspect::Engine => differ("the engine", engine(run), engine(other_run)),
        Aspect::Direct => differ("the access", direct(run), direct(other_run)),
        Aspect::Jobs => {
            differ("the number of jobs", number(run, &["numjobs"], "1"), number(other_run, &["numjobs"], "1"))
        }
        Aspect::Host => differ("the host", side.host.clone(), other_side.host.clone()),
        Aspect::Kernel => differ("the kernel", side.kernel.clone(), other_side.kernel.clone()),
        Aspect::Findings => {
            let void = |side: &Side, row: &Row<'_>| {
                let findings = row.measured.iter().flat_map(|run| &run.report.findings);
                let found = findings.into_iter().find(|finding| finding.severity == "void")?;
                Some(format!("the figures of {} are void ({})", side.name, found.code))
            };
            void(side, row).or_else(|| void(other_side, other_row))
        }
    }
}

fn differ(what: &str, one: Option<String>, other: Option<String>) -> Option<String> {
    let (one, other) = (one?, other?);
    (one != other).then(|| format!("{what} differs ({one}, {other})"))
}

fn directions(run: &Measured<'_>) -> String {
    let active = run.job.directions.iter().filter(|direction| direction.is_active());
    let names: Vec<&str> = active.map(|direction| direction.name.name()).collect();
    names.join(" and ")
}

/// The pattern as the options or the heading of the job have it.
fn pattern(run: &Measured<'_>) -> Option<String> {
    let typed = run
        .option(&["rw", "readwrite"])
        .map(str::to_string)
        .or_else(|| run.job.heading.as_ref()?.rw.clone())?;
    // The number of I/Os per offset is not part of it.
    let name = typed.split(':').next().unwrap_or_default().to_string();
    Some(if name == "readwrite" { "rw".to_string() } else { name })
}

fn block_bytes(run: &Measured<'_>, name: DirectionName) -> Option<f64> {
    let direction = run.direction(name)?;
    let ios = direction.ios.filter(|ios| *ios > 0)?;
    let bytes = direction.bytes?;
    // Normal text and terse lines round the bytes to a few digits.
    Some(bytes as f64 / ios as f64)
}

/// A number that is an option; a report that has options but not this one means the default.
fn number(run: &Measured<'_>, names: &[&str], default: &str) -> Option<String> {
    let typed = run.option(names).map(str::to_string);
    let depth = || run.job.heading.as_ref()?.iodepth.map(|depth| depth.to_string());
    let of_heading = if names == ["iodepth"] { depth() } else { None };
    typed.or(of_heading).or_else(|| run.has_options().then(|| default.to_string()))
}

fn engine(run: &Measured<'_>) -> Option<String> {
    let typed = run.option(&["ioengine"]).map(str::to_string);
    let of_heading = || run.job.heading.as_ref()?.ioengine.clone();
    typed.or_else(of_heading).or_else(|| run.has_options().then(|| "psync".to_string()))
}

fn direct(run: &Measured<'_>) -> Option<String> {
    is_direct(run).map(|is_direct| if is_direct { "direct" } else { "through the cache" }.to_string())
}

fn is_direct(run: &Measured<'_>) -> Option<bool> {
    let is_on = |value: &str| matches!(value, "" | "1" | "true");
    let typed = run.option(&["direct"]).map(is_on);
    let buffered = run.option(&["buffered"]).map(|value| !is_on(value));
    typed.or(buffered).or_else(|| run.has_options().then_some(false))
}

/// The options that tell workloads apart, each with its value.
pub(crate) fn workload(run: &Measured<'_>) -> [(&'static str, Option<String>); 5] {
    [
        ("rw", pattern(run)),
        ("iodepth", number(run, &["iodepth"], "1")),
        ("ioengine", engine(run)),
        ("direct", is_direct(run).map(|is_direct| u8::from(is_direct).to_string())),
        ("numjobs", number(run, &["numjobs"], "1")),
    ]
}

/// The aspects as a list for messages.
pub fn names() -> Cell {
    Cell::List(Aspect::ALL.map(|aspect| aspect.name().to_string()).to_vec())
}
