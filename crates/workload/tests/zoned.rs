//! Jobs on zones that other jobs write to as well, whose writes complete in any order.
//!
//! Invariant: the model accepts what a host-managed device would accept, and nothing else.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

#[path = "zoned/appends.rs"]
mod appends;
mod common;

use std::sync::{Arc, Mutex};

use common::{Case, case};
use fiord_errno::Errno;
use fiord_plan::{Action, BlockSizes, FileService, Op, Pattern, ZoneSkip, ZonedAccess};
use fiord_stats::random::Random;
use fiord_workload::{
    OperationSource, Supply, ZoneDevice, ZoneLayout, ZoneTable, ZoneWaiters, ZonedSource, ZonedTarget,
};
use proptest::prelude::*;

const KIB: u64 = 1 << 10;
const ZONE: u64 = 256 * KIB;
const CAPACITY: u64 = 192 * KIB;
const ZONES: u64 = 12;
/// The first zones are conventional.
const CONVENTIONAL: u64 = 2;

/// A host-managed device: bytes written to each zone, whether it is finished, and what was refused.
#[derive(Debug, Default)]
struct Model {
    written: Vec<u64>,
    finished: Vec<bool>,
    resets: u64,
    open_seen: usize,
}

impl Model {
    fn new() -> Model {
        Model { written: vec![0; ZONES as usize], finished: vec![false; ZONES as usize], ..Model::default() }
    }

    /// A write that has reached the device.
    fn write(&mut self, op: &Op) {
        let (zone, within) = (op.offset_bytes / ZONE, op.offset_bytes % ZONE);
        if zone < CONVENTIONAL {
            assert!(within + op.length_bytes <= ZONE, "leaves its zone: {op:?}");
            return;
        }
        let written = &mut self.written[zone as usize];
        assert_eq!(within, *written, "not at the write pointer: {op:?}");
        assert!(!self.finished[zone as usize], "the zone is full: {op:?}");
        *written += op.length_bytes;
        assert!(*written <= CAPACITY, "beyond the capacity: {op:?}");
        self.see_open();
    }

    /// An append that has reached the device, which chooses its place.
    fn append(&mut self, op: &mut Op) {
        let zone = op.offset_bytes / ZONE;
        if zone >= CONVENTIONAL {
            op.offset_bytes = zone * ZONE + self.written[zone as usize];
        }
        self.write(op);
    }

    fn see_open(&mut self) {
        let open = |zone: &usize| !self.finished[*zone] && (1..CAPACITY).contains(&self.written[*zone]);
        self.open_seen = self.open_seen.max((0..ZONES as usize).filter(open).count());
    }
}

struct Device(Arc<Mutex<Model>>);

impl ZoneDevice for Device {
    fn reset(&self, start_bytes: u64, length_bytes: u64) -> Result<(), Errno> {
        assert_eq!((start_bytes % ZONE, length_bytes), (0, ZONE));
        let mut model = self.0.lock().unwrap();
        model.written[(start_bytes / ZONE) as usize] = 0;
        model.finished[(start_bytes / ZONE) as usize] = false;
        model.resets += 1;
        Ok(())
    }

    fn finish(&self, start_bytes: u64, length_bytes: u64) -> Result<(), Errno> {
        assert_eq!(length_bytes, ZONE);
        self.0.lock().unwrap().finished[(start_bytes / ZONE) as usize] = true;
        Ok(())
    }

    fn written_bytes(&self, start_bytes: u64) -> Result<u64, Errno> {
        Ok(self.0.lock().unwrap().written[(start_bytes / ZONE) as usize])
    }
}

/// Zones, and the model they are of.
struct Table {
    zones: Arc<ZoneTable>,
    model: Option<Arc<Mutex<Model>>>,
}

impl Table {
    fn of(zones: ZoneTable) -> Table {
        Table { zones: Arc::new(zones), model: None }
    }

    fn target(&self) -> ZonedTarget {
        let device = self.model.clone().map(|model| Box::new(Device(model)) as Box<dyn ZoneDevice>);
        ZonedTarget { table: self.zones.clone(), device }
    }
}

fn settings() -> ZonedAccess {
    ZonedAccess {
        zone_bytes: 0,
        capacity_bytes: 0,
        skip: ZoneSkip::NONE,
        open_max: None,
        job_open_max: None,
        ignores_device_limit: false,
        reads_beyond_pointer: false,
        reset_threshold: 0.0,
        reset_every: None,
        recovers: false,
        appends: false,
        writes_remainder: false,
    }
}

fn layout(zone: u64) -> ZoneLayout {
    let is_sequential = zone >= CONVENTIONAL;
    ZoneLayout {
        start_bytes: zone * ZONE,
        length_bytes: ZONE,
        capacity_bytes: if is_sequential { CAPACITY } else { ZONE },
        written_bytes: 0,
        is_open: false,
        is_sequential,
    }
}

