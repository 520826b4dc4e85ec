//! Strided zones and random distributions.
//!
//! Invariant: where offsets are determined, the files that both programs wrote are compared byte by byte.

use fiord_compat::compare::{counts, equal, json_shape, refused, success};
use fiord_compat::program::Pair;
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, case};

/// Zones that decide every offset of a sequential job.
const STRIDED: &[(&str, &str)] = &[
    ("half", "--zonesize=8k --zonerange=16k"),
    ("skip", "--zonesize=8k --zonerange=8k --zoneskip=8k"),
    ("no-range", "--zonesize=8k --zoneskip=8k"),
    ("cut-off", "--zonesize=12k --zonerange=16k --zoneskip=4k"),
    ("odd-size", "--zonesize=6k --zonerange=16k --zoneskip=4k"),
    ("odd-skip", "--zonesize=16k --zonerange=16k --zoneskip=10k"),
    ("odd-range", "--zonesize=16k --zonerange=18k"),
    ("again", "--zonesize=32k --zonerange=16k --zoneskip=16k"),
    ("beyond", "--zonesize=8k --zonerange=128k"),
    ("offset", "--zonesize=8k --zonerange=12k --offset=8k"),
    ("counted", "--zonesize=16k --zoneskip=1z"),
    ("counted-range", "--zonesize=8k --zonerange=12k --zoneskip=1z"),
    ("counted-size", "--zonesize=16k --size=2z"),
    ("counted-size-range", "--zonesize=8k --zonerange=16k --size=3z"),
    ("counted-offset", "--zonesize=8k --zonerange=12k --offset=2z --size=24k"),
    ("counted-io_size", "--zonesize=8k --zonerange=16k --io_size=3z"),
    ("counted-increment", "--zonesize=8k --offset_increment=2z --size=16k --numjobs=2 --create_serialize=1"),
    ("loops", "--zonesize=8k --zonerange=16k --zoneskip=8k --loops=2"),
    ("io-size", "--zonesize=12k --zonerange=16k --zoneskip=4k --io_size=128k"),
    ("number-ios", "--zonesize=8k --zonerange=16k --number_ios=5"),
];

/// Zones emulated on a file, as `zonemode=zbd` does on what is not zoned: how much is done, and for sequential jobs where.
const EMULATED: &[(&str, &str)] = &[
    ("write", "--rw=write"),
    ("write-capacity", "--rw=write --zonecapacity=6k --bs=2k"),
    ("write-loops", "--rw=write --loops=2"),
    ("write-skip", "--rw=write --zoneskip=16k"),
    ("write-offset", "--rw=write --offset=10k"),
    ("write-part", "--rw=write --size=60k"),
    ("write-zones", "--rw=write --offset=1z --size=2z"),
    ("write-skip-part", "--rw=write --zoneskip=1z --size=60k"),
    ("write-skip-zones", "--rw=write --zoneskip=1z"),
    ("write-increment-zones", "--rw=write --offset_increment=2z --size=1z --numjobs=2"),
    ("write-queued", "--rw=write --ioengine=libaio --iodepth=4"),
    ("randwrite", "--rw=randwrite"),
    ("randwrite-limit", "--rw=randwrite --max_open_zones=2"),
    ("randwrite-job-limit", "--rw=randwrite --max_open_zones=2 --job_max_open_zones=1"),
    ("randwrite-again", "--rw=randwrite --io_size=256k"),
    ("write-io-size", "--rw=write --io_size=6z"),
    ("randwrite-count", "--rw=randwrite --number_ios=7"),
    ("randwrite-offset", "--rw=randwrite --offset=10k --size=44k"),
    ("read-empty", "--rw=read"),
    ("randread-empty", "--rw=randread"),
    ("read-beyond", "--rw=read --read_beyond_wp=1"),
    ("randread-beyond", "--rw=randread --read_beyond_wp=1"),
];

/// Distributions that fio takes; those with a share decide how much is written, not where.
const DISTRIBUTIONS: &[&str] = &[
    "random",
    "zipf",
    "zipf:1.2",
    "zipf:0.8:0.25",
    "pareto:0.2",
    "pareto:0.7:1",
    "normal:20",
    "normal:10:0.1",
    "zoned:60/10:30/20:8/30:2/40",
    "zoned:50/5:30/15:20/",
    "zoned_abs:60/100k:40/400k",
];

/// Values that fio refuses.
const REFUSED: &[&str] = &[
    "--random_distribution=zipf:1",
    "--random_distribution=zipf:1.2:2",
    "--random_distribution=pareto:1",
    "--random_distribution=normal:100",
    "--random_distribution=zoned",
    "--random_distribution=zoned:60/10:30/20",
    "--random_distribution=zoned:60/60:40/60",
    "--random_distribution=zoned_abs:60/1m:40/",
    "--random_distribution=nosuch",
    "--zonemode=nosuch",
    "--zonemode=strided",
    "--zonesize=8k",
    "--zonemode=zbd",
    "--zonemode=zbd --zonesize=256",
    "--zonemode=zbd --zonesize=16k --zonecapacity=32k",
    "--zonemode=zbd --zonesize=16k --rw=write --job_max_open_zones=1",
    "--zonemode=zbd --zonesize=128k",
    "--zonemode=zbd --zonesize=16k --rw=write --bs=32k",
    "--zonemode=zbd --zonesize=16k --rw=write --zoneskip=1",
    "--zonemode=zbd --zonesize=16k --rw=randwrite --offset=4k --size=16k",
];

