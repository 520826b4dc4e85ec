//! What each label and each key of a report means, whatever its figures.
//!
//! Invariant: a key is in one entry alone; labels are in small letters, and the longest one that fits a line counts.

/// One term of reports.
#[derive(Debug)]
pub(crate) struct Term {
    /// Its name.
    pub name: &'static str,
    /// How lines of normal text begin that have it, without indentation; after three dots, what stands within a line.
    pub labels: &'static [&'static str],
    /// Its keys in JSON.
    pub keys: &'static [&'static str],
    /// What it means.
    pub meaning: &'static str,
}

macro_rules! terms {
    ($($name:literal, [$($label:literal),*], [$($key:literal),*], $meaning:literal;)+) => {
        /// Every term.
        pub(crate) const TERMS: &[Term] =
            &[$(Term { name: $name, labels: &[$($label),*], keys: &[$($key),*], meaning: $meaning }),+];
    };
}

terms! {
    "section heading", ["... (g="], [],
        "Printed before the run, once for each section: its reporting group, direction and order, block sizes of reads (R), writes (W) and trims (T), engine and depth. A line of dots below it stands for its clones (numjobs).";
    "job", ["... (groupid=", "... err", "... pid"], ["jobs", "client_stats", "jobname", "groupid", "desc", "description"],
        "The block of one job, or of several that group_reporting shows as one (jobs=N). err is 0 if it succeeded, else an error number.";
    "error", [], ["error"],
        "The error number the job ended with; 0 is success.";
    "progress line", ["jobs: "], [],
        "Printed while the run goes on, over itself: how many jobs run (Jobs:), how many files they have open (f=), a letter for each job, how much is done, the rates of the last moment and how long it will still take (eta). Its figures are those of a moment, and not results.";
    "error message", ["fio: pid="], [],
        "Printed when a job fails: its process, the error number (err=), where it happened in the program, and the error in words. The report that follows has the figures of the time before, and err= with the same number.";
    "read, write, trim, mixed", ["read: iops", "write: iops", "trim: iops", "mixed: iops", "read : io", "write: io", "trim: io", "read", "write", "trim", "mixed"], ["read", "write", "trim", "mixed"],
        "What the job did in one direction: I/Os per second, bytes per second in powers of 1024 and of 1000, and in parentheses the bytes it transferred and the time it took. mixed is all directions as one (unified_rw_reporting).";
    "IOPS", ["iops="], ["iops"],
        "I/Os completed per second: their number over the run time of this direction. The text cuts it to four digits.";
    "BW", ["bw="], ["bw", "bw_bytes"],
        "Bandwidth: bytes per second, the bytes transferred over the run time. In JSON, bw is in KiB per second and bw_bytes in bytes per second.";
    "bytes transferred", [], ["io_bytes", "io_kbytes"],
        "What was read, written or trimmed, in bytes and in KiB.";
    "run time", [], ["runtime", "job_runtime", "elapsed", "eta", "job_start"],
        "runtime is how long the job did I/O in this direction, in milliseconds; job_runtime the sum over the jobs; elapsed is in seconds since the start of the run; eta what was left.";
    "counts of I/Os", [], ["total_ios", "short_ios", "drop_ios", "N"],
        "How many I/Os completed; short ones transferred less than requested, dropped ones were never carried out. N is how many are in the statistics.";
    "slat", ["slat ("], ["slat_ns", "slat"],
        "Submission latency: how long it took to hand an I/O to the kernel. It is large if the queue is full, or if the engine does the I/O while it submits it (libaio without direct=1). Synchronous engines have none: they submit and complete in one call.";
    "clat", ["clat ("], ["clat_ns", "clat"],
        "Completion latency: from the end of submission to completion. For a synchronous engine it is the whole I/O. It contains the time in the queues of the kernel and of the device, so it grows with iodepth.";
    "lat", ["lat ("], ["lat_ns", "lat"],
        "Total latency: from the start of submission to completion, slat and clat together. IOPS times this latency is the number of I/Os in flight on average (Little's law).";
    "response latency", ["response", "response latency"], ["response"],
        "Latency from the moment a rate intended the I/O to start. If the device stalls, later I/Os start late; clat and lat leave that wait out, the response latency has it.";
    "replay lateness", ["lateness"], ["replay", "lateness_ns"],
        "How late the I/Os of a replayed trace were issued, from their times in the trace. Microseconds are the time it takes to wake a thread; milliseconds mean that I/Os waited for others, because this disk or this iodepth is slower than what was recorded.";
    "counts", ["counts:"], ["counts"],
        "What fiord counts of a job or of a direction, and fio does not. One that is not there was not recorded, which is not zero.";
    "latency by priority", ["clat prio", "lat prio"], ["prios", "prioclass", "prio", "priohint"],
        "The latency of the I/Os of one priority (cmdprio_percentage).";
    "min, max, avg, stdev", ["min", "max", "avg", "stdev"], ["min", "max", "mean", "stddev"],
        "The lowest, the highest, the mean and the standard deviation. Latencies are not spread evenly around their mean: read the percentiles before the mean.";
    "percentiles", ["clat percentiles", "slat percentiles", "lat percentiles", "sync percentiles", "response percentiles", "lateness percentiles", "|"], ["percentile"],
        "99.00th=[285] says that 99 % of the I/Os took at most 285 of the unit in the heading, and 1 % took longer. The 50th is the median. The highest ones rest on few I/Os: p99.99 needs 100,000 of them to rest on ten.";
    "bins", [], ["bins"],
        "The histogram of the latencies (JSON+): upper end of each bin in nanoseconds, and the number of I/Os in it.";
    "bandwidth samples", ["bw (", "... per"], ["bw_min", "bw_max", "bw_agg", "bw_mean", "bw_dev", "bw_samples"],
        "Bandwidth sampled during the run (every bwavgtime, half a second), in KiB per second in JSON: the lowest, highest and mean sample. per is this job's share of its group's bandwidth. Few samples mean a short run.";
    "IOPS samples", ["iops  ", "iops :"], ["iops_min", "iops_max", "iops_mean", "iops_stddev", "iops_samples"],
        "I/Os per second sampled during the run (every iopsavgtime, half a second): the lowest, highest and mean sample. A large standard deviation means an unsteady run.";
    "latency ranges", ["lat buckets"], ["latency_ns", "latency_us", "latency_ms"],
        "The share of all I/Os by completion latency. 250=95.58% in a line of usec says that 95.58 % took less than 250 us, and at least the range before it (100 us). Together the ranges are 100 %.";
    "sync", ["fsync/fdatasync", "sync ("], ["sync"],
        "Latency of fsync, fdatasync and the like. A buffered write is complete when it is in memory; only the sync waits for the device. For databases this is the latency that matters, and clat does not contain it.";
    "cpu", ["cpu ", "... usr", "... sys"], ["usr_cpu", "sys_cpu", "ctx", "majf", "minf"],
        "usr and sys: the share of the jobs' time for which they were running in the program and in the kernel; 100 % together is one processor for each job, and then the host is the limit. ctx: context switches. majf and minf: page faults with and without I/O.";
    "IO depths", ["io depths"], ["iodepth_level"],
        "The share of I/Os by the number in flight when they were issued: 16=99.6% is for 16 to 31. If iodepth=32 and everything is at 1, the depth was never reached: a synchronous engine has one I/O in flight. Syncs count here too, so the sum may exceed 100 %.";
    "submit", ["submit "], ["iodepth_submit"],
        "How many I/Os each system call submitted: 4 is 1 to 4, 8 is 5 to 8, and so on. 0 is a call that submitted none.";
    "complete", ["complete "], ["iodepth_complete"],
        "How many I/Os each call found completed: 4 is 1 to 4, 8 is 5 to 8, and so on. 0 is a call that found none.";
    "issued rwts", ["issued", "... short", "... dropped"], [],
        "How many reads, writes, trims and syncs were issued, in this order; then how many of them were short (transferred less than requested) and dropped.";
    "errors", ["errors "], ["total_err", "first_error"],
        "I/Os that failed while continue_on_error let the job go on, and the first error's number. They are in no other figure.";
    "latency target", ["latency "], ["latency_depth", "latency_target", "latency_target_ns", "latency_percentile", "latency_window", "latency_window_us"],
        "The latency_target options and the depth they led to. Without a target the depth is iodepth, and the line has no meaning.";
    "block lifetimes", ["block lifetime", "states "], ["block", "percentiles", "states", "unwritten", "trimmed", "written", "trim failure", "write failure"],
        "How many trims the blocks lasted that were written or trimmed (block_error_percentiles): 10.00th=98 means that 10 % of them had 98 successful trims or fewer, up to the first I/O to them that failed or the end of the job. states: the blocks by what happened to them last.";
    "steadystate", ["steadystate"], ["steadystate", "ss", "duration", "attained", "criterion", "max_deviation", "slope", "data", "lat_mean"],
        "Whether the job became steady by the rule of the steadystate option, and the value of its criterion when it ended.";
    "steady part", [], ["steady_part", "run_s", "slope_percent", "excursion_percent", "from_s", "to_s", "latencies_from_s"],
        "The longest part at the end of the run that is steady by SNIA's rules: over five equal rounds a slope of at most 10 % of the mean, and an excursion of at most 20 %. All other figures are of the whole run.";
    "windows", [], ["windows", "window_s", "read_ios_per_s", "read_bytes_per_s", "write_ios_per_s", "write_bytes_per_s", "trim_ios_per_s", "trim_bytes_per_s"],
        "What all jobs together did over time, while all of them were running: I/Os and bytes per second in windows of equal length. fiord compare takes from them how far a rate may be off.";
    "run status group", ["run status group", "read: bw", "write: bw", "trim: bw", "mixed: bw"], [],
        "The sums of a reporting group: bandwidth of all jobs, then of the slowest and of the fastest job, bytes of all, shortest and longest run time. Jobs before and after a stonewall are in different groups.";
    "disk stats", ["disk stats", "... ios=", "... ios", "... sectors", "... aggrios", "... aggrsectors"], ["disk_util", "name", "read_ios", "write_ios", "read_sectors", "write_sectors", "aggr_read_ios", "aggr_write_ios", "aggr_read_sectors", "aggr_write_sectors", "devices"],
        "What the kernel counted for the disks during the run, reads/writes: requests (ios), sectors of 512 bytes. It includes other programs' I/O. If it is much less than the jobs transferred, a cache served them; if much more, something else was running.";
    "merge", ["... merge", "... aggrmerge"], ["read_merges", "write_merges", "aggr_read_merges", "aggr_write_merges", "aggr_write_merge"],
        "Requests that the kernel joined with a neighbour, so that the disk saw fewer and larger ones.";
    "ticks", ["... ticks", "... aggrticks"], ["read_ticks", "write_ticks", "aggr_read_ticks", "aggr_write_ticks"],
        "The time of all requests added up, in milliseconds. Divided by the number of requests it is the mean time of one, with its wait in the kernel's queue.";
    "in_queue", ["... in_queue", "... aggrin_queue"], ["in_queue", "aggr_in_queue"],
        "The time of all requests in flight added up, in milliseconds. Divided by the run time it is the mean length of the queue (aqu-sz of iostat).";
    "util", ["util", "... aggrutil"], ["util", "aggr_util"],
        "The share of the time for which the disk had at least one request. A rotating disk at 100 % is at its limit. An SSD or RAID works on many requests at a time: one request after another makes it 100 % at a fraction of its throughput.";
    "CPU idleness", ["cpu idleness", "system:", "percpu:", "unit work"], ["cpu_idleness", "system", "unit_mean", "unit_stddev"],
        "How idle the processors were during the run (--idle-prof).";
    "energy", ["energy:"], ["energy", "source", "joules", "watts", "idle_watts", "net_joules", "iops_per_watt", "bytes_per_joule"],
        "What the machine used during the run, by its own counters and sensors: all of it, and what is above the power before the run. I/Os and bytes are divided by the latter. A processor's counter has no disks in it.";
    "options", [], ["job options", "global options"],
        "The options as they were typed: those of all jobs, and those of this job.";
    "report", ["fio-"], ["fio version", "timestamp", "timestamp_ms", "time", "hostname", "port"],
        "The program that made the report, when, and, of a server's report, on which host.";
    "fiord", [], ["fiord", "version"],
        "The version of fiord that made the report, in an object that fio does not have.";
    "findings", ["findings:"], ["findings", "code", "severity", "subject", "option", "sentence", "remedy", "figures"],
        "Reasons found by fiord why a figure may not mean what its reader thinks. `fiord explain CODE` explains one.";
}

