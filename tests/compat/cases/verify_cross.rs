//! Every verify method at several block sizes and intervals, and every damage to a block: fio verifies what fiord wrote,
//! and fiord verifies what fio wrote.
//!
//! Invariant: each case crosses the programs both ways; what fio finds, fiord finds.

use std::collections::BTreeSet;

use fiord_compat::compare::{equal, success};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, case, versions};

use super::verify::verify;

const PATTERN: &str = "verify_pattern=0xdeadbeef%o\"abc\"-12";

/// The methods that fio 3.33 has, and the lines of a job that ask for them. fio 3.33 has the header with a pattern, but no
/// name for it (`pattern_hdr_by_name`).
const METHODS: &[(&str, &[&str])] = &[
    ("md5", &["verify=md5"]),
    ("crc64", &["verify=crc64"]),
    // divergence: `crc32`
    ("crc32", &["verify=crc32"]),
    // divergence: `crc32c`
    ("crc32c", &["verify=crc32c"]),
    ("crc32c-intel", &["verify=crc32c-intel"]),
    ("crc16", &["verify=crc16"]),
    ("crc7", &["verify=crc7"]),
    // divergence: `sha1`
    ("sha1", &["verify=sha1"]),
    // divergence: `sha256`
    ("sha256", &["verify=sha256"]),
    // divergence: `verify=sha512` in 3.33
    // divergence: `sha512`
    ("sha512", &["verify=sha512"]),
    ("sha3-224", &["verify=sha3-224"]),
    ("sha3-256", &["verify=sha3-256"]),
    ("sha3-384", &["verify=sha3-384"]),
    ("sha3-512", &["verify=sha3-512"]),
    // divergence: `xxhash`
    ("xxhash", &["verify=xxhash"]),
    ("meta", &["verify=meta"]),
    ("pattern", &["verify=pattern", PATTERN]),
    // divergence: `verify_pattern=…` without `verify`
    ("pattern_hdr", &[PATTERN]),
    ("null", &["verify=null"]),
];

/// Sizes of blocks: the smallest, the usual one, one that is not a power of two, and one of several pages.
const BLOCK_SIZES: &[u64] = &[512, 4096, 20_480, 65_536];

/// Intervals, of which those that divide a block are used.
const INTERVALS: &[u64] = &[512, 1024, 4096];

/// A job file with a job, and a file of its own, for each way in which a method may put headers into blocks of this size:
/// one header, one for each interval, one for the block under an interval that is as long, longer, or does not divide it,
/// and one inside the block.
fn job_file(lines: &[&str], block_bytes: u64, is_reader: bool) -> String {
    let others = [block_bytes, 2 * block_bytes, block_bytes - 100];
    let dividing = INTERVALS
        .iter()
        .copied()
        .filter(|interval| block_bytes > *interval && block_bytes.is_multiple_of(*interval));
    let mut jobs = vec![("whole".to_string(), String::new())];
    jobs.extend(
        dividing
            .chain(others)
            .map(|bytes| (format!("interval-{bytes}"), format!("verify_interval={bytes}\n"))),
    );
    // What has no header has none to put elsewhere.
    if !lines.contains(&"verify=pattern") && !lines.contains(&"verify=null") {
        jobs.push(("offset".to_string(), "verify_offset=200\n".to_string()));
    }
    let size_bytes = block_bytes * 8;
    let mut text = format!("[global]\n{}\nbs={block_bytes}\nsize={size_bytes}\nthread\n", lines.join("\n"));
    for (index, (name, option)) in jobs.iter().enumerate() {
        let engine = ["ioengine=psync", "ioengine=libaio\niodepth=4"][index % 2];
        let writes = ["write", "randwrite"][index / 2 % 2];
        let rw = if is_reader { "read" } else { writes };
        text += &format!("[{name}]\nfilename={name}\nrw={rw}\n{engine}\n{option}");
    }
    text
}

/// fio reads what fiord wrote, and fiord what fio wrote.
fn crossed(pair: &Pair) -> Verdict {
    for (reader, name, dir) in [
        (&pair.programs.0, "fio verifies what fiord wrote", &pair.fiord.dir),
        (&pair.programs.1, "fiord verifies what fio wrote", &pair.fio.dir),
    ] {
        let ran = verify(reader, dir, "read.fio")?;
        if ran.status != 0 {
            return Err(format!("{name}: {}", ran.output()));
        }
    }
    Ok(())
}