/// Zones that are reset before they are full.
const RESETS_EARLY: &[(&str, &str)] = &[
    ("each", "--zone_reset_threshold=0.5 --zone_reset_frequency=1"),
    ("fifth", "--zone_reset_threshold=0.5 --zone_reset_frequency=0.2"),
    ("second", "--zone_reset_threshold=0.9 --zone_reset_frequency=0.5"),
    ("third", "--zone_reset_threshold=0.1 --zone_reset_frequency=0.3"),
    ("frequency-alone", "--zone_reset_frequency=1"),
    ("fourth-from-zero", "--zone_reset_threshold=0 --zone_reset_frequency=0.25"),
    ("threshold-alone", "--zone_reset_threshold=0.5"),
];

/// The same blocks of 2 KiB were written.
fn places(pair: &Pair) -> Verdict {
    let written = |text: &str| {
        let blocks = text.as_bytes().chunks(2048).enumerate();
        blocks.filter(|(_, block)| block.contains(&b'a')).map(|(number, _)| number).collect::<Vec<_>>()
    };
    equal("2 KiB written", written(&pair.fio.file("data")?), written(&pair.fiord.file("data")?))
}

/// The file has the same bytes.
fn contents(pair: &Pair) -> Verdict {
    places(pair)?;
    equal("contents are the same", true, pair.fio.file("data")? == pair.fiord.file("data")?)
}

/// Both name the same number of zones reset, or none.
fn resets(pair: &Pair) -> Verdict {
    let named = |text: &str| {
        let found = text.split("; ").nth(1).and_then(|rest| rest.split(" zone resets").next());
        found.and_then(|number| number.parse::<u64>().ok())
    };
    equal("zone resets", named(&pair.fio.stdout), named(&pair.fiord.stdout))
}

/// Cases with `zonemode=strided`.
fn strided(base: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, zones) in STRIDED {
        for engine in ["psync", "libaio"] {
            let line = format!("{base} --ioengine={engine} --rw=write --zonemode=strided {zones}");
            let new = case(format!("zones/strided-{name}-{engine}"), line.clone());
            cases.push(new.check(success).check(counts).check(contents).check(json_shape));
            let longer = case(format!("zones/strided-{name}-{engine}-longer"), line);
            let longer = longer.text("data", "b".repeat(160 << 10));
            let longer = longer.check(success).check(counts);
            // A queued engine of fio's begins again after `size` (docs/divergences.md).
            let begins_again = engine == "libaio" && *name == "io-size";
            cases.push(if begins_again { longer } else { longer.check(contents) });
        }
    }
    for (name, options) in [
        ("random", "--rw=randwrite --zonesize=16k --zonerange=16k --zoneskip=16k"),
        ("random-part", "--rw=randwrite --zonesize=8k --zonerange=16k"),
        ("random-again", "--rw=randwrite --zonesize=32k --zonerange=16k --zoneskip=16k"),
        ("mix", "--rw=randrw --zonesize=16k --zonerange=16k --rwmixread=0"),
    ] {
        let line = format!("{base} {options} --zonemode=strided");
        cases.push(case(format!("zones/strided-{name}"), line).check(success).check(counts));
    }
    cases
}

pub fn cases() -> Vec<Case> {
    let base = "--name=j --filename=data --size=64k --bs=4k --output-format=json --buffer_pattern=0x61";
    let mut cases = Vec::new();
    for (name, options) in EMULATED {
        let line = format!("{base} --zonemode=zbd --zonesize=16k {options}");
        let case = case(format!("zones/emulated-{name}"), line)
            .text("data", "b".repeat(64 << 10))
            .check(success)
            .check(counts)
            .check(json_shape);
        // fio makes a file anew that is too short for the job; fiord extends it.
        let extends = *name == "write-offset";
        cases.push(match name.starts_with("write") {
            true if extends => case.check(places),
            true => case.check(contents),
            false => case,
        });
    }
    for (name, text) in [("none", "--rw=write"), ("some", "--rw=write --loops=3"), ("reads", "--rw=read")] {
        let line =
            format!("--name=j --filename=data --size=64k --zonemode=zbd --zonesize=16k --bs=4k {text}");
        cases.push(
            case(format!("zones/resets-{name}"), line)
                .text("data", "b".repeat(64 << 10))
                .check(success)
                .check(resets),
        );
    }
    for (name, text) in RESETS_EARLY {
        // In one zone, the order in which zones are drawn does not matter.
        for (rw, zones) in [("randwrite", "64k"), ("write", "64k"), ("write", "16k")] {
            let line = format!(
                "--name=j --filename=data --size=64k --zonemode=zbd --zonesize={zones} --bs=4k --rw={rw} --loops=5 {text}"
            );
            cases.push(
                case(format!("zones/resets-early-{rw}-{zones}-{name}"), line)
                    .text("data", "b".repeat(64 << 10))
                    .check(success)
                    .check(resets),
            );
        }
    }
    cases.extend(strided(base));
    for distribution in DISTRIBUTIONS {
        for rw in ["randread", "randwrite"] {
            let line = format!("{base} --size=1m --rw={rw} --random_distribution={distribution}");
            let case = case(format!("distributions/{rw}-{distribution}"), line);
            cases.push(case.check(success).check(counts).check(json_shape));
        }
    }
    for options in REFUSED {
        let case = case(format!("distributions/refused{options}"), format!("{base} --rw=randread {options}"));
        cases.push(case.check(refused));
    }
    cases
}
