//! I/Os with priorities of their own: which values are accepted, how many I/Os each priority gets, and how their
//! latencies are reported.
//!
//! Invariant: shares are drawn at random, so counts are compared by their deviation; where all or none have a priority
//! they are equal.

use fiord_compat::compare::{counts, equal, exit, success, verdict};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, Ran, case};

/// Options whose I/Os have priorities.
const RUNS: &[(&str, &str)] = &[
    ("percentage", "--rw=randrw --cmdprio_percentage=30"),
    ("percentage-0", "--rw=randrw --cmdprio_percentage=0"),
    ("percentage-100", "--rw=randrw --cmdprio_percentage=100"),
    ("percentage-read", "--rw=randread --cmdprio_percentage=50"),
    ("percentage-write", "--rw=write --cmdprio_percentage=50"),
    ("percentage-per-direction", "--rw=randrw --cmdprio_percentage=100,0"),
    ("percentage-writes-alone", "--rw=randrw --cmdprio_percentage=0,50"),
    ("class-and-level", "--rw=randrw --cmdprio_percentage=50 --cmdprio_class=2 --cmdprio=3"),
    ("class-per-direction", "--rw=randrw --cmdprio_percentage=50 --cmdprio_class=2,3 --cmdprio=3,7"),
    ("beside-the-jobs", "--rw=randrw --cmdprio_percentage=50 --prioclass=2 --prio=4"),
    (
        "like-the-jobs",
        "--rw=randrw --cmdprio_percentage=50 --prioclass=2 --prio=4 --cmdprio_class=2 --cmdprio=4",
    ),
    ("class-alone", "--rw=randrw --cmdprio_class=1"),
    ("bssplit", "--rw=randrw --bssplit=4k/50:8k/50 --cmdprio_bssplit=4k/100"),
    ("bssplit-none", "--rw=randrw --bssplit=4k/50:8k/50 --cmdprio_bssplit=4k/100:8k/0"),
    ("bssplit-per-direction", "--rw=randrw --bssplit=4k/50:8k/50 --cmdprio_bssplit=4k/50,8k/50"),
    ("bssplit-classes", "--rw=randrw --bssplit=4k/50:8k/50 --cmdprio_bssplit=4k/50/1/3:4k/25/2/2:8k/10/3/0"),
    ("bssplit-mixed-forms", "--rw=randrw --bssplit=4k/50:8k/50 --cmdprio_bssplit=4k/50/1/3:4k/20"),
    ("bssplit-other-size", "--rw=randrw --cmdprio_bssplit=16k/50"),
    ("bssplit-level-alone", "--rw=randrw --cmdprio_bssplit=4k/50/0/1"),
    ("bssplit-too-large", "--rw=randrw --cmdprio_bssplit=4k/101/4/8"),
    ("bssplit-no-percentage", "--rw=randrw --cmdprio_bssplit=4k"),
    ("percentage-0-and-bssplit", "--rw=randrw --cmdprio_percentage=0 --cmdprio_bssplit=4k/10"),
    ("lat_percentiles", "--rw=randrw --cmdprio_percentage=30 --lat_percentiles=1"),
    ("no-clat_percentiles", "--rw=randrw --cmdprio_percentage=30 --clat_percentiles=0"),
    ("disable_clat", "--rw=randrw --cmdprio_percentage=30 --disable_clat=1"),
    ("gtod_reduce", "--rw=randrw --cmdprio_percentage=30 --gtod_reduce=1"),
    ("unified", "--rw=randrw --cmdprio_percentage=30 --unified_rw_reporting=mixed"),
    ("unified-both", "--rw=randrw --cmdprio_percentage=30 --unified_rw_reporting=both"),
    ("group", "--rw=randread --cmdprio_percentage=50 --numjobs=2 --group_reporting"),
    (
        "group-of-different",
        "--rw=randread --group_reporting --cmdprio_percentage=50 --name=b --cmdprio_class=2 --prioclass=3",
    ),
];

/// Groups of jobs on any engine that have different priorities.
const GROUPS: &[(&str, &str)] = &[
    ("group-psync", "--ioengine=psync --prioclass=2 --name=a --prio=3 --name=b --prio=4"),
    ("group-same", "--ioengine=psync --prioclass=2 --name=a --prio=3 --name=b --prio=3"),
    ("group-none-and-one", "--ioengine=libaio --name=a --name=b --prioclass=2 --prio=4"),
];

/// Values that are accepted or refused by both; one that fails fails the run.
const VALUES: &[&str] = &[
    "--cmdprio_percentage=101",
    "--cmdprio_percentage=x",
    "--cmdprio_percentage=10,20,30",
    "--cmdprio_percentage=30 --cmdprio_class=0",
    "--cmdprio_percentage=30 --cmdprio_class=4",
    "--cmdprio_percentage=30 --cmdprio=8",
    "--cmdprio_bssplit=4k/50/1/3:4k/60/2/2",
    "--cmdprio_bssplit=4k/50/1",
    "--cmdprio_bssplit=x",
    "--cmdprio_bssplit=",
    "--cmdprio_bssplit=4k/50 --cmdprio_percentage=20",
    "--cmdprio_bssplit=4k/0",
    "--ioengine=psync --cmdprio_percentage=30",
    "--ioengine=null --cmdprio_bssplit=4k/30",
];

/// Of each job and direction: the latency that is listed by priority, and class, level and number of I/Os of each.
type Tables = Vec<(String, Vec<(u64, u64, u64)>)>;

