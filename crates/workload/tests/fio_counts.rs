//! Streams compared with fio 3.33 on the same job: facts from `issued rwts` and its operation log (`--write_iolog`) on
//! its null engine.
//!
//! Invariant: each case names the fio options that gave its counts or offsets.

mod common;

use common::{Case, case, counts, direction};
use fiord_plan::{Action, BlockSizes, Direction, FileService, Op, Pattern, Sequencer};

const KIB: u64 = 1024;
const READ: Pattern = Pattern::Only(Direction::Read);
const WRITE: Pattern = Pattern::Only(Direction::Write);

fn offsets_kib(ops: &[Op]) -> Vec<u64> {
    ops.iter().map(|op| op.offset_bytes / KIB).collect()
}

fn read(length_bytes: u64) -> Case {
    case(READ, false, &[length_bytes])
}

/// Reads, writes, trims and synchronisations of a job with this change.
fn counted(job: Case, change: impl FnOnce(&mut Case)) -> [usize; 4] {
    counts(&job.with(change).ops())
}

#[test]
fn passes_and_loops_add_up() {
    // --rw=read --bs=2300 --size=10k --io_size=N: one more pass as long as a block is missing.
    for (io_size, ios) in [(10_000, 4), (10_241, 4), (11_000, 4), (12_000, 6), (20_480, 8), (30 * KIB, 14)] {
        let small = read(10 * KIB).block(2300);
        assert_eq!(counted(small, |case| case.limits.loop_bytes = io_size), [ios, 0, 0, 0], "{io_size}");
    }
    // --rw=read --bs=2300 --size=100k --io_size=10000: the last one exceeds it.
    let large = read(100 * KIB).block(2300);
    assert_eq!(counted(large, |case| case.limits.loop_bytes = 10_000), [5, 0, 0, 0]);
    // --rw=read --bs=4k --size=32k --io_size=80k --loops=N
    for (loops, ios) in [(1, 20), (2, 24), (3, 24), (5, 40)] {
        let looped = |case: &mut Case| {
            case.limits.loop_bytes = 80 * KIB;
            case.limits.loops = loops;
        };
        assert_eq!(counted(read(32 * KIB), looped), [ios, 0, 0, 0], "{loops} loops");
    }
    // --rw=randread --bs=4k --size=64k --number_ios=20 --loops=2, and the same with --io_size=1m and one loop
    let random = case(READ, true, &[64 * KIB]).with(|case| case.limits.number_ios = Some(20));
    assert_eq!(counted(random.clone(), |case| case.limits.loops = 2), [32, 0, 0, 0]);
    assert_eq!(counted(random, |case| case.limits.loop_bytes = 1024 * KIB), [20, 0, 0, 0]);
    // --rw=randread --norandommap --bs=2300 --size=10k --loops=N: only bytes end the draws.
    for (loops, ios) in [(1, 5), (2, 9)] {
        let drawn = case(READ, true, &[10 * KIB]).block(2300).with(|case| case.access.full_coverage = false);
        assert_eq!(counted(drawn, |case| case.limits.loops = loops), [ios, 0, 0, 0]);
    }
}

#[test]
fn a_loop_continues_where_the_last_one_ended() {
    // --rw=read --bs=4k --size=32k --number_ios=3 --loops=4, and --io_size=12k --loops=4
    let wanted = [0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12];
    let by_ios = read(32 * KIB).with(|case| case.limits.number_ios = Some(3));
    assert_eq!(offsets_kib(&by_ios.with(|case| case.limits.loops = 4).ops()), wanted);
    let by_bytes = read(32 * KIB).with(|case| case.limits.loop_bytes = 12 * KIB);
    assert_eq!(offsets_kib(&by_bytes.with(|case| case.limits.loops = 4).ops()), wanted);
}

