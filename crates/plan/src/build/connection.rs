//! Rules for jobs whose targets are connections.
//!
//! Invariant: a job that passes here has the address that its end of the connection needs, and no other.

use std::net::IpAddr;

use fiord_options::value::NetProtocol;
use fiord_options::{Problem, ProblemKind, Scope, Spec, engine::Net, engine::Rdma, job};

use super::section::ResolvedSection;
use super::stream::pattern;
use super::targets;
use crate::access::Direction;

/// Whether the section's engine makes connections.
fn connects(section: &ResolvedSection<'_>) -> bool {
    section.engine().is_some_and(|engine| engine.connects().is_some())
}

/// The protocol, if the section's engine makes connections by the options of `Net`.
fn protocol(section: &ResolvedSection<'_>) -> Option<NetProtocol> {
    let engine = section.engine().filter(|engine| engine.connects().is_some())?;
    let takes = matches!(Net::protocol.scope, Scope::Engine(names) if names.contains(&engine.name));
    takes.then_some(section.options.net.protocol)
}

fn includes(section: &ResolvedSection<'_>, direction: Direction) -> bool {
    pattern(section.options.access.rw.kind).includes(direction)
}

/// Whether the job waits for the other end.
fn waits(section: &ResolvedSection<'_>, protocol: NetProtocol) -> bool {
    match protocol {
        NetProtocol::Tcp | NetProtocol::Tcpv6 | NetProtocol::Vsock => {
            section.options.net.listen.is_some_and(|flag| flag.0)
        }
        NetProtocol::Udp | NetProtocol::Udpv6 | NetProtocol::Unix => includes(section, Direction::Read),
    }
}

/// Whether this is the address of a group.
fn is_group(host: &str) -> bool {
    host.parse().is_ok_and(|address: IpAddr| address.is_multicast())
}

fn conflict(
    section: &ResolvedSection<'_>,
    option: &'static Spec,
    message: impl Into<String>,
    remedy: &str,
) -> Option<Problem> {
    Some(section.error(ProblemKind::Conflict, option, message, remedy))
}

/// fio refuses random I/O, too.
pub(super) fn connections_have_no_offsets(section: &ResolvedSection<'_>) -> Option<Problem> {
    if !connects(section) {
        return None;
    }
    let kind = section.options.access.rw.kind;
    if kind.word().starts_with("rand") {
        return conflict(
            section,
            job::Access::rw,
            "a connection has no offsets to choose at random",
            "use rw=read or rw=write",
        );
    }
    if includes(section, Direction::Trim) {
        return conflict(
            section,
            job::Access::rw,
            "a connection cannot be trimmed",
            "use rw=read or rw=write",
        );
    }
    None
}

/// fio of version 3.33 fails at an assertion, or counts syncs that do nothing.
pub(super) fn connections_are_not_synced(section: &ResolvedSection<'_>) -> Option<Problem> {
    if !connects(section) {
        return None;
    }
    let syncs = [job::Access::fsync, job::Access::fdatasync, job::Access::sync_file_range];
    let given = syncs.into_iter().find(|option| section.is_given(option))?;
    conflict(section, given, "a connection cannot be synced", &format!("leave out {}=", given.name))
}

/// As in fio.
pub(super) fn connections_of_one_direction_are_not_mixed(section: &ResolvedSection<'_>) -> Option<Problem> {
    let engine = section.engine().filter(|_| connects(section))?;
    let mixed = includes(section, Direction::Read) && includes(section, Direction::Write);
    let protocol = protocol(section);
    let two_way = matches!(protocol, Some(NetProtocol::Tcp | NetProtocol::Tcpv6 | NetProtocol::Vsock));
    if !mixed || two_way {
        return None;
    }
    let Some(protocol) = protocol else {
        let message = format!("a job of the engine {} either reads or writes", engine.name);
        let remedy = "use rw=read for the end that waits, and rw=write for the one that connects";
        return conflict(section, job::Access::rw, message, remedy);
    };
    let message = format!("protocol={} either reads or writes", protocol.word());
    conflict(section, job::Access::rw, message, "use rw=read or rw=write; pingpong=1 does both")
}

/// Both ends of fio wait for each other.
pub(super) fn mixed_connections_can_stall(section: &ResolvedSection<'_>) -> Option<Problem> {
    protocol(section)?;
    let mixed = includes(section, Direction::Read) && includes(section, Direction::Write);
    (mixed && !section.options.net.pingpong.is_some_and(|flag| flag.0)).then(|| {
        section.error(
            ProblemKind::Conflict,
            job::Access::rw,
            "each end of the connection chooses on its own what comes next: if both read, both wait for ever",
            "use rw=write here and rw=read there, or pingpong=1",
        ).as_warning()
    })
}