fn crossing() -> impl Iterator<Item = Case> {
    METHODS.iter().flat_map(|(method, lines)| {
        BLOCK_SIZES.iter().map(move |&block_bytes| {
            case(format!("verify/cross-{method}-{block_bytes}"), "write.fio")
                .own("--verify_header_format=3.33")
                .text("write.fio", job_file(lines, block_bytes, false))
                .text("read.fio", job_file(lines, block_bytes, true))
                .check(success)
                .check(crossed)
        })
    })
}

/// Sizes of blocks that are drawn or differ between directions, and intervals that do not divide them: a header covers what
/// divides all blocks.
const MIXED_SIZES: &[(&str, &str)] = &[
    ("range", "bsrange=4k-16k"),
    ("range-20k", "bsrange=8k-20k"),
    ("range-3k", "bsrange=3k-7k"),
    ("range-and-interval", "bsrange=8k-20k\nverify_interval=8k"),
    ("split", "bssplit=8k/50:16k/50"),
    ("split-and-interval", "bssplit=8k/50:16k/50\nverify_interval=6k"),
    ("split-12k", "bssplit=8k/50:12k/50"),
    ("directions", "bs=8k,4k"),
    ("interval-3000", "bs=16k\nverify_interval=3000"),
    ("interval-5k", "bs=12k\nverify_interval=5k"),
    ("interval-and-unaligned", "bs=8k\nbs_unaligned=1\nverify_interval=4k"),
];

fn of_mixed_sizes() -> impl Iterator<Item = Case> {
    MIXED_SIZES.iter().flat_map(|(name, lines)| {
        ["crc32c", "sha512"].map(|method| {
            // Lengths that are not multiples of the shortest leave a rest at the end, which is not read.
            let text = |rw: &str, size: &str| {
                format!("[v]\nfilename=f\nsize={size}\nioengine=psync\nrw={rw}\nverify={method}\n{lines}\n")
            };
            case(format!("verify/sizes-{name}-{method}"), "write.fio")
                .own("--verify_header_format=3.33")
                .text("write.fio", text("write", "240k"))
                .text("read.fio", text("read", "120k"))
                .check(success)
                .check(crossed)
        })
    })
}

/// fio 3.33 refuses the name `pattern_hdr`; with the pattern alone it verifies what fiord wrote under that name.
fn pattern_hdr_by_name() -> Case {
    const COMMON: &str = "--name=v --filename=f --size=64k --bs=4k --ioengine=psync";
    let pattern = format!("--{PATTERN}");
    let by_name = format!("{COMMON} {pattern} --rw=write --verify=pattern_hdr");
    let alone = format!("{COMMON} {pattern} --rw=read");
    case("verify/pattern_hdr-by-name", by_name).own("--verify_header_format=3.33").check(move |pair| {
        equal("fiord's exit status", 0, pair.fiord.status)?;
        let is_refused = pair.fio.output().contains("failed parsing verify=pattern_hdr");
        equal("fio refuses the name", versions::LACKS_PATTERN_HDR.holds(pair.oracle), is_refused)?;
        let read = verify(&pair.programs.0, &pair.fiord.dir, &alone)?;
        equal(&format!("fio's exit status: {}", read.output()), 0, read.status)
    })
}

const BLOCK_BYTES: usize = 4096;

