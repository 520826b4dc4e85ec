//! Rules about the files of a job, and about traces.
//!
//! Invariant: a rule here looks at names and modes, and at no file.

use fiord_options::shown::shown;
use fiord_options::{Problem, ProblemKind, job};

use crate::build::section::ResolvedSection;

/// fio adds up names, also those of `[global]`; most who write it that way expect the last one to count.
pub(super) fn filename_is_given_once(section: &ResolvedSection<'_>) -> Option<Problem> {
    let names: Vec<String> = section
        .given
        .all(job::Files::filename)
        .filter_map(|setting| setting.value.as_ref().map(shown))
        .collect();
    (names.len() > 1).then(|| {
        let message = format!("given {} times; all of them are used: {}", names.len(), names.join(", "));
        section.error(ProblemKind::ReadDifferently, job::Files::filename, message, "").as_warning()
    })
}

pub(super) fn append_excludes_overwrite(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    (options.files.file_append && options.files.overwrite).then(|| {
        section
            .error(
                ProblemKind::Conflict,
                job::Files::overwrite,
                "data that is appended cannot be overwritten; it is laid out first",
                "",
            )
            .as_warning()
    })
}

/// fio warns, too.
pub(super) fn replay_excludes_recording(section: &ResolvedSection<'_>) -> Option<Problem> {
    let replay = &section.options.replay;
    (replay.read_iolog.is_some() && replay.write_iolog.is_some()).then(|| {
        let message = "read_iolog overrides write_iolog: what is replayed is not recorded again";
        section.error(ProblemKind::Conflict, job::Replay::write_iolog, message, "").as_fios_warning()
    })
}
