//! Output that matters to programs that read fio's: available formats, text before a document, number of lines in a log
//! (C21 to C24).
//!
//! Invariant: each command line here once broke a real program, or is of the same kind.

use fiord_compat::compare::{equal, exit, figure, json_shape, success};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, Ran, case, raw};

const NULL: &str = "--name=a --ioengine=null --size=64k --bs=4k --rw=read";
/// Long enough for fio's first progress line and first status, which appear after a second.
const SECONDS: &str = "--name=a --ioengine=null --size=1g --bs=4k --rw=read --rate=10m --time_based";

/// Options that choose a format, in every order that matters.
const FORMATS: &[&str] = &[
    "--output-format=json --minimal",
    "--minimal --output-format=json",
    "--append-terse --output-format=json",
    "--output-format=json --append-terse",
    "--append-terse",
    "--append-terse --minimal",
    "--minimal --append-terse",
    "--minimal --output-format=normal",
    "--output-format=json+ --append-terse",
    "--append-terse --output-format=json+ --minimal",
    "--output-format=json --output-format=normal",
    "--output-format=json,normal --append-terse",
    "--output-format=json,normal --minimal",
    "--minimal --append-terse --output-format=json",
    "--minimal --terse-version=4",
    "--append-terse --terse-version=5",
];

/// Options that fio ignores silently, or warns about, under `--warnings-fatal`.
const WARNED: &[&str] = &[
    "",
    "--time_based",
    "--iodepth=32",
    "--bs=4k,8k,16k,32k",
    "--bs=4KiB",
    "--size=64k10",
    "--percentile_list=1:2:x",
    "--thinktime_spin=4",
    "--log_avg_msec=100",
    "--loops=2 --loops=3",
    "--ramp_time=1",
    "--overwrite=1 --file_append=1",
];

/// Which formats are on standard output: terse with its version, JSON, JSON with bins, the normal text.
fn formats(ran: &Ran) -> (Option<char>, bool, bool, bool) {
    let terse = ran.stdout.lines().find(|line| line.get(1..).is_some_and(|rest| rest.starts_with(";fio-3")));
    let has = |part: &str| ran.stdout.contains(part);
    (terse.and_then(|line| line.chars().next()), has("\"jobs\" : ["), has("\"bins\" : {"), has("(groupid="))
}

fn the_same_formats(pair: &Pair) -> Verdict {
    equal("formats on stdout", formats(&pair.fio), formats(&pair.fiord))
}

fn names_the_formats(pair: &Pair) -> Verdict {
    let names = |ran: &Ran| ran.stdout.contains("terse,json,json+,normal");
    equal("the help names the formats", names(&pair.fio), names(&pair.fiord))
}

/// Whether the progress line is on standard output and in the file of `--output`.
fn progress(pair: &Pair) -> Verdict {
    let shown = |text: &str| text.contains("Jobs: 1 (f=");
    let places = |ran: &Ran| (shown(&ran.stdout), ran.file("out").is_ok_and(|text| shown(&text)));
    equal("progress on stdout and in the file", places(&pair.fio), places(&pair.fiord))
}

fn counts_down(pair: &Pair) -> Verdict {
    let etas = |ran: &Ran| -> Result<Vec<u64>, String> {
        let documents = raw::documents(&ran.stdout);
        let eta =
            |text: &String| fiord_compat::program::parse_json(text).map(|one| one["jobs"][0]["eta"].as_u64());
        documents.iter().map(eta).map(|eta| eta?.ok_or_else(|| "no eta".to_string())).collect()
    };
    for (name, etas) in [("fio", etas(&pair.fio)?), ("fiord", etas(&pair.fiord)?)] {
        let known: Vec<u64> = etas.iter().copied().skip_while(|eta| *eta == i32::MAX as u64).collect();
        if known.last() != Some(&0) || !known.is_sorted_by(|before, after| before >= after) {
            return Err(format!("{name} counts down {etas:?}"));
        }
    }
    Ok(())
}

/// Each log has lines as far apart and for as long as fio's, except for one of a window that the end cuts short. Their number
/// is not compared: fio leaves windows out when it is held up.
fn as_many_windows(pair: &Pair) -> Verdict {
    for log in ["l_bw.1.log", "l_iops.1.log", "l_clat.1.log"] {
        let windows = |ran: &Ran| -> Result<(u64, u64), String> {
            let time = |line: &str| line.split(',').next().and_then(|ms| ms.parse::<u64>().ok());
            let times: Vec<u64> = ran.file(log)?.lines().filter_map(time).collect();
            let mut apart: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
            apart.sort_unstable();
            let usual = apart.get(apart.len() / 2).or(times.first()).copied();
            let usual = usual.ok_or_else(|| format!("{log} has no line"))?;
            Ok((usual, times.last().copied().unwrap_or(0)))
        };
        let ((fio_ms, fio_end_ms), (fiord_ms, fiord_end_ms)) = (windows(&pair.fio)?, windows(&pair.fiord)?);
        let is_near = |one: u64, other: u64, most: u64| one.abs_diff(other) <= most;
        if !is_near(fio_ms, fiord_ms, fio_ms / 10) || !is_near(fio_end_ms, fiord_end_ms, fio_ms + fio_ms / 10)
        {
            let of = |ms, end_ms| format!("lines {ms} ms apart until {end_ms}");
            return Err(format!(
                "{log}: fio has {}, fiord {}",
                of(fio_ms, fio_end_ms),
                of(fiord_ms, fiord_end_ms)
            ));
        }
    }
    Ok(())
}

