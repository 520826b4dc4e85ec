//! The pages printed instead of a run: `--help`, `--version`, `--cmdhelp`, `--enghelp`.
//!
//! Invariant: every page is made from the table of options, the list of engines and the list of subcommands.

use fiord_engine::registry;
use fiord_options::program::ProgramOptions;
use fiord_options::reference;
use fiord_report::path::text;
use fiord_session::run::version::{FIO_VERSION, FIORD_VERSION};

use crate::layout;
use crate::subcommand::Subcommands;

/// The page requested, or what is wrong with the request; `None` if a run is requested. Without subcommands, as when
/// the program is called by fio's name, the pages are fio's.
pub(super) fn asked_for(
    options: &ProgramOptions,
    own: Option<&Subcommands>,
) -> Option<Result<String, String>> {
    if options.version.0 {
        // Scripts parse the first line, under either name.
        let own = own.map_or_else(String::new, |_| format!("fiord {FIORD_VERSION}\n"));
        return Some(Ok(format!("{FIO_VERSION}\n{own}")));
    }
    if options.help.0 {
        let fios = format!("{FIO_VERSION}\n{}", layout::fitted(&reference::help()));
        return Some(Ok(own.map_or_else(String::new, introduction) + &fios));
    }
    if let Some(question) = &options.cmdhelp {
        return Some(Ok(reference::cmdhelp(question.0.as_ref().map(text).as_deref())));
    }
    if let Some(question) = &options.enghelp {
        return Some(reference::enghelp(question.0.as_ref().map(text).as_deref(), registry::NAMES));
    }
    None
}

/// What fiord does beyond fio.
fn introduction(own: &Subcommands) -> String {
    let overview = own.overview();
    format!(
        "fiord measures storage. Its own commands:\n\n{overview}\nEach has --help. Otherwise fiord is used as fio, with \
         fio's options:\n\n"
    )
}
