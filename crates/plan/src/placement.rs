//! Which placements a job's writes name (`dataplacement` and its kin).
//!
//! Invariant: a function of the options alone; what a namespace has is asked by the engine.

use std::path::PathBuf;

use fiord_options::job::JobOptions;
use fiord_options::value::{DataPlacement, PlidSelect};

/// What a job says of placements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementUse {
    /// What the numbers are.
    pub kind: PlacementKind,
    /// How that of the next write is chosen.
    pub choice: PlacementChoice,
}

/// What the numbers of placements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacementKind {
    /// Positions in the namespace's list of placement identifiers.
    Identifiers,
    /// Streams.
    Streams,
}

/// How the placement of the next write is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlacementChoice {
    /// One after another of these; of all that there are, if there is none.
    InTurn(Vec<u32>),
    /// One of these with this seed; of all that there are, if there is none.
    AtRandom(Vec<u32>, u64),
    /// By the offset, as this file says.
    ByOffset(PathBuf),
}

/// The interface that a job asks for: `fdp` is an older name of one of them.
pub(crate) fn interface(options: &JobOptions) -> DataPlacement {
    match options.access.dataplacement {
        DataPlacement::None if options.access.fdp => DataPlacement::Fdp,
        asked => asked,
    }
}

impl PlacementUse {
    /// That of a job; `None` if its writes name none.
    pub fn of(options: &JobOptions) -> Option<PlacementUse> {
        let kind = match interface(options) {
            DataPlacement::None => return None,
            DataPlacement::Fdp => PlacementKind::Identifiers,
            DataPlacement::Streams => PlacementKind::Streams,
        };
        let numbers = || options.access.plids.as_ref().map_or_else(Vec::new, |plids| plids.0.clone());
        let choice = match options.access.plid_select {
            PlidSelect::RoundRobin => PlacementChoice::InTurn(numbers()),
            PlidSelect::Random => PlacementChoice::AtRandom(numbers(), options.access.randseed),
            PlidSelect::Scheme => PlacementChoice::ByOffset(
                options.access.dp_scheme.as_ref().map(|file| PathBuf::from(&file.0)).unwrap_or_default(),
            ),
        };
        Some(PlacementUse { kind, choice })
    }
}
