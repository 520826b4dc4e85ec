//! A study that is in the history and was interrupted, to be continued.
//!
//! Invariant: only a study of the same kind, settings and targets is continued, and only if the runs that it recorded are
//! those that it would begin with.

use fiord_lab::rounds::without_resumption;
use fiord_lab::several::at_target;
use fiord_lab::{StepResult, Study, StudyTarget};
use fiord_store::{Filter, History, HistoryEntry, RunSelector, StoreError};
use fiord_sys::system;

use crate::keep;
use crate::status::SUCCESS;

/// What was recorded of a study.
#[derive(Clone, Debug)]
pub(crate) struct Resumed {
    /// Its number in the history.
    pub id: i64,
    /// Its runs that were complete, with their names.
    pub runs: Vec<(String, StepResult)>,
    /// For each target the numbers of its own runs before which the study was interrupted, its end included.
    pub breaks: Vec<Vec<usize>>,
}

/// What was recorded of one target of a study.
#[derive(Default)]
struct OfTarget {
    results: Vec<StepResult>,
    breaks: Vec<usize>,
}

/// The newest study of this kind, settings and targets; `name_after` has the name of the run that follows on a target, by its
/// number, from the results of that target with interruptions before some of them.
///
/// # Errors
/// There is none, it is complete, or its runs are not those of this study.
pub(crate) fn newest(
    study: &dyn Study,
    targets: &[&StudyTarget],
    name_after: impl Fn(usize, &[StepResult], &[usize]) -> Option<String>,
) -> Result<Resumed, String> {
    let none = || {
        let at = if targets.len() == 1 { "at this target" } else { "on these devices in this order" };
        format!("--resume: the history has no {} with these options {at}", study.name())
    };
    let path = keep::place()?;
    let failed = |why: StoreError| why.to_string();
    let history = History::open_existing(&path).map_err(failed)?.ok_or_else(none)?;
    // The runs of several targets have them in their names.
    let target = Some(targets).filter(|targets| targets.len() == 1).map(|only| keep::target(&only[0].path));
    let filter = Filter { target, ..Filter::default() };
    let title = keep::title_of_study(study.name(), &study.purpose());
    // Those of other machines were imported.
    let host = system::names().host;
    let is_it = |entry: &HistoryEntry| entry.facts.title == title && entry.facts.host == host;
    let mut entries = history.list(&filter).map_err(failed)?.into_iter();
    let HistoryEntry { id, .. } = entries.find(is_it).ok_or_else(none)?;
    let parts = history.list(&Filter { parent: Some(id), ..Filter::default() }).map_err(failed)?;
    let mut all: Vec<OfTarget> = targets.iter().map(|_| OfTarget::default()).collect();
    let next = |all: &[OfTarget], target: usize| {
        let name = name_after(target, &all[target].results, &all[target].breaks)?;
        Some(if targets.len() == 1 { name } else { at_target(&targets[target].shown(), &name) })
    };
    let interrupt = |all: &mut [OfTarget]| {
        all.iter_mut().for_each(|own| own.breaks.push(own.results.len()));
    };
    let mut runs = Vec::new();
    // The newest is the first.
    for part in parts.into_iter().rev().filter(|part| part.facts.exit_status == Some(SUCCESS)) {
        let stored = history.load(RunSelector::Id(part.id)).map_err(failed)?;
        let Some((_, report)) = stored.and_then(|stored| stored.printed) else { continue };
        let name = part.facts.title;
        if without_resumption(&name) != name {
            interrupt(&mut all);
        }
        let is_next = |target: &usize| next(&all, *target).as_deref() == Some(without_resumption(&name));
        let Some(target) = (0..targets.len()).find(is_next) else {
            return Err(format!(
                "--resume: run {} of study {id}, {name:?}, is not one that would follow; begin anew without --resume",
                part.id
            ));
        };
        let own = &mut all[target].results;
        let step = own.len() * targets.len() + target;
        own.push(StepResult { step: own.len(), report: report.clone() });
        runs.push((name, StepResult { step, report }));
    }
    if (0..targets.len()).all(|target| next(&all, target).is_none()) {
        return Err(format!("--resume: study {id} is complete; `fiord show {id}` prints it"));
    }
    interrupt(&mut all);
    Ok(Resumed { id, runs, breaks: all.into_iter().map(|own| own.breaks).collect() })
}
