//! Which job of which stage a figure of a check is of: `wal: sync.p99`, `stage wal: write.bw`, or `read.p99` alone.
//!
//! Invariant: a term that is read is of a job that is measured, and that does such I/O.

use fiord_compare::figure::Subject;
use fiord_options::suggest::nearest;

use super::expression::{Quantity, Term};
use super::job_file::Stage;

/// Precedes the name of a job of which the whole stage is meant.
const WHOLE: &str = "stage ";

/// What is wrong, and what to do.
type Wrong = (String, String);

/// A stage with its number among those that are measured, and the job that is meant; `None` for all of its jobs.
type Found<'s> = (usize, &'s Stage, Option<&'s str>);

/// Reads a term; one without a job is of that of `within`, or of the only stage.
///
/// # Errors
/// What is wrong, and what to do.
pub(super) fn term(text: &str, within: Option<&Term>, stages: &[Stage]) -> Result<Term, Wrong> {
    let (name, figure) = match text.rsplit_once(':') {
        Some((name, figure)) => (Some(name.trim()), figure.trim()),
        None => (None, text),
    };
    let quantity = Quantity::parse(figure).map_err(|why| (why, String::new()))?;
    let (stage, of, job) = match (name, within) {
        (Some(name), _) => named(text, name, stages)?,
        (None, Some(within)) => {
            of_term(within, stages).ok_or_else(|| (format!("{text:?} is of no job"), String::new()))?
        }
        (None, None) => only(text, figure, stages)?,
    };
    let jobs: Vec<_> = of.jobs.iter().filter(|known| job.is_none_or(|job| known.name == job)).collect();
    let can = |known: &&super::job_file::Job| known.can_measure(quantity);
    let is_measured = match quantity {
        // Of jobs without a rate there is no share.
        Quantity::ShareOfRate(_) => jobs.iter().all(can),
        _ => jobs.iter().any(can),
    };
    match is_measured {
        true => Ok(Term { stage, job: job.map(str::to_string), quantity }),
        false => {
            let (what, remedy) = needs(quantity);
            Err((format!("{text:?}: {what}"), remedy.to_string()))
        }
    }
}

/// The stages that are measured, with their numbers.
fn measured(stages: &[Stage]) -> impl Iterator<Item = (usize, &Stage)> {
    stages.iter().filter(|stage| stage.seconds > 0).enumerate()
}

fn names(stages: &[Stage]) -> impl Iterator<Item = &str> {
    stages.iter().flat_map(|stage| &stage.jobs).map(|job| job.name.as_str())
}

/// The job of this name, or the stage that has it. A job that is alone in its stage is the whole stage.
fn named<'s>(text: &str, name: &str, stages: &'s [Stage]) -> Result<Found<'s>, Wrong> {
    let find = |name: &str| {
        let of = |(number, stage): (usize, &'s Stage)| {
            let job = stage.jobs.iter().find(|job| job.name == name)?;
            Some((number, stage, Some(job.name.as_str()).filter(|_| stage.jobs.len() > 1)))
        };
        measured(stages).find_map(of)
    };
    let whole = || find(name.strip_prefix(WHOLE)?.trim()).map(|(number, stage, _)| (number, stage, None));
    find(name).or_else(whole).ok_or_else(|| {
        let remedy = match names(stages).any(|known| known == name) {
            true => needs_time(),
            false => match nearest(name, names(stages)) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("jobs: {}", names(stages).collect::<Vec<_>>().join(", ")),
            },
        };
        (format!("{text:?}: no job that is measured is called {name:?}"), remedy)
    })
}

/// Where another term is.
fn of_term<'s>(other: &Term, stages: &'s [Stage]) -> Option<Found<'s>> {
    let (number, stage) = measured(stages).find(|(number, _)| *number == other.stage)?;
    let job = stage.jobs.iter().map(|job| job.name.as_str()).find(|name| other.job.as_deref() == Some(*name));
    Some((number, stage, job))
}

/// The only stage that is measured.
fn only<'s>(text: &str, figure: &str, stages: &'s [Stage]) -> Result<Found<'s>, Wrong> {
    let mut all = measured(stages);
    match (all.next(), all.next()) {
        (Some((number, stage)), None) => Ok((number, stage, None)),
        (None, _) => Err((format!("{text:?}: no job is measured"), needs_time())),
        (Some((_, stage)), Some(_)) => Err((
            format!("{text:?} could be of several stages"),
            format!("name the job: {}: {figure}", stage.name),
        )),
    }
}

fn needs_time() -> String {
    "give the job a time: runtime=10 and time_based=1".to_string()
}

/// What a job lacks for a figure, and what to do.
fn needs(quantity: Quantity) -> (&'static str, &'static str) {
    match quantity {
        Quantity::ShareOfRate(_) => {
            ("a job has no rate of which this could be the share", "add rate=16m to the job")
        }
        _ if quantity.subject() == Subject::Sync => {
            ("the job does no such I/O", "add fdatasync=1 or fsync=1 to the job, or name another figure")
        }
        _ => ("the job does no such I/O", "change rw= of the job, or name another figure"),
    }
}
