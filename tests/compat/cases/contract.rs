//! The byte-level invariants that widely used tools rely on, by their numbers.
//!
//! Invariant: each is checked in fiord's own text; and in fio's, where its version agrees.

use std::process::Command;

use fiord_compat::compare::{DIRECTIONS, equal, exit, success};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, case, program, raw, versions};

const JOB: &str = "--name=a --ioengine=null --rw=randrw --bs=4k --size=1m";
const SECONDS: &str = "--name=a --ioengine=null --rw=randread --bs=4k --size=1m --time_based --runtime=3";

fn documents_follow_each_other(pair: &Pair) -> Verdict {
    let (fio, fiord) = (raw::documents(&pair.fio.stdout), raw::documents(&pair.fiord.stdout));
    if fiord.len() < 2 || fio.len().abs_diff(fiord.len()) > 1 {
        return Err(format!("documents: fio writes {}, fiord {}", fio.len(), fiord.len()));
    }
    if !pair.fiord.stdout.contains("}\n{\n") {
        return Err("documents do not follow each other as `}` newline `{` newline".to_string());
    }
    fiord.iter().try_for_each(|document| program::parse_json(document).map(|_| ()))
}

fn every_direction_is_there(pair: &Pair) -> Verdict {
    for job in pair.fiord.jobs()? {
        for direction in DIRECTIONS {
            if !job[direction]["total_ios"].is_u64() {
                return Err(format!("no {direction} in a job"));
            }
        }
        if !job["sync"]["total_ios"].is_u64() || !job["sync"]["lat_ns"].is_object() {
            return Err("no sync in a job".to_string());
        }
    }
    Ok(())
}

fn options_on_every_job(pair: &Pair) -> Verdict {
    let lacks = |job: &&serde_json::Value| !job["job options"].is_object();
    match pair.fiord.jobs()?.iter().find(lacks) {
        Some(job) => Err(format!("no \"job options\" on {}", job["jobname"])),
        None => Ok(()),
    }
}

fn scraped_lines(pair: &Pair) -> Verdict {
    for start in ["   READ: bw=", "  WRITE: bw=", "     issued rwts: total="] {
        let has = |text: &str| text.lines().any(|line| line.starts_with(start));
        equal(start, has(&pair.fio.stdout), has(&pair.fiord.stdout))?;
    }
    for part in ["  read: IOPS=", "  write: IOPS=", ", BW="] {
        equal(part, pair.fio.stdout.contains(part), pair.fiord.stdout.contains(part))?;
    }
    Ok(())
}

fn terse_fields(fields: usize) -> impl Fn(&Pair) -> Verdict {
    move |pair| {
        let line = pair.fiord.stdout.lines().find(|line| line.contains(';')).unwrap_or_default();
        equal("fields of a job without a disk", fields, line.split(';').count())
    }
}

fn percentiles_stay_below_the_maximum(pair: &Pair) -> Verdict {
    for job in pair.fiord.jobs()? {
        for direction in ["read", "write"] {
            let latency = &job[direction]["clat_ns"];
            let max = latency["max"].as_u64().unwrap_or(0);
            let percentiles = latency["percentile"].as_object().into_iter().flatten();
            if let Some((name, value)) =
                percentiles.into_iter().find(|(_, value)| value.as_u64().unwrap_or(0) > max)
            {
                return Err(format!("{direction}: {name} is {value}, the maximum {max}"));
            }
        }
    }
    Ok(())
}

fn percentiles_are_named(pair: &Pair) -> Verdict {
    raw::percentile_keys(&pair.fio.stdout)?;
    raw::percentile_keys(&pair.fiord.stdout)
}

fn json_alone(pair: &Pair) -> Verdict {
    raw::only_json(&pair.fiord.stdout)?;
    raw::json_text(&pair.fiord.stdout)
}

fn own_name_shows_own_version(pair: &Pair) -> Verdict {
    let mut command = Command::new(&pair.fiord_itself);
    command.arg("version");
    let ran = program::finish(command, "", &pair.beside("version"))?;
    equal("exit status of `fiord version`", 0, ran.status)?;
    if ran.stdout.contains("fiord") {
        Ok(())
    } else {
        Err(format!("`fiord version` prints {:?}", ran.stdout))
    }
}

fn own_name_is_fio_too(pair: &Pair) -> Verdict {
    let mut command = Command::new(&pair.fiord_itself);
    command.arg("--version");
    let ran = program::finish(command, "", &pair.beside("version"))?;
    equal(
        "first line of `fiord --version`",
        Some(versions::FOLLOWED.to_string().as_str()),
        ran.stdout.lines().next(),
    )
}

fn error_is_in_the_document(pair: &Pair) -> Verdict {
    let errors = |jobs: &[serde_json::Value]| {
        jobs.iter().map(|job| job["error"].as_i64() != Some(0)).collect::<Vec<_>>()
    };
    let fiord =
        raw::documents(&pair.fiord.stdout).pop().ok_or("fiord writes no document for a failed run")?;
    let document = program::parse_json(&fiord)?;
    let jobs = document["jobs"].as_array().ok_or("no jobs in the document of a failed run")?;
    if errors(jobs).contains(&true) { Ok(()) } else { Err("no job has an error".to_string()) }
}

