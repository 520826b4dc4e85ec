//! Verified jobs on real files: none is blamed that should not be, and what is damaged is found.
//!
//! Invariant: the jobs follow from a seed, so that one that fails can be run again.

#![allow(clippy::unwrap_used, reason = "tests panic with a message when something is wrong")]

#[allow(dead_code, reason = "shared with the other tests of this crate")]
mod common;
mod verified;

use std::fs;
use std::ops::Range;

use common::{SIZE_BYTES, TempFile, file_job, run};
use fiord_engine::EngineDefinition;
use fiord_engine::engines::{Libaio, Mmap, Psync};
use fiord_plan::{
    Backlog, BlockSizes, Depth, Direction, Job, Pattern, PlannedEngine, RandomDistribution, Trims, ZoneSkip,
    ZonedAccess,
};
use fiord_stats::Random;
use fiord_stats::count::ZONE_RESETS;
use fiord_sys::errno::Errno;
use fiord_verify::{Checksum, HeaderFormat, Method};
use fiord_worker::WorkerReport;

/// Jobs that are drawn. `FIORD_VERIFY_JOBS=FROM..TO` draws others or more.
const JOBS: Range<u64> = 0..100;

const EILSEQ: i32 = Errno::EILSEQ.0;

fn engines() -> [PlannedEngine; 3] {
    [Psync::planned(()), Libaio::planned(Default::default()), Mmap::planned(Default::default())]
}

/// The seeds of the jobs that are drawn.
fn seeds() -> Range<u64> {
    let Ok(wanted) = std::env::var("FIORD_VERIFY_JOBS") else { return JOBS };
    let (from, to) = wanted.split_once("..").expect("FIORD_VERIFY_JOBS is FROM..TO");
    from.parse().expect("a number")..to.parse().expect("a number")
}

/// One of these.
fn one<T: Clone>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize].clone()
}

/// Any job that writes and verifies, on a file of 1 MiB.
fn drawn(random: &mut Random, file: &TempFile) -> Job {
    let mut job = file_job("drawn", one(random, &engines()), Direction::Write, file);
    job.files.list[0].lay_out_bytes = Some(SIZE_BYTES);
    job.files.list[0].length_bytes = SIZE_BYTES;
    job.files.create_fsync = false;
    let max = if job.engine.descriptor.can_queue() { one(random, &[1, 2, 8, 32]) } else { 1 };
    job.depth = Depth { max, submit: one(random, &[1, max]), complete_min: 1, complete_max: None, low: max };
    job.access.pattern = one(random, &[Pattern::Only(Direction::Write), Pattern::Mixed]);
    job.access.random = random.below(2) == 0;
    job.access.full_coverage = random.below(2) == 0;
    job.access.seed = random.next_u64();
    let sizes = [
        BlockSizes::Fixed(4096),
        BlockSizes::Fixed(65_536),
        BlockSizes::Range { min: 4096, max: 16_384 },
        BlockSizes::Split(vec![(4096, 50.0), (6144, 50.0)]),
    ];
    let sizes = one(random, &sizes);
    job.buffers.bytes = sizes.max();
    job.access.align_bytes = [sizes.min(); 3];
    job.access.unaligned_sizes = random.below(8) == 0;
    job.access.block_sizes = [0; 3].map(|_: u8| sizes.clone());
    job.limits.loops = one(random, &[1, 1, 3]);
    job.limits.number_ios = one(random, &[None, None, Some(77)]);
    let mut verification = verified::verification(one(random, &verified::methods()));
    verification.format.header = one(random, &[HeaderFormat::V3_33, HeaderFormat::V3_42]);
    verification.format.piece_bytes = one(random, &[0, 0, 512, 1000, 4096]);
    verification.reads_back = random.below(4) > 0;
    verification.threads = one(random, &[0, 0, 1, 3]);
    let (every, batch) = (1 + random.below(20), 1 + random.below(20));
    verification.backlog = one(random, &[None, Some(Backlog { every, batch })]);
    let trims = Trims {
        percent: one(random, &[1, 30, 100]),
        every: random.below(20),
        batch: 1 + random.below(20),
        reads_zeroes: random.below(2) == 0,
    };
    verification.trims = one(random, &[None, None, Some(trims)]);
    job.verification = Some(verification);
    // Places where blocks may overlap.
    match job.access.random {
        false => job.access.stride_bytes = one(random, &[0, 0, 2048, -12_288]),
        true => job.access.percent_random = [one(random, &[100, 100, 50]); 3],
    }
    if let Some(align_bytes) = one(random, &[None, None, Some(2048), Some(4096)]) {
        (job.access.align_bytes, job.access.full_coverage) = ([align_bytes; 3], false);
    }
    if random.below(8) == 0 {
        let zipf = || RandomDistribution::Zipf { theta: 1.1, centre: None };
        job.access.distribution = [0; 3].map(|_: u8| zipf());
    }
    if random.below(8) == 0 {
        job.limits.loop_bytes = SIZE_BYTES - 4096 * random.below(3);
        job.limits.repeats_passes = true;
    }
    // What a mix reads has to be there.
    if random.below(8) == 0 && job.access.pattern != Pattern::Mixed {
        job.files.unlink_each_loop = true;
        job.verification.as_mut().unwrap().has_new_files_each_pass = true;
    }
    job
}