/// The term of a text that is a label, or a word of a line, with or without its value. In capitals a direction is that of a group.
pub(crate) fn of_label(text: &str) -> Option<&'static Term> {
    let before_value = text.split('=').next().unwrap_or_default();
    let text = before_value.trim().trim_end_matches(':').trim_end();
    if ["READ", "WRITE", "TRIM", "MIXED"].contains(&text) {
        return labelled("run status group");
    }
    let text = text.to_ascii_lowercase();
    TERMS.iter().find(|term| term.labels.iter().any(|label| label.trim_start_matches("... ") == text))
}

/// The term of a line of normal text.
pub(crate) fn of_line(text: &str) -> Option<&'static Term> {
    let text = text.trim().to_ascii_lowercase();
    let inside = [(": (groupid=", "... (groupid="), (": (g=", "... (g="), (": ios=", "... ios=")];
    if let Some((_, label)) = inside.iter().find(|(mark, _)| text.contains(mark)) {
        return labelled(label);
    }
    // The ranges and the moments of latencies have the same label; only that of the ranges is padded before its colon.
    let is_padded = text.split_once(':').is_some_and(|(label, _)| label.ends_with(' '));
    if text.starts_with("lat (")
        && (text.contains('%') || is_padded)
        && !text.contains("min=")
        && !text.contains("percentile")
    {
        return labelled("lat buckets");
    }
    // Labels are padded before their colon.
    let padded = text.replacen(':', " :", 1);
    labelled(&text).or_else(|| labelled(&padded)).or_else(|| labelled(&format!("{text} ")))
}

