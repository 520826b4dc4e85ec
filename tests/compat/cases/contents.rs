//! The data that is written: how far it can be compressed and deduplicated.
//!
//! Invariant: both programs' files are judged by the same independent measure (zstd; the number of different blocks).

use std::collections::HashSet;
use std::fs::{self, File};
use std::process::{Command, Stdio};

use fiord_compat::compare::{counts, success};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, Ran, case};

const BLOCK_BYTES: usize = 4096;

/// Options after `--rw=write --size=4m`, written in blocks of 4 KiB where they give no size.
const COMPRESSED: &[(&str, &str)] = &[
    ("random", "--refill_buffers"),
    ("zeroes", "--zero_buffers"),
    ("10", "--buffer_compress_percentage=10 --refill_buffers"),
    ("50", "--buffer_compress_percentage=50"),
    ("50-refilled", "--buffer_compress_percentage=50 --refill_buffers"),
    ("90", "--buffer_compress_percentage=90 --refill_buffers"),
    ("20-chunk-4k", "--buffer_compress_percentage=20 --buffer_compress_chunk=4k --refill_buffers"),
    ("80-chunk-512", "--bs=64k --buffer_compress_percentage=80 --buffer_compress_chunk=512 --refill_buffers"),
    ("75-pattern", "--buffer_compress_percentage=75 --buffer_pattern=0xdeadbeef --refill_buffers"),
    ("64k", "--bs=64k --buffer_compress_percentage=40 --refill_buffers"),
];

const DEDUPLICATED: &[(&str, &str)] = &[
    ("10", "--dedupe_percentage=10"),
    ("50", "--dedupe_percentage=50"),
    ("80", "--dedupe_percentage=80"),
    ("100", "--dedupe_percentage=100"),
    ("50-compressible", "--dedupe_percentage=50 --buffer_compress_percentage=50"),
    ("working_set", "--dedupe_percentage=30 --dedupe_mode=working_set --dedupe_working_set_percentage=10"),
    (
        "small-working_set",
        "--dedupe_percentage=60 --dedupe_mode=working_set --dedupe_working_set_percentage=1",
    ),
    ("randwrite", "--rw=randwrite --dedupe_percentage=50"),
];

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let job = |name: String, args: &str| {
        let args = format!("--output-format=json --name=a --filename=f --rw=write --size=4m --bs=4k {args}");
        case(name, args).check(success).check(counts)
    };
    let compressed = COMPRESSED.iter().map(|(name, args)| {
        let case = job(format!("contents/compress-{name}"), args);
        case.with_program("/usr/bin/zstd".into(), "apt-get install zstd").check(compresses_alike)
    });
    let deduplicated = DEDUPLICATED.iter().map(|(name, args)| {
        let case = job(format!("contents/dedupe-{name}"), args);
        case.check(deduplicates_alike)
    });
    compressed.chain(deduplicated).collect()
}

/// Equal compressed sizes of the two files, within 2 % of the file.
fn compresses_alike(pair: &Pair) -> Verdict {
    let [fio, fiord] = [&pair.fio, &pair.fiord].map(compressed_share);
    let (fio, fiord) = (fio?, fiord?);
    match (fio - fiord).abs() < 0.02 {
        true => Ok(()),
        false => {
            Err(format!("zstd leaves {:.1} % of fio's data, {:.1} % of fiord's", fio * 100.0, fiord * 100.0))
        }
    }
}

/// The share of the file that zstd leaves.
fn compressed_share(ran: &Ran) -> Result<f64, String> {
    let path = ran.dir.join("f");
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = File::open(&path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let zstd = Command::new("zstd").args(["-q", "-c"]).stdin(Stdio::from(file)).output().map_err(failed)?;
    if !zstd.status.success() {
        return Err(format!("zstd: {}", String::from_utf8_lossy(&zstd.stderr)));
    }
    Ok(zstd.stdout.len() as f64 / length as f64)
}

/// Equal shares of different blocks, within the variation of two draws.
fn deduplicates_alike(pair: &Pair) -> Verdict {
    let [fio, fiord] = [&pair.fio, &pair.fiord].map(different_blocks);
    let ((fio, blocks), (fiord, _)) = (fio?, fiord?);
    let [share, other] = [fio, fiord].map(|count| count as f64 / blocks as f64);
    let tolerance = 6.0 * (2.0 * share * (1.0 - share) / blocks as f64).sqrt() + 1.0 / blocks as f64;
    match (share - other).abs() <= tolerance {
        true => Ok(()),
        false => Err(format!("of {blocks} blocks fio's file has {fio} different ones, fiord's {fiord}")),
    }
}

/// Different blocks of the file, and all of them.
fn different_blocks(ran: &Ran) -> Result<(usize, usize), String> {
    let data = fs::read(ran.dir.join("f")).map_err(|error| format!("f: {error}"))?;
    let blocks = data.chunks(BLOCK_BYTES);
    Ok((blocks.clone().collect::<HashSet<&[u8]>>().len(), blocks.len()))
}