fn tables(ran: &Ran) -> Result<Tables, String> {
    let mut tables = Tables::new();
    for (number, job) in ran.jobs()?.iter().enumerate() {
        for direction in ["read", "write", "trim", "mixed"] {
            let Some(list) = job[direction]["prios"].as_array() else { continue };
            let kind = if list[0]["lat_ns"].is_object() { "lat_ns" } else { "clat_ns" };
            let percentiles = list[0][kind]["percentile"].as_object().map_or(0, |list| list.len());
            let integer = |value: &serde_json::Value| value.as_u64().unwrap_or(u64::MAX);
            let entry = |each: &serde_json::Value| {
                (integer(&each["prioclass"]), integer(&each["prio"]), integer(&each[kind]["N"]))
            };
            let name = format!("job {number} {direction} {kind} with {percentiles} percentiles");
            tables.push((name, list.iter().map(entry).collect()));
        }
    }
    Ok(tables)
}

/// The same priorities in the same order, with numbers of I/Os that differ by no more than chance.
fn the_same_tables(pair: &Pair) -> Verdict {
    let (fio, fiord) = (tables(&pair.fio)?, tables(&pair.fiord)?);
    let differ = || Err(format!("latencies by priority: fio has {fio:?}, fiord {fiord:?}"));
    if fio.len() != fiord.len() {
        return differ();
    }
    for ((fio_name, fio_list), (name, list)) in fio.iter().zip(&fiord) {
        let keys = |list: &[(u64, u64, u64)]| -> Vec<(u64, u64)> {
            list.iter().map(|(class, level, _)| (*class, *level)).collect()
        };
        let total = fio_list.iter().map(|entry| entry.2).sum::<u64>().max(1) as f64;
        // Two counts of n draws differ with a deviation of at most sqrt(n/2); six of them do not happen.
        let limit = 6.0 * (total / 2.0).sqrt();
        let is_near = |(a, b): (&(u64, u64, u64), &(u64, u64, u64))| (a.2.abs_diff(b.2) as f64) < limit;
        if name != fio_name || keys(fio_list) != keys(list) || !fio_list.iter().zip(list).all(is_near) {
            return differ();
        }
    }
    Ok(())
}

/// The lines of normal text on priorities, without figures; fio 3.33 has no hint in them.
fn the_same_lines(pair: &Pair) -> Verdict {
    let lines = |ran: &Ran| -> Vec<String> {
        let lines = ran.stdout.lines().filter(|line| line.contains(" prio "));
        lines.map(|line| line.split('(').next().unwrap_or_default().trim().to_string()).collect()
    };
    let fio: Vec<String> = lines(&pair.fio).into_iter().map(|line| format!("{line}/0")).collect();
    let fiord = lines(&pair.fiord);
    match fio == fiord && !fio.is_empty() {
        true => Ok(()),
        false => Err(format!("lines on priorities: fio has {fio:?}, fiord {fiord:?}")),
    }
}

/// The priorities in a log, each once.
fn logged(ran: &Ran) -> Result<Vec<String>, String> {
    let text = ran.file("l_clat.1.log")?;
    let mut found: Vec<String> = text
        .lines()
        .filter_map(|line| line.split(", ").nth(4))
        .map(|column| column.trim().to_string())
        .collect();
    found.sort();
    found.dedup();
    Ok(found)
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let target = "--filename=given --size=1m --bs=4k --direct=1 --iodepth=4";
    let runs = ["libaio", "io_uring"].into_iter().flat_map(|engine| {
        RUNS.iter().map(move |(name, args)| {
            let args = format!("--output-format=json --ioengine={engine} {target} --name=a {args}");
            let case = case(format!("priorities/{name}-{engine}"), args).bytes("given", 1 << 20);
            case.check(success).check(the_same_tables)
        })
    });
    let groups = GROUPS.iter().map(|(name, args)| {
        let args = format!("--output-format=json {target} --iodepth=1 --group_reporting {args}");
        let case = case(format!("priorities/{name}"), args).bytes("given", 1 << 20);
        case.check(success).check(counts).check(the_same_tables)
    });
    let values = VALUES.iter().map(|args| {
        let line = format!("--ioengine=io_uring {target} --name=a {args}");
        case(format!("priorities/value{args}"), line).bytes("given", 1 << 20).check(verdict)
    });
    let normal =
        ["--cmdprio_percentage=40 --cmdprio_class=2,3", "--cmdprio_percentage=40 --lat_percentiles=1"];
    let normal = normal.into_iter().map(|args| {
        let line = format!("--ioengine=libaio {target} --rw=randrw --name=a {args}");
        let case = case(format!("priorities/normal{args}"), line).bytes("given", 1 << 20);
        case.check(exit).check(the_same_lines)
    });
    let logs = ["--log_prio=0", "--log_prio=1", "--log_prio=1 --cmdprio_class=2 --cmdprio=5 --prioclass=3"];
    let logs = logs.into_iter().map(|args| {
        let line = format!(
            "--ioengine=io_uring {target} --rw=randrw --write_lat_log=l --cmdprio_percentage=50 --name=a {args}"
        );
        let case = case(format!("priorities/log{args}"), line).bytes("given", 1 << 20);
        case.check(exit).check(|pair: &Pair| {
            equal("priorities", logged(&pair.fio)?, logged(&pair.fiord)?)
        })
    });
    runs.chain(groups).chain(values).chain(normal).chain(logs).collect()
}
