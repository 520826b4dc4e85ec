//! What hosts answer about what agents left there.
//!
//! Invariant: a host that is not reached does not keep the others from it.

use fiord_fleet::Host;
use fiord_remote::leftovers::{self, Task};
use fiord_wire::{ControllerSettings, Sent};

use crate::arguments::CommandError;
use crate::hosts::received;
use crate::reach::Reach;
use crate::status;

/// What a host answered. The error: why it was not reached, or what stopped it there.
pub(super) type Answer<T> = Result<T, String>;

/// What these hosts answer about what agents left there, and the status if a signal ended it.
pub(super) fn ask<T: Sent>(
    hosts: &[Host],
    reach: &Reach,
    task: &Task,
) -> Result<(Vec<Answer<T>>, Option<u8>), CommandError> {
    let settings = ControllerSettings { allow_missing: hosts.len(), ..ControllerSettings::default() };
    let job = reach.job(hosts, settings, |host| leftovers::request(&host.name, task))?;
    let finished = fiord_remote::run(job, &mut ());
    let answer = |remote| {
        let (fate, answer) = received(remote, T::decode);
        answer.ok_or_else(|| fate.cause().unwrap_or("it was stopped").trim_end().to_string())
    };
    let answers = finished.controller.remotes().iter().map(answer).collect();
    Ok((answers, finished.signal.map(status::of_signal)))
}