/// A table over the model, and one whose zones are emulated.
fn device(open_max: Option<u32>) -> (Arc<Mutex<Model>>, Table) {
    let model = Arc::new(Mutex::new(Model::new()));
    let table = ZoneTable::new((0..ZONES).map(layout).collect(), open_max, true).counting_data();
    (model.clone(), Table { zones: Arc::new(table), model: Some(model) })
}

/// Emulated zones.
fn emulated(count: u64, capacity_bytes: u64) -> Table {
    let zones = (0..count).map(|zone| ZoneLayout { is_sequential: true, capacity_bytes, ..layout(zone) });
    Table::of(ZoneTable::new(zones.collect(), None, false).counting_data())
}

fn job(pattern: Pattern, random: bool, block_bytes: u64) -> Case {
    case(pattern, random, &[ZONES * ZONE]).block(block_bytes)
}

fn source(case: &Case, zoned: &ZonedAccess, table: &Table) -> ZonedSource {
    ZonedSource::new(&case.access, &case.files, &case.limits, zoned, vec![table.target()]).unwrap()
}

/// Runs jobs together, with up to `depth` operations of each in flight, which reach the device and complete in any order.
/// Returns what each has done.
fn run(sources: &mut [ZonedSource], depth: usize, seed: u64, mut complete: impl FnMut(&Op)) -> Vec<Vec<Op>> {
    run_each(sources, depth, seed, |_, op| complete(op))
}

/// The same, where the device may choose the places of a job's writes.
fn run_each(
    sources: &mut [ZonedSource],
    depth: usize,
    seed: u64,
    mut complete: impl FnMut(usize, &mut Op),
) -> Vec<Vec<Op>> {
    let mut random = Random::new(seed);
    let mut in_flight: Vec<Vec<Op>> = vec![Vec::new(); sources.len()];
    let mut done: Vec<Vec<Op>> = vec![Vec::new(); sources.len()];
    let mut idle = 0;
    while idle < 10_000 {
        let index = random.below(sources.len() as u64) as usize;
        let flying = &mut in_flight[index];
        let room = depth - flying.len();
        let supply = if room > 0 { sources[index].fill(flying, room, 0) } else { Supply::Ready };
        let has_ended = matches!(supply, Supply::Ended);
        assert!(!matches!(supply, Supply::Failed), "{}", sources[index].failure());
        idle = if flying.is_empty() { idle + 1 } else { 0 };
        if has_ended && sources.len() == 1 && flying.is_empty() {
            break;
        }
        if !flying.is_empty() {
            let mut op = flying.swap_remove(random.below(flying.len() as u64) as usize);
            complete(index, &mut op);
            sources[index].completed(&op, &[]).unwrap();
            done[index].push(op);
        }
    }
    done
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // divergence: `zonemode=zbd` with queued writes to one zone
    /// Whatever two jobs do to a device at once: each write is at the write pointer of its zone and within its capacity, and
    /// no more zones are open than may be.
    #[test]
    fn a_device_accepts_every_write(
        random in any::<bool>(),
        mixed in any::<bool>(),
        block in prop::sample::select(vec![4 * KIB, 16 * KIB, 40 * KIB]),
        open_max in prop::option::of(1..6u32),
        job_open_max in prop::option::of(1..3u32),
        reset in prop::option::of(1..5u64),
        appends in any::<[bool; 2]>(),
        depth in 1..5usize,
        seed in any::<u64>(),
    ) {
        let pattern = if mixed { Pattern::Mixed } else { Pattern::Only(fiord_plan::Direction::Write) };
        let zoned = ZonedAccess {
            job_open_max,
            reset_threshold: 0.3,
            reset_every: reset,
            ..settings()
        };
        let (model, table) = device(open_max);
        let both = [0, 1].map(|number| job(pattern, random, block).with(|case| {
            case.access.seed = seed ^ number;
            case.limits.loop_bytes = 4 * ZONES * ZONE;
        }));
        let settings = appends.map(|appends| ZonedAccess { appends, ..zoned });
        let mut sources = [0, 1].map(|number| source(&both[number], &settings[number], &table));
        let done = run_each(&mut sources, depth, seed, |job, op| match op.action {
            Action::Write if appends[job] => model.lock().unwrap().append(op),
            Action::Write => model.lock().unwrap().write(op),
            _ => {}
        });
        let model = model.lock().unwrap();
        if let Some(open_max) = open_max {
            prop_assert!(model.open_seen <= open_max as usize, "{} open", model.open_seen);
        }
        let resets: u64 = sources.iter().filter_map(|source| source.zone_resets()).sum();
        prop_assert_eq!(resets, model.resets);
        for ops in &done {
            prop_assert!(ops.iter().any(|op| op.action == Action::Write), "a job that cannot write at all");
            for op in ops {
                prop_assert_eq!(op.offset_bytes / ZONE, (op.offset_bytes + op.length_bytes - 1) / ZONE, "leaves its zone");
            }
        }
    }

    /// Reads stay within what is written.
    #[test]
    fn reads_stay_below_the_write_pointer(random in any::<bool>(), written in prop::collection::vec(0..=12u64, 10), seed in any::<u64>()) {
        let zone = |zone: u64| match zone.checked_sub(CONVENTIONAL) {
            Some(index) => ZoneLayout { written_bytes: written[index as usize] * 16 * KIB, ..layout(zone) },
            None => layout(zone),
        };
        let zones: Vec<ZoneLayout> = (0..ZONES).map(zone).collect();
        let table = Table::of(ZoneTable::new(zones.clone(), None, false).counting_data());
        let job = job(Pattern::Only(fiord_plan::Direction::Read), random, 16 * KIB).with(|case| case.access.seed = seed);
        let mut sources = [source(&job, &settings(), &table)];
        let done = run(&mut sources, 4, seed, |_| {});
        for op in &done[0] {
            let zone = &zones[(op.offset_bytes / ZONE) as usize];
            let end = if zone.is_sequential { zone.written_bytes } else { ZONE };
            prop_assert!(op.offset_bytes % ZONE + op.length_bytes <= end, "{op:?} in {zone:?}");
        }
        let readable: u64 = zones.iter().map(|zone| if zone.is_sequential { zone.written_bytes } else { ZONE }).sum();
        if !random {
            let total: u64 = done[0].iter().map(|op| op.length_bytes).sum();
            prop_assert_eq!(total, readable, "a sequential job reads all of it once");
        }
    }
}

