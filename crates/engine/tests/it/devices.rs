//! Every engine on a block device: a loop device over a sparse file, which only root can create.
//!
//! Invariant: a device and its file are removed at the end of their test.

use std::path::PathBuf;
use std::process::Command;

use crate::common::engines::{Variant, variants};
use crate::common::{BLOCK_BYTES, DEPTH, FILE_BYTES, Machine, TestTarget, barrier, block, skip};
use fiord_engine::Outcome;
use fiord_plan::{Action, Direction, Op};

/// A loop device and its backing file.
struct LoopDevice {
    place: TestTarget,
    backing: PathBuf,
}

impl LoopDevice {
    fn new(name: &str) -> Result<LoopDevice, String> {
        let file = format!("fiord-engine-loop-{}-{name}", std::process::id());
        let backing = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(file);
        std::fs::File::create(&backing).and_then(|file| file.set_len(FILE_BYTES)).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(&backing).output();
        let device = match made {
            Ok(output) if output.status.success() => Ok(String::from_utf8(output.stdout).unwrap()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(format!("losetup: {error}")),
        };
        let path = match device {
            Ok(device) => PathBuf::from(device.trim()),
            Err(why) => {
                let _ = std::fs::remove_file(&backing);
                return Err(why);
            }
        };
        let place = TestTarget { name: name.to_owned(), path, direct: true, temporary: false };
        Ok(LoopDevice { place, backing })
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.place.path).status();
        let _ = std::fs::remove_file(&self.backing);
    }
}

fn on_a_device(variant: &Variant, device: &LoopDevice) {
    #[allow(clippy::print_stdout, reason = "a test that fails shows where")]
    {
        println!("{}", variant.name);
    }
    if let Err(error) = (variant.run)(&mut |machine| moves_and_discards(machine, &device.place)) {
        skip(&variant.name, &error);
    }
}

fn moves_and_discards(machine: &mut dyn Machine, place: &TestTarget) {
    let file = place.open();
    machine.attach(&file);
    let ops = |direction| (0..u64::from(DEPTH)).map(|number| block(direction, number)).collect::<Vec<Op>>();
    let whole = vec![Outcome::Done(BLOCK_BYTES); DEPTH as usize];
    (0..DEPTH as usize).for_each(|buffer| machine.fill(buffer, 0x80 + buffer as u8));
    assert_eq!(machine.run(&ops(Direction::Write)), whole);
    for action in [Action::Sync, Action::DataSync, Action::RangeSync(libc::SYNC_FILE_RANGE_WRITE as u8)] {
        assert_eq!(machine.one(barrier(action)), Outcome::Done(0), "{action:?}");
    }
    let four = Op { length_bytes: 4 * BLOCK_BYTES, ..block(Direction::Trim, 2) };
    assert_eq!(machine.one(four), Outcome::Done(4 * BLOCK_BYTES), "a discard may be longer than a buffer");
    assert_eq!(machine.run(&ops(Direction::Read)), whole);
    for buffer in 0..DEPTH as usize {
        let expected = if (2..6).contains(&buffer) { 0 } else { 0x80 + buffer as u8 };
        assert!(machine.bytes(buffer).iter().all(|&byte| byte == expected), "block {buffer}");
    }
    assert_eq!(
        machine.one(block(Direction::Read, FILE_BYTES / BLOCK_BYTES)),
        Outcome::Done(0),
        "beyond the end"
    );
    machine.detach();
}

#[test]
fn every_engine_moves_and_discards_blocks_of_a_device() {
    for (number, variant) in variants().iter().enumerate() {
        // Each has its own, so that discards are of blocks that were written.
        match LoopDevice::new(&number.to_string()) {
            Ok(device) => on_a_device(variant, &device),
            Err(why) => return skip(&variant.name, &why),
        }
    }
}