/// A kind of damage, and what does it.
type Damage = (&'static str, fn(&mut [u8]));

/// What is done to a block, counted from 1 on; block 0 stays intact.
const DAMAGES: &[Damage] = &[
    ("flip in the data", |block| block[1000] ^= 1),
    ("flip in the last byte", |block| block[BLOCK_BYTES - 1] ^= 1),
    ("flip in the magic number", |block| block[0] ^= 1),
    ("flip in the length", |block| block[4] ^= 1),
    ("flip in the seed", |block| block[9] ^= 1),
    ("flip in the offset", |block| block[17] ^= 1),
    ("flip in the checksum of the header", |block| block[37] ^= 1),
    ("zeroes", |block| block.fill(0)),
    ("zeroes at the end", |block| block[BLOCK_BYTES / 2..].fill(0)),
];

/// Of these damages, the ones in the data alone, which `meta` does not compare.
const IN_DATA: &[usize] = &[1, 2, 9];

/// Damages the blocks of a file, and swaps two more.
fn damage(bytes: &mut [u8]) {
    let (damaged, rest) = bytes.split_at_mut((DAMAGES.len() + 1) * BLOCK_BYTES);
    for (block, (_, damage)) in damaged.chunks_mut(BLOCK_BYTES).skip(1).zip(DAMAGES) {
        damage(block);
    }
    let (one, other) = rest.split_at_mut(BLOCK_BYTES);
    one.swap_with_slice(&mut other[..BLOCK_BYTES]);
}

/// The blocks that a reader's messages name.
fn blocks_named(stderr: &str) -> BTreeSet<usize> {
    let offsets = stderr.split("at file f offset ").skip(1).filter_map(|rest| {
        let digits = rest.split(|char: char| !char.is_ascii_digit()).next()?;
        digits.parse::<usize>().ok()
    });
    // fio 3.33 takes patterns in intervals for headers, and prints offsets far from the file's.
    offsets.map(|offset| offset / BLOCK_BYTES).filter(|block| *block < 16).collect()
}

/// Both read what each wrote and was damaged then: fiord finds every damage that the method can see, fio nothing else.
fn all_is_found(method: &'static str, reading: String) -> impl Fn(&Pair) -> Verdict {
    move |pair| {
        for (writer, dir) in [("fio", &pair.fio.dir), ("fiord", &pair.fiord.dir)] {
            let path = dir.join("f");
            let mut bytes = std::fs::read(&path).map_err(|error| error.to_string())?;
            damage(&mut bytes);
            std::fs::write(&path, bytes).map_err(|error| error.to_string())?;
            let all = 1..=DAMAGES.len() + 2;
            let in_halves = reading.contains("verify_interval");
            let is_seen = |block: &usize| match method {
                "null" => false,
                // With a header in each interval, zeroes at the end zero headers.
                "meta" => !IN_DATA.contains(block) || (in_halves && *block == 9),
                // fio's own digest covers the ends of the data alone: divergences.md.
                "sha512" => writer == "fiord" || *block != 1,
                _ => true,
            };
            let wanted: BTreeSet<usize> = all.filter(is_seen).collect();
            let fiord = verify(&pair.programs.1, dir, &reading)?;
            let found = blocks_named(&fiord.stderr);
            equal(&format!("{writer} wrote: blocks that fiord should name, and does"), &wanted, &found)?;
            let fio = blocks_named(&verify(&pair.programs.0, dir, &reading)?.stderr);
            let missed: Vec<&usize> = fio.difference(&found).collect();
            equal(&format!("{writer} wrote: blocks that fio alone names"), Vec::new(), missed)?;
            if wanted.is_empty() {
                equal("fiord's exit status", 0, fiord.status)?;
            }
        }
        Ok(())
    }
}

fn damaged() -> impl Iterator<Item = Case> {
    let intervals =
        |method: &str| if matches!(method, "md5" | "sha512" | "meta" | "pattern") { 2 } else { 1 };
    METHODS.iter().flat_map(move |&(method, lines)| {
        ["", " --verify_interval=2k"].into_iter().take(intervals(method)).map(move |interval| {
            let options: String = lines.iter().map(|line| format!(" --{line}")).collect();
            let common =
                format!("--name=v --filename=f --size=64k --bs=4k --ioengine=psync{options}{interval}");
            let reading = format!("{common} --rw=read --continue_on_error=verify");
            let suffix = if interval.is_empty() { "" } else { "-in-intervals" };
            case(format!("verify/damage-{method}{suffix}"), format!("{common} --rw=write --do_verify=0"))
                .own("--verify_header_format=3.33")
                .check(success)
                .check(all_is_found(method, reading))
        })
    })
}

/// A byte of data is changed in an interval that is not the block's last. fio prints that, and succeeds; fiord fails.
fn changed_interval(pair: &Pair) -> Verdict {
    const READING: &str = "--output-format=json --name=v --filename=f --size=64k --bs=4k --ioengine=psync --rw=read --verify=md5 --verify_interval=512";
    let path = pair.fiord.dir.join("f");
    let mut bytes = std::fs::read(&path).map_err(|error| error.to_string())?;
    bytes[2 * BLOCK_BYTES + 1000] ^= 1;
    std::fs::write(&path, bytes).map_err(|error| error.to_string())?;
    let fiord = verify(&pair.programs.1, &pair.fiord.dir, READING)?;
    equal("fiord's exit status", 1, fiord.status)?;
    let fio = verify(&pair.programs.0, &pair.fiord.dir, READING)?;
    let passes = versions::FORGETS_INTERVALS.holds(pair.oracle);
    equal("fio passes the job", passes, fio.status == 0)?;
    equal("blocks named", blocks_named(&fio.stderr), blocks_named(&fiord.stderr))
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let writing = "--name=v --filename=f --size=64k --bs=4k --ioengine=psync --rw=write --verify=md5 --verify_interval=512";
    // divergence: `verify_interval` below the block size
    let interval = case("verify/changed-interval", writing)
        .own("--verify_header_format=3.33")
        .check(success)
        .check(changed_interval);
    crossing().chain(of_mixed_sizes()).chain(damaged()).chain([pattern_hdr_by_name(), interval]).collect()
}