#[test]
fn a_sequential_write_fills_each_zone_and_resets_it_in_the_next_pass() {
    let table = emulated(ZONES, CAPACITY);
    let twice = job(Pattern::Only(fiord_plan::Direction::Write), false, 64 * KIB).with(|case| {
        case.limits.loops = 2;
    });
    let mut sources = [source(&twice, &settings(), &table)];
    let done = run(&mut sources, 1, 1, |_| {}).remove(0);
    let offsets: Vec<u64> = done.iter().map(|op| op.offset_bytes).collect();
    let pass: Vec<u64> = (0..ZONES)
        .flat_map(|zone| (0..CAPACITY / (64 * KIB)).map(move |block| zone * ZONE + block * 64 * KIB))
        .collect();
    assert_eq!(offsets, [pass.clone(), pass].concat());
    assert_eq!(sources[0].zone_resets(), Some(ZONES));
}

#[test]
fn no_pass_begins_for_less_than_a_block() {
    let block_bytes = 16 * KIB;
    let passes = |more_bytes: u64| {
        let case = job(WRITE, false, block_bytes).with(|case| case.limits.loop_bytes += more_bytes);
        let mut sources = [source(&case, &settings(), &emulated(ZONES, ZONE))];
        run(&mut sources, 1, 1, |_| {});
        sources[0].passes_begun()
    };
    let [one, same, next] = [0, block_bytes - 1, block_bytes].map(passes);
    assert_eq!((one, next), (same, same + 1), "{one}");
}

#[test]
fn random_writes_fill_each_zone_once_per_pass() {
    let table = emulated(ZONES, ZONE);
    let job = job(Pattern::Only(fiord_plan::Direction::Write), true, 64 * KIB);
    let mut source = source(&job, &settings(), &table);
    let mut done = Vec::new();
    while source.fill(&mut done, 64, 0) == Supply::Ready {}
    let offsets: std::collections::BTreeSet<u64> = done.iter().map(|op| op.offset_bytes).collect();
    assert_eq!((offsets.len(), done.len()), (48, 48), "each block once");
    assert_eq!(source.zone_resets(), Some(0));
}

#[test]
fn zones_are_left_out_between_those_that_are_written() {
    let table = emulated(ZONES, CAPACITY);
    // A device's own zones are as long as they are, whatever the job says.
    for skip in [ZoneSkip::Zones(1), ZoneSkip::Bytes(ZONE)] {
        let zoned = ZonedAccess { skip, ..settings() };
        let job = job(Pattern::Only(fiord_plan::Direction::Write), false, CAPACITY).with(|case| {
            case.limits.loop_bytes = 8 * CAPACITY;
        });
        let done = run(&mut [source(&job, &zoned, &table)], 1, 1, |_| {}).remove(0);
        let zones: Vec<u64> = done.iter().map(|op| op.offset_bytes / ZONE).collect();
        assert_eq!(zones, [0, 2, 4, 6, 8, 10, 0, 2], "what was left out is made up for");
    }
}

