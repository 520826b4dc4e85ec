//! One line, key or field of a report, as pasted by the user.
//!
//! Invariant: what is not recognised is an error that says what can be explained.

use fiord_import::terse::{self, CpuField, DirectionField, LatencyKind, MomentField, TerseField};
use fiord_import::{DirectionName, JobFigures, read_line};
use fiord_stats::Count;

use crate::terms::{self, Term};
use crate::{direction, job, message};

/// The explanation of a line, key, field or finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// Its name.
    pub name: String,
    /// What it means, whatever its figures.
    pub meaning: String,
    /// What the figures of the line say, if it has any.
    pub here: Vec<String>,
}

/// What a line of normal text, a JSON key or path, or a field of a terse line is (`38`, or `v5 38` for version 5).
///
/// # Errors
/// Nothing is known under this name, or a figure cannot be read.
pub fn line(text: &str) -> Result<Meaning, String> {
    if let Some((version, field)) = terse_field(text) {
        return field_meaning(version, field);
    }
    if let Some(count) = count_of(text) {
        return Ok(Meaning { name: count.name(), meaning: count.meaning.to_string(), here: Vec::new() });
    }
    let looks_like_key = text.trim_start().starts_with('"') || !text.trim().contains(' ');
    let term = terms::of_label(text).or_else(|| match looks_like_key {
        true => terms::of_key(text).or_else(|| terms::of_line(text)),
        false => terms::of_line(text).or_else(|| terms::of_key(text)),
    });
    let Some(term) = term else {
        return Err(format!(
            "{text:?} is not a line, key or field of fio's reports; paste a line of the text (\"clat percentiles\"), a \
             JSON key (clat_ns.percentile), or the number of a terse field (38, or \"v5 38\" for version 5)"
        ));
    };
    // Every figure of a line follows an equals sign: without one, the text is only the label of a line.
    let has_figures = text.contains('=');
    let figures =
        if has_figures { read_line(text).map_err(|why| why.to_string())? } else { JobFigures::default() };
    let entries = figures.directions.iter().flat_map(direction::entries).chain(job::common(&figures));
    let mut here: Vec<String> = entries.map(|entry| entry.text).collect();
    here.extend(message::here(text));
    Ok(Meaning { name: term.name.to_string(), meaning: term.meaning.to_string(), here })
}

/// The count of a key, of a path that ends in it, or of a line of text that begins with it or has only it.
fn count_of(text: &str) -> Option<&'static Count> {
    let of_key = text.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
    let counts = text.rsplit_once(": ").map_or(text, |(_, counts)| counts);
    let name = of_key.or_else(|| counts.split('=').next()).unwrap_or_default().trim();
    let key = name.rsplit('.').next().unwrap_or_default();
    Count::ALL.iter().copied().find(|count| count.key == key || count.name() == name)
}

/// `38`, `field 38`, `v5 38`, `v5 field 38`: the version, and the number from 1.
fn terse_field(text: &str) -> Option<(Option<u32>, usize)> {
    let words = text.split_whitespace().filter(|word| !["terse", "field"].contains(word));
    let mut version = None;
    let mut field = None;
    for word in words {
        match word.strip_prefix('v') {
            Some(number) => version = Some(number.parse().ok().filter(|number| (2..=5).contains(number))?),
            None => field = Some(word.parse().ok()?),
        }
    }
    Some((version, field?))
}

fn field_meaning(version: Option<u32>, number: usize) -> Result<Meaning, String> {
    let version = version.unwrap_or(3);
    let fields = terse::layout(version, terse::usual_directions(version));
    let Some(field) = number.checked_sub(1).and_then(|index| fields.get(index)) else {
        return Err(format!(
            "terse lines of version {version} have {} fields; disks, with nine fields each, errors and a description \
             follow them",
            fields.len()
        ));
    };
    let (name, key) = described(*field);
    let meaning = terms::of_key(key).map_or("", |term: &Term| term.meaning);
    let name = format!("field {number} of terse version {version}: {name}");
    Ok(Meaning { name, meaning: meaning.to_string(), here: Vec::new() })
}