#[test]
fn strides_jump_and_wrap_around() {
    // --rw=read:STRIDE --bs=4k --size=SIZE
    let down = [0].into_iter().chain((0..15).rev().map(|block| 4 * block)).collect::<Vec<_>>();
    for (stride_kib, size_kib, wanted) in [
        (8, 64, vec![0, 12, 24, 36, 48, 60]),
        (-8, 64, down),
        (4, 62, vec![0, 8, 16, 24, 32, 40, 48, 56, 0, 8, 16, 24, 32, 40, 48, 56]),
        (2, 62, vec![0, 6, 12, 18, 24, 30, 36, 42, 48, 54]),
        (-4, 16, vec![0; 4]),
        (-2, 16, vec![0, 2, 4, 6]),
    ] {
        let ops = read(size_kib * KIB).with(|case| case.access.stride_bytes = stride_kib * KIB as i64).ops();
        assert_eq!(offsets_kib(&ops), wanted, "rw=read:{stride_kib}k size={size_kib}k");
    }
    // --rw=read:8k --bs=4k --size=64k with --io_size=128k or --loops=3
    let strided = read(64 * KIB).with(|case| case.access.stride_bytes = 8 * KIB as i64);
    assert_eq!(counted(strided.clone(), |case| case.limits.loop_bytes = 128 * KIB), [32, 0, 0, 0]);
    assert_eq!(counted(strided, |case| case.limits.loops = 3), [18, 0, 0, 0]);
    // --rw=read:2k --bs=4k --size=64k ends with its pass, unless the same is also said by --io_size=64k.
    let with_holes = read(64 * KIB).with(|case| case.access.stride_bytes = 2 * KIB as i64);
    for (repeats_passes, loops, ios) in [(false, 1, 11), (true, 1, 16), (false, 2, 22), (true, 2, 22)] {
        let limited = |case: &mut Case| {
            (case.limits.repeats_passes, case.limits.loops) = (repeats_passes, loops);
        };
        assert_eq!(counted(with_holes.clone(), limited), [ios, 0, 0, 0], "{repeats_passes} {loops}");
    }
    // --rw=read --bs=4k --size=66k --nrfiles=3 [--io_size=66k]
    let files = case(READ, false, &[22 * KIB; 3]);
    assert_eq!(counted(files.clone(), |_| {}), [15, 0, 0, 0]);
    assert_eq!(counted(files, |case| case.limits.repeats_passes = true), [17, 0, 0, 0]);
    // --io_size=90% ends with the pass as well.
    assert_eq!(counted(with_holes, |case| case.limits.loop_bytes = 58_982), [11, 0, 0, 0]);
}

#[test]
fn a_trim_is_followed_by_its_write() {
    // --rw=trimwrite --bs=4k --size=32k [--io_size=96k]
    let job = case(Pattern::TrimThenWrite, false, &[32 * KIB]);
    let ops = job.ops();
    assert_eq!(counts(&ops), [0, 8, 8, 0]);
    for (index, pair) in ops.chunks(2).enumerate() {
        assert_eq!(
            pair.iter().map(direction).collect::<Vec<_>>(),
            [Some(Direction::Trim), Some(Direction::Write)]
        );
        assert!(pair.iter().all(|op| op.offset_bytes == 4 * KIB * index as u64));
    }
    assert_eq!(counted(job, |case| case.limits.loop_bytes = 96 * KIB), [0, 16, 16, 0]);
    let larger = case(Pattern::TrimThenWrite, false, &[64 * KIB]);
    assert_eq!(counted(larger.clone(), |case| case.limits.loop_bytes = 96 * KIB), [0, 16, 16, 0]);
    assert_eq!(counted(larger.clone(), |case| case.limits.loops = 2), [0, 32, 32, 0]);
    assert_eq!(counted(larger, |case| case.limits.number_ios = Some(5)), [0, 5, 5, 0]);
    // --rw=randtrimwrite --bs=4k --size=32k --io_size=16k
    let random = case(Pattern::TrimThenWrite, true, &[32 * KIB]);
    assert_eq!(counted(random, |case| case.limits.loop_bytes = 16 * KIB), [0, 4, 4, 0]);
}