/// fio reads back what the other end never sends.
pub(super) fn senders_do_not_verify(section: &ResolvedSection<'_>) -> Option<Problem> {
    if !connects(section) {
        return None;
    }
    let verify = &section.options.verify;
    let reads_back = section.is_given(job::Verification::verify) && verify.do_verify;
    if !(reads_back && includes(section, Direction::Write)) {
        return None;
    }
    conflict(
        section,
        job::Verification::verify,
        "what was sent cannot be read back: the other end verifies it",
        "do_verify=0 here, and the same verify= with rw=read there",
    )
}

/// As in fio, where `filename` is the path of a Unix socket only.
pub(super) fn a_connection_has_one_name(section: &ResolvedSection<'_>) -> Option<Problem> {
    (connects(section) && targets::naming(section).files(0).len() > 1).then(|| {
        let option =
            if section.is_given(job::Files::nrfiles) { job::Files::nrfiles } else { job::Files::filename };
        section.error(ProblemKind::Conflict, option, "a job has one connection", "use numjobs= for several")
    })
}

/// As in fio.
pub(super) fn a_connection_has_its_port(section: &ResolvedSection<'_>) -> Option<Problem> {
    let protocol = protocol(section)?;
    let port = section.options.net.port;
    match (protocol, port) {
        (NetProtocol::Unix, Some(_)) => {
            conflict(section, Net::port, "protocol=unix has a path and no port", "leave out port=")
        }
        (NetProtocol::Unix, None) => {
            let named = section.is_given(job::Files::filename) || section.options.net.hostname.is_some();
            let unnamed = "protocol=unix needs the path of a socket";
            if named { None } else { conflict(section, Net::protocol, unnamed, "filename=/tmp/socket") }
        }
        (_, None) => {
            let message = format!("protocol={} needs a port", protocol.word());
            conflict(section, Net::protocol, message, "for example port=8765")
        }
        (_, Some(_)) => None,
    }
}

/// As in fio.
pub(super) fn only_one_end_has_a_hostname(section: &ResolvedSection<'_>) -> Option<Problem> {
    let protocol = protocol(section)?;
    let options = &section.options.net;
    let host = options.hostname.as_ref().map(|host| host.0.to_str().unwrap_or_default());
    match (protocol, host, waits(section, protocol)) {
        (NetProtocol::Unix, _, _) => None,
        (NetProtocol::Udp | NetProtocol::Udpv6, Some(host), true) if is_group(host) => None,
        (_, Some(_), true) => conflict(
            section,
            Net::hostname,
            "this end waits for the other, and has no hostname that is not the address of a group",
            "leave out hostname=",
        ),
        (_, None, false) => conflict(
            section,
            Net::protocol,
            "there is no host to connect to",
            "hostname=ADDRESS, or listen=1 to wait for the other end",
        ),
        (NetProtocol::Vsock, Some(host), false) if host.parse::<u32>().is_err() => conflict(
            section,
            Net::hostname,
            "protocol=vsock has the number of a machine as its hostname",
            "1 for this machine, 2 for the host",
        ),
        (_, _, _) => None,
    }
}

/// As in fio.
pub(super) fn only_streams_listen(section: &ResolvedSection<'_>) -> Option<Problem> {
    let protocol = protocol(section)?;
    let listens = matches!(protocol, NetProtocol::Tcp | NetProtocol::Tcpv6 | NetProtocol::Vsock);
    if !section.options.net.listen.is_some_and(|flag| flag.0) || listens {
        return None;
    }
    let message = format!("with protocol={} the end that reads is the one that waits", protocol.word());
    conflict(section, Net::listen, message, "leave out listen")
}

/// The ports of all clones exist.
pub(super) fn ports_of_clones_exist(section: &ResolvedSection<'_>) -> Option<Problem> {
    let (option, port) = match protocol(section) {
        Some(NetProtocol::Vsock) => return None,
        Some(_) => (Net::port, section.options.net.port?),
        None if connects(section) => (Rdma::port, section.options.rdma.port?),
        None => return None,
    };
    let last = u64::from(port) + u64::from(section.options.general.numjobs.max(1)) - 1;
    if last <= 65535 {
        return None;
    }
    let message = format!("the last clone's port would be {last}, and the largest is 65535");
    conflict(section, option, message, "a smaller port=, or fewer numjobs=")
}
