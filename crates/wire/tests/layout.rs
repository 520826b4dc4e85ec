//! A host that lays out its files for too long.
//!
//! Invariant: no process and no clock: times are values.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

use fiord_fleet::{Fate, HostFacts};
use fiord_wire::message::{Hello, Message};
use fiord_wire::{Controller, ControllerAction, ControllerSettings, Prepare};

const SECOND: i64 = 1_000_000_000;

#[test]
fn a_layout_that_takes_too_long_is_given_up_and_the_others_start() {
    let settings = ControllerSettings {
        allow_missing: 1,
        connect_ns: 10 * SECOND,
        layout_ns: Some(60 * SECOND),
        ..ControllerSettings::default()
    };
    let mut controller = Controller::new(Hello::default(), vec![Prepare::default(); 2], settings, 0);
    for number in 0..2 {
        controller.message(number, Message::Hello(Hello::default()), 1000);
        for _ in 0..8 {
            controller.message(number, Message::Pong((1000, 1500, 1500)), 2000);
        }
        controller.message(number, Message::Facts(Box::<HostFacts>::default()), 3000);
    }
    controller.message(0, Message::Ready(0), SECOND);
    assert_eq!(controller.remotes()[1].doing(), "laying out");
    controller.message(1, Message::Laid(1), 60 * SECOND);
    assert!(controller.tick(60 * SECOND).iter().all(|action| !matches!(action, ControllerAction::Close(_))));
    let actions = controller.tick(61 * SECOND);
    assert!(actions.contains(&ControllerAction::Close(1)), "{actions:?}");
    let cause = "its layout took longer than 60 s".to_string();
    assert_eq!(controller.remotes()[1].fate(), Some(&Fate::Lost { at_ms: 0, cause }));
    let starts = |action: &ControllerAction| matches!(action, ControllerAction::Send(0, Message::Start(_)));
    assert!(actions.iter().any(starts), "{actions:?}");
}
