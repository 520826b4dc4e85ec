//! The same tests on every engine that transfers data.
//!
//! Invariant: test bodies access engines only through `Machine`.

use crate::common::engines::variants;
use crate::common::{BLOCK_BYTES, DEPTH, FILE_BYTES, Machine, TestTarget, barrier, block, places, skip};
use fiord_engine::Outcome;
use fiord_plan::{Action, Direction, Op};
use fiord_sys::errno::Errno;

/// Runs a body on a new engine of each variant, at each place where it can run.
fn everywhere(body: impl Fn(&mut dyn Machine, &TestTarget)) {
    for variant in variants() {
        for place in places() {
            #[allow(clippy::print_stdout, reason = "a test that fails shows where")]
            {
                println!("{}: {}", variant.name, place.name);
            }
            if let Err(error) = (variant.run)(&mut |machine| body(machine, &place)) {
                skip(&variant.name, &error);
            }
        }
    }
}

/// One test per body.
macro_rules! tests {
    ($($body:ident)+) => {
        mod on_every_engine {
            $(
                #[test]
                fn $body() {
                    super::everywhere(super::$body);
                }
            )+
        }
    };
}

tests! {
    what_is_written_is_read_back
    a_full_queue_is_drained_and_refilled
    reading_at_the_end_is_short_and_beyond_it_nothing
    a_closed_file_is_an_error_of_the_operation
    synchronisations_succeed
    a_trimmed_range_of_a_file_reads_as_zeroes
    the_rest_of_a_transfer_goes_to_the_rest_of_the_buffer
    a_file_can_be_closed_and_another_opened
}

fn what_is_written_is_read_back(machine: &mut dyn Machine, place: &TestTarget) {
    let file = place.open();
    machine.attach(&file);
    // Not in order, so that positions matter.
    for (number, byte) in [(5, 0x55), (1, 0x11), (9, 0x99), (10, 0xaa)] {
        machine.fill(0, byte);
        assert_eq!(machine.one(block(Direction::Write, number)), Outcome::Done(BLOCK_BYTES));
    }
    for (number, byte) in [(9, 0x99), (10, 0xaa), (1, 0x11), (5, 0x55), (2, 0)] {
        machine.fill(0, 0xee);
        assert_eq!(machine.one(block(Direction::Read, number)), Outcome::Done(BLOCK_BYTES));
        assert!(machine.bytes(0).iter().all(|&found| found == byte), "block {number}");
    }
}

fn a_full_queue_is_drained_and_refilled(machine: &mut dyn Machine, place: &TestTarget) {
    let file = place.open();
    machine.attach(&file);
    let whole = vec![Outcome::Done(BLOCK_BYTES); DEPTH as usize];
    for round in 0..20 {
        let blocks = (0..u64::from(DEPTH)).map(|buffer| (round * 7 + buffer) % (FILE_BYTES / BLOCK_BYTES));
        let writes: Vec<Op> = blocks.clone().map(|number| block(Direction::Write, number)).collect();
        let reads: Vec<Op> = blocks.rev().map(|number| block(Direction::Read, number)).collect();
        let byte = |buffer: usize| round as u8 * 8 + buffer as u8;
        (0..DEPTH as usize).for_each(|buffer| machine.fill(buffer, byte(buffer)));
        assert_eq!(machine.run(&writes), whole);
        assert_eq!(machine.run(&reads), whole);
        for buffer in 0..DEPTH as usize {
            let expected = byte(DEPTH as usize - 1 - buffer);
            assert!(machine.bytes(buffer).iter().all(|&found| found == expected), "round {round} {buffer}");
        }
    }
}

fn reading_at_the_end_is_short_and_beyond_it_nothing(machine: &mut dyn Machine, place: &TestTarget) {
    let file = place.open();
    // Half a block, which O_DIRECT may read where the file ends.
    file.set_len(3 * BLOCK_BYTES + BLOCK_BYTES / 2).unwrap();
    machine.attach(&file);
    assert_eq!(machine.one(block(Direction::Read, 3)), Outcome::Done(BLOCK_BYTES / 2));
    assert_eq!(machine.one(block(Direction::Read, 4)), Outcome::Done(0));
    assert_eq!(machine.one(block(Direction::Read, 2)), Outcome::Done(BLOCK_BYTES));
}

