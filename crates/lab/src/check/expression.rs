//! What a figure of a check is: `wal: sync.p99`, `gets: read.p99 / alone: read.p99`, or the worst of several such.
//!
//! Invariant: a figure that was not measured has no value; it is never taken for zero, but for the share of a rate of a job
//! that did nothing.

use fiord_compare::figure::{DirectionName, Figure, Measure, Subject};
use fiord_options::value::{Bytes, PerDirection, Reading, Value};
use fiord_report::{JobReport, RunReport};

use crate::figures::{self, Figures, READ, WRITE};

use super::limit::{Better, Unit};

/// The report of each stage of a round that was run.
pub(super) type Stages<'a> = Vec<Option<&'a RunReport>>;

/// Index of trims in the directions of a job.
const TRIM: usize = 2;

/// What is measured of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Quantity {
    /// A figure that is compared as well.
    Of(Figure),
    /// The longest call: of reads, writes or trims without the sync that follows, or of syncs.
    Longest(Subject),
    /// The share of its `rate` that the slowest of the jobs reached, in percent.
    ShareOfRate(Subject),
}

impl Quantity {
    /// Reads `read.p99`, `sync.max`, `write.share`.
    ///
    /// # Errors
    /// It is none; what may be written.
    pub(super) fn parse(text: &str) -> Result<Quantity, String> {
        let wrong = || {
            format!(
                "{text:?} is not a figure of a check: write read, write, trim or sync, a dot, and iops, bw, mean, max, share or a \
                 percentile, such as read.p99.9"
            )
        };
        let (name, measure) = text.split_once('.').ok_or_else(wrong)?;
        let of = |measure: &str| format!("{name}.{measure}").parse::<Figure>().map_err(|_| wrong());
        let quantity = match measure {
            "max" => Quantity::Longest(of("mean")?.subject),
            "share" => Quantity::ShareOfRate(of("mean")?.subject),
            other => Quantity::Of(of(other)?),
        };
        let has_rate = match quantity {
            Quantity::Of(figure) => figure.is_more_better(),
            Quantity::Longest(_) => false,
            Quantity::ShareOfRate(_) => true,
        };
        match quantity.subject() {
            Subject::Direction(DirectionName::Mixed) | Subject::Energy => Err(wrong()),
            Subject::Sync if has_rate => {
                Err(format!("{text:?}: syncs have a latency alone; write sync.p99, sync.mean or sync.max"))
            }
            _ => Ok(quantity),
        }
    }

    /// What it is of.
    pub(super) fn subject(self) -> Subject {
        match self {
            Quantity::Of(figure) => figure.subject,
            Quantity::Longest(subject) | Quantity::ShareOfRate(subject) => subject,
        }
    }

    /// Whether it is a count, for which checks have no limits.
    pub(super) fn is_count(self) -> bool {
        matches!(self, Quantity::Of(Figure { measure: Measure::Counted(_), .. }))
    }

    fn unit(self) -> Unit {
        match self {
            Quantity::Of(Figure { measure: Measure::Iops, .. }) => Unit::PerSecond,
            Quantity::Of(Figure { measure: Measure::Bandwidth, .. }) => Unit::BytesPerSecond,
            Quantity::Of(_) | Quantity::Longest(_) => Unit::Ns,
            Quantity::ShareOfRate(_) => Unit::Percent,
        }
    }

