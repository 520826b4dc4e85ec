//! The output of a run: JSON, JSON+, terse and normal text of jobs of every kind.
//!
//! Invariant: sections, keys, fields and their types are compared; figures are not.

use fiord_compat::compare::{equal, json_shape, normal, normal_with_samples, success, terse};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, Ran, case, raw, versions};

/// Jobs whose reports differ in what they contain.
const JOBS: &[(&str, &str)] = &[
    ("read", "--name=a --ioengine=null --rw=read --bs=4k --size=1m"),
    ("write-with-sync", "--name=a --ioengine=psync --rw=write --bs=4k --size=256k --fdatasync=4"),
    ("mix", "--name=a --ioengine=null --rw=randrw --bs=4k --size=1m"),
    ("trim", "--name=a --ioengine=null --rw=randtrim --bs=4k --size=1m"),
    ("file", "--name=a --ioengine=psync --rw=randread --bs=4k --size=1m"),
    ("deep", "--name=a --ioengine=libaio --iodepth=8 --rw=randread --bs=4k --size=1m"),
    ("two-jobs", "--ioengine=null --bs=4k --size=1m --name=a --rw=read --name=b --rw=write"),
    ("two-groups", "--ioengine=null --bs=4k --size=1m --name=a --rw=read --name=b --stonewall --rw=write"),
    ("numjobs", "--name=a --ioengine=null --rw=read --bs=4k --size=1m --numjobs=3"),
    ("grouped", "--name=a --ioengine=null --rw=randrw --bs=4k --size=1m --numjobs=2 --group_reporting"),
    ("seconds", "--name=a --ioengine=null --rw=randrw --bs=4k --size=1m --time_based --runtime=2"),
    ("described", "--name=a --ioengine=null --rw=read --bs=4k --size=64k '--description=what it is for'"),
    ("percentile_list", "--name=a --ioengine=null --rw=read --bs=4k --size=1m --percentile_list=50:99.9"),
    (
        "percentile_list-of-the-last-section",
        "--group_reporting --ioengine=null --size=64k --name=a --percentile_list=50 --name=b --percentile_list=90:99",
    ),
    ("lat_percentiles", "--name=a --ioengine=null --rw=read --bs=4k --size=1m --lat_percentiles=1"),
    (
        "all-percentiles",
        "--name=a --ioengine=null --rw=read --bs=4k --size=1m --lat_percentiles=1 --slat_percentiles=1",
    ),
    ("no-percentiles", "--name=a --ioengine=null --rw=read --bs=4k --size=1m --clat_percentiles=0"),
    (
        "no-percentiles-of-syncs",
        "--name=a --ioengine=psync --rw=write --bs=4k --size=64k --fsync=4 --clat_percentiles=0",
    ),
    (
        "percentiles-of-syncs-with-lat_percentiles",
        "--name=a --ioengine=psync --rw=write --bs=4k --size=64k --fsync=4 --clat_percentiles=0 --lat_percentiles=1",
    ),
    ("gtod_reduce", "--name=a --ioengine=null --rw=read --bs=4k --size=1m --gtod_reduce=1"),
    ("disable_lat", "--name=a --ioengine=null --rw=read --bs=4k --size=1m --disable_lat=1"),
    ("disable_clat", "--name=a --ioengine=null --rw=read --bs=4k --size=1m --disable_clat=1"),
    ("disable_slat", "--name=a --ioengine=libaio --rw=read --bs=4k --size=256k --disable_slat=1"),
    ("disk_util-off", "--name=a --ioengine=psync --rw=read --bs=4k --size=256k --disk_util=0"),
    ("unified-mixed", "--name=a --ioengine=null --rw=randrw --bs=4k --size=1m --unified_rw_reporting=mixed"),
    ("unified-both", "--name=a --ioengine=null --rw=randrw --bs=4k --size=1m --unified_rw_reporting=both"),
    ("bssplit-header", "--name=a --ioengine=null --rw=randrw --bssplit=4k/50:64k/50,8k/100 --size=1m"),
    ("per-direction-bs", "--name=a --ioengine=null --rw=randrw --bs=4k,8k,16k --size=1m"),
    ("rate", "--name=a --ioengine=null --rw=read --bs=4k --size=64k --rate_iops=100"),
    ("unit_base-bits", "--name=a --ioengine=null --rw=read --bs=4k --size=1m --unit_base=1"),
    ("kb_base-1000", "--name=a --ioengine=null --rw=read --bs=4k --size=1m --kb_base=1000"),
    ("significant_figures", "--name=a --ioengine=null --rw=read --bs=4k --size=1m --significant_figures=6"),
    ("ramp", "--name=a --ioengine=null --rw=read --bs=4k --size=1m --time_based --runtime=1 --ramp_time=1"),
];

