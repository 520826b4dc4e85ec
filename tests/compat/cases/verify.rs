//! Verification: both programs count and find the same, and exchange the states of interrupted jobs.
//!
//! Invariant: a case that crosses the programs does so both ways. Methods, sizes and intervals are crossed in
//! `verify_cross.rs`.

use std::path::Path;
use std::process::Command;

use fiord_compat::compare::{counts, equal, exit, figure, files, success};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, case, program, versions};

/// What is counted the same by both.
const COUNTED: &[(&str, &str)] = &[
    ("write", "--rw=write"),
    ("loops", "--rw=write --loops=3"),
    ("no-read-back", "--rw=write --do_verify=0"),
    ("no-read-back-of-a-backlog", "--rw=write --do_verify=0 --verify_backlog=4"),
    ("backlog", "--rw=write --verify_backlog=4"),
    ("backlog-in-batches", "--rw=randwrite --verify_backlog=8 --verify_backlog_batch=3"),
    ("backlog-queued", "--rw=randwrite --verify_backlog=5 --ioengine=libaio --iodepth=4"),
    ("number_ios", "--rw=write --number_ios=5"),
    ("io_size-smaller", "--rw=write --io_size=32k"),
    ("interval", "--rw=write --verify_interval=512"),
    ("interval-larger-than-block", "--rw=write --verify_interval=8k"),
    ("fsync", "--rw=write --fsync=4"),
    ("several-files", "--rw=randwrite --nrfiles=4"),
    ("zero-buffers", "--rw=write --zero_buffers"),
    ("compressible", "--rw=write --buffer_compress_percentage=50"),
    ("null-engine", "--rw=write --ioengine=null"),
    ("mmap", "--rw=write --ioengine=mmap"),
    ("async", "--rw=write --verify_async=2"),
    ("async-queued", "--rw=randwrite --verify_async=3 --verify_async_cpus=0 --ioengine=libaio --iodepth=8"),
    // divergence: `experimental_verify`
    ("experimental", "--rw=write --experimental_verify=1"),
    ("blocks-apart-by-less-than-a-sector", "--rw=write:2"),
    ("blocks-of-no-whole-sectors", "--rw=write --bs=1000 --size=40000"),
];

/// Trims of what was written, on a device: fio aborts with any `rw` that does not trim anyway.
const TRIMMED: &[(&str, &str)] = &[
    ("all", "--rw=trimwrite --trim_percentage=100 --trim_backlog=16"),
    ("at-random", "--rw=randtrimwrite --trim_percentage=100 --trim_backlog=16"),
    ("in-small-batches", "--rw=trimwrite --trim_percentage=100 --trim_backlog=16 --trim_backlog_batch=4"),
    ("none", "--rw=trimwrite --trim_percentage=0 --trim_backlog=16"),
    ("not-verified", "--rw=trimwrite --trim_percentage=100 --trim_backlog=16 --do_verify=0"),
];

/// Runs the reader on what the writer left.
pub(super) fn verify(reader: &Path, dir: &Path, arguments: &str) -> Result<program::Ran, String> {
    let mut command = Command::new(reader);
    command.args(arguments.split(' ').filter(|word| !word.is_empty())).current_dir(dir);
    program::finish(command, "", dir)
}

/// Damages block 2 of what each program wrote, and lets both read it: all find it at the same place.
fn both_find(damage: fn(&mut [u8]), reading: &'static str) -> impl Fn(&Pair) -> Verdict {
    move |pair| {
        for dir in [&pair.fio.dir, &pair.fiord.dir] {
            let path = dir.join("f");
            let mut bytes = std::fs::read(&path).map_err(|error| error.to_string())?;
            damage(&mut bytes);
            std::fs::write(&path, bytes).map_err(|error| error.to_string())?;
            let fio = verify(&pair.programs.0, dir, reading)?;
            let fiord = verify(&pair.programs.1, dir, reading)?;
            equal("a failure", fio.status != 0, fiord.status != 0)?;
            let place = |text: &str| -> Option<String> {
                let line = text
                    .lines()
                    .find(|line| line.contains("verify: bad") || line.contains("verify failed"))?;
                let from = line.find("verify: bad").or_else(|| line.find("verify failed"))?;
                // fio adds flags of its own at the end.
                Some(line[from..].split(", flags").next()?.trim_end_matches(')').to_string())
            };
            equal("what is found", place(&fio.stderr), place(&fiord.stderr))?;
        }
        Ok(())
    }
}