/// Requirements on logs and verification.
fn later() -> Vec<Case> {
    let logs = "--write_bw_log=l --write_iops_log=l --write_lat_log=l --log_avg_msec=100";
    let timed =
        "--name=a --ioengine=null --rw=randrw --bs=4k --size=1m --time_based --runtime=1 --rate_iops=500";
    let names = |pair: &Pair| {
        let is_added = |name: &String| versions::ADDED_LOGS.iter().any(|part| name.contains(part));
        let names = |files: Vec<(String, u64)>| -> Vec<String> {
            files.into_iter().map(|(name, _)| name).filter(|name| !is_added(name)).collect()
        };
        equal("log files", names(pair.fio.files()?), names(pair.fiord.files()?))
    };
    let lines = |pair: &Pair| {
        let text = pair.fiord.file("l_bw.1.log")?;
        match text.lines().find(|line| line.split(", ").count() != 5) {
            Some(line) => Err(format!("a log line does not have five fields: {line}")),
            None if text.is_empty() => Err("the log is empty".to_string()),
            None => Ok(()),
        }
    };
    let bins = |pair: &Pair| {
        let text = pair.fiord.file("l_clat_hist.1.log")?;
        let fields = text.lines().next().unwrap_or_default().split(", ").count();
        equal("fields of a histogram line", 3 + 1856, fields)
    };
    vec![
        case("contract/C12-log-names", format!("{timed} {logs}")).check(success).check(names),
        case("contract/C12-log-names-of-jobs", format!("{timed} --numjobs=2 {logs}"))
            .check(success)
            .check(names),
        case("contract/C12-per_job_logs-off", format!("{timed} --per_job_logs=0 {logs}"))
            .check(success)
            .check(names),
        case("contract/C13-log-lines", format!("{timed} {logs}")).check(success).check(lines),
        case("contract/C14-histogram-log", format!("{timed} --write_hist_log=l --log_hist_msec=200"))
            .check(success)
            .check(bins),
        case(
            "contract/C19-verify-failed",
            "--name=a --rw=read --filename=f --bs=4k --verify=crc32c --size=64k",
        )
        .bytes("f", 65_536)
        .check(exit)
        .check(|pair: &Pair| {
            let output = [pair.fiord.stdout.as_str(), pair.fiord.stderr.as_str()].concat();
            if output.contains("verify: bad") || output.contains("verify failed") {
                Ok(())
            } else {
                Err("no verify error".to_string())
            }
        }),
    ]
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let json =
        |name: &str, job: &str| case(format!("contract/{name}"), format!("--output-format=json {job}"));
    let terse = |version: u32, fields: usize| {
        let args = format!("--output-format=terse --terse-version={version} {JOB}");
        case(format!("contract/C15-terse-v{version}"), args).check(success).check(terse_fields(fields))
    };
    let mut cases = vec![
        json("C1-json-text", JOB).check(success).check(json_alone),
        json("C2-status-interval", &format!("--status-interval=1 {SECONDS}")).check(success).check(documents_follow_each_other),
        json("C3-silent-when-direct", "--name=a --rw=read --size=64k --bs=4k --direct=1").check(success),
        json("C5-json-with-layout", "--name=a --rw=randread --size=1m --bs=4k").check(success).check(json_alone),
        json("C5-json-with-numjobs", &format!("{JOB} --numjobs=4")).check(success).check(json_alone),
        json("C6-types-of-a-longer-run", SECONDS).check(success).check(json_alone),
        json("C7-percentile-keys", JOB).check(success).check(percentiles_are_named),
        json("C9-options-under-group-reporting", &format!("{JOB} --numjobs=3 --group_reporting")).check(options_on_every_job),
        json("C9-options-on-every-job", &format!("{JOB} --name=b --ioengine=null --size=4k")).check(options_on_every_job),
        json("C10-every-direction", "--name=a --ioengine=null --rw=read --size=64k").check(every_direction_is_there),
        case("contract/C15-minimal-is-v3", format!("--minimal {JOB}")).check(success).check(terse_fields(121)),
        terse(2, 161),
        terse(3, 121),
        terse(4, 162),
        terse(5, 180),
        case("contract/C16-scraped-lines", JOB).check(success).check(scraped_lines),
        case("contract/C17-own-version", "--version").check(own_name_shows_own_version),
        case("contract/C17-fio-version", "--version").check(own_name_is_fio_too),
        // divergence: high percentiles
        json("percentiles-below-maximum", JOB).check(percentiles_stay_below_the_maximum),
        json("document-of-a-failed-run", "--name=a --ioengine=psync --rw=read --filename=f --size=64k --bs=4k --ioengine=psync --max_latency=1ns")
            .bytes("f", 65_536)
            .check(error_is_in_the_document),
    ];
    cases.extend(later());
    cases
}
