//! `matrix`: block sizes by access patterns, the usual table for qualifying a machine.
//!
//! Invariant: on a read-only target, only patterns that do not write are run.

use std::time::Duration;

use fiord_options::job;
use fiord_report::repeats::Reported;
use fiord_report::table::{Cell, Column, Table};
use fiord_stats::Capped;

use crate::figures::{Figures, READ, WRITE};
use crate::repeats;
use crate::rounds::{Repeat, Rounds};
use crate::steady;
use crate::step::{Step, StepResult};
use crate::step_runs;
use crate::study::{Study, StudyOutline, StudyResult, counted};
use crate::study_target::StudyTarget;
use crate::trust;

/// The patterns by fio's names, and whether they read and write.
const PATTERNS: [(&str, bool, bool); 7] = [
    ("randrw", true, true),
    ("randread", true, false),
    ("randwrite", false, true),
    ("rw", true, true),
    ("readwrite", true, true),
    ("read", true, false),
    ("write", false, true),
];

/// A block size, as it was written and in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSize {
    /// `64k`.
    pub text: String,
    /// 65536.
    pub bytes: u64,
}

/// One row: a block size and a pattern.
struct Row {
    /// Its number among the steps.
    step: usize,
    block: BlockSize,
    pattern: &'static str,
}

/// The study.
pub struct Matrix {
    target: StudyTarget,
    depth: u32,
    rows: Vec<Row>,
    outline: StudyOutline,
}

impl Matrix {
    /// All patterns at all block sizes, at this depth, in this total time for all runs and their repetitions.
    ///
    /// # Errors
    /// An unknown pattern, or a read-only target for which every pattern writes.
    pub fn new(
        target: StudyTarget,
        blocks: &[BlockSize],
        patterns: &[String],
        depth: u32,
        time: Duration,
        repeat: Repeat,
    ) -> Result<Matrix, String> {
        let mut allowed = Vec::new();
        for word in patterns {
            let known = PATTERNS.iter().find(|(name, ..)| name == word);
            let &(name, _, writes) = known.ok_or_else(|| not_a_pattern(word))?;
            if target.writable || !writes {
                allowed.push(name);
            }
        }
        if allowed.is_empty() {
            return Err(format!(
                "{}: the target is read-only, and every requested pattern writes; name a directory",
                target.shown()
            ));
        }
        let all_rounds = time / u32::capped((blocks.len() * allowed.len()).max(1));
        let rounds = Rounds::of(repeat, all_rounds);
        let each = rounds.each(all_rounds);
        let mut steps: Vec<Step> = target.writable.then(|| target.fill()).into_iter().collect();
        let mut rows = Vec::new();
        for block in blocks {
            for pattern in &allowed {
                let name = format!("{} {pattern}", block.text);
                let (bytes, depth) = (block.bytes.to_string(), depth.to_string());
                let options = [
                    (job::Access::rw, *pattern),
                    (job::Blocks::bs, bytes.as_str()),
                    (job::Queue::iodepth, depth.as_str()),
                ];
                rows.push(Row { step: steps.len(), block: block.clone(), pattern });
                steps.push(target.run(&name, target.engine, &options, each));
            }
        }
        let outline = StudyOutline { percentile_max: 99.0, ..StudyOutline::of(steps, rounds) };
        Ok(Matrix { target, depth, rows, outline })
    }
}

fn not_a_pattern(word: &str) -> String {
    let names = PATTERNS.map(|(name, ..)| name).join(", ");
    format!("--rw: {word:?} is not one of {names}")
}

const COLUMNS: [Column; 10] = [
    Column::new("test", "TEST"),
    Column::new("pattern", "PATTERN"),
    Column::new("block_bytes", "BLOCK"),
    Column::new("depth", "DEPTH"),
    Column::new("read_iops", "IOPS R"),
    Column::new("write_iops", "IOPS W"),
    Column::new("read_mib_per_s", "MiB/s R"),
    Column::new("write_mib_per_s", "MiB/s W"),
    Column::new("read_p99_ns", "P99 R"),
    Column::new("write_p99_ns", "P99 W"),
];