/// The name of a field, and the JSON key of what it is.
fn described(field: TerseField) -> (String, &'static str) {
    match field {
        TerseField::Layout => ("version of the layout".to_string(), "fio version"),
        TerseField::Program => ("version of the program".to_string(), "fio version"),
        TerseField::JobName => ("name of the job".to_string(), "jobname"),
        TerseField::Group => ("reporting group".to_string(), "groupid"),
        TerseField::Error => ("error number".to_string(), "error"),
        TerseField::Of(name, field) => {
            let (what, key) = of_direction(field);
            let name = if name == DirectionName::Mixed { "all directions" } else { name.name() };
            (format!("{name}, {what}"), key)
        }
        TerseField::Cpu(CpuField::User) => ("time in the program, in percent".to_string(), "usr_cpu"),
        TerseField::Cpu(CpuField::System) => ("time in the kernel, in percent".to_string(), "sys_cpu"),
        TerseField::Cpu(CpuField::ContextSwitches) => ("context switches".to_string(), "ctx"),
        TerseField::Cpu(CpuField::MajorFaults) => ("page faults with I/O".to_string(), "majf"),
        TerseField::Cpu(CpuField::MinorFaults) => ("page faults without I/O".to_string(), "minf"),
        TerseField::Depth(index) => {
            let depth = if index == 6 { "64 or more".to_string() } else { (1 << index).to_string() };
            (format!("I/Os issued at depth {depth}, in percent"), "iodepth_level")
        }
        TerseField::Bucket { below_us: Some(below_us) } => (
            format!("I/Os that took less than {below_us} us, and no less than the field before, in percent"),
            "latency_us",
        ),
        TerseField::Bucket { below_us: None } => {
            ("I/Os that took two seconds or more, in percent".to_string(), "latency_ms")
        }
    }
}

