//! Appends to zones, whose places the device chooses.
//!
//! Invariant: what is in flight or has failed is neither read nor counted as written.

use super::*;

#[test]
fn appends_to_one_zone_are_in_flight_together_and_read_when_they_have_completed() {
    let (model, table) = device(None);
    let zoned = ZonedAccess { appends: true, ..settings() };
    let mut writer = source(&writes_to_one_zone(), &zoned, &table);
    let mut ops = Vec::new();
    assert_eq!(writer.fill(&mut ops, 16, 0), Supply::Ready);
    assert_ne!(writer.fill(&mut ops, 16, 0), Supply::Ready);
    assert_eq!(ops.len() as u64, CAPACITY / (16 * KIB), "all that the zone has room for");
    let readable = |table: &Table| {
        let reads = job(Pattern::Only(fiord_plan::Direction::Read), false, 16 * KIB).with(|case| {
            case.files.list[0].offset_bytes = CONVENTIONAL * ZONE;
            case.files.list[0].length_bytes = ZONE;
        });
        run(&mut [source(&reads, &settings(), table)], 1, 1, |_| {})[0].len()
    };
    for completed in 1..=ops.len() {
        assert_eq!(readable(&table), completed - 1);
        // The last is the first to reach the device.
        let mut op = ops.pop().unwrap();
        model.lock().unwrap().append(&mut op);
        assert_eq!(op.offset_bytes, CONVENTIONAL * ZONE + (completed as u64 - 1) * 16 * KIB);
        writer.completed(&op, &[]).unwrap();
    }
    assert_eq!(model.lock().unwrap().written[CONVENTIONAL as usize], CAPACITY);
}

#[test]
fn an_append_that_failed_leaves_its_room_to_others() {
    for recovers in [false, true] {
        let (model, table) = device(None);
        let zoned = ZonedAccess { appends: true, recovers, ..settings() };
        let mut source = source(&writes_to_one_zone(), &zoned, &table);
        let mut ops = Vec::new();
        assert_eq!(source.fill(&mut ops, 3, 0), Supply::Ready);
        source.failed(&ops[1], Errno::EIO);
        for mut op in [ops[0], ops[2]] {
            model.lock().unwrap().append(&mut op);
            source.completed(&op, &[]).unwrap();
        }
        ops.clear();
        assert_eq!(source.fill(&mut ops, 1, 0), Supply::Ready);
        assert_eq!(ops[0].offset_bytes, CONVENTIONAL * ZONE + 32 * KIB);
        // The device has taken a part of it.
        model.lock().unwrap().written[CONVENTIONAL as usize] = 36 * KIB;
        source.failed(&ops[0], Errno::EIO);
        assert_eq!(source.fill(&mut ops, 1, 0), Supply::Ready);
        let within = ops[1].offset_bytes - CONVENTIONAL * ZONE;
        assert_eq!(within, if recovers { 36 * KIB } else { 32 * KIB });
    }
}