// divergence: `zonemode=zbd` on a zoned device, where
#[test]
fn the_rest_of_a_zone_is_written_if_requested_and_finished_otherwise() {
    for writes_remainder in [false, true] {
        let (model, table) = device(None);
        let zoned = ZonedAccess { writes_remainder, ..settings() };
        // Four of these leave 32 KiB of a zone.
        let job = job(Pattern::Only(fiord_plan::Direction::Write), false, 40 * KIB)
            .sizes([0; 3].map(|_| BlockSizes::Fixed(40 * KIB)));
        let mut sources = [source(&job, &zoned, &table)];
        run(&mut sources, 1, 1, |op| model.lock().unwrap().write(op));
        let model = model.lock().unwrap();
        let first = CONVENTIONAL as usize;
        let expected = if writes_remainder { (CAPACITY, false) } else { (160 * KIB, true) };
        assert_eq!((model.written[first], model.finished[first]), expected);
    }
}

#[test]
fn a_failed_write_releases_the_zone_and_recovery_reads_the_devices_write_pointer() {
    for recovers in [false, true] {
        let (model, table) = device(None);
        let zoned = ZonedAccess { recovers, ..settings() };
        let job = job(Pattern::Only(fiord_plan::Direction::Write), false, 64 * KIB).with(|case| {
            case.files.list[0].offset_bytes = CONVENTIONAL * ZONE;
            case.files.list[0].length_bytes = ZONE;
        });
        let mut source = source(&job, &zoned, &table);
        let mut ops = Vec::new();
        assert_eq!(source.fill(&mut ops, 8, 0), Supply::Ready);
        assert_eq!(source.fill(&mut ops, 8, 0), Supply::AfterCompletion, "one write of a zone at a time");
        // The device has taken a part of it.
        model.lock().unwrap().written[CONVENTIONAL as usize] = 16 * KIB;
        source.failed(&ops[0], Errno::EIO);
        assert_eq!(source.fill(&mut ops, 8, 0), Supply::Ready);
        let within = ops[1].offset_bytes - CONVENTIONAL * ZONE;
        assert_eq!(within, if recovers { 16 * KIB } else { 0 });
    }
}

/// A sequential write of 16 KiB blocks to the first sequential zone.
fn writes_to_one_zone() -> Case {
    job(Pattern::Only(fiord_plan::Direction::Write), false, 16 * KIB).with(|case| {
        case.files.list[0].offset_bytes = CONVENTIONAL * ZONE;
        case.files.list[0].length_bytes = ZONE;
    })
}

#[test]
fn a_write_that_took_two_calls_moves_the_pointer_by_all_of_it() {
    let (_, table) = device(None);
    let mut source = source(&writes_to_one_zone(), &settings(), &table);
    let mut ops = Vec::new();
    assert_eq!(source.fill(&mut ops, 1, 0), Supply::Ready);
    source.completed(&ops[0].rest(4 * KIB), &[]).unwrap();
    assert_eq!(source.fill(&mut ops, 1, 0), Supply::Ready);
    assert_eq!(ops[1].offset_bytes, CONVENTIONAL * ZONE + 16 * KIB);
}

#[test]
fn a_job_that_ends_with_writes_it_never_issued_does_not_block_others() {
    let (_, table) = device(None);
    let job = job(Pattern::Only(fiord_plan::Direction::Write), false, 64 * KIB).with(|case| {
        case.files.list[0].offset_bytes = CONVENTIONAL * ZONE;
        case.files.list[0].length_bytes = ZONE;
    });
    let (mut one, mut other) = (source(&job, &settings(), &table), source(&job, &settings(), &table));
    let mut ops = Vec::new();
    assert_eq!(one.fill(&mut ops, 8, 0), Supply::Ready);
    assert_eq!(other.fill(&mut ops, 8, 0), Supply::NotBefore(20_000));
    drop(one);
    assert_eq!(other.fill(&mut ops, 8, 0), Supply::Ready);
}

/// One that has ended leaves its last zone open.
#[test]
fn a_sequential_job_goes_on_in_the_zone_that_another_left_open() {
    let (model, table) = device(Some(1));
    let write = |op: &Op| model.lock().unwrap().write(op);
    let job = |bytes: u64| {
        job(Pattern::Only(fiord_plan::Direction::Write), false, 16 * KIB).with(|case| {
            case.files.list[0].offset_bytes = CONVENTIONAL * ZONE;
            case.files.list[0].length_bytes = 4 * ZONE;
            case.limits.loop_bytes = bytes;
            case.limits.pass_bytes = bytes;
        })
    };
    let bytes = |ops: &[Op]| ops.iter().map(|op| op.length_bytes).sum::<u64>();
    let ended = job(CAPACITY + 32 * KIB);
    assert_eq!(bytes(&run(&mut [source(&ended, &settings(), &table)], 1, 1, write)[0]), CAPACITY + 32 * KIB);
    let other = job(3 * CAPACITY);
    assert_eq!(bytes(&run(&mut [source(&other, &settings(), &table)], 2, 1, write)[0]), 3 * CAPACITY);
    assert_eq!(model.lock().unwrap().open_seen, 1);
}

