//! The placements that a job's writes to a namespace name: placement identifiers of the drive, or streams.
//!
//! Invariant: a placement identifier is one of the namespace that the write goes to; the same writes in the same order name
//! the same placements.

use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::Path;

use fiord_plan::{PlacementChoice, PlacementKind, PlacementUse, draw};
use fiord_sys::errno::error_text;
use fiord_sys::nvme::{NvmeNamespace, nvme_placements};
use fiord_sys::width::to_usize;

/// Types of directives, in word 12 of a write.
const STREAMS: u32 = 1 << 20;
const DATA_PLACEMENT: u32 = 2 << 20;

/// The longest file of offsets: thousands of lines.
const SCHEME_BYTES_MAX: u64 = 1 << 20;

/// The placements of a job's writes to one namespace.
#[derive(Debug)]
pub(crate) struct Placements {
    directive: u32,
    choice: Choice,
}

#[derive(Debug)]
enum Choice {
    /// One after another; the number of the next one.
    InTurn { placements: Vec<u16>, next: usize },
    /// One of these; how many were drawn.
    AtRandom { placements: Vec<u16>, seed: u64, drawn: u64 },
    /// The first range with the offset counts.
    ByOffset(Vec<(Range<u64>, u16)>),
}

impl Placements {
    /// Those that a namespace has for a job.
    ///
    /// # Errors
    /// What is wrong and what to do, as it follows the target's name and a colon.
    pub(crate) fn of(
        wanted: &PlacementUse,
        device: impl AsFd,
        namespace: &NvmeNamespace,
    ) -> Result<Placements, String> {
        match wanted.kind {
            PlacementKind::Streams => {
                let stream = |number| u16::try_from(number).map_err(|_| format!("{number} is not a stream"));
                Placements::choose(&wanted.choice, STREAMS, &[], stream)
            }
            PlacementKind::Identifiers => {
                let all = nvme_placements(device, namespace.id).map_err(|error| explain(&error))?;
                let identifier = |position: u32| {
                    let count = all.len();
                    let why =
                        || format!("there is no placement {position}: the namespace has {count}, from 0 on");
                    all.get(position as usize).copied().ok_or_else(why)
                };
                Placements::choose(&wanted.choice, DATA_PLACEMENT, &all, identifier)
            }
        }
    }

    /// Those of a choice, among all that there are.
    fn choose(
        choice: &PlacementChoice,
        directive: u32,
        all: &[u16],
        placement: impl Fn(u32) -> Result<u16, String>,
    ) -> Result<Placements, String> {
        let of = |numbers: &[u32]| match numbers {
            [] if all.is_empty() => Err("the namespace has no placements".to_string()),
            [] => Ok(all.to_vec()),
            _ => numbers.iter().map(|number| placement(*number)).collect(),
        };
        let choice = match choice {
            PlacementChoice::InTurn(numbers) => Choice::InTurn { placements: of(numbers)?, next: 0 },
            PlacementChoice::AtRandom(numbers, seed) => {
                Choice::AtRandom { placements: of(numbers)?, seed: *seed, drawn: 0 }
            }
            PlacementChoice::ByOffset(file) => Choice::ByOffset(scheme(file, &placement)?),
        };
        Ok(Placements { directive, choice })
    }

    /// Words 12 and 13 of the next write, beside what else they have.
    pub(crate) fn words(&mut self, offset_bytes: u64) -> [u32; 2] {
        let placement = match &mut self.choice {
            Choice::InTurn { placements, next } => {
                let placement = placements[*next];
                *next = (*next + 1) % placements.len();
                placement
            }
            Choice::AtRandom { placements, seed, drawn } => {
                *drawn += 1;
                placements[to_usize(draw(*seed, *drawn, 0, placements.len() as u64 - 1))]
            }
            Choice::ByOffset(ranges) => {
                let range = ranges.iter().find(|(range, _)| range.contains(&offset_bytes));
                range.map_or(0, |(_, placement)| *placement)
            }
        };
        [self.directive, u32::from(placement) << 16]
    }
}

/// Why a namespace has no list of placement identifiers, and what to do.
fn explain(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EIO) => {
            "the namespace has no placement identifiers: flexible data placement is not enabled for its endurance group \
             (`nvme fdp configs` shows what the drive has)"
                .to_string()
        }
        _ => format!("its placement identifiers cannot be read: {}", error_text(error)),
    }
}

/// The ranges in a file.
fn scheme(
    file: &Path,
    placement: &impl Fn(u32) -> Result<u16, String>,
) -> Result<Vec<(Range<u64>, u16)>, String> {
    let shown = file.display();
    let read = || {
        let length = fs::metadata(file)?.len();
        if length > SCHEME_BYTES_MAX {
            Err(io::Error::from_raw_os_error(libc::EFBIG))
        } else {
            fs::read_to_string(file)
        }
    };
    let text = read().map_err(|error| format!("dp_scheme={shown}: {}", error_text(&error)))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let ranges = lines.map(|(index, line)| {
        let range = range(line).and_then(|(range, number)| Ok((range, placement(number)?)));
        range.map_err(|why| format!("dp_scheme={shown}:{}: {why}", index + 1))
    });
    let ranges = ranges.collect::<Result<Vec<_>, String>>()?;
    if ranges.is_empty() {
        return Err(format!("dp_scheme={shown}: the file has no line such as `0, 1073741824, 2`"));
    }
    Ok(ranges)
}

