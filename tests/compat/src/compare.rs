//! The comparisons that cases choose from.
//!
//! Invariant: structure, counts and verdicts are compared, speeds and times never.

use serde_json::{Map, Value};

use crate::program::{Pair, Ran};
use crate::shape;
use crate::verdict::Verdict;
use crate::versions::{self, Version};

/// The three directions of a job in JSON.
pub const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// `Ok` if both are equal; otherwise both values.
pub fn equal<T: PartialEq + std::fmt::Debug>(what: &str, fio: T, fiord: T) -> Verdict {
    if fio == fiord { Ok(()) } else { Err(format!("{what}: fio has {fio:?}, fiord {fiord:?}")) }
}

/// Equal exit statuses.
pub fn exit(pair: &Pair) -> Verdict {
    equal("exit status", pair.fio.status, pair.fiord.status)
}

/// Both succeed or both fail; a failure has a message.
pub fn verdict(pair: &Pair) -> Verdict {
    equal("accepted", pair.fio.status == 0, pair.fiord.status == 0)?;
    if pair.fiord.status == 0 { Ok(()) } else { says_why(&pair.fiord) }
}

/// Both succeed, and fiord writes nothing to stderr (C3).
pub fn success(pair: &Pair) -> Verdict {
    equal("exit status", (0, 0), (pair.fio.status, pair.fiord.status)).map_err(|_| {
        format!("both should succeed: fio exits with {}, fiord with {}", pair.fio.status, pair.fiord.status)
    })?;
    if pair.fiord.stderr.is_empty() {
        Ok(())
    } else {
        Err("fiord succeeds, and writes to stderr".to_string())
    }
}

/// Both fail, and fiord has a message.
pub fn refused(pair: &Pair) -> Verdict {
    if pair.fio.status == 0 || pair.fiord.status == 0 {
        return Err(format!(
            "both should fail: fio exits with {}, fiord with {}",
            pair.fio.status, pair.fiord.status
        ));
    }
    says_why(&pair.fiord)
}

fn says_why(ran: &Ran) -> Verdict {
    let output = [ran.stderr.trim(), ran.stdout.trim()].concat();
    if output.is_empty() { Err("fiord fails without a message".to_string()) } else { Ok(()) }
}

/// Equal standard output.
pub fn stdout(pair: &Pair) -> Verdict {
    if pair.fio.stdout == pair.fiord.stdout {
        return Ok(());
    }
    let first = pair.fio.stdout.lines().zip(pair.fiord.stdout.lines()).find(|(fio, fiord)| fio != fiord);
    match first {
        Some((fio, fiord)) => Err(format!("output differs:\n  fio:   {fio}\n  fiord: {fiord}")),
        None => Err("output differs in length".to_string()),
    }
}

/// Equal names and sizes of the remaining files.
pub fn files(pair: &Pair) -> Verdict {
    equal("files left", pair.fio.files()?, pair.fiord.files()?)
}

/// Each pair of jobs, in order; both must have the same number.
fn each_job(pair: &Pair, check: impl Fn(&str, &Value, &Value) -> Verdict) -> Verdict {
    let (fio, fiord) = (pair.fio.jobs()?, pair.fiord.jobs()?);
    equal("number of jobs", fio.len(), fiord.len())?;
    fio.iter().zip(fiord).enumerate().try_for_each(|(index, (fio, fiord))| {
        let name = format!("job {index}");
        equal(&format!("{name} jobname"), &fio["jobname"], &fiord["jobname"])?;
        check(&name, fio, fiord)
    })
}

/// Equal counts and bytes of every job, group numbers, errors, syncs.
pub fn counts(pair: &Pair) -> Verdict {
    each_job(pair, |name, fio, fiord| {
        for key in ["groupid", "error"] {
            equal(&format!("{name} {key}"), &fio[key], &fiord[key])?;
        }
        for direction in DIRECTIONS {
            for key in ["total_ios", "io_bytes", "io_kbytes", "drop_ios"] {
                equal(&format!("{name} {direction} {key}"), &fio[direction][key], &fiord[direction][key])?;
            }
        }
        syncs_and_short_transfers(name, fio, fiord, pair.oracle)
    })
}

