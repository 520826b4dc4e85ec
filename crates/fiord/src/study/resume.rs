//! A study that is in the history and was interrupted, to be continued.
//!
//! Invariant: only a study of the same kind, settings and target is continued, and only if the runs that it recorded are
//! those that it would begin with.

use std::path::Path;

use fiord_lab::rounds::without_resumption;
use fiord_lab::{StepResult, Study};
use fiord_store::{Filter, History, HistoryEntry, RunSelector, StoreError};

use crate::keep;
use crate::status::SUCCESS;

/// What was recorded of a study.
#[derive(Clone, Debug)]
pub(crate) struct Resumed {
    /// Its number in the history.
    pub id: i64,
    /// Its runs that were complete, with their names.
    pub runs: Vec<(String, StepResult)>,
    /// The numbers of the runs before which it was interrupted, its end included.
    pub breaks: Vec<usize>,
}

/// The newest study of this kind, settings and target; `name_after` has the name of the run that follows from results with
/// interruptions before some of them.
///
/// # Errors
/// There is none, it is complete, or its runs are not those of this study.
pub(crate) fn newest(
    study: &dyn Study,
    target: &Path,
    name_after: impl Fn(&[StepResult], &[usize]) -> Option<String>,
) -> Result<Resumed, String> {
    let none = || format!("--resume: the history has no {} with these options at this target", study.name());
    let path = keep::place()?;
    let failed = |why: StoreError| why.to_string();
    let history = History::open_existing(&path).map_err(failed)?.ok_or_else(none)?;
    let filter = Filter { target: Some(keep::target(target)), ..Filter::default() };
    let title = keep::title_of_study(study.name(), &study.purpose());
    let mut entries = history.list(&filter).map_err(failed)?.into_iter();
    let HistoryEntry { id, .. } = entries.find(|entry| entry.facts.title == title).ok_or_else(none)?;
    let parts = history.list(&Filter { parent: Some(id), ..Filter::default() }).map_err(failed)?;
    let (mut names, mut results, mut breaks): (Vec<String>, Vec<StepResult>, Vec<usize>) = Default::default();
    // The newest is the first.
    for part in parts.into_iter().rev().filter(|part| part.facts.exit_status == Some(SUCCESS)) {
        let stored = history.load(RunSelector::Id(part.id)).map_err(failed)?;
        let Some((_, report)) = stored.and_then(|stored| stored.printed) else { continue };
        let name = part.facts.title;
        if without_resumption(&name) != name {
            breaks.push(results.len());
        }
        if name_after(&results, &breaks).as_deref() != Some(without_resumption(&name)) {
            return Err(format!(
                "--resume: run {} of study {id}, {name:?}, is not the one that would follow; begin anew without --resume",
                part.id
            ));
        }
        results.push(StepResult { step: results.len(), report });
        names.push(name);
    }
    if name_after(&results, &breaks).is_none() {
        return Err(format!("--resume: study {id} is complete; `fiord show {id}` prints it"));
    }
    breaks.push(results.len());
    Ok(Resumed { id, runs: names.into_iter().zip(results).collect(), breaks })
}