/// A kind of damage, and what does it.
type Damage = (&'static str, fn(&mut [u8]));

fn damaged() -> Vec<Case> {
    const READING: &str =
        "--name=v --filename=f --size=64k --bs=4k --rw=read --ioengine=psync --verify=crc32c";
    let writing = "--name=v --filename=f --size=64k --bs=4k --rw=write --ioengine=psync --verify=crc32c";
    let damages: &[Damage] = &[
        ("flipped-data", |bytes| bytes[2 * 4096 + 1000] ^= 1),
        ("flipped-magic", |bytes| bytes[2 * 4096] ^= 1),
        ("flipped-length", |bytes| bytes[2 * 4096 + 4] ^= 1),
        ("flipped-seed", |bytes| bytes[2 * 4096 + 9] ^= 1),
        ("flipped-offset", |bytes| bytes[2 * 4096 + 17] ^= 1),
        ("flipped-header-checksum", |bytes| bytes[2 * 4096 + 37] ^= 1),
        ("zeroed", |bytes| bytes[2 * 4096..3 * 4096].fill(0)),
        ("torn", |bytes| bytes[2 * 4096 + 1024..3 * 4096].fill(0)),
        ("swapped", |bytes| {
            let (front, back) = bytes.split_at_mut(3 * 4096);
            front[2 * 4096..].swap_with_slice(&mut back[..4096]);
        }),
        ("intact", |_| ()),
    ];
    let case = |&(name, damage): &Damage| {
        case(format!("verify/{name}"), writing)
            .own("--verify_header_format=3.33")
            .check(success)
            .check(both_find(damage, READING))
    };
    damages.iter().map(case).collect()
}

// divergence: `verify_state_load` of the other program's state
/// fio takes a state of fiord for its own and reads blocks that were not written; fiord refuses one of fio.
fn foreign_order(pair: &Pair, reading: &str) -> Verdict {
    let fiord = verify(&pair.programs.1, &pair.fio.dir, reading)?;
    equal("fiord's exit status", 1, fiord.status)?;
    equal(&fiord.output(), true, fiord.stderr.contains("order"))?;
    let fio = verify(&pair.programs.0, &pair.fiord.dir, reading)?;
    let is_blamed = fio.status != 0 && fio.stderr.contains("verify: bad");
    equal(&fio.output(), versions::ON_THE_PAGE.holds(pair.oracle), is_blamed)
}

/// Each program reads its own header and the other's if it may: fiord both layouts, fio 3.33 its own alone.
fn layouts(pair: &Pair) -> Verdict {
    const READING: &str =
        "--name=v --filename=f --size=64k --bs=4k --rw=read --ioengine=psync --verify=crc32c";
    let (fio, fiord) = (&pair.programs.0, &pair.programs.1);
    let reads_foreign = !versions::ON_THE_PAGE.holds(pair.oracle);
    for (reader, dir, is_read) in
        [(fiord, &pair.fiord.dir, true), (fiord, &pair.fio.dir, true), (fio, &pair.fiord.dir, reads_foreign)]
    {
        let ran = verify(reader, dir, READING)?;
        equal(&ran.output(), is_read, ran.status == 0)?;
    }
    Ok(())
}

/// Each reads the headers that each wrote by another method.
fn read_by_headers(pair: &Pair) -> Verdict {
    const READING: &str = "--name=v --filename=f --size=64k --bs=4k --rw=read --ioengine=psync --verify=meta";
    for dir in [&pair.fio.dir, &pair.fiord.dir] {
        for reader in [&pair.programs.0, &pair.programs.1] {
            let ran = verify(reader, dir, READING)?;
            equal(&ran.output(), 0, ran.status)?;
        }
    }
    Ok(())
}

/// Half a file is written and its state saved: both programs save it under one name in one size, and either verifies
/// by its own state and the other's exactly what was written.
fn states() -> impl Iterator<Item = Case> {
    const JOB: &str = "--name=v/1 --filename=f --size=256k --bs=4k --verify=crc32c";
    let modes = [
        ("write", "--rw=write --ioengine=psync", true),
        ("write-queued", "--rw=write --ioengine=libaio --iodepth=4", true),
        ("randwrite", "--rw=randwrite --ioengine=psync", false),
        ("randwrite-queued", "--rw=randwrite --ioengine=libaio --iodepth=8", false),
    ];
    modes.into_iter().map(|(name, options, is_crossed)| {
        let writing = format!("{JOB} {options} --do_verify=0 --number_ios=23");
        let reading = format!("{JOB} {options} --verify_state_load=1 --output-format=json")
            .replace("--rw=write", "--rw=read")
            .replace("--rw=randwrite", "--rw=randread");
        let verified = move |pair: &Pair| {
            let (fio, fiord) = (&pair.programs.0, &pair.programs.1);
            // In random order each knows the blocks of its own program alone.
            let mut readers = vec![(fio, &pair.fio.dir), (fiord, &pair.fiord.dir)];
            if is_crossed {
                readers.extend([(fio, &pair.fiord.dir), (fiord, &pair.fio.dir)]);
            }
            readers.into_iter().try_for_each(|(reader, dir)| {
                let ran = verify(reader, dir, &reading)?;
                equal(&format!("exit status: {}", ran.output()), 0, ran.status)?;
                equal("blocks verified", 23, figure(&ran.jobs()?[0], "read", "total_ios"))
            })?;
            if is_crossed { Ok(()) } else { foreign_order(pair, &reading) }
        };
        case(format!("verify/state-{name}"), writing)
            .own("--verify_header_format=3.33")
            .check(success)
            .check(files)
            .check(verified)
    })
}

/// Both programs dump what they find in damaged blocks, in files of the same names and contents.
fn dumped(pair: &Pair) -> Verdict {
    const READING: &str = "--name=v --filename=../f --size=64k --bs=4k --rw=read --ioengine=psync --verify=crc32c --verify_dump=1 --continue_on_error=verify";
    let dir = &pair.fiord.dir;
    let mut bytes = std::fs::read(dir.join("f")).map_err(|error| error.to_string())?;
    let intact = bytes.clone();
    bytes[2 * 4096 + 1000] ^= 1;
    bytes[5 * 4096..6 * 4096].fill(0);
    bytes[7 * 4096 + 8] ^= 1;
    std::fs::write(dir.join("f"), &bytes).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    for (name, reader) in [("fio", &pair.programs.0), ("fiord", &pair.programs.1)] {
        let place = dir.join(name);
        std::fs::create_dir(&place).map_err(|error| error.to_string())?;
        verify(reader, &place, READING)?;
        let mut dumps = Vec::new();
        for entry in std::fs::read_dir(&place).map_err(|error| error.to_string())? {
            let path = entry.map_err(|error| error.to_string())?.path();
            let mut contents = std::fs::read(&path).map_err(|error| error.to_string())?;
            if path.extension().is_some_and(|kind| kind == "expected") {
                // fio does not fill the block as fiord did.
                let is_intact = contents == intact[2 * 4096..3 * 4096];
                equal("fiord expects what was written", is_intact || name == "fio", true)?;
                contents.clear();
            }
            dumps.push((path.file_name().map(ToOwned::to_owned), contents));
        }
        dumps.sort();
        equal("files dumped", 4, dumps.len())?;
        found.push(dumps);
    }
    equal("dumps are the same", true, found[0] == found[1])
}

/// The errors that both passed over, and the first of them.
fn errors_counted(pair: &Pair) -> Verdict {
    let (fio, fiord) = (&pair.fio.jobs()?[0], &pair.fiord.jobs()?[0]);
    equal("blocks with errors", Some(16), fio["total_err"].as_u64())?;
    ["error", "total_err", "first_error"].iter().try_for_each(|key| equal(key, &fio[*key], &fiord[*key]))
}

/// Both saved a state of the same version and length when the trigger fired, with as many writes as they report, and ran
/// the command after that.
fn triggered(pair: &Pair) -> Verdict {
    let mut saved = Vec::new();
    for (name, ran) in [("fio", &pair.fio), ("fiord", &pair.fiord)] {
        let state = std::fs::read(ran.dir.join("local-v-0-verify.state"))
            .map_err(|error| format!("the state of {name}: {error}"))?;
        let number = state.get(40..48).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        let document = ran.json()?;
        let written = figure(&document["jobs"][0], "write", "total_ios");
        // fio saves the state before the write in flight has completed.
        let is_that_far = number.is_some_and(|number| number <= written && number + 2 >= written);
        equal(&format!("{name}: {number:?} of {written} writes are in the state"), true, is_that_far)?;
        let seen = std::fs::read_to_string(ran.dir.join("seen")).map_err(|error| error.to_string())?;
        equal("what the command has seen", "local-v-0-verify.state", seen.trim())?;
        equal("the file of the trigger is left", false, ran.dir.join("fire").exists())?;
        saved.push((state[..8].to_vec(), state.len()));
    }
    equal("version and length of the state", saved[0].clone(), saved[1].clone())
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let counted = |&(name, options): &(&str, &str)| {
        let file = if options.contains("nrfiles") { "" } else { "--filename=f" };
        let engine = if options.contains("ioengine") { "" } else { "--ioengine=psync" };
        let args = format!(
            "--output-format=json --name=v {file} --size=64k --bs=4k --verify=crc32c {engine} {options}"
        );
        case(format!("verify/{name}"), args).check(success).check(counts)
    };
    let misread = |name: &str, options: &str| {
        let args = format!("--name=v --filename=f --bs=4k --size=64k --ioengine=psync --rw=read {options}");
        case(format!("verify/{name}"), args).bytes("f", 65_536).check(exit)
    };
    let trimmed = |&(name, options): &(&str, &str)| {
        let args = format!(
            "--output-format=json --name=v --filename={{device}} --size=256k --bs=4k --verify=crc32c --ioengine=psync {options}"
        );
        case(format!("verify/trimmed-{name}"), args).on_loop_device(1 << 20).check(success).check(counts)
    };
    let mut cases: Vec<Case> = COUNTED.iter().map(counted).chain(damaged()).collect();
    cases.extend(TRIMMED.iter().map(trimmed));
    cases.extend(states());
    let fires = "--output-format=json --name=v --filename=f --size=64m --bs=4k --rw=write --ioengine=psync --verify=crc32c --rate_iops=1000 --trigger-file=fire --trigger='ls local* > seen'";
    cases.push(
        case("verify/trigger", fires)
            .own("--verify_header_format=3.33")
            .text("fire", "")
            .check(success)
            .check(triggered),
    );
    let dump =
        "--name=v --filename=f --size=64k --bs=4k --rw=write --ioengine=psync --verify=crc32c --do_verify=0";
    cases.push(case("verify/dump", dump).own("--verify_header_format=3.33").check(files).check(dumped));
    for method in ["crc32c", "sha512", "xxhash"] {
        let args = format!(
            "--name=v --filename=f --size=64k --bs=4k --ioengine=psync --rw=write --verify={method} --do_verify=0"
        );
        let case = case(format!("verify/meta-reads-{method}"), args).own("--verify_header_format=3.33");
        cases.push(case.check(success).check(read_by_headers));
    }
    // divergence: the header of a block
    cases.push(case("verify/layouts", dump).check(success).check(layouts));
    cases.push(misread("nothing-to-verify", "--verify=md5"));
    cases.push(misread("passed-over", "--verify=md5 --continue_on_error=verify"));
    cases.push(misread("passed-over-as-any-error", "--verify=md5 --continue_on_error=all"));
    cases.push(misread("not-passed-over-as-a-read", "--verify=md5 --continue_on_error=read"));
    for (name, which) in [("verification", "verify"), ("anything", "all")] {
        let args = format!("--output-format=json --verify=md5 --continue_on_error={which}");
        cases.push(misread(&format!("errors-of-{name}-are-counted"), &args).check(errors_counted));
    }
    cases.push(misread("async-nothing-to-verify", "--verify=md5 --verify_async=2"));
    cases.push(misread("async-passed-over", "--verify=md5 --verify_async=2 --continue_on_error=verify"));
    cases.push(misread("pattern-that-is-not-there", "--verify=pattern --verify_pattern=0x11"));
    cases
}
