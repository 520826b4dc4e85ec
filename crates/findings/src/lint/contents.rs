//! What is written: the contents of the buffers, and how blocks lie on the device.
//!
//! Invariant: only jobs that write have such findings.

use fiord_host::{LayerKind, StorageStack};
use fiord_options::job;
use fiord_plan::job::Fill;
use fiord_plan::{Direction, Job};
use fiord_report::table::Cell;
use fiord_report::{Code, Finding};

use super::known::Known;
use crate::subject;

/// Direct writes that are not multiples of the physical block.
pub(super) fn misaligned(job: &Job, known: &Known) -> Option<Finding> {
    if !job.files.direct || !job.access.pattern.includes(Direction::Write) {
        return None;
    }
    let block_bytes = job.access.block_sizes[Direction::Write.index()].min();
    let off = |file: &fiord_plan::FilePlan| {
        let physical = u64::from(known.of(file)?.facts.physical_block_bytes?);
        let is_off = physical > 0
            && (!block_bytes.is_multiple_of(physical) || !file.offset_bytes.is_multiple_of(physical));
        is_off.then_some((physical, file.offset_bytes))
    };
    let (physical, offset_bytes) = job.files.list.iter().find_map(off)?;
    let sentence = format!(
        "writes of {block_bytes} bytes from offset {offset_bytes} do not fill the device's physical blocks of {physical} \
         bytes: it reads each block, changes a part, and writes it back"
    );
    let remedy = "use multiples of the physical block for bs and offset";
    let finding =
        Finding::new(Code::Misaligned, subject::job(job), sentence, remedy).of_option(job::Blocks::bs);
    Some(finding.based_on([
        ("block_bytes", Cell::Bytes(block_bytes)),
        ("offset_bytes", Cell::Bytes(offset_bytes)),
        ("physical_block_bytes", Cell::Bytes(physical)),
    ]))
}

/// Buffers that a target stores in less space than their length.
pub(super) fn compressible(job: &Job, known: &Known) -> Option<Finding> {
    if !job.access.pattern.includes(Direction::Write) {
        return None;
    }
    let (contents, option) = match &job.buffers.fill {
        Fill::Zero => ("zeros", job::Buffers::zero_buffers),
        Fill::Pattern { .. } => ("a pattern that repeats", job::Buffers::buffer_pattern),
        Fill::Compressible { .. } => {
            ("bytes that can be compressed", job::Buffers::buffer_compress_percentage)
        }
        Fill::Random { refill: false, scramble: false } => {
            ("the same bytes repeatedly", job::Buffers::scramble_buffers)
        }
        Fill::Random { .. } => return None,
    };
    let compressor = known.targets_of(job).find_map(|target| compressor(target.stack.as_ref()?))?;
    let sentence = format!("it writes {contents}, and {compressor}");
    let finding = Finding::new(
        Code::Compressible,
        subject::job(job),
        sentence,
        "refill_buffers=1, without options that make the contents repeat",
    );
    Some(finding.of_option(option))
}

/// The level of a stack that compresses or deduplicates, in words.
fn compressor(stack: &StorageStack) -> Option<&'static str> {
    let has = |options: &Option<String>, word: &str| {
        options.as_ref().is_some_and(|options| options.split(',').any(|option| option.starts_with(word)))
    };
    stack.layers.iter().find_map(|layer| match &layer.kind {
        LayerKind::Device(facts) if facts.device.kind == "zram" => Some("zram compresses what it stores"),
        LayerKind::Device(facts) if facts.device.kind == "vdo" => Some("VDO deduplicates and compresses"),
        LayerKind::FileSystem(facts) if facts.type_name == "zfs" => Some("ZFS may compress and deduplicate"),
        LayerKind::FileSystem(facts) if has(&facts.options, "compress") => Some("its file system compresses"),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use fiord_host::TargetFacts;

    use crate::testing::{known_target, on_device, plan};

    use super::*;

    #[test]
    fn blocks_smaller_than_the_physical_one_are_found_where_they_are_written_directly() {
        let found = |options: &[(&'static str, &str)], physical: Option<u32>| {
            let common = [("ioengine", "psync"), ("filename", "/data/f"), ("size", "64k")];
            let options: Vec<(&'static str, &str)> = common.iter().chain(options).copied().collect();
            let mut target = known_target("/data/f");
            target.facts = TargetFacts { physical_block_bytes: physical, ..target.facts };
            let known = Known { targets: vec![target], ..Known::default() };
            misaligned(&plan(&[("a", &options)]).jobs[0], &known).is_some()
        };
        assert!(found(&[("direct", "1"), ("rw", "write"), ("bs", "512")], Some(4096)));
        assert!(found(&[("direct", "1"), ("rw", "write"), ("bs", "4k"), ("offset", "512")], Some(4096)));
        assert!(!found(&[("direct", "1"), ("rw", "write"), ("bs", "4k")], Some(4096)));
        assert!(!found(&[("direct", "1"), ("rw", "read"), ("bs", "512")], Some(4096)));
        assert!(!found(&[("direct", "0"), ("rw", "write"), ("bs", "512")], Some(4096)));
        assert!(!found(&[("direct", "1"), ("rw", "write"), ("bs", "512")], None));
    }

    #[test]
    fn zeros_are_found_where_they_are_compressed_alone() {
        let found = |options: &[(&'static str, &str)], kind: &str| {
            let common = [("ioengine", "psync"), ("filename", "/data/f"), ("size", "64k"), ("rw", "write")];
            let options: Vec<(&'static str, &str)> = common.iter().chain(options).copied().collect();
            let mut target = known_target("/data/f");
            target.stack = Some(on_device(kind, false));
            let known = Known { targets: vec![target], ..Known::default() };
            compressible(&plan(&[("a", &options)]).jobs[0], &known).map(|finding| finding.option.into_owned())
        };
        assert_eq!(found(&[("zero_buffers", "1")], "zram").as_deref(), Some("zero_buffers"));
        assert_eq!(found(&[("buffer_pattern", "0x12")], "zram").as_deref(), Some("buffer_pattern"));
        assert_eq!(found(&[("scramble_buffers", "0")], "zram").as_deref(), Some("scramble_buffers"));
        assert_eq!(found(&[("zero_buffers", "1")], "disk"), None);
        assert_eq!(found(&[("refill_buffers", "1")], "zram"), None);
        assert_eq!(found(&[("zero_buffers", "1"), ("rw", "read")], "zram"), None);
    }
}