/// Equal numbers of syncs and of short transfers, unless fio confuses them (`versions::MISCOUNTS_SYNCS`).
fn syncs_and_short_transfers(name: &str, fio: &Value, fiord: &Value, oracle: Version) -> Verdict {
    let timed = fio["sync"]["lat_ns"]["N"].as_u64().unwrap_or(0);
    equal(&format!("{name} syncs"), timed, figure(fiord, "sync", "total_ios"))?;
    if versions::MISCOUNTS_SYNCS.holds(oracle) && timed != figure(fio, "sync", "total_ios") {
        return Ok(());
    }
    DIRECTIONS.iter().try_for_each(|direction| {
        let short = |job| figure(job, direction, "short_ios");
        equal(&format!("{name} {direction} short_ios"), short(fio), short(fiord))
    })
}

/// A figure of a job as an integer; 0 if it is missing.
pub fn figure(job: &Value, direction: &str, key: &str) -> u64 {
    job[direction][key].as_u64().unwrap_or(0)
}

fn sum(job: &Value, key: &str) -> u64 {
    DIRECTIONS.iter().map(|direction| figure(job, direction, key)).sum()
}

/// Equal sums over the directions, and shares that differ only by random variation.
///
/// The programs choose the next operation with different generators; with n operations, a share has a standard
/// deviation of at most sqrt(1/4n), so a difference of six times that is not random.
pub fn mix(pair: &Pair) -> Verdict {
    each_job(pair, |name, fio, fiord| {
        for key in ["total_ios", "io_bytes"] {
            equal(&format!("{name} {key} of all directions"), sum(fio, key), sum(fiord, key))?;
        }
        Ok(())
    })?;
    shares(pair)
}

/// Shares of the directions that differ only by random variation for this number of operations.
pub fn shares(pair: &Pair) -> Verdict {
    each_job(pair, |name, fio, fiord| {
        let total = |job| sum(job, "total_ios") as f64;
        let tolerance = 6.0 * (0.25 / total(fio).min(total(fiord))).sqrt();
        for direction in DIRECTIONS {
            let share = |job| figure(job, direction, "total_ios") as f64 / total(job);
            let (fio, fiord) = (share(fio), share(fiord));
            // Without operations there are no shares.
            if (fio - fiord).abs() > tolerance || !tolerance.is_finite() {
                return Err(format!(
                    "{name} share of {direction}: fio {fio:.3}, fiord {fiord:.3}, allowed ±{tolerance:.3}"
                ));
            }
        }
        Ok(())
    })
}

/// The percentages of one of the tables of depths and batches, by bucket.
fn table(name: &str, job: &Value) -> Result<Vec<(String, f64)>, String> {
    let buckets = job[name].as_object().ok_or_else(|| format!("no {name}"))?;
    buckets
        .iter()
        .map(|(label, share)| {
            Ok((label.clone(), share.as_f64().ok_or(format!("{name} {label}: no number"))?))
        })
        .collect()
}

/// Shares of each bucket of a table that differ by less than 5 points.
pub fn table_shares(table_name: &str, pair: &Pair) -> Verdict {
    each_job(pair, |name, fio, fiord| {
        let (fio, fiord) = (table(table_name, fio)?, table(table_name, fiord)?);
        let near = |(a, b): (&(String, f64), &(String, f64))| a.0 == b.0 && (a.1 - b.1).abs() < 5.0;
        match fio.len() == fiord.len() && fio.iter().zip(&fiord).all(near) {
            true => Ok(()),
            false => Err(format!("{name} {table_name}: fio {fio:?}, fiord {fiord:?}")),
        }
    })
}

/// The same bucket of a table has the largest share, or none has any.
pub fn table_peak(table_name: &str, pair: &Pair) -> Verdict {
    each_job(pair, |name, fio, fiord| {
        let peak = |job: &Value| {
            let peak = table(table_name, job)?.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
            Ok::<_, String>(peak.filter(|(_, share)| *share > 0.0).map(|(label, _)| label))
        };
        equal(&format!("{name} largest share of {table_name}"), peak(fio)?, peak(fiord)?)
    })
}