/// A line: an offset, the offset behind the last byte, and a placement.
fn range(line: &str) -> Result<(Range<u64>, u32), String> {
    let parts: Vec<&str> = line.split(',').map(str::trim).collect();
    let [from, to, number] = parts[..] else {
        return Err(format!("{line:?} is not two offsets and a placement, such as `0, 1073741824, 2`"));
    };
    let bytes = |text: &str| text.parse::<u64>().map_err(|_| format!("{text:?} is not a number of bytes"));
    let (from, to) = (bytes(from)?, bytes(to)?);
    if from >= to {
        return Err(format!("{to} is not behind {from}"));
    }
    let number = number.parse().map_err(|_| format!("{number:?} is not a placement"))?;
    Ok((from..to, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The placements that writes at these offsets name, among the identifiers 7, 9 and 11.
    fn named(choice: PlacementChoice, offsets: &[u64]) -> Result<Vec<u32>, String> {
        let all = [7, 9, 11];
        let identifier =
            |position: u32| all.get(position as usize).copied().ok_or_else(|| format!("no {position}"));
        let mut placements = Placements::choose(&choice, DATA_PLACEMENT, &all, identifier)?;
        let named = offsets.iter().map(|offset| {
            let [directive, placement] = placements.words(*offset);
            assert_eq!((directive, placement & 0xffff), (2 << 20, 0));
            placement >> 16
        });
        Ok(named.collect())
    }

    #[test]
    fn placements_are_named_in_turn_or_at_random() {
        assert_eq!(named(PlacementChoice::InTurn(vec![]), &[0; 4]).unwrap(), [7, 9, 11, 7]);
        assert_eq!(named(PlacementChoice::InTurn(vec![0, 2]), &[0; 3]).unwrap(), [7, 11, 7]);
        assert_eq!(named(PlacementChoice::InTurn(vec![3]), &[]), Err("no 3".to_string()));
        let random = |seed| named(PlacementChoice::AtRandom(vec![1, 2], seed), &[0; 100]).unwrap();
        let count = |placement| random(1).iter().filter(|one| **one == placement).count();
        assert!(count(9) + count(11) == 100 && (30..=70).contains(&count(9)), "{:?}", random(1));
        assert!(random(1) == random(1) && random(1) != random(2));
    }

    #[test]
    fn a_file_says_which_offsets_belong_where() {
        let file = std::env::temp_dir().join(format!("fiord-scheme-{}", std::process::id()));
        let by = |text: &str, offsets: &[u64]| {
            fs::write(&file, text).unwrap();
            named(PlacementChoice::ByOffset(file.clone()), offsets)
        };
        let text = "0, 4096, 1\n\n4096,8192,2\n 0 , 8192 , 0\n";
        assert_eq!(by(text, &[0, 4095, 4096, 8191, 8192]).unwrap(), [9, 9, 11, 11, 0]);
        for (text, why) in [
            ("", "no line"),
            ("0,4096,1\n0,4096", ":2: \"0,4096\" is not"),
            ("0,x,1", ":1: \"x\" is not a number"),
            ("4096,0,1", ":1: 0 is not behind 4096"),
            ("0,4096,3", ":1: no 3"),
            ("0,4096,-1", ":1: \"-1\" is not a placement"),
        ] {
            let said = by(text, &[]).unwrap_err();
            assert!(said.contains(why) && said.starts_with("dp_scheme="), "{text:?}: {said}");
        }
        fs::remove_file(&file).unwrap();
        assert!(named(PlacementChoice::ByOffset(file), &[]).unwrap_err().contains("No such file"));
    }

    #[test]
    fn streams_are_named_by_their_numbers_and_need_no_drive_to_know_them() {
        let namespace = NvmeNamespace {
            id: 1,
            blocks: 1,
            block_bytes: 512,
            metadata_bytes: 0,
            metadata_in_data: false,
            protection: None,
        };
        let device = fs::File::open("/proc/self/exe").unwrap();
        let of = |kind, numbers| {
            let wanted = PlacementUse { kind, choice: PlacementChoice::InTurn(numbers) };
            Placements::of(&wanted, &device, &namespace)
        };
        let mut streams = of(PlacementKind::Streams, vec![5]).unwrap();
        assert_eq!(streams.words(0), [1 << 20, 5 << 16]);
        assert!(of(PlacementKind::Streams, vec![65_536]).is_err());
        assert!(of(PlacementKind::Identifiers, vec![]).unwrap_err().contains("cannot be read"));
    }
}
