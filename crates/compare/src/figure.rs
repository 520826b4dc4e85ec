//! The figures that are compared, by their names: `read.iops`, `write.p99.9`.
//!
//! Invariant: a figure has one name, in tables, JSON and conditions alike.

use std::fmt;
use std::str::FromStr;

pub use fiord_import::DirectionName;
use fiord_report::table::{Cell, shown_bytes};
use fiord_stats::{Capped, Count};

/// What a figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// Reads, writes, trims, or all of them as one.
    Direction(DirectionName),
    /// Sync calls.
    Sync,
    /// What the machine used, where it tells.
    Energy,
    /// A job, of which something is counted.
    Job,
}

impl Subject {
    /// Every subject, in the order of reports.
    pub fn all() -> impl Iterator<Item = Subject> {
        DirectionName::ALL.into_iter().map(Subject::Direction).chain([
            Subject::Sync,
            Subject::Energy,
            Subject::Job,
        ])
    }

    /// What is counted of it.
    pub(crate) fn counts(self) -> impl Iterator<Item = &'static Count> {
        let is_counted = matches!(self, Subject::Direction(_) | Subject::Job);
        Count::all(self != Subject::Job).filter(move |_| is_counted)
    }

    fn name(self) -> &'static str {
        match self {
            Subject::Direction(direction) => direction.name(),
            Subject::Sync => "sync",
            Subject::Energy => "energy",
            Subject::Job => "job",
        }
    }
}

/// What is measured of it.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Measure {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean latency, in nanoseconds.
    Mean,
    /// A percentile of latency, in nanoseconds.
    Percentile(f64),
    /// Power, in watts.
    Watts,
    /// I/Os for each joule beyond what the idle machine uses.
    IopsPerWatt,
    /// Bytes for each joule beyond what the idle machine uses.
    BytesPerJoule,
    /// What only fiord counts.
    Counted(&'static Count),
}

impl Measure {
    /// Those of energy, with their names.
    pub(crate) const OF_ENERGY: [(Measure, &str); 3] = [
        (Measure::Watts, "watts"),
        (Measure::IopsPerWatt, "iops_per_watt"),
        (Measure::BytesPerJoule, "bytes_per_joule"),
    ];
}

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Figure {
    /// What it is of.
    pub subject: Subject,
    /// What is measured of it.
    pub measure: Measure,
}

impl Figure {
    /// Whether more of it is better.
    pub fn is_more_better(self) -> bool {
        !matches!(self.measure, Measure::Mean | Measure::Percentile(_) | Measure::Watts | Measure::Counted(_))
    }

    /// A value of it as people write one, in its own unit (I/Os or bytes per second, nanoseconds, watts): `50k`, `100MiB`,
    /// `10ms`.
    ///
    /// # Errors
    /// It is not one; the units that it may have, separated by commas.
    pub fn value(self, text: &str) -> Result<f64, String> {
        let units: &[(&str, f64)] = match self.measure {
            Measure::Iops | Measure::IopsPerWatt | Measure::Counted(_) => {
                &[("k", 1e3), ("M", 1e6), ("", 1.0)]
            }
            Measure::Watts => &[("mW", 1e-3), ("kW", 1e3), ("W", 1.0), ("", 1.0)],
            Measure::Bandwidth | Measure::BytesPerJoule => {
                &[("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0), ("B", 1.0), ("", 1.0)]
            }
            Measure::Mean | Measure::Percentile(_) => &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)],
        };
        let bare = text.strip_suffix("/s").unwrap_or(text);
        let read = |(unit, scale): &(&str, f64)| Some(number(bare.strip_suffix(unit)?)? * scale);
        units.iter().find_map(read).filter(|value| *value >= 0.0).ok_or_else(|| {
            let names = units.iter().map(|(unit, _)| *unit).filter(|unit| !unit.is_empty());
            names.collect::<Vec<_>>().join(", ")
        })
    }