/// A job that reads what such a job wrote, as the planner has it.
fn reading(writer: &Job) -> Job {
    let mut reader = writer.clone();
    reader.access.pattern = Pattern::Only(Direction::Read);
    (reader.files.writable, reader.files.may_create) = (false, false);
    reader.files.list[0].lay_out_bytes = None;
    let compares_reads = reader.reads_whole_blocks();
    reader.verification.as_mut().unwrap().compares_reads = compares_reads;
    reader
}

fn reads(worker: &WorkerReport) -> u64 {
    worker.stats.directions[0].ios
}

// divergence: `norandommap`, different block sizes
#[test]
fn an_honest_disk_is_never_blamed() {
    let seeds = seeds();
    let jobs = seeds.end - seeds.start;
    let (mut read, mut compared) = (0, 0);
    for seed in seeds {
        let file = TempFile::new("honest");
        let job = drawn(&mut Random::new(seed), &file);
        let expects_reads = job.verification.as_ref().is_some_and(|verification| {
            verification.reads_back && verification.trims.is_none_or(|trims| trims.reads_zeroes)
        });
        let later = job.clone();
        let result = run(vec![job]);
        let worker = &result.workers[0];
        assert_eq!(worker.failure, None, "seed {seed}: {later:?}");
        assert_eq!(worker.stats.errors_total, 0, "seed {seed}: {later:?}");
        assert!(!expects_reads || reads(worker) > 0, "seed {seed}: {later:?}");
        read += reads(worker);
        // What it wrote is verified again by two that only read: one that follows the writes, and one that reads each place.
        let mut only = later.clone();
        only.verification.as_mut().unwrap().only = true;
        // As the planner has it.
        (only.files.unlink_each_loop, only.files.list[0].lay_out_bytes) = (false, None);
        let result = run(vec![only]);
        assert_eq!(result.workers[0].failure, None, "seed {seed}, verify_only: {later:?}");
        assert_eq!(result.workers[0].stats.directions[1].ios, 0, "seed {seed}: it writes nothing");
        if later.access.pattern != Pattern::Mixed && !later.files.unlink_each_loop {
            let reader = reading(&later);
            let result = run(vec![reader.clone()]);
            assert_eq!(result.workers[0].failure, None, "seed {seed}: {reader:?}");
            compared +=
                u64::from(reader.verification.is_some_and(|verification| verification.compares_reads));
        }
        let _ = fs::remove_file(&file.0);
    }
    // A few need not be of each kind.
    assert!(jobs < JOBS.end || read > jobs * 10, "{read} blocks were read back");
    assert!(jobs < JOBS.end || compared > jobs / 10, "{compared} jobs compared what another had written");
}

/// Any job in zones that are emulated on the file.
fn drawn_in_zones(random: &mut Random, file: &TempFile) -> Job {
    let mut job = drawn(random, file);
    job.access.zoned = Some(ZonedAccess {
        zone_bytes: one(random, &[128 << 10, 192 << 10, 256 << 10]),
        capacity_bytes: one(random, &[0, 96 << 10, 100 << 10]),
        skip: ZoneSkip::Zones(one(random, &[0, 0, 1])),
        open_max: one(random, &[None, Some(1), Some(3)]),
        job_open_max: None,
        ignores_device_limit: false,
        reads_beyond_pointer: false,
        reset_threshold: one(random, &[0.0, 0.4]),
        reset_every: Some(1 + random.below(20)),
        recovers: false,
        appends: false,
        writes_remainder: random.below(2) == 0,
    });
    let verification = job.verification.as_mut().unwrap();
    (verification.trims, verification.has_new_files_each_pass) = (None, false);
    job.files.unlink_each_loop = false;
    // Zones are written in their order, without gaps.
    (job.access.stride_bytes, job.access.percent_random) = (0, [100; 3]);
    job.access.align_bytes = job.access.block_sizes.each_ref().map(BlockSizes::min);
    job.access.distribution = [const { RandomDistribution::Uniform }; 3];
    job
}