#[test]
fn synchronisations_are_issued_between_writes() {
    // --rw=write --bs=4k --size=SIZE --fsync=N --fdatasync=M --sync_file_range=write:K: the number of each.
    for (size_kib, fsync, fdatasync, range, wanted) in [
        (64, 3, 0, 0, [5, 0, 0]),
        (64, 4, 0, 0, [3, 0, 0]),
        (64, 0, 3, 0, [0, 5, 0]),
        (64, 3, 2, 0, [5, 5, 0]),
        (64, 0, 0, 2, [0, 0, 7]),
        (32, 3, 3, 3, [2, 0, 0]),
        // Less than a block is left: the end of the file is reached after the last synchronisation.
        (62, 1, 0, 0, [15, 0, 0]),
        (62, 3, 0, 0, [5, 0, 0]),
    ] {
        for random in [false, true] {
            let ops = case(WRITE, random, &[size_kib * KIB]).with(|case| {
                case.access.barriers.fsync_every = fsync;
                case.access.barriers.fdatasync_every = fdatasync;
                case.access.barriers.range_every = range;
                case.access.barriers.range_flags = 2;
            });
            let ops = ops.ops();
            let count = |action| ops.iter().filter(|op| op.action == action).count();
            assert_eq!([Action::Sync, Action::DataSync, Action::RangeSync(2)].map(count), wanted);
            assert_eq!(counts(&ops)[1] as u64, size_kib / 4);
        }
    }
    // --rw=write --bs=2300 --size=1m --fdatasync=1
    let log = case(WRITE, false, &[1024 * KIB]).block(2300);
    assert_eq!(counted(log, |case| case.access.barriers.fdatasync_every = 1), [0, 455, 0, 455]);
    // --rw=write --bs=4k --size=64k --nrfiles=2 --fsync=1
    let files = case(WRITE, false, &[32 * KIB; 2]);
    assert_eq!(counted(files, |case| case.access.barriers.fsync_every = 1), [0, 16, 0, 15]);
}

#[test]
fn several_files_share_the_size() {
    let places = |job: Case| job.ops().iter().map(|op| (op.file, op.offset_bytes / KIB)).collect::<Vec<_>>();
    // --nrfiles=3 --rw=read --bs=4k --size=24k
    let job = case(READ, false, &[8 * KIB; 3]);
    assert_eq!(places(job.clone()), [(0, 0), (1, 0), (2, 0), (0, 4), (1, 4), (2, 4)]);
    // … --size=50k: whole blocks of each file's part; and --loops=2, --io_size=96k of 48k
    assert_eq!(counted(case(READ, false, &[50 * KIB / 3; 3]), |_| ()), [12, 0, 0, 0]);
    assert_eq!(counted(job.clone(), |case| case.limits.loops = 2), [12, 0, 0, 0]);
    assert_eq!(counted(job.clone(), |case| case.limits.loop_bytes = 48 * KIB), [12, 0, 0, 0]);
    // --nrfiles=3 --rw=read --bs=4k --filesize=16k --io_size=20k --loops=2: the second loop continues.
    let partly = case(READ, false, &[16 * KIB; 3]).with(|case| case.limits.loop_bytes = 20 * KIB);
    let partly = places(partly.with(|case| case.limits.loops = 2));
    assert_eq!(partly[4..], [(1, 4), (2, 4), (0, 8), (1, 8), (2, 8), (0, 12)]);
    // --nrfiles=3 --rw=randread --norandommap --size=48k --file_service_type=sequential: draws never finish a file.
    let drawn = case(READ, true, &[16 * KIB; 3]).with(|case| {
        case.access.full_coverage = false;
        case.access.service = FileService::Sequential;
    });
    assert!(drawn.ops().iter().all(|op| op.file == 0) && drawn.ops().len() == 12);
}

