//! `fiord engines`: the engines, which of them work on this machine and kernel, which io_uring features the kernel
//! has, and what fiord itself costs per I/O.
//!
//! Invariant: everything shown has just been probed in this process; text and JSON come from the same tables.

use std::fmt::Write;
use std::process::ExitCode;

use fiord_engine::SetupError;
use fiord_engine::registry::{self, Probed};
use fiord_plan::EngineName;
use fiord_report::json::Writer;
use fiord_report::table::{Cell, Column, Table, wrapped};
use fiord_session::run::{environment, self_cost};
use fiord_sys::procfs;
use fiord_worker::SelfCost;

use crate::arguments::{self, CommandError, Invocation};
use crate::layout::WIDTH;
use crate::subcommand::Subcommands;

#[cfg(target_pointer_width = "64")]
mod rings;
/// Without the engine there is nothing to say of its features.
#[cfg(not(target_pointer_width = "64"))]
mod rings {
    use super::Rows;

    pub(super) fn rows() -> (Rows, Rows) {
        Default::default()
    }
}

/// The rows of a table.
type Rows = Vec<Vec<Cell>>;

const ENGINE_COLUMNS: [Column; 10] = [
    Column::new("name", "NAME"),
    Column::new("queued", "QUEUED"),
    Column::new("works", "WORKS"),
    Column::new("summary", "WHAT IT DOES"),
    Column::new("refusal", "WHY NOT"),
    Column::new("atomic_writes", "ATOMIC"),
    Column::new("trim_ranges_max", "RANGES"),
    Column::new("device_compares", "COMPARES"),
    Column::new("names_placements", "PLACES"),
    Column::new("appends_to_zones", "APPENDS"),
];

const RING_COLUMNS: [Column; 5] = [
    Column::new("name", "FLAG"),
    Column::new("state", "STATE"),
    Column::new("errno", "ERRNO"),
    Column::new("since", "LINUX"),
    Column::new("serves", "SERVES"),
];

const MISSING_COLUMNS: [Column; 3] =
    [Column::new("name", "NOT IN FIORD"), Column::new("reason", "WHY"), Column::new("instead", "INSTEAD")];

const OPERATION_COLUMNS: [Column; 2] = [Column::new("name", "OPERATION"), Column::new("known", "KNOWN")];

/// Lists the engines, whether each works on this machine and kernel, which
/// io_uring features the kernel has, and what fiord itself costs per I/O. Takes
/// less than a tenth of a second and touches no file or device.
#[derive(clap::Parser)]
#[command(name = "fiord engines", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    /// Print JSON (described in docs/json.md)
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  fiord engines
  fiord engines --json
";

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        let found = Found::here()?;
        arguments::print(if self.json { found.json() } else { found.text() })
    }
}

/// What is shown.
struct Found {
    kernel: String,
    io_uring_disabled: Option<u8>,
    cost: SelfCost,
    engines: Table,
    /// The engines of fio that are not built in.
    missing: Table,
    /// Empty without io_uring.
    ring: Table,
    /// Empty without io_uring.
    operations: Table,
}

impl Found {
    fn here() -> Result<Found, String> {
        let machine = environment::machine()?;
        let cost = self_cost::measure(&machine)
            .map_err(|why| format!("fiord's own cost cannot be measured: {why}"))?;
        let probed =
            registry::probe().map_err(|why| format!("no memory for two 4 KiB buffers: {why}; free some"))?;
        let (ring, operations) = rings::rows();
        Ok(Found {
            kernel: machine.kernel_release,
            io_uring_disabled: procfs::io_uring_disabled(),
            cost,
            engines: Table {
                columns: ENGINE_COLUMNS.to_vec(),
                rows: probed.iter().map(engine_row).collect(),
            },
            missing: Table { columns: MISSING_COLUMNS.to_vec(), rows: missing_rows() },
            ring: Table { columns: RING_COLUMNS.to_vec(), rows: ring },
            operations: Table { columns: OPERATION_COLUMNS.to_vec(), rows: operations },
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
            Some(1) => "restricted to root and a group (kernel.io_uring_disabled = 1)",
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
        let _ = write!(text, "\n{}", missing_lines(&self.missing));
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
            self.missing.write_json(json, "missing_engines");
            self.ring.write_json(json, "io_uring");
            self.operations.write_json(json, "io_uring_operations");
        })
    }
}

