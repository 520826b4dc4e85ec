//! `fiord engines`: the engines there are, which of them this machine and kernel set up, what the kernel takes of
//! io_uring, and what fiord itself costs an I/O.
//!
//! Invariant: what is shown was tried a moment ago in this process; text and JSON come from the same tables.

use std::ffi::OsString;
use std::fmt::Write;
use std::process::ExitCode;

use fiord_engine::registry::{self, Tried};
use fiord_engine::{Feature, Offer, Refused};
use fiord_host::Machine;
use fiord_report::json::Writer;
use fiord_report::table::{Cell, Column, Table};
use fiord_sys::errno::Errno;
use fiord_sys::procfs;
use fiord_sys::uring::{Hint, Standing};
use fiord_worker::SelfCost;

use crate::self_cost;
use crate::subcommand::{self, WIDTH};

const ENGINE_COLUMNS: [Column; 5] = [
    Column::new("name", "NAME"),
    Column::new("queued", "QUEUED"),
    Column::new("works", "WORKS"),
    Column::new("summary", "WHAT IT DOES"),
    Column::new("refusal", "WHY NOT"),
];

const RING_COLUMNS: [Column; 5] = [
    Column::new("name", "FLAG"),
    Column::new("state", "STATE"),
    Column::new("errno", "ERRNO"),
    Column::new("since", "LINUX"),
    Column::new("serves", "SERVES"),
];

const OPERATION_COLUMNS: [Column; 2] = [Column::new("name", "OPERATION"), Column::new("known", "KNOWN")];

/// Lists the engines, whether this machine and kernel set each up, what the kernel
/// takes of io_uring, and what fiord itself costs an I/O. Takes no longer than a
/// tenth of a second, and touches no file and no device.
#[derive(clap::Parser)]
#[command(name = "fiord engines", verbatim_doc_comment)]
struct Options {
    /// Print JSON (described in docs/json.md)
    #[arg(long)]
    json: bool,
}

/// Prints the engines.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    subcommand::run(arguments, |options: Options| {
        let found = Found::here()?;
        Ok(if options.json { found.json() } else { found.text() })
    })
}

/// What there is to show.
struct Found {
    kernel: String,
    io_uring_disabled: Option<u8>,
    cost: SelfCost,
    engines: Table,
    /// Empty without io_uring.
    ring: Table,
    /// Empty without io_uring.
    operations: Table,
}

impl Found {
    fn here() -> Result<Found, String> {
        let machine = Machine::read()
            .map_err(|error| format!("engines: /proc and /sys cannot be read: {error}; mount them"))?;
        let cost = self_cost::measure(&machine)
            .map_err(|why| format!("engines: fiord's own cost cannot be measured: {why}"))?;
        let tried = registry::try_out().map_err(|error| {
            format!("engines: no memory for two buffers of 4 KiB: {error}; end other programs")
        })?;
        // Why there is none is told with the engine.
        let offer = fiord_engine::offer().ok();
        Ok(Found {
            kernel: machine.kernel_release,
            io_uring_disabled: procfs::io_uring_disabled(),
            cost,
            engines: Table { columns: ENGINE_COLUMNS.to_vec(), rows: tried.iter().map(engine_row).collect() },
            ring: Table {
                columns: RING_COLUMNS.to_vec(),
                rows: offer.as_ref().map(ring_rows).unwrap_or_default(),
            },
            operations: Table {
                columns: OPERATION_COLUMNS.to_vec(),
                rows: offer.as_ref().map(operation_rows).unwrap_or_default(),
            },
        })
    }

    fn text(&self) -> String {
        let mut text = self.engines.select(&["name", "queued", "works", "summary"]).text(WIDTH);
        let refused = Table { rows: self.refused(), ..self.engines.select(&["name", "refusal"]) }.text(WIDTH);
        if !refused.is_empty() {
            let _ = write!(text, "\n{refused}");
        }
        let allowed = match self.io_uring_disabled {
            Some(0) => "open to all (kernel.io_uring_disabled = 0)",
            Some(1) => "kept to root and a group (kernel.io_uring_disabled = 1)",
            Some(_) => "forbidden to all (kernel.io_uring_disabled = 2)",
            None => "not restricted (kernel.io_uring_disabled came with Linux 6.6)",
        };
        let _ = write!(text, "\nkernel: Linux {}\nio_uring: {allowed}\n", self.kernel);
        if !self.ring.rows.is_empty() {
            let columns = ["name", "state", "errno", "since", "serves"];
            let used = if self.ring.rows.iter().any(|row| row[2] != Cell::None) {
                &columns[..]
            } else {
                &["name", "state", "since", "serves"]
            };
            let _ = write!(text, "\n{}", self.ring.select(used).text(WIDTH));
            let _ = write!(text, "\n{}", operation_lines(&self.operations));
        }
        let _ = write!(text, "\n{}", cost_lines(&self.cost));
        text
    }

    /// Name and reason of each engine that does not work.
    fn refused(&self) -> Vec<Vec<Cell>> {
        let of = self.engines.select(&["name", "refusal"]);
        of.rows.into_iter().filter(|row| row[1] != Cell::None).collect()
    }

    fn json(&self) -> String {
        Writer::document(|json| {
            json.string("kernel", &self.kernel);
            match self.io_uring_disabled {
                Some(level) => json.integer("io_uring_disabled", level),
                None => json.null("io_uring_disabled"),
            }
            json.object("self_cost", |json| {
                json.float("sync_ns_per_io", self.cost.sync_ns_per_io);
                json.float("queued_ns_per_io", self.cost.queued_ns_per_io);
                json.integer("queued_depth", self.cost.queued_depth);
                json.float("clock_read_ns", self.cost.clock_read_ns);
            });
            self.engines.write_json(json, "engines");
            self.ring.write_json(json, "io_uring");
            self.operations.write_json(json, "io_uring_operations");
        })
    }
}

