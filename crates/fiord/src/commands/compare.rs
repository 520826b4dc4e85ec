//! `fiord compare`: what changed between two results or more, and whether that is more than noise.
//!
//! Invariant: reads files and the history, and changes neither; the exit status depends on conditions alone.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use fiord_compare::aspect::names;
use fiord_compare::page::SIDES_MAX;
use fiord_compare::{Aspect, Condition, Margin, Settings, compare};
use fiord_options::value::Undecided;
use fiord_report::path::visible_lines;

use crate::arguments::{CommandError, Form, Forms, Invocation};
use crate::layout::width;
use crate::subcommand::Subcommands;
use crate::{gate, output, results, status};

/// Compares results with the first of them: the change of each figure, how sure it
/// is, and a sentence: faster, slower, the same within a margin, or not comparable.
/// A result is a recorded run or study (its number, last, last~1, or its --tag), or
/// a file with a report of fio or fiord in any format (- for standard input).
/// Several of them with commas between are repetitions, from which noise is known
/// best. docs/compare.md says how noise is estimated.
#[derive(Parser)]
#[command(name = "fiord compare", verbatim_doc_comment, after_help = HELP)]
pub(super) struct Options {
    /// The results, the first of which the others are compared with
    #[arg(value_name = "RESULT", required_unless_present = "baseline")]
    results: Vec<OsString>,
    /// Compare the results, or else the newest run, with this one
    #[arg(long, value_name = "RESULT")]
    baseline: Option<OsString>,
    /// Exit with status 8 if this holds, such as 'read.p99 > +10%'
    /// (may be repeated)
    #[arg(long, value_name = "CONDITION", verbatim_doc_comment)]
    fail_if: Vec<Condition>,
    /// What a condition is that cannot be decided: tell (status
    /// 6), pass (0), or fail (8)
    #[arg(long, default_value = "tell", value_parser = gate::undecided, verbatim_doc_comment)]
    undecided: Undecided,
    /// Call a figure the same if its change is surely within this
    /// margin [default: 10%, and 25% for percentiles above p75]
    #[arg(long, value_name = "PERCENT", verbatim_doc_comment)]
    margin: Option<Margin>,
    /// Compare in spite of these differences, separated by commas:
    /// pattern, block-size, depth, engine, direct, jobs, host,
    /// kernel, findings
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = aspect, verbatim_doc_comment)]
    across: Vec<Aspect>,
    #[command(flatten)]
    forms: Forms,
    /// Print JUnit's XML, for CI
    #[arg(long, conflicts_with_all = ["json", "csv", "markdown"])]
    junit: bool,
}

const HELP: &str = "\
A condition is [ROW:] FIGURE > LIMIT or < LIMIT. Figures are those of the table:
read, write, trim, mixed or sync; a dot; iops, bw, mean, or a percentile (p99.9).
A limit is a change (+10%, -5%), or a value (10ms, 50k, 100MiB).

The exit status is 8 if a condition holds beyond noise, else 6 if one cannot be
decided (noise explains it, or the results are not comparable), else 0.

Examples:
  fiord compare last~1 last
  fiord compare before.json after.json --fail-if 'read.p99 > +10%'
  fiord compare a1.json,a2.json,a3.json b1.json,b2.json,b3.json
  fiord compare run.json@db3 run.json@db4 --across host
  fiord compare --baseline release-1 --fail-if 'write.iops < -5%' --junit
  fiord compare old-kernel new-kernel --across kernel";

fn aspect(text: &str) -> Result<Aspect, String> {
    Aspect::from_name(text).ok_or_else(|| format!("{text:?} is not one of {}", names().shown()))
}

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        let mut named = self.results;
        if let Some(baseline) = self.baseline {
            if named.is_empty() {
                named.push("last".into());
            }
            named.insert(0, baseline);
        }
        match named.len() {
            0 | 1 => return Err("name two results or more, such as last~1 last".to_string().into()),
            2..=SIDES_MAX => {}
            count => {
                return Err(format!("{count} results; at most {SIDES_MAX} can be compared").into());
            }
        }
        let mut sides = Vec::new();
        for name in &named {
            sides.push(results::side(name)?);
        }
        let margin = self.margin.unwrap_or_default();
        let settings = Settings { margin, across: self.across, conditions: self.fail_if };
        let comparison = compare(&sides, &settings);
        let page = match self.forms.chosen() {
            _ if self.junit => comparison.junit(),
            Form::Json => comparison.json(),
            Form::Csv => comparison.full().csv(),
            Form::Markdown => visible_lines(&comparison.markdown()),
            Form::Text => visible_lines(&comparison.text(width())),
        };
        output::print(page.as_bytes())?;
        Ok(ExitCode::from(status::of_decision(comparison.decision(), self.undecided)))
    }
}