fn engine_row(probed: &Probed) -> Vec<Cell> {
    let Probed { engine, works } = probed;
    vec![
        Cell::Text(engine.name.to_string()),
        Cell::Flag(engine.can_queue()),
        Cell::Flag(works.is_ok()),
        Cell::Text(engine.summary.to_string()),
        Cell::text(works.as_ref().err().map(SetupError::to_string)),
        Cell::Flag(engine.atomic_writes),
        Cell::Count(u64::from(engine.trim_ranges_max)),
        Cell::Flag(engine.compares.is_some()),
        Cell::Flag(engine.names_placements),
        Cell::Flag(engine.appends_to_zones),
    ]
}

/// Each engine of fio that is not built in, and why.
fn missing_rows() -> Vec<Vec<Cell>> {
    let missing = EngineName::ALL.iter().filter(|name| registry::ENGINES.find(**name).is_none());
    let row = |name: &EngineName| {
        let refusal = name.refusal();
        vec![
            Cell::Text(name.to_string()),
            Cell::text(refusal.map(|refusal| refusal.reason)),
            Cell::text(refusal.map(|refusal| refusal.instead)),
        ]
    };
    missing.map(row).collect()
}

/// The engines that fiord will not have.
fn missing_lines(missing: &Table) -> String {
    let names: Vec<String> = missing.rows.iter().map(|row| row[0].shown()).collect();
    let title = "not planned (docs/engines.md says why, and what to use)";
    wrapped(&format!("{title}: {}", names.join(" ")), WIDTH).join("\n") + "\n"
}

/// Two lines: the operations the kernel supports, and those it does not.
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
    use fiord_engine::{RingFeature, RingSupport};
    use fiord_sys::errno::Errno;
    use fiord_sys::uring::{FlagSupport, SetupFlag};

    use super::*;

    fn found((ring, operations): (Rows, Rows), works: Result<(), SetupError>) -> Found {
        let engine = registry::ENGINES.find(EngineName::IoUring).unwrap();
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
                rows: vec![engine_row(&Probed { engine, works })],
            },
            missing: Table { columns: MISSING_COLUMNS.to_vec(), rows: missing_rows() },
            ring: Table { columns: RING_COLUMNS.to_vec(), rows: ring },
            operations: Table { columns: OPERATION_COLUMNS.to_vec(), rows: operations },
        }
    }

    #[test]
    fn an_older_kernel_shows_what_it_does_not_take_and_why() {
        let einval = Errno::of(&std::io::Error::from_raw_os_error(22)).unwrap();
        let support = RingSupport {
            setup_flags: SetupFlag::ALL.map(|flag| (flag, FlagSupport::Unsupported(einval))).to_vec(),
            features: RingFeature::ALL.map(|feature| (feature, Err(einval))).to_vec(),
            operations: vec![("READ", true), ("SYNC_FILE_RANGE", false)],
        };
        let text = found(rings::rows_of(&support), Ok(())).text();
        assert!(text.contains("\nunknown: SYNC_FILE_RANGE\n"), "{text}");
        assert_eq!(text.matches("EINVAL").count(), SetupFlag::ALL.len() + RingFeature::ALL.len(), "{text}");
        assert!(text.contains("41 ns an I/O (synchronous), 1060 ns (queued, depth 32);\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    #[test]
    fn an_engine_that_does_not_work_says_why_within_the_width() {
        let refused = SetupError {
            call: "io_uring_setup",
            errno: Errno::of(&std::io::Error::from_raw_os_error(1)).unwrap(),
            cause: "a sandbox (seccomp, as in containers) forbids it",
            remedy: "allow it there, or use ioengine=libaio",
        };
        let found = found(Default::default(), Err(refused));
        let text = found.text();
        assert!(text.contains("io_uring_setup failed") && text.contains("EPERM"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(found.json().contains("\"io_uring\" : [\n  ]"), "{}", found.json());
    }
}