#[test]
fn random_jobs_continue_after_a_draw() {
    // --rw=randread:4 --bs=4k [--rw_sequencer=identical]: a new offset every fourth time, or at the end.
    let job = case(READ, true, &[1 << 40]).with(|case| {
        case.access.ios_per_draw = 4;
        case.limits.number_ios = Some(400);
    });
    for draw in job.ops().chunks(4) {
        assert!(draw.windows(2).all(|pair| pair[1].offset_bytes == pair[0].offset_bytes + 4 * KIB));
    }
    let identical = job.with(|case| case.access.sequencer = Sequencer::Identical).ops();
    assert!(identical.chunks(4).all(|draw| draw.iter().all(|op| *op == draw[0])));
    // --rw=randread --percentage_random=0 --bs=4k --size=64k
    let none = case(READ, true, &[64 * KIB]).with(|case| case.access.percent_random = [0; 3]);
    // --percentage_random=0 with --size=34k, 66k and --nrfiles=2, and the first with --loops=3: a rest ends each file.
    let in_order = |lengths: &[u64], loops| {
        let job = case(READ, true, lengths).with(|case| case.access.percent_random = [0; 3]);
        offsets_kib(&job.with(|case| case.limits.loops = loops).ops())
    };
    let blocks: Vec<u64> = (0..8).map(|block| block * 4).collect();
    assert_eq!(in_order(&[34 * KIB], 1), blocks);
    assert_eq!(in_order(&[33 * KIB; 2], 1), blocks.iter().flat_map(|kib| [*kib; 2]).collect::<Vec<u64>>());
    assert_eq!(in_order(&[34 * KIB], 3), blocks.repeat(3));
    assert_eq!(offsets_kib(&none.ops()), (0..16).map(|block| 4 * block).collect::<Vec<_>>());
    // --rw=randrw --percentage_random=100,0 --bs=4k --size=64k: writes are sequential.
    let half =
        case(Pattern::Mixed, true, &[64 * KIB]).with(|case| case.access.percent_random = [100, 0, 100]).ops();
    let writes: Vec<Op> = half.iter().filter(|op| direction(op) == Some(Direction::Write)).copied().collect();
    assert_eq!(offsets_kib(&writes), (0..writes.len() as u64).map(|block| 4 * block).collect::<Vec<_>>());
}

#[test]
fn block_sizes_can_differ_for_sequential_and_random() {
    // --rw=read --bs=4k,16k --bs_is_seq_rand=1 --size=128k
    let sizes = [4096, 16_384, 4096].map(BlockSizes::Fixed);
    let by_order = |job: Case| job.sizes(sizes.clone()).with(|case| case.access.sizes_by_order = true);
    for pattern in [READ, WRITE] {
        assert_eq!(by_order(case(pattern, false, &[128 * KIB])).ops().len(), 32);
        let random = by_order(case(pattern, true, &[128 * KIB])).ops();
        assert!(random.len() == 8 && random.iter().all(|op| op.length_bytes == 16_384));
    }
    // --rw=read --bsrange=4k-16k --size=130k: whole multiples, without the remainder.
    let range = [0; 3].map(|_| BlockSizes::Range { min: 4096, max: 16_384 });
    for random in [false, true] {
        let ops = case(READ, random, &[130 * KIB]).sizes(range.clone()).ops();
        assert_eq!(ops.iter().map(|op| op.length_bytes).sum::<u64>(), 128 * KIB);
    }
}

#[test]
fn a_sequential_pass_takes_whole_blocks() {
    // --rw=read --bs=2300 --size=1m
    assert_eq!(counts(&read(1024 * KIB).block(2300).ops()), [455, 0, 0, 0]);
    // --rw=read --bs=4k --size=64k --offset=6k
    let ops = read(64 * KIB).with(|case| case.files.list[0].offset_bytes = 6 * KIB).ops();
    assert_eq!(offsets_kib(&ops), (0..16).map(|block| 6 + 4 * block).collect::<Vec<_>>());
}

#[test]
fn a_random_pass_takes_whole_blocks_once() {
    // --rw=randread --bs=4k --size=62k --offset=6k
    let job = case(Pattern::Only(Direction::Read), true, &[62 * KIB]);
    let mut offsets = offsets_kib(&job.with(|case| case.files.list[0].offset_bytes = 6 * KIB).ops());
    offsets.sort_unstable();
    assert_eq!(offsets, (0..15).map(|block| 6 + 4 * block).collect::<Vec<_>>());
}

#[test]
fn a_mix_shares_blocks_but_not_positions() {
    let random = case(Pattern::Mixed, true, &[64 * KIB]).ops();
    let mut offsets = offsets_kib(&random);
    offsets.sort_unstable();
    assert_eq!(offsets, (0..16).map(|block| 4 * block).collect::<Vec<_>>());
    let sequential = case(Pattern::Mixed, false, &[64 * KIB]).ops();
    assert_eq!(sequential.len(), 16);
    for wanted in [Direction::Read, Direction::Write] {
        let own: Vec<_> = sequential.iter().filter(|op| direction(op) == Some(wanted)).copied().collect();
        assert_eq!(offsets_kib(&own), (0..own.len() as u64).map(|block| 4 * block).collect::<Vec<_>>());
    }
}
