//! `matrix`: block sizes by patterns, the table that people qualify machines with.
//!
//! Invariant: without leave to write, only the patterns that read are run.

use std::time::Duration;

use fiord_report::table::{Cell, Column, Table};

use crate::figures::{Figures, READ, WRITE};
use crate::site::Site;
use crate::study::{Findings, Ran, Step, Study};

/// The patterns there are, in fio's words, and whether they read and write.
pub const PATTERNS: [(&str, bool, bool); 7] = [
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
    site: Site,
    depth: u32,
    rows: Vec<Row>,
    steps: Vec<Step>,
}

impl Matrix {
    /// All patterns at all block sizes, at this depth, with this time for all together.
    ///
    /// # Errors
    /// A pattern that is none, or nothing left to do where nothing may be written.
    pub fn new(
        site: Site,
        blocks: &[BlockSize],
        patterns: &[String],
        depth: u32,
        time: Duration,
    ) -> Result<Matrix, String> {
        let mut allowed = Vec::new();
        for word in patterns {
            let known = PATTERNS.iter().find(|(name, ..)| name == word);
            let &(name, _, writes) = known.ok_or_else(|| not_a_pattern(word))?;
            if site.writable || !writes {
                allowed.push(name);
            }
        }
        if allowed.is_empty() {
            return Err(format!(
                "{}: it is only read, and every pattern asked for writes; name a directory",
                site.shown()
            ));
        }
        let each = time / (blocks.len() * allowed.len()).max(1) as u32;
        let mut steps: Vec<Step> = site.writable.then(|| site.fill()).into_iter().collect();
        let mut rows = Vec::new();
        for block in blocks {
            for pattern in &allowed {
                let name = format!("{} {pattern}", block.text);
                let (bytes, depth) = (block.bytes.to_string(), depth.to_string());
                let options = [("rw", *pattern), ("bs", bytes.as_str()), ("iodepth", depth.as_str())];
                rows.push(Row { step: steps.len(), block: block.clone(), pattern });
                steps.push(site.run(&name, site.engine, &options, each));
            }
        }
        Ok(Matrix { site, depth, rows, steps })
    }
}

fn not_a_pattern(word: &str) -> String {
    let names = PATTERNS.map(|(name, ..)| name).join(", ");
    format!("--rw: {word:?} is none of {names}")
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

/// The columns people get.
const SHOWN: [&str; 7] =
    ["test", "read_iops", "write_iops", "read_mib_per_s", "write_mib_per_s", "read_p99_ns", "write_p99_ns"];

/// A row with what it read and what it wrote.
type Measured<'a> = (&'a Row, [Option<Figures>; 2]);

impl Study for Matrix {
    fn name(&self) -> &'static str {
        "matrix"
    }

    fn purpose(&self) -> String {
        let (runs, target) = (self.rows.len(), self.site.shown());
        match self.site.writable {
            true => format!("{runs} runs at depth {} in {target}", self.depth),
            false => format!("{runs} runs at depth {} that only read {target}", self.depth),
        }
    }

    fn steps(&self) -> &[Step] {
        &self.steps
    }

    fn findings(&self, ran: &[Ran], width: usize) -> Findings {
        let measured: Vec<Measured<'_>> = ran.iter().filter_map(|run| self.measured(run)).collect();
        let mut table = Table::new(COLUMNS);
        table.rows = measured.iter().map(|measured| self.cells(measured)).collect();
        Findings {
            text: table.select(&SHOWN).text(width),
            conclusion: self.conclusion(&measured),
            table,
            ..Findings::default()
        }
    }
}

