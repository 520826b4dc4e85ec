//! Streams against what fio 3.33 issues for the same job: facts read off `issued rwts` and its operation log
//! (`--write_iolog`) on its null engine.
//!
//! Invariant: each case names the fio options whose counts it holds.

mod common;

use common::{Case, case, counts, direction};
use fiord_plan::{Direction, Pattern};

const KIB: u64 = 1024;

fn offsets_kib(ops: &[fiord_plan::Op]) -> Vec<u64> {
    ops.iter().map(|op| op.offset_bytes / KIB).collect()
}

fn read(length_bytes: u64) -> Case {
    case(Pattern::Only(Direction::Read), false, &[length_bytes])
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
