//! Lists of hosts, as `--hosts` takes them: names, ranges, exclusions, files.
//!
//! Invariant: a host stands in a list once, and each problem names its place.

mod address;
mod entry;
mod list;
mod pattern;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use fiord_errno::error_text;
use fiord_options::environment::Environment;
use fiord_options::shown::shown;
use fiord_options::table::job::Files;
use fiord_options::{Place, Problem, ProblemKind, Section, Setting};

use address::Address;
use entry::Entry;
pub use pattern::HOSTS_MAX;

/// The port of servers, fio's.
pub const SERVER_PORT: u16 = 8765;

/// One host.
#[derive(Clone, Debug)]
pub struct Host {
    /// What it is called in reports: its address as typed, with the port where the address alone is not unique.
    pub name: String,
    /// Its number, from 0, in the order of the list.
    pub number: u32,
    /// Who to be there; `None` is whoever the launcher takes.
    pub user: Option<String>,
    /// Where it is reached.
    pub address: String,
    /// On which port; `None` is the launcher's own.
    pub port: Option<u16>,
    /// How it is reached, if not as `--via` says.
    pub via: Option<String>,
    /// Where fiord is on it, if it is not to be pushed.
    pub agent: Option<PathBuf>,
    /// A word by which hosts are grouped.
    pub role: Option<String>,
    /// Options of jobs that hold on this host, in order, with their places.
    pub settings: Vec<Setting>,
    /// The number of the `--client` that names it, from 0; 0 without.
    pub client: usize,
}

impl Host {
    /// The host of this address, with all else as the launcher has it.
    pub fn of(address: &str) -> Host {
        Host {
            name: address.to_string(),
            number: 0,
            user: None,
            address: address.to_string(),
            port: None,
            via: None,
            agent: None,
            role: None,
            settings: Vec::new(),
            client: 0,
        }
    }

    /// What it runs: these sections with its own settings after theirs.
    pub fn sections(&self, sections: &[Section]) -> Vec<Section> {
        let names_files = self.settings.iter().any(|setting| setting.spec == Files::filename);
        let of = |section: &Section| {
            let mut section = section.clone();
            section.own.extend(self.settings.iter().cloned());
            if names_files {
                section.files.clear();
            }
            section
        };
        sections.iter().map(of).collect()
    }
}

impl Default for Host {
    fn default() -> Host {
        Host::of("")
    }
}

impl PartialEq for Host {
    /// Settings are compared by what they set.
    fn eq(&self, other: &Host) -> bool {
        let all = |host: &Host| {
            let Host { name, number, user, address, port, via, agent, role, settings, client } = host.clone();
            let settings: Vec<(&'static str, Option<OsString>)> =
                settings.into_iter().map(|setting| (setting.spec.name, setting.value)).collect();
            (name, number, user, address, port, via, agent, role, settings, client)
        };
        all(self) == all(other)
    }
}

/// Reads `--hosts`: names, ranges, exclusions, files, separated by commas. `place` is that of the text.
///
/// A part with a `/`, and `-`, is a file; so is one that begins with `@`, which the environment has a list for, and any other
/// whose file there is.
///
/// # Errors
/// All problems of the text and of the files in it.
pub fn read(list: &OsStr, place: &Place, environment: &Environment<'_>) -> Result<Vec<Host>, Vec<Problem>> {
    let (mut entries, mut problems) = (Vec::new(), Vec::new());
    for (start, part) in parts(list.as_bytes()) {
        let column = place.column.saturating_add(u32::try_from(start).unwrap_or(u32::MAX));
        let place = Place { column, ..place.clone() };
        let name = OsStr::from_bytes(part);
        match file(name, environment) {
            Some(Ok(text)) => list::read(name, &text, environment, &mut entries, &mut problems),
            Some(Err(why)) => {
                let message = format!("cannot read the list of hosts {}: {}", shown(name), error_text(&why));
                let remedy = "write names, or a file with a host on each line";
                problems.push(Problem::error(ProblemKind::Unreadable, place, None, message, remedy));
            }
            None => match Entry::read(&String::from_utf8_lossy(part), &place, false) {
                Ok(entry) => entries.push(entry),
                Err(problem) => problems.push(problem),
            },
        }
    }
    let hosts = hosts(entries, place, &mut problems);
    if problems.is_empty() { Ok(hosts) } else { Err(problems) }
}

/// Reads the hosts of each `--client`, as fio does: an address in any of its forms, or a file with hosts. Each text has its
/// place.
///
/// # Errors
/// All problems of the texts and of the files.
pub fn read_clients(
    clients: &[(&OsStr, &Place)],
    environment: &Environment<'_>,
) -> Result<Vec<Host>, Vec<Problem>> {
    let (mut entries, mut problems) = (Vec::new(), Vec::new());
    for (number, (name, place)) in clients.iter().enumerate() {
        let first = entries.len();
        match (environment.files)(name) {
            Ok(text) => list::read(name, &text, environment, &mut entries, &mut problems),
            Err(_) => match Entry::read(&String::from_utf8_lossy(name.as_bytes()), place, true) {
                Ok(entry) => entries.push(entry),
                Err(problem) => problems.push(problem),
            },
        }
        entries[first..].iter_mut().for_each(|entry| entry.client = number);
    }
    let place = clients.first().map_or_else(Place::derived, |(_, place)| (*place).clone());
    let mut hosts = hosts(entries, &place, &mut problems);
    hosts.iter_mut().for_each(|host| host.port = host.port.or(Some(SERVER_PORT)));
    if problems.is_empty() { Ok(hosts) } else { Err(problems) }
}

/// The parts between commas that are not in brackets, and where they begin, without blanks around them.
fn parts(list: &[u8]) -> Vec<(usize, &[u8])> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, byte) in list.iter().chain(b",").enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 || at == list.len() => {
                let part = &list[start..at];
                let blanks = part.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                parts.push((start + blanks, part.trim_ascii()));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts
}