fn labelled(text: &str) -> Option<&'static Term> {
    let fits = |term: &&Term| {
        term.labels.iter().filter(|label| text.starts_with(**label)).map(|label| label.len()).max()
    };
    let all = TERMS.iter().filter_map(|term| Some((fits(&term)?, term)));
    all.max_by_key(|(length, _)| *length).map(|(_, term)| term)
}

/// The term of a JSON key, or of the last one in a path that has a meaning of its own: `clat_ns.percentile.99.000000`.
pub(crate) fn of_key(text: &str) -> Option<&'static Term> {
    let before_value = text.split(" :").next().unwrap_or_default();
    let whole = before_value.trim().trim_matches(['"', ',', ' ']);
    let known = |key: &str| TERMS.iter().find(|term| term.keys.contains(&key));
    if let Some(term) = known(whole) {
        return Some(term);
    }
    let mut parts = whole.rsplit(['.', '[', ']', '/', '"']).map(str::trim).filter(|part| !part.is_empty());
    parts.find_map(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_or_label_has_one_meaning() {
        let keys: Vec<&str> = TERMS.iter().flat_map(|term| term.keys).copied().collect();
        let labels: Vec<&str> = TERMS.iter().flat_map(|term| term.labels).copied().collect();
        for all in [keys, labels] {
            for (index, one) in all.iter().enumerate() {
                assert!(!all[..index].contains(one), "{one}");
            }
        }
        assert!(TERMS.iter().all(|term| term.meaning.ends_with('.') && !term.meaning.contains("  ")));
    }

    #[test]
    fn lines_and_keys_are_recognised_as_they_are_pasted() {
        let line = |text| of_line(text).map(|term| term.name);
        assert_eq!(line("    clat percentiles (usec):"), Some("percentiles"));
        assert_eq!(line("clat percentiles"), Some("percentiles"));
        assert_eq!(line("     | 99.00th=[  285], 99.50th=[  293]"), Some("percentiles"));
        assert_eq!(line("  lat (usec)   : 50=0.06%, 100=0.10%"), Some("latency ranges"));
        assert_eq!(line("     lat (usec): min=52, max=547"), Some("lat"));
        assert_eq!(line("   bw (  KiB/s): min= 5000"), Some("bandwidth samples"));
        assert_eq!(line("   iops        : min=  500"), Some("IOPS samples"));
        assert_eq!(line("  IO depths    : 1=0.1%"), Some("IO depths"));
        assert_eq!(line("IO depths"), Some("IO depths"));
        assert_eq!(line("  vda: ios=0/0, sectors=0/0"), Some("disk stats"));
        assert_eq!(line("   READ: bw=434MiB/s"), Some("run status group"));
        assert_eq!(line("  read: IOPS=111k, BW=434MiB/s"), Some("read, write, trim, mixed"));
        assert_eq!(line("cpu          : usr=6.06%"), Some("cpu"));
        assert_eq!(line("issued rwts: total=1"), Some("issued rwts"));
        assert_eq!(line("a: (g=0): rw=read"), Some("section heading"));
        assert_eq!(
            line("Jobs: 1 (f=1): [R(1)][50.0%][r=4KiB/s][r=1 IOPS][eta 00m:02s]"),
            Some("progress line")
        );
        assert_eq!(
            line("fio: pid=77, err=5/file:io_u.c:1803, func=io_u error, error=x"),
            Some("error message")
        );
        assert_eq!(line("Counts:"), Some("counts"));
        assert_eq!(line("nonsense"), None);
        let key = |text| of_key(text).map(|term| term.name);
        assert_eq!(key("clat_ns.percentile"), Some("percentiles"));
        assert_eq!(key("jobs[0].read.clat_ns.percentile.99.000000"), Some("percentiles"));
        assert_eq!(key("\"iodepth_level\" : {"), Some("IO depths"));
        assert_eq!(key("\"slat_ns\" : {"), Some("slat"));
        assert_eq!(key("bw_mean"), Some("bandwidth samples"));
        assert_eq!(key("nonsense"), None);
    }
}