#[test]
fn an_honest_disk_is_not_blamed_for_zones_that_are_reset() {
    let seeds = seeds().start / 4..seeds().end / 4;
    let jobs = seeds.end - seeds.start;
    let (mut read, mut resets) = (0, 0);
    for seed in seeds {
        let file = TempFile::new("zones");
        let mut random = Random::new(seed);
        let mut all = vec![drawn_in_zones(&mut random, &file)];
        if random.below(3) == 0 {
            // Resets zones below the first, in which it writes as well.
            let mut other = all[0].clone();
            (other.number, other.access.seed) = (1, random.next_u64());
            all.push(other);
            // As the planner has it where several jobs write the same range.
            for verification in all.iter_mut().filter_map(|job| job.verification.as_mut()) {
                (verification.checks_seed, verification.checks_number) = (false, false);
            }
        }
        let shown = format!("seed {seed}: {all:?}");
        for worker in &run(all).workers {
            assert_eq!(worker.failure, None, "{shown}");
            assert_eq!(worker.stats.errors_total, 0, "{shown}");
            read += reads(worker);
            resets += worker.stats.counts.get(&ZONE_RESETS).unwrap_or(0);
        }
        let _ = fs::remove_file(&file.0);
    }
    assert!(read > jobs && resets > 0, "{read} blocks were read back, {resets} zones reset");
}

#[test]
fn each_write_is_read_back_before_its_zone_is_reset() {
    for engine in engines() {
        let file = TempFile::new("reset");
        let [mut job, _] = writer_and_reader(&file, engine, Method::Meta);
        job.verification.as_mut().unwrap().reads_back = true;
        job.access.zoned = drawn_in_zones(&mut Random::new(1), &file).access.zoned.map(|zoned| ZonedAccess {
            zone_bytes: 128 << 10,
            capacity_bytes: 96 << 10,
            skip: ZoneSkip::NONE,
            open_max: None,
            reset_threshold: 0.0,
            ..zoned
        });
        job.access.random = true;
        job.limits.loops = 3;
        let result = run(vec![job]);
        let worker = &result.workers[0];
        assert_eq!(worker.failure, None);
        let [read, written, _] = &worker.stats.directions;
        assert!(worker.stats.counts.get(&ZONE_RESETS) > Some(0), "{worker:?}");
        assert_eq!(read.ios, written.ios);
    }
}

#[test]
fn a_damaged_block_in_a_zone_is_found_by_the_job_and_by_a_later_one() {
    let file = TempFile::new("zone-damage");
    let [mut writer, mut reader] =
        writer_and_reader(&file, Psync::planned(()), Method::Checksum(Checksum::Crc32c));
    let zoned = drawn_in_zones(&mut Random::new(1), &file).access.zoned;
    let zoned = zoned.map(|zoned| ZonedAccess {
        zone_bytes: 256 << 10,
        capacity_bytes: 0,
        skip: ZoneSkip::NONE,
        reset_every: None,
        ..zoned
    });
    (writer.access.zoned, reader.access.zoned) =
        (zoned, zoned.map(|zoned| ZonedAccess { reads_beyond_pointer: true, ..zoned }));
    assert_eq!(run(vec![writer]).workers[0].failure, None);
    let mut bytes = fs::read(&file.0).unwrap();
    bytes[77 * 4096 + 100] ^= 1;
    fs::write(&file.0, bytes).unwrap();
    let result = run(vec![reader]);
    let stats = &result.workers[0].stats;
    assert_eq!((stats.directions[0].ios, stats.errors_total, stats.first_error), (256, 1, EILSEQ));
}

/// A job that writes the file and reads nothing back, and one that finds out.
fn writer_and_reader(file: &TempFile, engine: PlannedEngine, method: Method) -> [Job; 2] {
    let mut writer = file_job("writer", engine, Direction::Write, file);
    if writer.engine.descriptor.can_queue() {
        writer.depth = Depth { max: 8, submit: 8, complete_min: 1, complete_max: None, low: 8 };
    }
    let mut verification = verified::verification(method);
    verification.reads_back = false;
    writer.verification = Some(verification);
    let mut reader = writer.clone();
    reader.access.pattern = Pattern::Only(Direction::Read);
    (reader.files.writable, reader.files.may_create) = (false, false);
    reader.files.list[0].lay_out_bytes = None;
    reader.errors.passed_over_in_verification = vec![EILSEQ];
    [writer, reader]
}

/// A job on a file of 1 MiB that trims a share of what it wrote.
fn trimming(file: &TempFile, engine: PlannedEngine, trims: Trims) -> Job {
    let [mut writer, _] = writer_and_reader(file, engine, Method::Meta);
    let verification = writer.verification.as_mut().unwrap();
    (verification.reads_back, verification.trims) = (true, Some(trims));
    writer
}

