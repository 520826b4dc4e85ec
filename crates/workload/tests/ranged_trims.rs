//! Trims of several ranges, from jobs as the plan has them.
//!
//! Invariant: the ranges of all trims together are the trims of the same job without them.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

mod common;

use common::{Case, case};
use fiord_plan::{Access, Direction, FileService, Op, Pattern, TrimRange};
use fiord_workload::{OperationSource, RangedTrims, Stream, Supply};

/// Each trim of the job with its ranges, made in batches of this size.
fn trims(case: &Case, ranges: u32, batch: usize) -> Vec<(Op, Vec<TrimRange>)> {
    let access = Access { trim_ranges: ranges, ..case.access.clone() };
    let mut source = RangedTrims::new(&access, &case.files, &case.limits).unwrap();
    let (mut all, mut ops) = (Vec::new(), Vec::new());
    while source.fill(&mut ops, batch, 0) == Supply::Ready {
        for op in ops.drain(..) {
            assert!(source.sends_buffer(&op));
            let mut buffer = vec![0xff; ranges as usize * TrimRange::STORED_BYTES];
            source.prepare(&op, &mut buffer);
            all.push((op, TrimRange::stored(&buffer).collect()));
        }
    }
    all
}

/// The places of the same job with one range for each trim.
fn places(case: &Case) -> Vec<(u32, u64, u64)> {
    let mut stream = Stream::new(&case.access, &case.files, &case.limits).unwrap();
    let mut ops = Vec::new();
    while stream.fill(&mut ops, 64) > 0 {}
    ops.iter().map(|op| (op.file, op.offset_bytes, op.length_bytes)).collect()
}

#[test]
fn ranges_are_the_trims_of_the_job_in_their_order() {
    for random in [false, true] {
        let case = case(Pattern::Only(Direction::Trim), random, &[100 * 4096]);
        for (ranges, batch) in [(1, 64), (8, 1), (8, 64), (256, 3)] {
            let all = trims(&case, ranges, batch);
            assert_eq!(all.len(), 100_usize.div_ceil(ranges as usize), "{ranges}");
            for (op, list) in &all {
                assert_eq!(op.offset_bytes, list[0].offset_bytes);
                assert_eq!(op.length_bytes, list.iter().map(|range| range.length_bytes).sum::<u64>());
            }
            let whole = all.iter().filter(|(_, list)| list.len() == ranges as usize).count();
            assert_eq!(whole, 100 / ranges as usize);
            let found = all.iter().flat_map(|(op, list)| {
                list.iter().map(|range| (op.file, range.offset_bytes, range.length_bytes))
            });
            assert_eq!(found.collect::<Vec<_>>(), places(&case), "{ranges}");
        }
    }
}

#[test]
fn a_trim_is_of_one_file_and_counts_once() {
    let mut case = case(Pattern::Only(Direction::Trim), true, &[40 * 4096, 40 * 4096]);
    case.access.service = FileService::RoundRobin { every: 1 };
    let all = trims(&case, 4, 64);
    assert_eq!(all.len(), 20);
    assert!(all.iter().all(|(_, list)| list.len() == 4), "{all:?}");
    let files: Vec<u32> = all.iter().map(|(op, _)| op.file).collect();
    assert_eq!(files[..4], [0, 1, 0, 1]);
    let mut found: Vec<_> = all
        .iter()
        .flat_map(|(op, list)| list.iter().map(|range| (op.file, range.offset_bytes, 4096)))
        .collect();
    let mut expected = places(&case);
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    case.limits.number_ios = Some(3);
    assert_eq!(trims(&case, 4, 64).len(), 3);
}