    /// A value of it.
    pub fn cell(self, value: f64) -> Cell {
        match self.measure {
            Measure::Iops | Measure::IopsPerWatt if value < 100.0 => Cell::Number(value, 1),
            Measure::Iops | Measure::IopsPerWatt | Measure::Counted(_) => Cell::Number(value, 0),
            Measure::Watts => Cell::Formatted(format!("{value:.1} W"), value),
            Measure::BytesPerJoule => {
                Cell::Formatted(format!("{}/J", shown_bytes(u64::capped(value.round()))), value)
            }
            Measure::Bandwidth => {
                Cell::Formatted(format!("{}/s", shown_bytes(u64::capped(value.round()))), value)
            }
            Measure::Mean | Measure::Percentile(_) => Cell::Latency(u64::capped(value.max(0.0).round())),
        }
    }
}

/// A finite number; `None` if the text is none.
pub(crate) fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

impl fmt::Display for Figure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = self.subject.name();
        match self.measure {
            Measure::Iops => write!(out, "{subject}.iops"),
            Measure::Bandwidth => write!(out, "{subject}.bw"),
            Measure::Mean => write!(out, "{subject}.mean"),
            Measure::Percentile(percent) => write!(out, "{subject}.p{percent}"),
            Measure::Counted(count) => write!(out, "{subject}.{}", count.key),
            Measure::Watts | Measure::IopsPerWatt | Measure::BytesPerJoule => {
                let name = Measure::OF_ENERGY.into_iter().find(|(known, _)| *known == self.measure);
                write!(out, "{subject}.{}", name.map_or("", |(_, name)| name))
            }
        }
    }
}

impl FromStr for Figure {
    type Err = String;

    fn from_str(text: &str) -> Result<Figure, String> {
        let wrong = || {
            let subjects: Vec<&str> = Subject::all().map(Subject::name).collect();
            let counts: Vec<&str> = Count::ALL.iter().map(|count| count.key).collect();
            format!(
                "{text:?} is not a figure: write one of {}, a dot, and iops, bw, mean or a percentile, such as read.p99.9; \
                 energy has watts, iops_per_watt and bytes_per_joule; counts are {}",
                subjects.join(", "),
                counts.join(", ")
            )
        };
        let (subject, measure) = text.split_once('.').ok_or_else(wrong)?;
        let subject = Subject::all().find(|known| known.name() == subject).ok_or_else(wrong)?;
        if subject == Subject::Energy {
            let (measure, _) =
                Measure::OF_ENERGY.into_iter().find(|(_, name)| *name == measure).ok_or_else(wrong)?;
            return Ok(Figure { subject, measure });
        }
        if let Some(count) = subject.counts().find(|count| count.key == measure) {
            return Ok(Figure { subject, measure: Measure::Counted(count) });
        }
        let measure = match measure {
            _ if subject == Subject::Job => return Err(wrong()),
            "iops" => Measure::Iops,
            "bw" => Measure::Bandwidth,
            "mean" => Measure::Mean,
            percentile => {
                let percent = percentile.strip_prefix('p').and_then(|percent| percent.parse().ok());
                Measure::Percentile(
                    percent.filter(|percent| *percent > 0.0 && *percent < 100.0).ok_or_else(wrong)?,
                )
            }
        };
        Ok(Figure { subject, measure })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_shown() {
        for name in [
            "read.iops",
            "write.bw",
            "trim.mean",
            "mixed.p50",
            "sync.p99.9",
            "read.p99.99",
            "energy.watts",
            "job.zone_resets",
            "read.dropped_arrivals",
        ] {
            assert_eq!(name.parse::<Figure>().unwrap().to_string(), name);
        }
        for wrong in [
            "",
            "read",
            "read.",
            "reads.iops",
            "read.p",
            "read.p0",
            "read.p100",
            "read.pNaN",
            "iops",
            "energy.bw",
            "job.iops",
            "job.dropped_arrivals",
            "read.zone_resets",
        ] {
            assert!(wrong.parse::<Figure>().is_err(), "{wrong}");
        }
    }
}