fn engine_row(tried: &Tried) -> Vec<Cell> {
    let Tried { info, works } = tried;
    vec![
        Cell::Text(info.name.to_string()),
        Cell::Flag(info.queued),
        Cell::Flag(works.is_ok()),
        Cell::Text(info.summary.to_string()),
        Cell::text(works.as_ref().err().map(Refused::to_string)),
    ]
}

fn ring_rows(offer: &Offer) -> Vec<Vec<Cell>> {
    let hints = offer.hints.iter().map(|(hint, standing)| hint_row(*hint, *standing));
    let features = offer.features.iter().map(|(feature, answer)| feature_row(*feature, *answer));
    hints.chain(features).collect()
}

fn hint_row(hint: Hint, standing: Standing) -> Vec<Cell> {
    let (state, errno) = match standing {
        Standing::Used => ("used", None),
        Standing::Unneeded => ("unneeded", None),
        Standing::Refused(errno) => ("refused", Some(errno)),
    };
    ring_row(hint.name(), state, errno, hint.since(), "every ring")
}

fn feature_row(feature: Feature, answer: Result<(), Errno>) -> Vec<Cell> {
    let state = if answer.is_ok() { "taken" } else { "refused" };
    ring_row(feature.name(), state, answer.err(), feature.since(), feature.serves())
}

fn ring_row(name: &str, state: &str, errno: Option<Errno>, since: &str, serves: &str) -> Vec<Cell> {
    let text = |text: &str| Cell::Text(text.to_string());
    vec![text(name), text(state), Cell::text(errno.map(Errno::name)), text(since), text(serves)]
}

fn operation_rows(offer: &Offer) -> Vec<Vec<Cell>> {
    let row = |(name, known): &(&str, bool)| vec![Cell::Text((*name).to_string()), Cell::Flag(*known)];
    offer.operations.iter().map(row).collect()
}

/// The operations on a line each for those the kernel knows and those it does not.
fn operation_lines(operations: &Table) -> String {
    let names = |wanted: bool| {
        let known = operations.rows.iter().filter(|row| row[1] == Cell::Flag(wanted));
        known.map(|row| row[0].shown()).collect::<Vec<_>>().join(" ")
    };
    let line = |title: &str, names: String| match names.is_empty() {
        true => String::new(),
        false => format!("{title}: {names}\n"),
    };
    line("operations", names(true)) + &line("unknown", names(false))
}

fn cost_lines(cost: &SelfCost) -> String {
    let SelfCost { sync_ns_per_io, queued_ns_per_io, queued_depth, clock_read_ns, ios: _ } = cost;
    format!(
        "fiord's own cost: {sync_ns_per_io:.0} ns an I/O (synchronous), {queued_ns_per_io:.0} ns (queued, depth \
         {queued_depth});\none reading of the clock is {clock_read_ns:.0} ns\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(offer: Option<&Offer>, works: Result<(), Refused>) -> Found {
        let info = registry::find("io_uring").unwrap();
        Found {
            kernel: "5.15.0-91-generic".to_string(),
            io_uring_disabled: None,
            cost: SelfCost {
                sync_ns_per_io: 41.2,
                queued_ns_per_io: 1059.9,
                queued_depth: 32,
                clock_read_ns: 21.6,
                ios: 1,
            },
            engines: Table {
                columns: ENGINE_COLUMNS.to_vec(),
                rows: vec![engine_row(&Tried { info, works })],
            },
            ring: Table { columns: RING_COLUMNS.to_vec(), rows: offer.map(ring_rows).unwrap_or_default() },
            operations: Table {
                columns: OPERATION_COLUMNS.to_vec(),
                rows: offer.map(operation_rows).unwrap_or_default(),
            },
        }
    }

    #[test]
    fn an_older_kernel_shows_what_it_does_not_take_and_why() {
        let einval = Errno::of(&std::io::Error::from_raw_os_error(22)).unwrap();
        let offer = Offer {
            hints: Hint::ALL.map(|hint| (hint, Standing::Refused(einval))).to_vec(),
            features: Feature::ALL.map(|feature| (feature, Err(einval))).to_vec(),
            operations: vec![("READ", true), ("SYNC_FILE_RANGE", false)],
        };
        let text = found(Some(&offer), Ok(())).text();
        assert!(text.contains("\nunknown: SYNC_FILE_RANGE\n"), "{text}");
        assert_eq!(text.matches("EINVAL").count(), Hint::ALL.len() + Feature::ALL.len(), "{text}");
        assert!(text.contains("41 ns an I/O (synchronous), 1060 ns (queued, depth 32);\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    #[test]
    fn an_engine_that_does_not_work_says_why_within_the_width() {
        let refused = Refused {
            what: "io_uring_setup",
            errno: Errno::of(&std::io::Error::from_raw_os_error(1)).unwrap(),
            likely: "a sandbox (seccomp, as in containers) forbids it",
            instead: "allow it there, or use ioengine=libaio",
        };
        let found = found(None, Err(refused));
        let text = found.text();
        assert!(text.contains("io_uring_setup failed") && text.contains("EPERM"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(found.json().contains("\"io_uring\" : [\n  ]"), "{}", found.json());
    }
}