/// Text before a report that does not depend on figures: headers, version, `Starting …`.
fn banner(pair: &Pair) -> Verdict {
    let lines = |ran: &Ran| -> Vec<String> {
        let head = ran.stdout.lines().take_while(|line| !line.contains("(groupid="));
        head.filter(|line| !line.trim().is_empty() && !line.starts_with("note: "))
            .map(|line| {
                if line.starts_with("fio-") {
                    "fio-VERSION".to_string()
                } else {
                    versions::common_line(line, pair.oracle)
                }
            })
            .collect()
    };
    equal("banner", lines(&pair.fio), lines(&pair.fiord))
}

fn text_is_in_order(pair: &Pair) -> Verdict {
    raw::only_json(&pair.fiord.stdout)?;
    raw::json_text(&pair.fiord.stdout)
}

/// Several formats on one stream, and the order of their parts (C4).
const FORMATS: &[&str] = &[
    "json,normal",
    "normal,json",
    "terse,json",
    "terse,normal",
    "normal,terse,json",
    "json+,normal",
    "json,terse",
];

/// The kinds of text in a stream, in order.
fn parts(text: &str) -> Vec<&'static str> {
    let mut parts: Vec<&'static str> = Vec::new();
    let mut in_json = false;
    for line in text.lines() {
        in_json |= line == "{";
        // What fiord adds after fio's text, with the empty line before it.
        if versions::ADDED_TEXTS.iter().any(|added| line == added.trim()) && parts.last() == Some(&"empty") {
            parts.pop();
        }
        let part = match line {
            _ if in_json => "json",
            "" => "empty",
            _ if line.matches(';').count() > 50 => "terse",
            _ if line.starts_with("Starting ") => "starting",
            _ if line.contains("(groupid=") => "normal",
            _ if line.contains("(g=") => "banner",
            _ if line.starts_with("Run status group") => "group",
            _ => continue,
        };
        if line == "}" {
            in_json = false;
        }
        if parts.last() != Some(&part) {
            parts.push(part);
        }
    }
    parts
}

fn order_of_parts(pair: &Pair) -> Verdict {
    equal("order of parts", parts(&pair.fio.stdout), parts(&pair.fiord.stdout))
}

/// The object of block lifetimes, figures included.
fn lifetimes_in_json(pair: &Pair) -> Verdict {
    equal("block", &pair.fio.jobs()?[0]["block"], &pair.fiord.jobs()?[0]["block"])
}

/// The lines of block lifetimes, figures included.
fn lifetimes_in_text(pair: &Pair) -> Verdict {
    let lines = |ran: &Ran| -> Vec<String> {
        let from = ran.stdout.lines().skip_while(|line| !line.contains("block lifetime"));
        from.take_while(|line| !line.is_empty()).map(str::to_string).collect()
    };
    equal("lines", lines(&pair.fio), lines(&pair.fiord))
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, job) in JOBS {
        let of = |kind: &str, format: &str| {
            case(format!("reports/{kind}/{name}"), format!("{format} {job}")).check(success)
        };
        cases.push(of("json", "--output-format=json").check(json_shape).check(text_is_in_order));
        let sections = if job.contains("time_based") { normal_with_samples } else { normal };
        cases.push(of("normal", "").check(sections).check(banner));
        cases.push(of("terse-v3", "--minimal").check(terse));
    }
    for (name, job) in JOBS.iter().take(8) {
        let of = |kind: &str, format: &str| {
            case(format!("reports/{kind}/{name}"), format!("{format} {job}")).check(success)
        };
        cases.push(of("json+", "--output-format=json+").check(json_shape).check(text_is_in_order));
        for version in [2, 4, 5] {
            let format = format!("--output-format=terse --terse-version={version}");
            cases.push(of(&format!("terse-v{version}"), &format).check(terse));
        }
    }
    let job = JOBS[0].1;
    for formats in FORMATS {
        let case = case(format!("reports/formats/{formats}"), format!("--output-format={formats} {job}"));
        cases.push(case.check(success).check(order_of_parts));
    }
    let append = case("reports/formats/append-terse", format!("--append-terse {job}"));
    cases.push(append.check(success).check(order_of_parts));
    // Of more blocks than one, Debian's fio ends with an assertion.
    for (name, more) in
        [("once", ""), ("loops", "--loops=7"), ("list", "--percentile_list=5:10:20:30:40:50:60:70")]
    {
        let job = format!(
            "--name=a --ioengine=null --rw=trim --bs=1m --size=1m --block_error_percentiles=1 {more}"
        );
        let of = |kind: &str, format: &str| {
            case(format!("reports/{kind}/block_error_percentiles-{name}"), format!("{format} {job}"))
                .check(success)
        };
        cases.push(of("json", "--output-format=json").check(json_shape).check(lifetimes_in_json));
        cases.push(of("normal", "").check(normal).check(lifetimes_in_text));
    }
    cases
}
