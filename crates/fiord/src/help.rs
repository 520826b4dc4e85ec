//! The pages a user asks for instead of a run: `--help`, `--version`, `--cmdhelp`, `--enghelp`.
//!
//! Invariant: every page is made from the table of options and the list of engines.

use fiord_options::program::ProgramOptions;
use fiord_options::reference;

use crate::subcommands;
use crate::version::FIO_VERSION;

/// The page asked for, or what is wrong with the question; `None` when a run is wanted. Under fio's own name the pages
/// are fio's.
pub(crate) fn asked_for(options: &ProgramOptions, called_as_fio: bool) -> Option<Result<String, String>> {
    if options.version.0 {
        return Some(Ok(format!("{FIO_VERSION}\n")));
    }
    if options.help.0 {
        let fios = format!("{FIO_VERSION}\n{}", reference::help());
        return Some(Ok(if called_as_fio { fios } else { ours() + &fios }));
    }
    if let Some(question) = &options.cmdhelp {
        return Some(Ok(reference::cmdhelp(question.0.as_deref())));
    }
    if let Some(question) = &options.enghelp {
        let engines: Vec<&str> = fiord_engine::registry::infos().iter().map(|info| info.name).collect();
        return Some(reference::enghelp(question.0.as_deref(), &engines));
    }
    None
}

/// What fiord does besides what fio does.
fn ours() -> String {
    let overview = subcommands::overview();
    format!(
        "fiord measures storage. Of its own:\n\n{overview}\nEach has --help. And what fio does, with fio's options:\n\n"
    )
}