fn of_direction(field: DirectionField) -> (String, &'static str) {
    let moment = |moment| match moment {
        MomentField::Min => "lowest",
        MomentField::Max => "highest",
        MomentField::Mean => "mean",
        MomentField::Deviation => "standard deviation",
        MomentField::Count => "number of samples",
    };
    match field {
        DirectionField::Bytes => ("KiB transferred".to_string(), "io_kbytes"),
        DirectionField::Bandwidth => ("bandwidth in KiB per second".to_string(), "bw"),
        DirectionField::Iops => ("I/Os per second".to_string(), "iops"),
        DirectionField::Runtime => ("run time in milliseconds".to_string(), "runtime"),
        DirectionField::Latency(kind, of) => {
            let (name, key) = match kind {
                LatencyKind::Submission => ("submission latency", "slat_ns"),
                LatencyKind::Completion => ("completion latency", "clat_ns"),
                LatencyKind::Total => ("total latency", "lat_ns"),
            };
            (format!("{name}, {}, in microseconds", moment(of)), key)
        }
        DirectionField::Percentile(index) => (
            format!("percentile {} of completion latency and its value in microseconds", index + 1),
            "percentile",
        ),
        DirectionField::BandwidthShare => ("part in the group's bandwidth, in percent".to_string(), "bw_agg"),
        DirectionField::BandwidthSamples(of) => {
            (format!("bandwidth samples, {}, in KiB per second", moment(of)), "bw_samples")
        }
        DirectionField::IopsSamples(of) => (format!("IOPS samples, {}", moment(of)), "iops_samples"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pasted_line_is_explained_with_its_figures() {
        let slat = line("    slat (nsec): min=1475, max=99137, avg=3287.19, stdev=3284.74").unwrap();
        assert_eq!(slat.name, "slat");
        assert!(slat.meaning.starts_with("Submission latency"), "{slat:?}");
        assert!(slat.here[0].contains("3.29us on average, from 1.48us to 99.1us"), "{slat:?}");
        assert_eq!(line("clat percentiles").unwrap().here, [""; 0]);
        let cpu = line("cpu          : usr=6.06%, sys=29.29%, ctx=529, majf=0, minf=19").unwrap();
        assert!(cpu.here[0].contains("6.1 % (usr)"), "{cpu:?}");
        assert!(line("cpu : usr=x%").unwrap_err().contains("1:11: usr"));
        assert!(line("nonsense").unwrap_err().contains("clat_ns.percentile"));
    }

    /// What is printed beside reports: while a job runs, and when it fails.
    #[test]
    fn progress_and_errors_are_explained_with_their_figures() {
        let here = |text: &str| {
            let found = line(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            (found.name, found.here.join(" "))
        };
        let (name, said) = here(
            "Jobs: 3 (f=2): [R(2),_(1)][40.0%][r=30.0MiB/s,w=2048KiB/s][r=7680,w=512 IOPS][eta 00m:03s]",
        );
        assert_eq!(name, "progress line");
        assert_eq!(
            said,
            "3 jobs run, with 2 files open. R: reads in order; _: ended. 40.0% is done, at r=30.0MiB/s,w=2048KiB/s \
             r=7680,w=512 IOPS, and it will end in 00m:03s."
        );
        let (_, old) =
            here("Jobs: 4 (f=4): [mm_w] [100.0% done] [61240K/60880K /s] [7475 /7431  iops] [eta 00m:00s]");
        assert!(
            old.contains("m: a mix of reads and writes at random;") && old.contains("100.0% is done"),
            "{old}"
        );
        let error = "fio: pid=77, err=5/file:io_u.c:1803, func=io_u error, error=Input/output error";
        let (name, said) = here(error);
        assert_eq!(name, "error message");
        assert_eq!(said, "The job of process 77 failed with error 5 (Input/output error), in: io_u error.");
    }

    /// Whoever asks for a line types its label, or a word of it, and not its figures.
    #[test]
    fn labels_and_words_of_lines_are_explained_without_figures() {
        let name = |text: &str| {
            let found = line(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(found.here, [""; 0], "{text}");
            found.name
        };
        for (text, expected) in [
            ("IO depths", "IO depths"),
            ("IO depths    :", "IO depths"),
            ("submit", "submit"),
            ("     complete  :", "complete"),
            ("lat (usec)   :", "latency ranges"),
            ("lat (msec)", "lat"),
            ("cpu", "cpu"),
            ("usr", "cpu"),
            ("sys", "cpu"),
            ("short", "issued rwts"),
            ("dropped", "issued rwts"),
            ("issued rwts", "issued rwts"),
            ("err", "job"),
            ("sectors", "disk stats"),
            ("ios", "disk stats"),
            ("ios=0/0", "disk stats"),
            ("merge", "merge"),
            ("ticks", "ticks"),
            ("aggrutil", "util"),
            ("aggrin_queue", "in_queue"),
            ("latency", "latency target"),
            ("READ", "run status group"),
            ("read", "read, write, trim, mixed"),
            ("per", "bandwidth samples"),
            ("bw", "BW"),
            ("Run status group 0 (all jobs):", "run status group"),
        ] {
            assert_eq!(name(text), expected, "{text}");
        }
        for text in ["dropped_arrivals", "counts.read.dropped_arrivals", "\"dropped_arrivals\" : 3,"] {
            assert_eq!(line(text).unwrap().name, "dropped arrivals", "{text}");
        }
        assert_eq!(line("  job: read: waiting arrivals=40").unwrap().name, "waiting arrivals");
        assert!(line("IO depths    : 1=x%").is_err());
    }

    #[test]
    fn every_terse_field_has_a_meaning() {
        for version in 2..=5 {
            let count = terse::layout(version, terse::usual_directions(version)).len();
            for number in 1..=count {
                let found = line(&format!("v{version} field {number}")).unwrap();
                assert!(!found.meaning.is_empty(), "{found:?}");
            }
            assert!(line(&format!("v{version} {}", count + 1)).unwrap_err().contains(&count.to_string()));
        }
        assert_eq!(line("8").unwrap().name, "field 8 of terse version 3: read, I/Os per second");
        assert!(line("0").is_err());
    }
}
