//! One entry of a list: a name or a range, or an exclusion, and what is said of its hosts.
//!
//! Invariant: the names in it are well-formed.

use std::path::PathBuf;

use fiord_options::{Place, Problem, ProblemKind, Setting};

use super::address::{self, Address};
use super::pattern::{self, Mistake};

/// What is said of hosts beside their names.
#[derive(Clone, Debug, Default)]
pub(super) struct HostKeys {
    pub via: Option<String>,
    pub user: Option<String>,
    pub port: Option<u16>,
    pub address: Option<String>,
    pub agent: Option<PathBuf>,
    pub role: Option<String>,
}

/// An entry.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub place: Place,
    /// As it was typed.
    pub text: String,
    /// Its hosts are left out instead (`^db7`).
    pub is_exclusion: bool,
    pub addresses: Vec<Address>,
    pub keys: HostKeys,
    pub settings: Vec<Setting>,
    /// The number of the `--client` that names it, from 0.
    pub client: usize,
}

impl Entry {
    /// A name or a range, with `^` before it an exclusion; `is_fios` if it is a line of a list in fio's form.
    pub(super) fn read(text: &str, place: &Place, is_fios: bool) -> Result<Entry, Problem> {
        let (is_exclusion, name) = text.strip_prefix('^').map_or((false, text), |name| (true, name));
        let skipped = text.len() - name.len();
        let at = |mistake: Mistake| mistaken(place, Mistake { at: mistake.at + skipped, ..mistake });
        let is_ipv6 = name.find(']').is_some_and(|close| name[..close].contains(':'));
        let names = if is_ipv6 { vec![name.to_string()] } else { pattern::names(name).map_err(at)? };
        let addresses = names.iter().map(|name| address::read(name, is_fios)).collect::<Result<_, _>>();
        // Where a range is expanded, columns are those of one of its names.
        let addresses = addresses
            .map_err(|mistake| at(Mistake { at: if names.len() > 1 { 0 } else { mistake.at }, ..mistake }))?;
        Ok(Entry {
            place: place.clone(),
            text: text.to_string(),
            is_exclusion,
            addresses,
            keys: HostKeys::default(),
            settings: Vec::new(),
            client: 0,
        })
    }
}

/// The problem of a mistake in the text at this place.
pub(super) fn mistaken(place: &Place, mistake: Mistake) -> Problem {
    let column = place.column.saturating_add(u32::try_from(mistake.at).unwrap_or(u32::MAX));
    let place = Place { column, ..place.clone() };
    Problem::error(ProblemKind::InvalidValue, place, None, mistake.message, mistake.remedy)
}
