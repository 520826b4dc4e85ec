//! Rules about what an engine can do: keep I/Os in flight, pass by the page cache.
//!
//! Invariant: an engine is asked through its descriptor, and not known by its name.

use fiord_options::engine::IoUringCmd;
use fiord_options::table::OptionSet;
use fiord_options::value::{EngineName, ZoneMode};
use fiord_options::{Problem, ProblemKind, Scope, Spec, job};

use crate::access::{Direction, Pattern};
use crate::build::section::ResolvedSection;
use crate::build::targets::is_direct;
use crate::build::{stream, verification, zoned};
use crate::engine::EngineDescriptor;

pub(super) fn batch_complete_range_is_ordered(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    let most = options.queue.iodepth_batch_complete_max.filter(|most| *most > 0)?;
    (options.queue.iodepth_batch_complete_min > most).then(|| {
        let least = options.queue.iodepth_batch_complete_min;
        let message =
            format!("at most {most} completions are taken at once and {least} waited for; {least} are taken");
        section.error(ProblemKind::Adjusted, job::Queue::iodepth_batch_complete_max, message, "").as_warning()
    })
}

/// The write-up of many a benchmark has this trap in it: `iodepth=32` without an engine.
pub(super) fn queue_depth_needs_a_queue(section: &ResolvedSection<'_>) -> Option<Problem> {
    let engine = section.engine()?;
    (section.options.queue.iodepth > 1 && !engine.can_queue()).then(|| {
        let message = format!("the engine {} is synchronous: the queue depth stays at 1", engine.name);
        // The newest first.
        let queued = section
            .engines
            .0
            .iter()
            .rev()
            .filter(|engine| engine.queueing.is_queued() && engine.transfers_files());
        let queued: Vec<EngineName> = queued.map(|engine| engine.name).collect();
        let remedy = format!("ioengine={} keeps several I/Os in flight", EngineName::join(&queued, " or "));
        section.error(ProblemKind::NoEffect, job::Queue::iodepth, message, remedy).as_warning()
    })
}

/// fio ignores them without a word.
pub(super) fn options_of_commands_need_commands(section: &ResolvedSection<'_>) -> Option<Problem> {
    let engine = section.engine().filter(|engine| !engine.bypasses_cache())?;
    let takes = |engine: &EngineDescriptor, option: &Spec| match option.scope {
        Scope::Engine(engines) => engines.contains(&engine.name),
        Scope::Job | Scope::Program => false,
    };
    let of_commands = IoUringCmd::TABLES.iter().copied().flatten().copied();
    let given = of_commands.into_iter().find(|option| takes(engine, option) && section.is_given(option))?;
    let message = format!("{} has no effect on {}", given.name, engine.name);
    let able = section.engines.0.iter().filter(|engine| engine.bypasses_cache() && takes(engine, given));
    let able: Vec<EngineName> = able.map(|engine| engine.name).collect();
    let remedy = format!("it is for ioengine={}", EngineName::join(&able, " or "));
    Some(section.error(ProblemKind::NoEffect, given, message, remedy).as_warning())
}

/// The drive chooses where appended data go.
pub(super) fn appends_go_to_zones(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    let writes = stream::pattern(options.access.rw.kind).includes(Direction::Write);
    if !writes || !zoned::appends(section) {
        return None;
    }
    let (option, message, remedy) = if options.files.zonemode != ZoneMode::Zbd {
        (
            IoUringCmd::write_mode,
            "only zonemode=zbd knows the zones that Zone Append writes to",
            "add zonemode=zbd, or use write_mode=write",
        )
    } else if section.is_given(job::Replay::read_iolog) {
        (
            job::Replay::read_iolog,
            "a trace says where each write goes, and the drive chooses the place of Zone Append",
            "use write_mode=write",
        )
    } else if verification::verifies(section) {
        (
            job::Verification::verify,
            "the header of a block has its place, which the drive chooses after it was sent",
            "use write_mode=write, or leave out verify",
        )
    } else {
        return None;
    };
    Some(section.error(ProblemKind::Conflict, option, format!("write_mode=zone_append: {message}"), remedy))
}

/// A trim of several ranges has no place of its own, by which others could tell what it does.
pub(super) fn several_ranges_are_trimmed_alone(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    let ranges = options.access.num_range;
    if ranges <= 1 {
        return None;
    }
    let most = section.engine().map_or(1, |engine| engine.trim_ranges_max);
    let only_trims = stream::pattern(options.access.rw.kind) == Pattern::Only(Direction::Trim);
    let (option, what) = if ranges > most {
        let able = section.engines.0.iter().filter(|engine| engine.trim_ranges_max > most);
        let able: Vec<EngineName> = able.map(|engine| engine.name).collect();
        let message = format!("a trim of this engine has at most {most} ranges, not {ranges}");
        let remedy = match able.is_empty() {
            true => "use fewer".to_string(),
            false => format!("use ioengine={}", EngineName::join(&able, " or ")),
        };
        return Some(section.error(ProblemKind::Conflict, job::Access::num_range, message, remedy));
    } else if !only_trims {
        (job::Access::rw, "rw=trim or rw=randtrim")
    } else if options.files.zonemode == ZoneMode::Zbd {
        (job::Files::zonemode, "no zones, which are reset one by one")
    } else if section.is_given(job::Replay::read_iolog) {
        (job::Replay::read_iolog, "no trace")
    } else if section.is_given(job::Replay::write_iolog) {
        (job::Replay::write_iolog, "no recording, which has one offset for each I/O")
    } else if options.queue.serialize_overlap {
        (job::Queue::serialize_overlap, "serialize_overlap=0, because it compares one offset for each I/O")
    } else if section.is_given(job::Files::openfiles) {
        (job::Files::openfiles, "all files to be open")
    } else {
        return None;
    };
    let message = format!("num_range needs {what}");
    Some(section.error(ProblemKind::Conflict, option, message, "change it, or leave out num_range"))
}

pub(super) fn mapping_is_never_direct(section: &ResolvedSection<'_>) -> Option<Problem> {
    let maps = section.engine().is_some_and(|engine| engine.maps_files() && !engine.maps_medium());
    (is_direct(section) && maps).then(|| {
        section
            .error(
                ProblemKind::NoEffect,
                job::Access::direct,
                "a mapping goes through the page cache; direct= has no effect on it",
                "",
            )
            .as_warning()
    })
}

/// fio warns, too. Blocks that a target would refuse are a problem of the job that has them.
pub(super) fn unaligned_blocks_are_not_direct(section: &ResolvedSection<'_>) -> Option<Problem> {
    let direct = is_direct(section);
    let touches_files = section.engine().is_none_or(EngineDescriptor::touches_files);
    (direct && section.options.blocks.bs_unaligned.0 && touches_files).then(|| {
        section
            .error(
                ProblemKind::Conflict,
                job::Blocks::bs_unaligned,
                "direct I/O needs block sizes that are multiples of the device's block",
                "leave out bs_unaligned, or direct=1",
            )
            .as_fios_warning()
    })
}