fn a_closed_file_is_an_error_of_the_operation(machine: &mut dyn Machine, place: &TestTarget) {
    let file = place.open();
    machine.attach(&file);
    assert_eq!(machine.one(block(Direction::Read, 0)), Outcome::Done(BLOCK_BYTES));
    machine.detach();
    let ops = [block(Direction::Read, 0), block(Direction::Write, 1), barrier(Action::Sync)];
    for op in ops {
        assert_eq!(machine.one(op), Outcome::Failed(Errno(libc::EBADF)), "{op:?}");
    }
    // A failing one does not affect others, wherever it is in the batch.
    let elsewhere = Op { file: 1, ..block(Direction::Read, 0) };
    machine.attach(&file);
    let good = block(Direction::Read, 0);
    let outcomes = machine.run(&[good, elsewhere, good, elsewhere, elsewhere, good]);
    let (done, failed) = (Outcome::Done(BLOCK_BYTES), Outcome::Failed(Errno(libc::EBADF)));
    assert_eq!(outcomes, [done, failed, done, failed, failed, done]);
}

fn synchronisations_succeed(machine: &mut dyn Machine, place: &TestTarget) {
    let file = place.open();
    machine.attach(&file);
    machine.fill(0, 0x42);
    assert_eq!(machine.one(block(Direction::Write, 7)), Outcome::Done(BLOCK_BYTES));
    for action in [Action::Sync, Action::DataSync, Action::RangeSync(libc::SYNC_FILE_RANGE_WRITE as u8)] {
        assert_eq!(machine.one(barrier(action)), Outcome::Done(0), "{action:?}");
    }
    let found = std::fs::read(&place.path).unwrap();
    assert!(found[7 * BLOCK_BYTES as usize..8 * BLOCK_BYTES as usize].iter().all(|&byte| byte == 0x42));
}

fn a_trimmed_range_of_a_file_reads_as_zeroes(machine: &mut dyn Machine, place: &TestTarget) {
    let file = place.open();
    machine.attach(&file);
    for number in 0..3 {
        machine.fill(0, 0x66);
        assert_eq!(machine.one(block(Direction::Write, number)), Outcome::Done(BLOCK_BYTES));
    }
    match machine.one(block(Direction::Trim, 1)) {
        Outcome::Failed(Errno(libc::EOPNOTSUPP)) => {
            return skip(&place.name, &"this file system punches no holes");
        }
        outcome @ (Outcome::Done(_) | Outcome::Appended(_) | Outcome::Failed(_)) => {
            assert_eq!(outcome, Outcome::Done(BLOCK_BYTES))
        }
    }
    for (number, byte) in [(0, 0x66), (1, 0), (2, 0x66)] {
        machine.fill(0, 0xee);
        assert_eq!(machine.one(block(Direction::Read, number)), Outcome::Done(BLOCK_BYTES));
        assert!(machine.bytes(0).iter().all(|&found| found == byte), "block {number}");
    }
}

fn the_rest_of_a_transfer_goes_to_the_rest_of_the_buffer(machine: &mut dyn Machine, place: &TestTarget) {
    let file = place.open();
    machine.attach(&file);
    machine.fill(0, 0x77);
    assert_eq!(machine.one(block(Direction::Write, 3)), Outcome::Done(BLOCK_BYTES));
    machine.fill(0, 0);
    // The smallest part that O_DIRECT accepts on a device with 512-byte sectors; one with 4096 refuses it.
    let rest = block(Direction::Read, 3).rest(BLOCK_BYTES - 512);
    match machine.one(rest) {
        Outcome::Failed(Errno(libc::EINVAL)) if place.direct => {
            skip(&place.name, &"direct I/O in whole blocks only")
        }
        outcome @ (Outcome::Done(_) | Outcome::Appended(_) | Outcome::Failed(_)) => {
            assert_eq!(outcome, Outcome::Done(512));
            let found = machine.bytes(0);
            let (start, end) = found.split_at(BLOCK_BYTES as usize - 512);
            assert!(start.iter().all(|&byte| byte == 0) && end.iter().all(|&byte| byte == 0x77));
        }
    }
}

fn a_file_can_be_closed_and_another_opened(machine: &mut dyn Machine, place: &TestTarget) {
    let first = place.open();
    machine.attach(&first);
    machine.fill(0, 0x31);
    assert_eq!(machine.one(block(Direction::Write, 1)), Outcome::Done(BLOCK_BYTES));
    machine.detach();
    drop(first);
    let second = place.open();
    machine.attach(&second);
    machine.fill(0, 0);
    assert_eq!(machine.one(block(Direction::Read, 1)), Outcome::Done(BLOCK_BYTES));
    assert!(machine.bytes(0).iter().all(|&byte| byte == 0x31));
}
