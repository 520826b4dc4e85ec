//! What a controller knows of hosts while they run: rates, time left, snapshots while somebody looks.
//!
//! Invariant: no process and no clock: times are values.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

use fiord_fleet::HostFacts;
use fiord_wire::agent::SNAPSHOT_BYTES_MAX;
use fiord_wire::message::{Hello, Message, Progress};
use fiord_wire::{Controller, ControllerAction, ControllerSettings, Prepare};

const SECOND: i64 = 1_000_000_000;

/// Hosts that run, and what they were sent when they began to.
fn running(hosts: usize, watch_ms: u64) -> (Controller, Vec<ControllerAction>) {
    let settings = ControllerSettings { connect_ns: 10 * SECOND, ..ControllerSettings::default() };
    let mut controller = Controller::new(Hello::default(), vec![Prepare::default(); hosts], settings, 0);
    assert_eq!(controller.watch(watch_ms), [], "before they run");
    let mut sent = Vec::new();
    for number in 0..hosts {
        controller.message(number, Message::Hello(Hello::default()), 1000);
        for _ in 0..8 {
            controller.message(number, Message::Pong((1000, 1500, 1500)), 2000);
        }
        sent = controller.message(number, Message::Facts(Box::<HostFacts>::default()), 3000);
    }
    (controller, sent)
}

fn watches(actions: &[ControllerAction]) -> Vec<(usize, u64)> {
    let of = |action: &ControllerAction| match action {
        ControllerAction::Send(host, Message::Watch(every_ms)) => Some((*host, *every_ms)),
        _ => None,
    };
    actions.iter().filter_map(of).collect()
}

#[test]
fn snapshots_are_asked_for_when_somebody_looks_and_of_many_hosts_less_often() {
    let (mut controller, sent) = running(2, 1000);
    assert_eq!(watches(&sent), [(0, 1000), (1, 1000)]);
    assert_eq!(controller.watch(1000), [], "as before");
    assert_eq!(watches(&controller.watch(0)), [(0, 0), (1, 0)]);
    assert_eq!(watches(&running(1000, 1000).1)[999], (999, 5000));
}

#[test]
fn the_newest_snapshot_is_kept_if_it_is_not_too_long() {
    let (mut controller, _) = running(1, 1000);
    assert_eq!(controller.remotes()[0].snapshot(), (&[][..], 0));
    controller.message(0, Message::Snapshot(vec![7; 9]), 5 * SECOND);
    controller.message(0, Message::Snapshot(vec![8; SNAPSHOT_BYTES_MAX + 1]), 6 * SECOND);
    assert_eq!(controller.remotes()[0].snapshot(), (&[7; 9][..], 5 * SECOND));
}

#[test]
fn rates_are_between_two_progresses_and_none_of_a_silent_host() {
    let (mut controller, _) = running(1, 0);
    let mut at = |ios, permille, now_ns| {
        let progress = Progress { ios: [ios, 0, 0], bytes: [ios * 4096, 0, 0], done_permille: permille };
        controller.message(0, Message::Progress(progress), now_ns);
        let remote = &controller.remotes()[0];
        (remote.rates(now_ns).iops[0], remote.rates(now_ns + 6 * SECOND).iops[0])
    };
    assert_eq!(at(100, None, SECOND), (0.0, 0.0), "in a time that is not known");
    assert_eq!(at(300, None, 2 * SECOND), (200.0, 0.0));
    assert_eq!(at(390, Some(500), 2 * SECOND + 1), (200.0, 0.0), "a burst");
    assert_eq!(at(400, Some(500), 4 * SECOND), (50.0, 0.0));
}

#[test]
fn the_time_left_follows_from_the_share_that_is_done() {
    let (mut controller, _) = running(1, 0);
    controller.message(0, Message::Ready(0), SECOND);
    controller.message(0, Message::Started((0, 1500)), SECOND);
    let started_ns = controller.remotes()[0].started_ns().unwrap();
    let progress = |permille| Progress { done_permille: permille, ..Progress::default() };
    controller.message(0, Message::Progress(progress(None)), started_ns + SECOND);
    assert_eq!(controller.remotes()[0].left_ns(started_ns + SECOND), None);
    controller.message(0, Message::Progress(progress(Some(250))), started_ns + 2 * SECOND);
    assert_eq!(controller.remotes()[0].left_ns(started_ns + 3 * SECOND), Some(5 * SECOND));
    assert_eq!(controller.remotes()[0].left_ns(started_ns + 9 * SECOND), Some(0));
}