/// The text of a part that is a file; `None` if it is none.
fn file(name: &OsStr, environment: &Environment<'_>) -> Option<io::Result<Vec<u8>>> {
    let bytes = name.as_bytes();
    let must_be = bytes == b"-" || bytes.contains(&b'/') || bytes.starts_with(b"@");
    let may_be = !bytes.is_empty() && !bytes.iter().any(|byte| b"[]^@".contains(byte));
    (must_be || may_be).then(|| (environment.files)(name)).filter(|read| must_be || read.is_ok())
}

/// The hosts of these entries, without those left out.
fn hosts(entries: Vec<Entry>, place: &Place, problems: &mut Vec<Problem>) -> Vec<Host> {
    let (exclusions, entries): (Vec<Entry>, Vec<Entry>) =
        entries.into_iter().partition(|entry| entry.is_exclusion);
    let left_out: HashSet<&Address> = exclusions.iter().flat_map(|entry| &entry.addresses).collect();
    let all: Vec<(&Entry, &Address)> = entries
        .iter()
        .flat_map(|entry| entry.addresses.iter().map(move |address| (entry, address)))
        .collect();
    let error = |place: &Place, message: String, remedy: &str| {
        Problem::error(ProblemKind::InvalidValue, place.clone(), None, message, remedy)
    };
    let listed: HashSet<&str> = all.iter().map(|(_, address)| address.host.as_str()).collect();
    for entry in &exclusions {
        if !entry.addresses.iter().any(|address| listed.contains(address.host.as_str())) {
            let message = format!("{} leaves out no host of the list", shown(&entry.text));
            problems.push(error(&entry.place, message, "take it out, or mend the name"));
        }
    }
    let is_left_out = |address: &Address| {
        left_out.contains(address)
            || left_out.contains(&Address { host: address.host.clone(), ..Address::default() })
    };
    let all: Vec<(&Entry, &Address)> = all.into_iter().filter(|(_, address)| !is_left_out(address)).collect();
    let mut times: HashMap<&str, usize> = HashMap::new();
    all.iter().for_each(|(_, address)| *times.entry(&address.host).or_default() += 1);
    let (mut hosts, mut known) = (Vec::new(), HashSet::new());
    for (entry, address) in &all {
        let port = address.port.or(entry.keys.port);
        let name = match port {
            Some(port) if times.get(address.host.as_str()).is_some_and(|times| *times > 1) => {
                format!("{}:{port}", address.host)
            }
            _ => address.host.clone(),
        };
        if !known.insert(name.clone()) {
            let message = format!("{name} stands in the list twice");
            problems.push(error(
                &entry.place,
                message,
                "take one of them out: its figures would be counted twice",
            ));
            continue;
        }
        hosts.push(host(entry, address, name, hosts.len()));
    }
    if hosts.len() > HOSTS_MAX {
        let message = format!("{} hosts are more than the {HOSTS_MAX} that a list may have", hosts.len());
        problems.push(error(place, message, "run on fewer at a time"));
    }
    if hosts.is_empty() && problems.is_empty() {
        problems.push(error(place, "no host is left".to_string(), "leave out fewer"));
    }
    hosts
}

fn host(entry: &Entry, address: &Address, name: String, number: usize) -> Host {
    let keys = entry.keys.clone();
    Host {
        name,
        number: u32::try_from(number).unwrap_or(u32::MAX),
        user: address.user.clone().or(keys.user),
        address: keys.address.unwrap_or_else(|| address.host.clone()),
        port: address.port.or(keys.port),
        via: keys.via,
        agent: keys.agent,
        role: keys.role,
        settings: entry.settings.clone(),
        client: entry.client,
    }
}