/// A table over a model of which these zones are written.
fn written_device(written: &[u64]) -> (Arc<Mutex<Model>>, Table) {
    let is_written = |zone: u64| written.contains(&zone);
    let layouts = (0..ZONES)
        .map(|zone| ZoneLayout { written_bytes: u64::from(is_written(zone)) * CAPACITY, ..layout(zone) });
    let table = ZoneTable::new(layouts.collect(), None, true);
    let model = Arc::new(Mutex::new(Model::new()));
    model.lock().unwrap().written = (0..ZONES).map(|zone| u64::from(is_written(zone)) * CAPACITY).collect();
    (model.clone(), Table { zones: Arc::new(table), model: Some(model) })
}

/// The wait for a rate or a pause lies between the two, and a job that is interrupted there leaves the zone empty.
#[test]
fn a_full_zone_is_reset_when_its_write_is_made_and_not_when_that_is_issued() {
    let (model, table) = written_device(&[CONVENTIONAL]);
    let state = || {
        let model = model.lock().unwrap();
        (model.resets, model.written[CONVENTIONAL as usize])
    };
    let mut source = source(&writes_to_one_zone(), &settings(), &table);
    assert_eq!(state(), (0, CAPACITY));
    assert_eq!(source.fill(&mut Vec::new(), 1, 0), Supply::Ready);
    assert_eq!(state(), (1, 0), "before the write is issued");
    drop(source);
    assert_eq!(state(), (1, 0), "and without one");
}

fn trimmed_zones(
    table: &Table,
    model: &Arc<Mutex<Model>>,
    pattern: Pattern,
    random: bool,
) -> Vec<(Action, u64)> {
    let job = job(pattern, random, ZONE);
    let mut sources = [source(&job, &settings(), table)];
    let done = run(&mut sources, 3, 1, |op| match op.action {
        Action::ResetZone => Device(model.clone()).reset(op.offset_bytes, op.length_bytes).unwrap(),
        Action::Write => model.lock().unwrap().write(op),
        _ => {}
    });
    let resets = done[0].iter().filter(|op| op.action == Action::ResetZone).count() as u64;
    assert_eq!(sources[0].zone_resets(), Some(resets));
    done[0].iter().map(|op| (op.action, op.offset_bytes / ZONE)).collect()
}

#[test]
fn sequential_trims_reset_each_zone_and_random_ones_those_that_are_not_empty() {
    let trims = Pattern::Only(fiord_plan::Direction::Trim);
    let (model, table) = written_device(&[3, 7]);
    let mut zones = trimmed_zones(&table, &model, trims, false);
    zones.sort_by_key(|(_, zone)| *zone);
    let all = (CONVENTIONAL..ZONES).map(|zone| (Action::ResetZone, zone)).collect::<Vec<_>>();
    assert_eq!(zones, all);
    let (model, table) = written_device(&[3, 7]);
    let mut zones = trimmed_zones(&table, &model, trims, true);
    zones.sort_by_key(|(_, zone)| *zone);
    assert_eq!(zones, [(Action::ResetZone, 3), (Action::ResetZone, 7)]);
    assert!(model.lock().unwrap().written.iter().all(|written| *written == 0));
}

#[test]
fn a_zone_that_was_trimmed_is_written_to_its_capacity_by_trimwrite() {
    let (model, table) = written_device(&[3, 7]);
    let done = trimmed_zones(&table, &model, Pattern::TrimThenWrite, false);
    for zone in CONVENTIONAL..ZONES {
        let of_zone: Vec<Action> =
            done.iter().filter(|(_, at)| *at == zone).map(|(action, _)| *action).collect();
        assert_eq!(of_zone, [Action::ResetZone, Action::Write], "zone {zone}");
        assert_eq!(model.lock().unwrap().written[zone as usize], CAPACITY);
    }
}

// divergence: trims of emulated zones
#[test]
fn what_is_in_an_emulated_zone_is_discarded_and_the_zone_is_empty_then() {
    let table = emulated(ZONES, CAPACITY);
    let writes = job(Pattern::Only(fiord_plan::Direction::Write), false, 64 * KIB);
    run(&mut [source(&writes, &settings(), &table)], 1, 1, |_| {});
    let trims = job(Pattern::Only(fiord_plan::Direction::Trim), true, ZONE);
    let done = run(&mut [source(&trims, &settings(), &table)], 2, 1, |_| {});
    assert_eq!(done[0].len() as u64, ZONES);
    assert!(done[0].iter().all(|op| op.action == Action::Trim && op.length_bytes == ZONE));
    assert_eq!(
        run(&mut [source(&trims, &settings(), &table)], 2, 1, |_| {})[0],
        [],
        "nothing is left to trim"
    );
}