/// Jobs that cannot run, with two that can. fio has 22 for most, and 0 for some although they failed.
const UNSUITED: &[(&str, &str)] = &[
    ("missing", "--filename=gone --allow_file_create=0 --rw=read"),
    ("missing-for-writing", "--filename=gone --allow_file_create=0 --rw=write"),
    ("no-size", "--filename=gone --size=0 --rw=read"),
    ("directory", "--filename=dir --rw=read"),
    ("odd-blocks", "--filename=there --direct=1 --bs=1000 --rw=read"),
    ("odd-offset", "--filename=there --direct=1 --offset=100 --rw=read"),
    ("too-small", "--filename=tiny --size=0 --rw=read"),
    ("behind-the-end", "--filename=there --offset=2m --size=0 --rw=read"),
    ("trim", "--filename=/dev/null --rw=trim"),
    ("three-clones", "--filename=gone --allow_file_create=0 --rw=read --numjobs=3"),
    ("read-only-directory", "--filename=/sys/none --rw=write"),
    ("layout-fails", "--filename=/proc/1/none --rw=write"),
];

/// Both report every job, and the others did their work.
fn the_others_run(pair: &Pair) -> Verdict {
    let reads = |ran: &Ran| -> Result<Vec<(String, u64)>, String> {
        let jobs = ran.jobs()?;
        let name = |job: &serde_json::Value| job["jobname"].as_str().unwrap_or_default().to_string();
        Ok(jobs.iter().map(|job| (name(job), figure(job, "read", "io_bytes"))).collect())
    };
    equal("jobs and what they read", reads(&pair.fio)?, reads(&pair.fiord)?)?;
    for (fio, fiord) in pair.fio.jobs()?.iter().zip(pair.fiord.jobs()?) {
        let (fios, ours) = (fio["error"].as_i64(), fiord["error"].as_i64());
        if fio["jobname"] == "bad" && (ours == Some(0) || (fios != Some(0) && fios != ours)) {
            return Err(format!("error: fio has {fios:?}, fiord {ours:?}"));
        }
    }
    Ok(())
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let parsers = |name: &str, args: &str| case(format!("parsers/{name}"), args);
    let json = |name: &str, args: &str| parsers(name, &format!("--output-format=json {args}"));
    let mut cases = vec![
        parsers("C22-help-names-formats", "--help").check(exit).check(names_the_formats),
        json("C21-eta-counts-down", &format!("--status-interval=1 {SECONDS} --runtime=5"))
            .check(success)
            .check(counts_down),
        json("create_only", "--name=a --size=64k --create_only=1").check(success).check(json_shape),
        json("create_only-beside-another", "--size=64k --name=a --create_only=1 --name=b --stonewall")
            .check(success)
            .check(json_shape),
        json("section-without-options", "j.fio")
            .text("j.fio", "[global]\nioengine=null\nsize=64k\n[a]\n[b]\nbs=8k\n[c]\nstonewall\niodepth=1\n")
            .check(success)
            .check(json_shape),
    ];
    cases.extend(FORMATS.iter().map(|formats| {
        let name = formats.replace("--", "").replace([' ', ','], "_");
        parsers(&format!("C23-{name}"), &format!("{formats} {NULL}")).check(success).check(the_same_formats)
    }));
    cases.extend(WARNED.iter().map(|options| {
        let name = options.replace("--", "").replace(' ', "_");
        parsers(&format!("warnings-fatal-{name}"), &format!("--warnings-fatal {NULL} {options}")).check(exit)
    }));
    cases.extend(UNSUITED.iter().map(|(name, options)| {
        let line = format!(
            "--size=64k --name=one --ioengine=null --name=bad {options} --name=other --ioengine=null"
        );
        json(&format!("C26-unsuited-{name}"), &line)
            .bytes("there", 1 << 20)
            .bytes("tiny", 100)
            .text("dir/x", "")
            .check(exit)
            .check(the_others_run)
    }));
    let eta = format!("--eta=always {SECONDS} --runtime=2");
    for (name, args) in [
        ("stdout", ""),
        ("json", "--output-format=json"),
        ("terse", "--minimal"),
        ("into-a-file", "--output=out"),
        ("json-into-a-file", "--output=out --output-format=json"),
        ("newline", "--eta-newline=1"),
        ("json-with-status", "--output-format=json --status-interval=1"),
    ] {
        cases.push(
            parsers(&format!("C21-eta-always-{name}"), &format!("{args} {eta}"))
                .check(success)
                .check(progress),
        );
    }
    let logs = format!("{SECONDS} --runtime=4 --write_bw_log=l --write_iops_log=l --write_lat_log=l");
    for (name, options) in [
        ("250", "--log_avg_msec=250"),
        ("1000", "--log_avg_msec=1000"),
        ("2000", "--log_avg_msec=2000"),
        ("1000-bwavgtime", "--log_avg_msec=1000 --bwavgtime=200"),
        ("1000-iopsavgtime", "--log_avg_msec=1000 --iopsavgtime=500"),
        ("1000-maximum", "--log_avg_msec=1000 --log_max_value=1"),
    ] {
        cases.push(
            parsers(&format!("C24-log_avg_msec-{name}"), &format!("{logs} {options}"))
                .check(success)
                .check(as_many_windows),
        );
    }
    cases
}
