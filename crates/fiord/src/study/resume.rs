//! A study that is in the history and was interrupted, to be continued.
//!
//! Invariant: only a study of the same kind, settings and targets is continued, and only if the runs that it recorded are
//! those that it would begin with.

use fiord_lab::rounds::without_resumption;
use fiord_lab::several::at_target;
use fiord_lab::{StepResult, Study, StudyTarget};
use fiord_store::{Filter, History, HistoryEntry, KeptRun, RunSelector, StoreError, StudyIdentity};
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

/// The newest study of this kind and these settings on this machine whose identity is so.
pub(crate) fn newest_that(
    history: &History,
    study: &dyn Study,
    is_it: impl Fn(&StudyIdentity) -> bool,
) -> Result<Option<(HistoryEntry, StudyIdentity)>, StoreError> {
    let title = keep::title_of_study(study.name(), &study.purpose());
    // Those of other machines were imported.
    let host = system::names().host;
    let all = history.list(&Filter::default())?.into_iter();
    for entry in all.filter(|entry| entry.facts.title == title && entry.facts.host == host) {
        let identity = history.identity(entry.id)?;
        if is_it(&identity) {
            return Ok(Some((entry, identity)));
        }
    }
    Ok(None)
}

/// The newest study of this kind, these settings and targets, which keeps the preconditioning of these runs; `name_after` has the
/// name of the run that follows on a target, by its number, from the results of that target with interruptions before some of
/// them.
///
/// # Errors
/// There is none, it is complete, or its runs are not those of this study.
pub(crate) fn newest(
    study: &dyn Study,
    targets: &[&StudyTarget],
    kept: &[KeptRun],
    name_after: impl Fn(usize, &[StepResult], &[usize]) -> Option<String>,
) -> Result<Resumed, String> {
    let none = || {
        let at = if targets.len() == 1 { "at this target" } else { "on these devices in this order" };
        format!("--resume: the history has no {} with these options {at}", study.name())
    };
    let path = keep::place()?;
    let failed = |why: StoreError| why.to_string();
    let history = History::open_existing(&path).map_err(failed)?.ok_or_else(none)?;
    let identity = keep::identity_of_study(targets, kept);
    let is_it = |recorded: &StudyIdentity| *recorded == identity;
    let (entry, _) = newest_that(&history, study, is_it).map_err(failed)?.ok_or_else(none)?;
    let id = entry.id;
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
    // Of one that was killed after its last run, the result is not in the history.
    let is_over = (0..targets.len()).all(|target| next(&all, target).is_none());
    if is_over && entry.facts.exit_status.is_some() {
        return Err(format!("--resume: study {id} is complete; `fiord show {id}` prints it"));
    }
    interrupt(&mut all);
    Ok(Resumed { id, runs, breaks: all.into_iter().map(|own| own.breaks).collect() })
}
