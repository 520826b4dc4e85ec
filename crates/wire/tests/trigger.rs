//! A trigger that stops hosts, and its command.
//!
//! Invariant: no process and no clock: times are values.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

use fiord_fleet::{Fate, HostFacts};
use fiord_wire::agent::digest;
use fiord_wire::message::{End, Hello, Message, PROTOCOL};
use fiord_wire::{Controller, ControllerAction, ControllerSettings, Prepare};

const SECOND: i64 = 1_000_000_000;

/// Three hosts that run one after another if `is_one_by_one`, and a trigger with a command; `minor`: of their protocol.
fn triggered(is_one_by_one: bool, minor: u16) -> Controller {
    let before = vec![vec![Message::Trigger(Some(b"reboot".to_vec()))]; 3];
    let settings = ControllerSettings {
        connect_ns: 10 * SECOND,
        is_one_by_one,
        before,
        has_command: true,
        ..ControllerSettings::default()
    };
    let mut controller = Controller::new(Hello::default(), vec![Prepare::default(); 3], settings, 0);
    for number in 0..3 {
        let hello = Hello { protocol: (Hello::default().protocol.0, minor), ..Hello::default() };
        controller.message(number, Message::Hello(hello), 1000);
        for _ in 0..8 {
            controller.message(number, Message::Pong((1000, 1500, 1500)), 2000);
        }
        controller.message(number, Message::Facts(Box::<HostFacts>::default()), 3000);
    }
    controller
}

fn reports(controller: &mut Controller, number: usize) {
    controller.message(number, Message::Report(vec![1]), 2 * SECOND);
    let end = End { digest: digest(&[1]), ..End::default() };
    controller.message(number, Message::End(end), 2 * SECOND);
}

#[test]
fn hosts_that_have_reported_are_complete_whatever_the_command_does_to_them() {
    let mut controller = triggered(false, PROTOCOL.1);
    let fired = controller.fire(SECOND);
    for number in 0..3 {
        assert!(fired.contains(&ControllerAction::Send(number, Message::Fire(()))), "{fired:?}");
        reports(&mut controller, number);
        assert_eq!(controller.remotes()[number].fate(), None, "its command runs");
    }
    let told = controller.message(0, Message::Commanded("failed".to_string()), 3 * SECOND);
    assert!(told.contains(&ControllerAction::Show(0, "failed".to_string())));
    controller.closed(1, "the machine is gone", 3 * SECOND);
    let actions = controller.tick(63 * SECOND);
    assert!(actions.contains(&ControllerAction::Done), "the last one took too long: {actions:?}");
    assert!(controller.remotes().iter().all(|remote| remote.fate() == Some(&Fate::Complete)));
}

#[test]
fn no_host_starts_once_it_has_fired_and_one_that_is_gone_before_its_report_is_lost() {
    let mut controller = triggered(true, PROTOCOL.1);
    controller.fire(SECOND);
    let fate = |number: usize, controller: &Controller| controller.remotes()[number].fate().unwrap().word();
    assert_eq!([1, 2].map(|number| fate(number, &controller)), ["missing"; 2]);
    controller.closed(0, "gone", 2 * SECOND);
    assert_eq!(fate(0, &controller), "lost");
}

#[test]
fn a_fiord_that_knows_no_triggers_runs_nothing() {
    let controller = triggered(false, 2);
    let cause = controller.remotes()[0].fate().and_then(Fate::cause).unwrap();
    assert!(cause.contains("use the same fiord"), "{cause}");
}