#[test]
fn queued_random_writes_transfer_the_whole_pass_and_trimwrite_ends_with_a_write() {
    let (model, table) = device(Some(1));
    let writes = job(Pattern::Only(fiord_plan::Direction::Write), true, 64 * KIB).with(|case| {
        case.files.list[0].offset_bytes = CONVENTIONAL * ZONE;
        case.files.list[0].length_bytes = (ZONES - CONVENTIONAL) * ZONE;
    });
    let mut source = source(&writes, &settings(), &table);
    let (mut flying, mut done) = (Vec::new(), 0);
    loop {
        // Asks for more until it has to wait.
        match source.fill(&mut flying, 4, 0) {
            Supply::Ready => {}
            Supply::Ended if flying.is_empty() => break,
            _ => {
                let op = flying.pop().unwrap();
                model.lock().unwrap().write(&op);
                source.completed(&op, &[]).unwrap();
                done += 1;
            }
        }
    }
    assert_eq!(done, (ZONES - CONVENTIONAL) * CAPACITY / (64 * KIB), "what waits for a zone is not left out");
    let (model, table) = written_device(&[3, 7]);
    let trims = job(Pattern::TrimThenWrite, false, ZONE).with(|case| case.limits.loop_bytes = 2 * ZONE);
    let done = run(&mut [self::source(&trims, &settings(), &table)], 1, 1, |op| match op.action {
        Action::Write => model.lock().unwrap().write(op),
        _ => Device(model.clone()).reset(op.offset_bytes, op.length_bytes).unwrap(),
    });
    let actions: Vec<Action> = done[0].iter().map(|op| op.action).collect();
    assert_eq!(actions, [Action::ResetZone, Action::Write, Action::ResetZone, Action::Write]);
}

/// Devices with zones that are open when the run begins, where no more than `open_max` may be, and jobs in common.
fn opened_devices<const COUNT: usize>(open: [&[u64]; COUNT], open_max: u32) -> [Table; COUNT] {
    let waiters = ZoneWaiters::default();
    open.map(|open| {
        let written = |zone: u64| if open.contains(&zone) { 16 * KIB } else { 0 };
        let layouts = (0..ZONES).map(|zone| ZoneLayout {
            written_bytes: written(zone),
            is_open: open.contains(&zone),
            ..layout(zone)
        });
        let table = ZoneTable::new(layouts.collect(), Some(open_max), true).sharing(waiters.clone());
        let model = Arc::new(Mutex::new(Model::new()));
        model.lock().unwrap().written = (0..ZONES).map(written).collect();
        Table { zones: Arc::new(table), model: Some(model) }
    })
}

/// The zones of a job in each of its files: the first, and how many.
type Ranges<'a> = &'a [(u64, u64)];

fn job_on(pattern: Pattern, random: bool, ranges: Ranges) -> Case {
    let block_bytes = if pattern == Pattern::TrimThenWrite { ZONE } else { 16 * KIB };
    let lengths: Vec<u64> = ranges.iter().map(|(_, count)| count * ZONE).collect();
    case(pattern, random, &lengths).block(block_bytes).with(|case| {
        for (file, (first, _)) in case.files.list.iter_mut().zip(ranges) {
            file.offset_bytes = first * ZONE;
        }
    })
}

/// The operations of a job, and the devices that its files are.
struct RunningJob {
    source: ZonedSource,
    models: Vec<Arc<Mutex<Model>>>,
}

impl RunningJob {
    fn new(case: &Case, tables: &[&Table]) -> RunningJob {
        let targets = tables.iter().map(|table| table.target()).collect();
        let source = ZonedSource::new(&case.access, &case.files, &case.limits, &settings(), targets).unwrap();
        RunningJob { source, models: tables.iter().filter_map(|table| table.model.clone()).collect() }
    }
}