/// Bytes per direction that differ by no more than one block: both stop at the first block that reaches the size.
pub fn bytes_within(block_bytes: u64) -> impl Fn(&Pair) -> Verdict {
    move |pair| {
        each_job(pair, |name, fio, fiord| {
            for direction in DIRECTIONS {
                let (fio, fiord) = (figure(fio, direction, "io_bytes"), figure(fiord, direction, "io_bytes"));
                if fio.abs_diff(fiord) > block_bytes {
                    return Err(format!(
                        "{name} {direction} bytes: fio {fio}, fiord {fiord}, allowed ±{block_bytes}"
                    ));
                }
            }
            Ok(())
        })
    }
}

/// Numbers of I/Os per direction within a share of fio's, for random sizes.
pub fn ios_within(share: f64) -> impl Fn(&Pair) -> Verdict {
    move |pair| {
        each_job(pair, |name, fio, fiord| {
            for direction in DIRECTIONS {
                let (fio, fiord) =
                    (figure(fio, direction, "total_ios"), figure(fiord, direction, "total_ios"));
                if (fio as f64 - fiord as f64).abs() > share * fio as f64 {
                    return Err(format!(
                        "{name} {direction} I/Os: fio {fio}, fiord {fiord}, allowed ±{share}"
                    ));
                }
            }
            Ok(())
        })
    }
}

/// Options echoed as typed, where they were typed, in fio's order (C8, C9).
pub fn echo(pair: &Pair) -> Verdict {
    let globals = |ran: &'_ Ran| {
        Ok::<_, String>(ran.json()?["global options"].as_object().cloned().unwrap_or_default())
    };
    echoed("global options", &globals(&pair.fio)?, &globals(&pair.fiord)?, pair.oracle)?;
    each_job(pair, |name, fio, fiord| {
        let options = |job: &Value| job["job options"].as_object().cloned();
        match (options(fio), options(fiord)) {
            (_, None) => Err(format!("{name}: no \"job options\"")),
            (fio, Some(fiord)) => echoed(name, &fio.unwrap_or_default(), &fiord, pair.oracle),
        }
    })
}

fn echoed(place: &str, fio: &Map<String, Value>, fiord: &Map<String, Value>, oracle: Version) -> Verdict {
    let known = |(key, value): &(&String, &Value)| {
        fio.contains_key(*key) || !(versions::ECHOES_NO_BARE_FLAGS.holds(oracle) && *value == "")
    };
    let fiord: Vec<(&String, &Value)> = fiord.iter().filter(known).collect();
    equal(&format!("{place}: options echoed"), fio.iter().collect::<Vec<_>>(), fiord)
}

/// Equal keys, order and types of the whole document.
pub fn json_shape(pair: &Pair) -> Verdict {
    shape::compare(pair.fio.json()?, pair.fiord.json()?, pair.oracle)
}

/// Equal lines of issued I/Os.
pub fn issued(pair: &Pair) -> Verdict {
    let lines = |ran: &Ran| -> Vec<String> {
        ran.stdout
            .lines()
            .filter(|line| line.starts_with("     issued rwts: total="))
            .map(String::from)
            .collect()
    };
    let fio = lines(&pair.fio);
    if fio.is_empty() {
        return Err("fio's report has no `issued rwts`".to_string());
    }
    equal("issued", fio, lines(&pair.fiord))
}

/// Terse lines: the same number, with the same number of fields, of the same kinds.
pub fn terse(pair: &Pair) -> Verdict {
    let lines = |ran: &Ran| -> Vec<Vec<&'static str>> {
        let lines = ran.stdout.lines().filter(|line| line.contains(';'));
        lines.map(|line| line.split(';').map(field_kind).collect()).collect()
    };
    let (fio, fiord) = (lines(&pair.fio), lines(&pair.fiord));
    equal("terse lines", fio.len(), fiord.len())?;
    for (fio, fiord) in fio.iter().zip(&fiord) {
        equal("fields", fio.len(), fiord.len())?;
        if let Some(index) = fio.iter().zip(fiord).position(|(fio, fiord)| fio != fiord) {
            return Err(format!("field {}: {} in fio, {} here", index + 1, fio[index], fiord[index]));
        }
    }
    if fio.is_empty() { Err("no terse line".to_string()) } else { Ok(()) }
}

