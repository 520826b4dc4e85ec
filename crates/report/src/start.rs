//! Text printed before a run's report: the jobs' headings, how many start, the layout of files, the signal that ends
//! it.
//!
//! Invariant: each function returns whole lines, each with its line feed.

use crate::number::Units;

/// Smallest and largest block of a direction, in bytes.
pub type BlockRange = (u64, u64);

/// One section's heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Heading<'a> {
    /// The job's name.
    pub name: &'a str,
    /// Its reporting group.
    pub group_id: u32,
    /// The `rw` mode without its suffix: `randrw`.
    pub mode: &'a str,
    /// Blocks of reads, writes and trims; of sequential and random I/O under `bs_is_seq_rand`.
    pub blocks: [BlockRange; 3],
    /// Whether `bs_is_seq_rand` is set.
    pub blocks_by_order: bool,
    /// The engine's name.
    pub engine: &'a str,
    /// The `iodepth` option.
    pub iodepth: u32,
    /// Number of clones (`numjobs`).
    pub clones: u32,
    /// `significant_figures`.
    pub significant_figures: u32,
    /// `kb_base`.
    pub kb_base: u32,
}

/// `name: (g=0): rw=randrw, bs=(R) 4096B-4096B, …`, and `...` for its clones.
pub fn heading(heading: &Heading) -> String {
    let Heading { name, group_id, mode, blocks, engine, iodepth, .. } = heading;
    let units = Units::new(heading.significant_figures, heading.kb_base, 8);
    let range = |(min, max): BlockRange| format!("{}-{}", units.bytes(min), units.bytes(max));
    let (reads, writes) = (range(blocks[0]), range(blocks[1]));
    let last = if heading.blocks_by_order {
        "bs_is_seq_rand".to_owned()
    } else {
        format!("(T) {}", range(blocks[2]))
    };
    let line = format!(
        "{name}: (g={group_id}): rw={mode}, bs=(R) {reads}, (W) {writes}, {last}, ioengine={engine}, iodepth={iodepth}\n"
    );
    if heading.clones > 1 { line + "...\n" } else { line }
}

/// The message printed when a signal requests a stop: `fio: terminating on signal 15`.
pub fn terminating(signal: i32) -> String {
    format!("\nfio: terminating on signal {signal}\n")
}

/// A job that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failed<'a> {
    /// Its thread.
    pub pid: u32,
    /// The error's number.
    pub errno: i32,
    /// The file of the operation, or the job.
    pub place: String,
    /// The offset in it, in bytes.
    pub offset_bytes: u64,
    /// The failed operation: `write`, `open`.
    pub operation: &'a str,
    /// The error in words.
    pub error: &'a str,
}

/// `fio: pid=7, err=28/file:/mnt/f:4096, func=write, error=No space left on device`: log scanners look for it.
pub fn failed(failed: &Failed) -> String {
    let Failed { pid, errno, place, offset_bytes, operation, error: text } = failed;
    format!("fio: pid={pid}, err={errno}/file:{place}:{offset_bytes}, func={operation}, error={text}\n")
}

/// `Starting 3 threads and 2 processes`.
pub fn starting(threads: u32, processes: u32) -> String {
    let mut parts = Vec::new();
    for (count, one, many) in [(threads, "thread", "threads"), (processes, "process", "processes")] {
        match count {
            0 => {}
            1 => parts.push(format!("1 {one}")),
            _ => parts.push(format!("{count} {many}")),
        }
    }
    format!("Starting {}\n", parts.join(" and "))
}

/// `name: Laying out IO file (1 file / 8MiB)`.
pub fn laying_out(name: &str, files: u64, bytes: u64) -> String {
    let mib = bytes >> 20;
    if files == 1 {
        format!("{name}: Laying out IO file (1 file / {mib}MiB)\n")
    } else {
        format!("{name}: Laying out IO files ({files} files / total {mib}MiB)\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: Heading = Heading {
        name: "u",
        group_id: 1,
        mode: "randwrite",
        blocks: [(4096, 65_536), (4096, 4096), (1_048_576, 1_048_576)],
        blocks_by_order: false,
        engine: "io_uring",
        iodepth: 4,
        clones: 1,
        significant_figures: 4,
        kb_base: 1024,
    };

    #[test]
    fn heading_names_mode_blocks_engine_and_depth() {
        assert_eq!(
            heading(&HEADING),
            "u: (g=1): rw=randwrite, bs=(R) 4096B-64.0KiB, (W) 4096B-4096B, (T) 1024KiB-1024KiB, \
             ioengine=io_uring, iodepth=4\n"
        );
    }

    #[test]
    fn clones_are_dots_and_blocks_by_order_have_no_trims() {
        let text = heading(&Heading { clones: 2, blocks_by_order: true, ..HEADING });
        assert!(
            text.ends_with("(W) 4096B-4096B, bs_is_seq_rand, ioengine=io_uring, iodepth=4\n...\n"),
            "{text}"
        );
    }

    #[test]
    fn a_failed_job_is_reported_in_fios_words() {
        let enospc = Failed {
            pid: 7,
            errno: 28,
            place: "m/f".to_owned(),
            offset_bytes: 4096,
            operation: "write",
            error: "No space left on device",
        };
        assert_eq!(
            failed(&enospc),
            "fio: pid=7, err=28/file:m/f:4096, func=write, error=No space left on device\n"
        );
    }

    #[test]
    fn starting_counts_both_kinds() {
        assert_eq!(starting(0, 1), "Starting 1 process\n");
        assert_eq!(starting(1, 0), "Starting 1 thread\n");
        assert_eq!(starting(3, 2), "Starting 3 threads and 2 processes\n");
    }

    #[test]
    fn laying_out_sums_several_files() {
        assert_eq!(laying_out("w", 1, 8 << 20), "w: Laying out IO file (1 file / 8MiB)\n");
        assert_eq!(laying_out("w", 3, 30 << 20), "w: Laying out IO files (3 files / total 30MiB)\n");
    }
}
