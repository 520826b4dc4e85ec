//! `fiord completions`: scripts that complete command lines in a shell.
//!
//! Invariant: pure functions of what is declared elsewhere: the subcommands and their options, and the table of options.

use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command, ValueHint};
use clap_complete::{Shell, generate};
use fiord_options::table::{self, Spec};
use fiord_options::value::Takes;
use fiord_report::json::Writer;

use crate::arguments::{self, CommandError, Invocation};
use crate::subcommand::Subcommands;

/// Prints a script that completes subcommands, options and their values in a shell
#[derive(clap::Parser)]
#[command(name = "fiord completions", after_help = EXAMPLES)]
pub(super) struct Options {
    /// Shell to complete in
    #[arg(value_name = "SHELL")]
    shell: Name,
    /// Print JSON: the shell and its script
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  source <(fiord completions bash)
  fiord completions zsh > ~/.zfunc/_fiord
  fiord completions fish > ~/.config/fish/completions/fiord.fish
";

#[derive(Clone, Copy, clap::ValueEnum)]
enum Name {
    Bash,
    Elvish,
    Fish,
    Zsh,
}

impl Invocation for Options {
    fn run(self, subcommands: &Subcommands) -> Result<ExitCode, CommandError> {
        let shell = match self.shell {
            Name::Bash => Shell::Bash,
            Name::Elvish => Shell::Elvish,
            Name::Fish => Shell::Fish,
            Name::Zsh => Shell::Zsh,
        };
        let mut script = Vec::new();
        generate(shell, &mut whole(subcommands), "fiord", &mut script);
        arguments::print(match self.json {
            true => Writer::document(|json| {
                json.string("shell", &shell.to_string());
                json.string("script", &String::from_utf8_lossy(&script));
            })
            .into_bytes(),
            false => script,
        })
    }
}

/// Everything that may follow `fiord`: subcommands, or the options of fio and job files.
fn whole(subcommands: &Subcommands) -> Command {
    let job_files = Arg::new("job files").num_args(0..).value_hint(ValueHint::FilePath);
    let fio = table::program_specs().chain(table::job_specs()).map(option);
    let own = subcommands.0.iter().map(|known| (known.declaration)().name(known.name).about(known.summary));
    Command::new("fiord")
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .arg(job_files)
        .args(fio)
        .subcommands(own)
}

/// An option of fio.
fn option(spec: &'static Spec) -> Arg {
    let arg = Arg::new(spec.name).long(spec.name).help(spec.summary());
    let words = spec.choices.iter().map(|choice| PossibleValue::new(choice.word).help(choice.help));
    let arg = match spec.takes {
        Takes::Nothing => return arg.action(ArgAction::SetTrue),
        Takes::Optional => arg.action(ArgAction::Append).num_args(0..=1).require_equals(true),
        Takes::Value => arg.action(ArgAction::Append),
    };
    if spec.choices.is_empty() { arg } else { arg.value_parser(words.collect::<Vec<_>>()) }
}