/// Runs jobs in turn, one operation in flight at a time, until none of them makes any more. Returns why each has failed.
fn failures(mut jobs: Vec<RunningJob>, seed: u64) -> Vec<Option<String>> {
    let mut random = Random::new(seed);
    let mut running: Vec<usize> = (0..jobs.len()).collect();
    let mut failures = vec![None; jobs.len()];
    let mut steps = 0;
    while !running.is_empty() {
        steps += 1;
        assert!(steps < 100_000, "jobs {running:?} wait for ever");
        let at = random.below(running.len() as u64) as usize;
        let index = running[at];
        let RunningJob { source, models } = &mut jobs[index];
        let mut ops = Vec::new();
        match source.fill(&mut ops, 1, 0) {
            Supply::Ended => {
                running.swap_remove(at);
            }
            Supply::Failed => {
                running.swap_remove(at);
                failures[index] = Some(source.failure());
            }
            Supply::Ready | Supply::AfterCompletion | Supply::NotBefore(_) => {}
        }
        for op in ops {
            let model = &models[op.file as usize];
            match op.action {
                Action::Write => model.lock().unwrap().write(&op),
                Action::ResetZone => Device(model.clone()).reset(op.offset_bytes, op.length_bytes).unwrap(),
                _ => {}
            }
            source.completed(&op, &[]).unwrap();
        }
    }
    failures
}

const WRITE: Pattern = Pattern::Only(fiord_plan::Direction::Write);

// divergence: `zonemode=zbd` where all zones that may be open are outside the job's range
#[test]
fn a_job_fails_if_all_zones_that_may_be_open_are_where_nobody_writes() {
    for (pattern, random) in
        [(WRITE, false), (WRITE, true), (Pattern::Mixed, true), (Pattern::TrimThenWrite, false)]
    {
        let [table] = opened_devices([&[8, 9]], 2);
        let cases = [job_on(pattern, random, &[(2, 3)]), job_on(pattern, random, &[(5, 2)])];
        for jobs in [&cases[..1], &cases[..]] {
            let jobs = jobs.iter().map(|case| RunningJob::new(case, &[&table])).collect();
            for failure in failures(jobs, 7) {
                let failure = failure.expect("it cannot write");
                let wanted = format!("at offset {}", 8 * ZONE);
                assert!(failure.contains(&wanted) && failure.contains("max_open_zones"), "{failure}");
            }
        }
        let model = table.model.unwrap();
        assert_eq!(model.lock().unwrap().open_seen, 0, "{pattern:?}: nothing was written");
    }
}

#[test]
fn a_job_waits_for_zones_that_another_closes() {
    for pattern in [WRITE, Pattern::TrimThenWrite] {
        for seed in 0..20 {
            let [table] = opened_devices([&[8, 9]], 2);
            let cases = [job_on(pattern, false, &[(2, 3)]), job_on(WRITE, false, &[(8, 2)])];
            let jobs = cases.iter().map(|case| RunningJob::new(case, &[&table])).collect();
            assert_eq!(failures(jobs, seed), [None, None], "{pattern:?}");
        }
    }
}

/// Each has a zone open that the other would have to close, in the file where the other would go on: it goes on where it
/// can itself.
#[test]
fn jobs_that_hold_zones_of_two_files_do_not_wait_for_each_other() {
    for random in [false, true] {
        for seed in 0..20 {
            let [one, other] = opened_devices([&[], &[]], 1);
            let cases = [job_on(WRITE, random, &[(2, 3), (5, 3)]), job_on(WRITE, random, &[(2, 3), (5, 3)])];
            let jobs = vec![
                RunningJob::new(&cases[0], &[&one, &other]),
                RunningJob::new(&cases[1], &[&other, &one]),
            ];
            assert_eq!(failures(jobs, seed), [None, None], "random: {random}, seed {seed}");
            for model in [one.model.unwrap(), other.model.unwrap()] {
                let model = model.lock().unwrap();
                let written = model.written.iter().filter(|written| **written > 0).count();
                assert!(model.open_seen == 1 && (random || written == 6), "{model:?}");
            }
        }
    }
}

