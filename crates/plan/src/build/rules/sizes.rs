//! Rules about sizes that have to hold a block.
//!
//! Invariant: only block sizes of directions that the job has count.

use fiord_options::value::Size;
use fiord_options::{Problem, ProblemKind, job};

use crate::Direction;
use crate::build::blocks::block_sizes;
use crate::build::section::ResolvedSection;
use crate::build::stream::pattern;
use crate::build::zones;

pub(super) fn size_holds_a_block(section: &ResolvedSection<'_>) -> Option<Problem> {
    let Some(Size::Bytes(size)) = section.options.amount.size else { return None };
    let sizes = block_sizes(section.options);
    let used = pattern(section.options.access.rw.kind);
    let occurs = |direction: &Direction| used.includes(*direction);
    let smallest =
        Direction::ALL.iter().filter(|one| occurs(one)).map(|one| sizes[one.index()].min()).min()?;
    (size > 0 && size < smallest).then(|| {
        let message = format!("{size} is less than the smallest block size, {smallest} bytes");
        section.error(
            ProblemKind::Conflict,
            job::Amount::size,
            message,
            "use a larger size= or a smaller bs=",
        )
    })
}

pub(super) fn strided_zones_hold_a_block(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    let strided = zones::strided(options, pattern(options.access.rw.kind), &block_sizes(options))?;
    let given_bytes = zones::zone_bytes(options);
    (given_bytes < strided.zone_bytes).then(|| {
        let is_range = options.files.zonerange.0 > 0;
        let option = if is_range { job::Files::zonerange } else { job::Files::zonesize };
        let message =
            format!("zones of {given_bytes} bytes are smaller than a block of {}", strided.zone_bytes);
        section.error(ProblemKind::Extent, option, message, "")
    })
}