/// The columns of the text table.
const SHOWN: [&str; 7] =
    ["test", "read_iops", "write_iops", "read_mib_per_s", "write_mib_per_s", "read_p99_ns", "write_p99_ns"];

/// The columns whose figures are compared over several rounds, and those of them in text.
const REPEATED: [&str; 6] =
    ["read_iops", "write_iops", "read_mib_per_s", "write_mib_per_s", "read_p99_ns", "write_p99_ns"];
const REPEATED_SHOWN: [&str; 4] = ["read_iops", "write_iops", "read_p99_ns", "write_p99_ns"];

/// A row with the figures of its reads and writes.
type MeasuredRow<'a> = (&'a Row, [Option<Figures>; 2]);

impl Study for Matrix {
    fn name(&self) -> &'static str {
        "matrix"
    }

    fn purpose(&self) -> String {
        let (depth, target, times) = (self.depth, self.target.shown(), self.outline.rounds.shown());
        match self.target.writable {
            true => format!("{} at depth {depth} in {target}{times}", counted(self.rows.len(), "run")),
            false => {
                format!("{} at depth {depth} on {target}{times}", counted(self.rows.len(), "read-only run"))
            }
        }
    }

    fn outline(&self) -> &StudyOutline {
        &self.outline
    }

    fn result(&self, results: &[StepResult], width: usize) -> StudyResult {
        let name = |step: usize| self.outline.step_name(step);
        let typical = step_runs::typical(results);
        let measured: Vec<MeasuredRow<'_>> = typical.iter().filter_map(|run| self.measured(run)).collect();
        let table = self.table(&measured);
        let figures = repeats::figures(results, &REPEATED, |run| {
            (name(run.step), self.table(self.measured(run).as_slice()))
        });
        let conclusion = match self.conclusion(&measured) {
            text if text.is_empty() => text,
            text => text + &repeats::basis(results, self.outline.rounds, name),
        };
        let text = table.select(&SHOWN).text(width);
        let result = StudyResult { text, conclusion, table, ..StudyResult::default() };
        let result = repeats::beside(result, &figures, &REPEATED_SHOWN, Reported::Median, width);
        trust::concluded(steady::beside(result, &typical, name, width), &typical, results)
    }
}