    /// Of all jobs of a report, or of those of one name.
    fn of(self, report: &RunReport, job: Option<&str>) -> Option<f64> {
        let direction = direction(self.subject());
        match (self, direction) {
            (Quantity::Of(Figure { measure, .. }), direction) => {
                let rates = |direction| match job {
                    Some(name) => Figures::of_job(report, name, direction),
                    None => Figures::of(report, direction),
                };
                let latency = || match direction {
                    Some(direction) => figures::latency_of(report, job, direction),
                    None => figures::sync_latency_of(report, job),
                };
                let measured = || Some(latency()).filter(|latency| latency.running.count > 0);
                match measure {
                    Measure::Iops => Some(rates(direction?)?.iops),
                    Measure::Bandwidth => Some(rates(direction?)?.bytes_per_s),
                    Measure::Mean => Some(measured()?.running.mean().round()),
                    Measure::Percentile(percent) => {
                        measured()?.percentiles(&[percent]).first().map(|ns| *ns as f64)
                    }
                    Measure::Watts | Measure::IopsPerWatt | Measure::BytesPerJoule | Measure::Counted(_) => {
                        None
                    }
                }
            }
            (Quantity::Longest(_), None) => {
                let latency = figures::sync_latency_of(report, job);
                (latency.running.count > 0).then_some(latency.running.max as f64)
            }
            (Quantity::Longest(_), Some(direction)) => {
                let of_jobs = figures::named(report, job)
                    .map(|job| &job.stats.directions[direction].completion.running);
                of_jobs.filter(|running| running.count > 0).map(|running| running.max as f64).reduce(f64::max)
            }
            (Quantity::ShareOfRate(_), direction) => {
                let direction = direction?;
                let asked = figures::named(report, job)
                    .map(|job| asked_bytes_per_s(job, direction))
                    .sum::<Option<f64>>()?;
                let moved = match job {
                    Some(name) => Figures::of_job(report, name, direction),
                    None => Figures::of(report, direction),
                };
                (asked > 0.0).then(|| 100.0 * moved.map_or(0.0, |figures| figures.bytes_per_s) / asked)
            }
        }
    }
}

fn direction(subject: Subject) -> Option<usize> {
    match subject {
        Subject::Direction(DirectionName::Read) => Some(READ),
        Subject::Direction(DirectionName::Write) => Some(WRITE),
        Subject::Direction(DirectionName::Trim) => Some(TRIM),
        Subject::Direction(DirectionName::Mixed) | Subject::Sync | Subject::Energy | Subject::Job => None,
    }
}

/// The `rate` of all workers of a job, in bytes per second.
fn asked_bytes_per_s(job: &JobReport, direction: usize) -> Option<f64> {
    let (_, rate) = job.options.iter().find(|(name, _)| name == "rate")?;
    let rate = PerDirection::<Bytes>::parse(rate, &mut Reading::default()).ok()?;
    let Bytes(bytes) = [rate.read, rate.write, rate.trim][direction]?;
    Some(bytes as f64 * f64::from(job.member_count.max(1)))
}

/// A quantity of one job, or of a whole stage.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    /// The number of its stage among those that are measured.
    pub stage: usize,
    /// The job; `None` for all jobs of the stage.
    pub job: Option<String>,
    pub quantity: Quantity,
}

impl Term {
    fn of(&self, stages: &Stages<'_>) -> Option<f64> {
        self.quantity.of((*stages.get(self.stage)?)?, self.job.as_deref())
    }
}

/// A term, or the ratio of two.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quotient {
    pub term: Term,
    pub over: Option<Term>,
}

impl Quotient {
    /// The unit of its value.
    pub(super) fn unit(&self) -> Unit {
        if self.over.is_some() { Unit::Times } else { self.term.quantity.unit() }
    }

    fn of(&self, stages: &Stages<'_>) -> Option<f64> {
        let value = self.term.of(stages)?;
        match &self.over {
            // A latency of zero is below the clock's resolution.
            Some(over) if over.quantity.unit() == Unit::Ns => Some(value / over.of(stages)?.max(1.0)),
            Some(over) => over.of(stages).filter(|over| *over > 0.0).map(|over| value / over),
            None => Some(value),
        }
    }
}

/// One quotient, or several of which the worst counts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expression(pub Vec<Quotient>);

impl Expression {
    /// The unit of its value.
    pub(super) fn unit(&self) -> Unit {
        self.0.first().map_or(Unit::Ns, Quotient::unit)
    }

    /// Whether less of it is better: of latencies. Of a ratio, that of its first term.
    pub(super) fn better(&self) -> Better {
        let is_more_better = |quantity| match quantity {
            Quantity::Of(figure) => figure.is_more_better(),
            Quantity::Longest(_) => false,
            Quantity::ShareOfRate(_) => true,
        };
        match self.0.first().is_some_and(|first| is_more_better(first.term.quantity)) {
            true => Better::Higher,
            false => Better::Lower,
        }
    }

    /// Its value in a round; `None` if any of it was not measured.
    pub(super) fn of(&self, stages: &Stages<'_>) -> Option<f64> {
        let values = self.0.iter().map(|quotient| quotient.of(stages)).collect::<Option<Vec<f64>>>()?;
        values.into_iter().reduce(match self.better() {
            Better::Lower => f64::max,
            Better::Higher => f64::min,
        })
    }
}
