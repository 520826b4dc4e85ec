//! What is printed beside reports: the progress of a run, and the error of a job that fails.
//!
//! Invariant: a part that is not recognised is left out.

/// What the letter of a job in the progress line means.
const STATES: [(char, &str); 21] = [
    ('P', "set up, not started"),
    ('C', "created, waiting"),
    ('I', "being initialised"),
    ('p', "reading ahead (pre_read)"),
    ('/', "ramping"),
    ('R', "reads in order"),
    ('r', "reads at random"),
    ('W', "writes in order"),
    ('w', "writes at random"),
    ('M', "a mix of reads and writes in order"),
    ('m', "a mix of reads and writes at random"),
    ('D', "trims in order"),
    ('d', "trims at random"),
    ('F', "waiting for a sync"),
    ('V', "verifying"),
    ('f', "finishing"),
    ('E', "ended, its figures not taken yet"),
    ('_', "ended"),
    ('-', "ended"),
    ('X', "ended with an error"),
    ('K', "killed"),
];

/// What the figures of such a line say.
pub(crate) fn here(text: &str) -> Vec<String> {
    let text = text.trim();
    if text.starts_with("Jobs: ") {
        progress(text)
    } else if let Some(rest) = text.strip_prefix("fio: pid=") {
        error(rest).into_iter().collect()
    } else {
        Vec::new()
    }
}

/// `Jobs: 3 (f=2): [R(2),_(1)][40.0%][r=30.0MiB/s][r=7680 IOPS][eta 00m:03s]`.
fn progress(text: &str) -> Vec<String> {
    let mut said = Vec::new();
    let number = |after: &str| {
        let rest = text.split_once(after)?.1.trim_start();
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse::<u64>().ok()
    };
    if let (Some(jobs), Some(files)) = (number("Jobs: "), number("(f=")) {
        let jobs = crate::words::number_of(jobs, "job");
        said.push(format!("{jobs} run, with {} open.", crate::words::number_of(files, "file")));
    }
    let mut brackets =
        text.split('[').skip(1).filter_map(|part| part.split_once(']')).map(|(part, _)| part.trim());
    let letters = brackets.next().unwrap_or_default();
    let known = STATES.iter().filter(|(letter, _)| letters.contains(*letter));
    let known: Vec<String> = known.map(|(letter, meaning)| format!("{letter}: {meaning}")).collect();
    if !known.is_empty() {
        said.push(format!("{}.", known.join("; ")));
    }
    let (mut done, mut rates, mut left) = (None, Vec::new(), None);
    for part in brackets {
        match part.strip_prefix("eta ") {
            Some(time) => left = Some(time),
            None if part.contains('%') => done = part.split_whitespace().next(),
            None => rates.push(part),
        }
    }
    if let Some(done) = done {
        let rates = if rates.is_empty() { String::new() } else { format!(", at {}", rates.join(" ")) };
        let left = left.map_or_else(String::new, |time| format!(", and it will end in {time}"));
        said.push(format!("{done} is done{rates}{left}."));
    }
    said
}

/// `77, err=5/file:io_u.c:1803, func=io_u error, error=Input/output error`.
fn error(rest: &str) -> Option<String> {
    let (pid, rest) = rest.split_once(", err=")?;
    let (number, _) = rest.split_once('/').unwrap_or((rest, ""));
    let named =
        |name: &str| rest.split_once(name).map(|(_, text)| text.split(", ").next().unwrap_or_default());
    let words = named("error=").map_or_else(String::new, |words| format!(" ({words})"));
    let place = named("func=").map_or_else(String::new, |place| format!(", in: {place}"));
    Some(format!("The job of process {pid} failed with error {number}{words}{place}."))
}
