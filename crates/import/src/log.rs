//! Logs over time as fio and fiord write them (`write_bw_log` and its kin): a line for each I/O or interval.
//!
//! Invariant: pure, and no input makes it panic; a line that is not one of a log is an error with its number.

/// What a log's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// KiB/s.
    Bandwidth,
    /// I/Os per second.
    Iops,
    /// Completion latency in nanoseconds.
    Completion,
    /// Total latency in nanoseconds.
    Total,
    /// Submission latency in nanoseconds.
    Submission,
}

/// What the end of a log's name says: `_bw.1.log` is a log of the first job's bandwidth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogName {
    /// What comes before: the value of the option.
    pub prefix: String,
    /// What its values are.
    pub kind: LogKind,
    /// The job's number, from 1; 0 if all jobs share the file.
    pub job: u32,
}

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Milliseconds since the run began.
    pub at_ms: u64,
    /// The value, in the unit of the log.
    pub value: u64,
    /// 0 for reads, 1 for writes, 2 for trims.
    pub direction: usize,
}

/// The endings of names, and what they say.
const KINDS: [(&str, LogKind); 5] = [
    ("_bw", LogKind::Bandwidth),
    ("_iops", LogKind::Iops),
    ("_clat", LogKind::Completion),
    ("_slat", LogKind::Submission),
    ("_lat", LogKind::Total),
];

/// What a file's name says; `None` if it is not that of such a log.
pub fn name(file: &str) -> Option<LogName> {
    let stem = file.strip_suffix(".log")?;
    let numbered = stem.rsplit_once('.').and_then(|(stem, number)| Some((stem, number.parse().ok()?)));
    let (stem, job) = numbered.unwrap_or((stem, 0));
    KINDS.iter().find_map(|(ending, kind)| {
        let prefix = stem.strip_suffix(ending)?.to_string();
        Some(LogName { prefix, kind: *kind, job })
    })
}

/// The lines of a log.
///
/// # Errors
/// The first line that is not `time, value, direction, …`, with its number.
pub fn read(text: &str) -> Result<Vec<LogLine>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(index, line)| parsed(line).ok_or_else(|| wrong(index, line))).collect()
}

fn wrong(index: usize, line: &str) -> String {
    let shown: String = line.chars().take(40).filter(|c| !c.is_control()).collect();
    format!(
        "{}:1: {shown:?} is not a line of a log; expected: milliseconds, value, direction, block size",
        index + 1
    )
}

fn parsed(line: &str) -> Option<LogLine> {
    let mut fields = line.split(',').map(str::trim);
    let at_ms = fields.next()?.parse().ok()?;
    let value = fields.next()?.parse().ok()?;
    let direction = fields.next()?.parse().ok().filter(|direction| *direction < 3)?;
    Some(LogLine { at_ms, value, direction })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_programs_are_read() {
        let lines = read("500, 23711, 0, 0, 0\n1000, 9871, 1, 4096, 8192, 0, 123\n\n").unwrap();
        assert_eq!(lines[0], LogLine { at_ms: 500, value: 23_711, direction: 0 });
        assert_eq!(lines[1].direction, 1);
        for bad in ["x, 1, 0", "1, 2", "1, 2, 3, 4096", "{\"a\": 1}"] {
            let why = read(&format!("1, 2, 0, 0\n{bad}")).unwrap_err();
            assert!(why.starts_with("2:1: "), "{why}");
        }
    }

    #[test]
    fn names_say_what_a_log_is() {
        let found = |file| name(file).map(|name| (name.prefix, name.kind, name.job));
        assert_eq!(found("a_b_bw.2.log"), Some(("a_b".to_string(), LogKind::Bandwidth, 2)));
        assert_eq!(found("x_clat.1.log"), Some(("x".to_string(), LogKind::Completion, 1)));
        assert_eq!(found("x_iops.log"), Some(("x".to_string(), LogKind::Iops, 0)));
        assert_eq!(found("x_lat.1.log"), Some(("x".to_string(), LogKind::Total, 1)));
        for other in ["x.log", "bw.1.log.gz", "x_hist.1.log", "_bw.1.txt"] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