/// Neither file has a zone left, and the jobs begin with different files.
#[test]
fn jobs_fail_that_wait_at_different_files() {
    let [one, other] = opened_devices([&[10], &[11]], 1);
    let case = job_on(WRITE, false, &[(2, 3), (2, 3)]);
    let jobs = vec![RunningJob::new(&case, &[&one, &other]), RunningJob::new(&case, &[&other, &one])];
    for failure in failures(jobs, 3) {
        assert!(failure.as_ref().is_some_and(|failure| failure.contains("max_open_zones")), "{failure:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// Whatever jobs do to two devices where zones are open already: each ends, with an error if it cannot write.
    #[test]
    fn no_job_waits_for_ever(
        open_max in 1..4u32,
        open in prop::array::uniform2(prop::collection::btree_set(CONVENTIONAL..ZONES, 0..4)),
        jobs in prop::collection::vec(
            (0..4usize, any::<bool>(), 0..4usize, 0..3usize, CONVENTIONAL..ZONES - 2, 1..3u64),
            1..4,
        ),
        seed in any::<u64>(),
    ) {
        let open = open.map(|zones| zones.into_iter().take(open_max as usize).collect::<Vec<_>>());
        let [one, other] = opened_devices([&open[0], &open[1]], open_max);
        let patterns = [WRITE, Pattern::Mixed, Pattern::TrimThenWrite, Pattern::Only(fiord_plan::Direction::Trim)];
        let orders = [FileService::RoundRobin { every: 1 }, FileService::Random { every: 2 }, FileService::Sequential];
        let job = |(which, random, files, order, first, count): (usize, bool, usize, usize, u64, u64)| {
            let all = [vec![&one], vec![&other], vec![&one, &other], vec![&other, &one]];
            let tables: &[&Table] = &all[files];
            let ranges = vec![(first, count); tables.len()];
            let case = job_on(patterns[which], random && which < 2, &ranges);
            let case = case.with(|case| (case.access.seed, case.access.service) = (seed, orders[order]));
            RunningJob::new(&case, tables)
        };
        failures(jobs.into_iter().map(job).collect(), seed);
    }
}

fn offsets(ops: &[Op]) -> Vec<u64> {
    ops.iter().map(|op| op.offset_bytes).collect()
}

/// What is between the capacity and the end of a zone no write covers.
#[test]
fn random_writes_fill_each_zone_to_its_capacity_once_in_a_pass() {
    for (loops, has_map) in [(1, true), (2, true), (1, false)] {
        let table = emulated(ZONES, CAPACITY);
        let job = job(WRITE, true, 16 * KIB).with(|case| {
            case.limits.loops = loops;
            case.access.full_coverage = has_map;
        });
        let mut sources = [source(&job, &settings(), &table)];
        let done = run(&mut sources, 1, 1, |_| {}).remove(0);
        let places: std::collections::BTreeSet<u64> = offsets(&done).into_iter().collect();
        let per_pass = ZONES * CAPACITY / (16 * KIB);
        assert_eq!(done.len() as u64, loops * per_pass);
        if has_map {
            assert_eq!(places.len() as u64, per_pass, "each zone is full");
            assert_eq!(sources[0].zone_resets(), Some((loops - 1) * ZONES), "only full zones are reset");
        }
    }
}

/// In fio, too, which goes on in the zone that it has reset.
#[test]
fn sequential_writes_reset_zones_early() {
    let write = |zones: u64, loops: u64, reset_every: u64| {
        let table = emulated(zones, ZONE);
        let zoned = ZonedAccess { reset_threshold: 0.5, reset_every: Some(reset_every), ..settings() };
        let case = case(WRITE, false, &[zones * ZONE]).block(64 * KIB).with(|case| {
            case.limits.loops = loops;
        });
        let mut sources = [source(&case, &zoned, &table)];
        let done = run(&mut sources, 1, 1, |_| {}).remove(0);
        (done.iter().map(|op| op.offset_bytes / (64 * KIB)).collect::<Vec<u64>>(), sources[0].zone_resets())
    };
    assert_eq!(write(1, 2, 1), (vec![0, 1, 0, 1, 0, 1, 0, 1], Some(3)));
    let (blocks, resets) = write(4, 2, 1);
    assert_eq!((blocks.len(), blocks[..9].to_vec(), resets), (32, (0..9).collect(), Some(23)));
    assert!(blocks[8..].iter().all(|block| *block == 8), "{blocks:?}");
    // Every second write above the threshold.
    assert_eq!(write(1, 1, 2).0, [0, 1, 2, 0]);
}

#[test]
fn reads_beyond_the_pointer_reach_the_end_of_each_zone() {
    let zoned = ZonedAccess { reads_beyond_pointer: true, ..settings() };
    for random in [false, true] {
        let job = job(Pattern::Only(fiord_plan::Direction::Read), random, 64 * KIB);
        let done = run(&mut [source(&job, &zoned, &emulated(ZONES, CAPACITY))], 1, 1, |_| {}).remove(0);
        let places: std::collections::BTreeSet<u64> = offsets(&done).into_iter().collect();
        assert_eq!(places.len() as u64, ZONES * ZONE / (64 * KIB), "random: {random}");
    }
}

#[test]
fn sequential_reads_begin_inside_a_zone() {
    let zoned = ZonedAccess { reads_beyond_pointer: true, ..settings() };
    let job = job(Pattern::Only(fiord_plan::Direction::Read), false, 64 * KIB).with(|case| {
        case.files.list[0].offset_bytes = 128 * KIB;
        case.files.list[0].length_bytes = 3 * ZONE;
    });
    let done = run(&mut [source(&job, &zoned, &emulated(ZONES, CAPACITY))], 1, 1, |_| {}).remove(0);
    let blocks: Vec<u64> = done.iter().map(|op| op.offset_bytes / (64 * KIB)).collect();
    assert_eq!(blocks, (2..12).collect::<Vec<u64>>(), "the last zone is not whole");
}