impl Matrix {
    fn measured(&self, run: &StepResult) -> Option<MeasuredRow<'_>> {
        let row = self.rows.iter().find(|row| row.step == run.step)?;
        Some((row, [READ, WRITE].map(|direction| Figures::of(&run.report, direction))))
    }

    fn table(&self, measured: &[MeasuredRow<'_>]) -> Table {
        let mut table = Table::new(COLUMNS);
        table.rows = measured.iter().map(|measured| self.cells(measured)).collect();
        table
    }

    fn cells(&self, (row, figures): &MeasuredRow<'_>) -> Vec<Cell> {
        let mut cells = vec![
            Cell::Text(self.outline.step_name(row.step)),
            Cell::Text(row.pattern.to_string()),
            Cell::Bytes(row.block.bytes),
            Cell::Count(u64::from(self.depth)),
        ];
        let of = |cell: fn(Figures) -> Cell| figures.map(|figures| figures.map_or(Cell::None, cell));
        cells.extend(of(|figures| figures.iops_cell()));
        cells.extend(of(|figures| figures.mib_per_s_cell()));
        cells.extend(of(|figures| Cell::Latency(figures.p99_ns)));
        cells
    }

    /// The highest throughput and the highest rate of I/Os in each direction.
    fn conclusion(&self, measured: &[MeasuredRow<'_>]) -> String {
        let best = |direction: usize, of: fn(&Figures) -> f64| {
            let runs = measured.iter().filter_map(|(row, figures)| Some((*row, figures[direction]?)));
            runs.max_by(|(_, one), (_, other)| of(one).total_cmp(&of(other)))
        };
        let part = |verb: &str, direction: usize| {
            let (fastest, most) = best(direction, Figures::mib_per_s)?;
            let (busiest, ios) = best(direction, |figures| figures.iops)?;
            let (fastest, busiest) =
                (self.outline.step_name(fastest.step), self.outline.step_name(busiest.step));
            let (mib_per_s, iops) = (most.mib_per_s_cell().shown(), ios.iops_cell().shown());
            Some(format!("{verb} up to {mib_per_s} MiB/s ({fastest}) and {iops} IOPS ({busiest})"))
        };
        let parts: Vec<String> = [part("reads", READ), part("writes", WRITE)].into_iter().flatten().collect();
        if parts.is_empty() {
            return String::new();
        }
        format!("{} {} at depth {}.", self.target.subject(), parts.join(", and "), self.depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{direction, report, settings, target};

    fn blocks() -> Vec<BlockSize> {
        [("4k", 4 << 10), ("64k", 64 << 10), ("1M", 1 << 20)]
            .map(|(text, bytes)| BlockSize { text: text.to_string(), bytes })
            .to_vec()
    }

    fn matrix(target: StudyTarget, patterns: &[&str]) -> Result<Matrix, String> {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        Matrix::new(target, &blocks(), &patterns, 32, Duration::from_secs(30), Repeat::Times(1))
    }

    const FIVE: [&str; 5] = ["randrw", "randread", "randwrite", "read", "write"];

    #[test]
    fn there_is_a_run_for_every_block_size_and_pattern() {
        let matrix = matrix(target(), &FIVE).unwrap();
        assert_eq!((matrix.steps().len(), matrix.time()), (16, Duration::from_secs(30)));
        assert_eq!(matrix.steps()[1].name, "4k randrw");
        assert_eq!(matrix.steps()[15].name, "1M write");
        let settings = settings(&matrix.steps()[8]);
        assert!(settings.ends_with("runtime=2000ms rw=randwrite bs=65536 iodepth=32"), "{settings}");
    }

    #[test]
    fn on_a_read_only_target_patterns_that_write_are_left_out() {
        let read_only = StudyTarget { writable: false, ..target() };
        let names: Vec<String> =
            matrix(read_only.clone(), &FIVE).unwrap().steps().iter().map(|step| step.name.clone()).collect();
        assert_eq!(names, ["4k randread", "4k read", "64k randread", "64k read", "1M randread", "1M read"]);
        assert!(matrix(read_only, &["write", "randrw"]).is_err_and(|why| why.contains("name a directory")));
        assert!(
            matrix(target(), &["trim"]).is_err_and(|why| why.contains("\"trim\" is not one of randrw, "))
        );
    }

    #[test]
    fn mixed_rows_have_both_directions_and_others_one() {
        let matrix = matrix(target(), &FIVE).unwrap();
        let reads = || Some(direction(300, 4096, 1_000));
        let writes = || Some(direction(700, 4096, 2_000));
        let results = [
            StepResult { step: 1, report: report(reads(), writes()) },
            StepResult { step: 2, report: report(reads(), None) },
            StepResult { step: 15, report: report(None, Some(direction(200, 1 << 20, 3_000))) },
        ];
        let result = matrix.result(&results, 80);
        assert_eq!(
            result.text,
            "TEST         IOPS R  IOPS W  MiB/s R  MiB/s W  P99 R  P99 W\n\
             4k randrw       300     700      1.2      2.7    1us    2us\n\
             4k randread     300       -      1.2        -    1us      -\n\
             1M write          -     200        -    200.0      -    3us\n"
        );
        assert_eq!(
            result.conclusion,
            "This disk reads up to 1.2 MiB/s (4k randread) and 300 IOPS (4k randread), and writes up to 200.0 \
             MiB/s (1M write) and 700 IOPS (4k randrw) at depth 32. This is based on one run of each, so the spread \
             of runs is unknown."
        );
        assert_eq!(matrix.result(&[], 80).conclusion, "");
    }
}