/// Blocks of the file that are all zeroes.
fn holes(file: &TempFile) -> u64 {
    fs::read(&file.0).unwrap().chunks(4096).filter(|block| block.iter().all(|byte| *byte == 0)).count() as u64
}

// divergence: `trim_percentage` in a run that verifies
#[test]
fn trimmed_blocks_are_counted_and_read_back_as_zeroes_or_not_at_all() {
    for engine in engines() {
        for (percent, every, batch, reads_zeroes) in [
            (100, 0, 1, true),
            (100, 16, 16, true),
            (100, 16, 4, false),
            (25, 16, 16, true),
            (25, 0, 1, false),
        ] {
            let file = TempFile::new("trimmed");
            let job = trimming(&file, engine.clone(), Trims { percent, every, batch, reads_zeroes });
            let mut later = job.clone();
            let result = run(vec![job]);
            let worker = &result.workers[0];
            let case = format!("{} {percent}% {every} {batch} {reads_zeroes}", later.engine.name());
            assert_eq!(worker.failure, None, "{case}");
            let [read, written, trimmed] = &worker.stats.directions;
            assert_eq!(written.ios, 256, "{case}");
            assert_eq!(trimmed.bytes, trimmed.ios * 4096, "{case}");
            assert_eq!(holes(&file), trimmed.ios, "{case}");
            match percent {
                100 => assert_eq!(trimmed.ios, 256, "{case}"),
                _ => assert!((25..110).contains(&trimmed.ios), "{case}: {}", trimmed.ios),
            }
            assert_eq!(read.ios, if reads_zeroes { 256 } else { 256 - trimmed.ios }, "{case}");
            // A later run knows which blocks may be zeroes, and finds others.
            later.verification.as_mut().unwrap().only = true;
            assert_eq!(run(vec![later.clone()]).workers[0].failure, None, "{case}");
            let mut bytes = fs::read(&file.0).unwrap();
            bytes[20 * 4096] ^= 0x40;
            fs::write(&file.0, bytes).unwrap();
            let result = run(vec![later]);
            let failure = result.workers[0].failure.as_ref();
            assert_eq!(failure.map(|failure| failure.range), Some(Some((20 * 4096, 4096))), "{case}");
        }
    }
}

#[test]
fn each_damaged_block_is_found_and_named() {
    each_damaged_block_is_found(0);
}

#[test]
fn each_damaged_block_is_found_by_threads_and_named() {
    each_damaged_block_is_found(3);
}

/// Verified by so many threads beside the job, or by the job.
fn each_damaged_block_is_found(threads: u32) {
    for engine in engines() {
        for method in verified::methods().into_iter().filter(|method| *method != Method::Null) {
            let file = TempFile::new("damaged");
            let [writer, mut reader] = writer_and_reader(&file, engine.clone(), method);
            reader.verification.as_mut().unwrap().threads = threads;
            assert_eq!(run(vec![writer]).workers[0].failure, None);
            let mut bytes = fs::read(&file.0).unwrap();
            // The headers' magic, or the pattern.
            for block in [3, 17, 200] {
                bytes[block * 4096] ^= 1;
            }
            fs::write(&file.0, bytes).unwrap();
            let result = run(vec![reader.clone()]);
            let worker = &result.workers[0];
            assert_eq!(worker.failure, None, "{method:?}");
            assert_eq!((worker.stats.errors_total, worker.stats.first_error), (3, EILSEQ), "{method:?}");
            assert_eq!(reads(worker), 256, "{method:?}: what is not as it should be was read all the same");
            let found: Vec<bool> = [3, 17, 200]
                .map(|block: usize| format!("offset {}, length 4096", block * 4096))
                .map(|place| worker.passed_over.iter().any(|line| line.contains(&place)))
                .to_vec();
            assert_eq!(found, [true; 3], "{method:?}: {:?}", worker.passed_over);
            let strict = Job { errors: Default::default(), ..reader };
            let result = run(vec![strict]);
            let failure = result.workers[0].failure.as_ref().unwrap();
            assert_eq!(failure.code(), EILSEQ, "{method:?}");
            // Of several threads any may be the first to find one.
            let ranges = [3, 17, 200].map(|block| Some((block * 4096, 4096)));
            let first = if threads == 0 { &ranges[..1] } else { &ranges };
            assert!(first.contains(&failure.range), "{method:?}: {failure}");
            assert!(failure.to_string().contains("bit flip"), "{method:?}: {failure}");
        }
    }
}
