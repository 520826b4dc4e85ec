//! The targets for runs on hosts: any bytes as a file of hosts, as the argument that names it, and as what an agent sends.
//!
//! Invariant: a list is read or refused with an error; no host in it is reached by what a program could take for an option.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt::Debug;
use std::io;
use std::os::unix::ffi::OsStrExt;

use fiord_engine::registry::NAMES;
use fiord_fleet::hosts::{self, HOSTS_MAX};
use fiord_options::environment::{Environment, KeywordValues};
use fiord_options::{Origin, Place, ProblemLevel};
use fiord_wire::{Cleaned, Collected, Inbox, Kept, Message, PREFACE, Sent, StudyReport};

/// Reads the bytes as a list, and as a file of hosts.
pub fn hosts_file(data: &[u8]) {
    let files = |name: &OsStr| match name.as_bytes() {
        b"./hosts" | b"-" => Ok(data.to_vec()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let variables = |name: &OsStr| (!name.is_empty()).then(|| name.to_os_string());
    let keywords = KeywordValues { cpus: 2, memory_mib: 1000, page_bytes: 4096 };
    let environment = Environment { files: &files, variables: &variables, keywords, engines: NAMES };
    let place = Place { source: Origin::CommandLine, line: 1, column: 1 };
    for list in [OsStr::new("./hosts"), OsStr::from_bytes(data)] {
        match hosts::read(list, &place, &environment) {
            Ok(hosts) => {
                assert!((1..=HOSTS_MAX).contains(&hosts.len()));
                let names: HashSet<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
                assert_eq!(names.len(), hosts.len());
                for host in &hosts {
                    let user = host.user.as_deref().unwrap_or("x");
                    assert!(!host.address.starts_with('-') && !user.starts_with('-'));
                    assert!(
                        !host.address.chars().any(|letter| letter.is_whitespace() || letter.is_control())
                    );
                }
            }
            Err(problems) => assert!(problems.iter().any(|problem| problem.level == ProblemLevel::Error)),
        }
    }
}

/// Reads the bytes as a stream of messages, in two steps.
pub fn wire_frames(data: &[u8]) {
    let (first, second) = data.split_at(data.len() / 2);
    let mut inbox = Inbox::default();
    for part in [first, second] {
        inbox.push(part);
        loop {
            match inbox.message() {
                Ok(Some((kind, payload))) => {
                    let Ok(Some(message)) = Message::read(kind, &payload) else { continue };
                    comes_again(message);
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

/// Reads the bytes behind the first as a message of the kind that the first is, without the checksum of its frame, or as what
/// is sent as a report.
pub fn wire_messages(data: &[u8]) {
    let Some((kind, payload)) = data.split_first() else { return };
    match kind {
        0x80 => is_sent_again::<StudyReport>(payload),
        0x81 => is_sent_again::<Cleaned>(payload),
        0x82 => is_sent_again::<Collected>(payload),
        0x83 => is_sent_again::<Kept>(payload),
        _ => {
            if let Ok(Some(message)) = Message::read(*kind, payload) {
                comes_again(message);
            }
        }
    }
}

/// A message is read as it was written.
fn comes_again(message: Message) {
    let mut bytes = PREFACE.to_vec();
    message.write(&mut bytes);
    let mut inbox = Inbox::default();
    inbox.push(&bytes);
    let (kind, payload) = inbox.message().unwrap_or_default().unwrap_or_default();
    assert_eq!(Message::read(kind, &payload), Ok(Some(message)));
}

/// So is what is sent as a report.
fn is_sent_again<T: Sent + PartialEq + Debug>(bytes: &[u8]) {
    if let Ok(sent) = T::decode(bytes) {
        assert_eq!(T::decode(&sent.encode()), Ok(sent));
    }
}