impl Matrix {
    fn measured(&self, run: &Ran) -> Option<Measured<'_>> {
        let row = self.rows.iter().find(|row| row.step == run.step)?;
        Some((row, [READ, WRITE].map(|direction| Figures::of(&run.report, direction))))
    }

    fn cells(&self, (row, figures): &Measured<'_>) -> Vec<Cell> {
        let mut cells = vec![
            Cell::Text(self.steps[row.step].name.clone()),
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

    /// The most it moves each way, and the most I/Os a second.
    fn conclusion(&self, measured: &[Measured<'_>]) -> String {
        let best = |direction: usize, of: fn(&Figures) -> f64| {
            let told = measured.iter().filter_map(|(row, figures)| Some((*row, figures[direction]?)));
            told.max_by(|(_, one), (_, other)| of(one).total_cmp(&of(other)))
        };
        let part = |verb: &str, direction: usize| {
            let (fastest, most) = best(direction, Figures::mib_per_s)?;
            let (busiest, ios) = best(direction, |figures| figures.iops)?;
            let (fastest, busiest) = (&self.steps[fastest.step].name, &self.steps[busiest.step].name);
            let (mib_per_s, iops) = (most.mib_per_s_cell().shown(), ios.iops_cell().shown());
            Some(format!("{verb} up to {mib_per_s} MiB/s ({fastest}) and {iops} blocks a second ({busiest})"))
        };
        let parts: Vec<String> = [part("reads", READ), part("writes", WRITE)].into_iter().flatten().collect();
        if parts.is_empty() {
            return String::new();
        }
        format!("{} {} at depth {}.", self.site.subject(), parts.join(", and "), self.depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{direction, report, settings, site};

    fn blocks() -> Vec<BlockSize> {
        [("4k", 4 << 10), ("64k", 64 << 10), ("1M", 1 << 20)]
            .map(|(text, bytes)| BlockSize { text: text.to_string(), bytes })
            .to_vec()
    }

    fn matrix(site: Site, patterns: &[&str]) -> Result<Matrix, String> {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        Matrix::new(site, &blocks(), &patterns, 32, Duration::from_secs(30))
    }

    const FIVE: [&str; 5] = ["randrw", "randread", "randwrite", "read", "write"];

    #[test]
    fn it_has_a_run_for_every_size_and_pattern_by_size() {
        let matrix = matrix(site(), &FIVE).unwrap();
        assert_eq!((matrix.steps().len(), matrix.time()), (16, Duration::from_secs(30)));
        assert_eq!(matrix.steps()[1].name, "4k randrw");
        assert_eq!(matrix.steps()[15].name, "1M write");
        let settings = settings(&matrix.steps()[8]);
        assert!(settings.ends_with("runtime=2000ms rw=randwrite bs=65536 iodepth=32"), "{settings}");
    }

    #[test]
    fn without_leave_to_write_patterns_that_write_are_left_out() {
        let read_only = Site { writable: false, ..site() };
        let names: Vec<String> =
            matrix(read_only.clone(), &FIVE).unwrap().steps().iter().map(|step| step.name.clone()).collect();
        assert_eq!(names, ["4k randread", "4k read", "64k randread", "64k read", "1M randread", "1M read"]);
        assert!(matrix(read_only, &["write", "randrw"]).is_err_and(|why| why.contains("name a directory")));
        assert!(matrix(site(), &["trim"]).is_err_and(|why| why.contains("\"trim\" is none of randrw, ")));
    }

    #[test]
    fn mixed_rows_have_both_ways_and_others_one() {
        let matrix = matrix(site(), &FIVE).unwrap();
        let reads = || Some(direction(300, 4096, 1_000));
        let writes = || Some(direction(700, 4096, 2_000));
        let ran = [
            Ran { step: 1, report: report(reads(), writes()) },
            Ran { step: 2, report: report(reads(), None) },
            Ran { step: 15, report: report(None, Some(direction(200, 1 << 20, 3_000))) },
        ];
        let findings = matrix.findings(&ran, 80);
        assert_eq!(
            findings.text,
            "TEST         IOPS R  IOPS W  MiB/s R  MiB/s W  P99 R  P99 W\n\
             4k randrw       300     700      1.2      2.7    1us    2us\n\
             4k randread     300       -      1.2        -    1us      -\n\
             1M write          -     200        -    200.0      -    3us\n"
        );
        assert_eq!(
            findings.conclusion,
            "This disk reads up to 1.2 MiB/s (4k randread) and 300 blocks a second (4k randread), and writes up to 200.0 \
             MiB/s (1M write) and 700 blocks a second (4k randrw) at depth 32."
        );
        assert_eq!(matrix.findings(&[], 80).conclusion, "");
    }
}