fn field_kind(field: &str) -> &'static str {
    let number = |text: &str| !text.is_empty() && text.parse::<f64>().is_ok();
    match field {
        "" => "empty",
        _ if number(field) && field.contains('.') => "decimals",
        _ if number(field) => "an integer",
        _ if field.strip_suffix('%').is_some_and(number) => "percent",
        _ if field.split_once("%=").is_some_and(|(percent, value)| number(percent) && number(value)) => {
            "percentile"
        }
        _ => "text",
    }
}

/// Normal text: the same sections in the same order, except for the lines on samples of bandwidth and IOPS, which
/// depend on whether a run was long enough for one.
pub fn normal(pair: &Pair) -> Verdict {
    let of_samples = |head: &String| ["   bw", "   iops"].iter().any(|start| head.starts_with(start));
    let heads =
        |ran: &Ran| heads(&ran.stdout, pair.oracle).into_iter().filter(|head| !of_samples(head)).collect();
    same_heads(heads(&pair.fio), heads(&pair.fiord))
}

/// `normal` for runs of seconds, which have samples.
pub fn normal_with_samples(pair: &Pair) -> Verdict {
    same_heads(heads(&pair.fio.stdout, pair.oracle), heads(&pair.fiord.stdout, pair.oracle))
}

fn same_heads(fio: Vec<String>, fiord: Vec<String>) -> Verdict {
    if let Some(index) = fio.iter().zip(&fiord).position(|(fio, fiord)| fio != fiord) {
        return Err(format!("section {index}: fio has {:?}, fiord {:?}", fio[index], fiord[index]));
    }
    equal("sections", fio.get(fiord.len()..), fiord.get(fio.len()..)).or_else(|why| {
        match fio.len() == fiord.len() {
            true => Ok(()),
            false => Err(why),
        }
    })
}

/// The beginning of each line up to its first figure, repeated ones once, because the number of lines of a
/// distribution depends on speed.
fn heads(text: &str, oracle: Version) -> Vec<String> {
    let mut heads: Vec<String> = Vec::new();
    // fiord's additions follow fio's report.
    let text = versions::ADDED_TEXTS
        .iter()
        .fold(text, |text, added| text.split_once(added).map_or(text, |(report, _)| report));
    // Notes may differ.
    for line in text.lines().filter(|line| !line.starts_with("note: ")) {
        let indent = line.len() - line.trim_start().len();
        let body = line.trim_start();
        let end = body.find(['=', '(', '|', '[']).unwrap_or(body.len());
        let mut head = format!("{}{}", " ".repeat(indent), body[..end].trim_end());
        if line.starts_with("fio-") {
            head = "fio-VERSION".to_string();
        }
        head = versions::common_line(&head, oracle);
        if heads.last() != Some(&head) {
            heads.push(head);
        }
    }
    heads
}

/// The lines of `--debug=io` on each I/O as `WHAT OFFSET,len=…,ddir=…,file=…`, without threads and addresses. What fio
/// prepares but does not issue has none.
pub fn debug_io(stdout: &str) -> Vec<String> {
    let io = stdout.lines().filter(|line| line.starts_with("io  "));
    let of_io = io.filter_map(|line| line.split_once(": io_u 0x"));
    let without = of_io.filter_map(|(what, rest)| {
        let what = what.rsplit(' ').next()?;
        Some(format!("{what} {}", rest.split_once(": off=")?.1))
    });
    without.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_terse_fields() {
        let kinds: Vec<&str> =
            "3;fio-3.42;;0.500000;12;1.00%;99.000000%=12".split(';').map(field_kind).collect();
        assert_eq!(kinds, ["an integer", "text", "empty", "decimals", "an integer", "percent", "percentile"]);
    }

    #[test]
    fn heads_do_not_depend_on_figures() {
        let one = "  read: IOPS=1k\n  lat (nsec)   : 1=2%\n  lat (usec)   : 2=3%\n     | 1.00th=[ 1]\n     | 2.0th=[ 3]\n";
        let other = "  read: IOPS=22\n  lat (msec)   : 7=2%\n     | 1.00th=[ 9]\n";
        let heads = |text| super::heads(text, versions::FOLLOWED);
        assert_eq!(heads(one), heads(other));
        assert_eq!(heads(one).len(), 3);
    }
}
