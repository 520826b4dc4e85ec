//! `fiord agent --hold`: the main process of a pod, which agents are started beside.
//!
//! Invariant: it ends by itself once nobody needs it, so that no pod is left whose controller was lost; it does no I/O.

use std::time::{Duration, Instant};

use fiord_stats::Capped;
use fiord_sys::errno::error_text;
use fiord_sys::{clock, signal};

use crate::{kube, leftovers};

/// How long it stays when the last agent has ended.
const UNATTENDED_MAX: Duration = Duration::from_secs(60);

/// How often agents are looked for.
const TICK: Duration = Duration::from_secs(1);

/// Waits until no agent has run beside it for a minute; for the first it waits longer, as other pods may take long to start.
/// A signal that requests a stop ends it as well.
///
/// # Errors
/// Signals cannot be received.
pub fn hold() -> Result<(), String> {
    // The first process of a pod is not ended by a signal that it has no handler for.
    signal::record_stop_requests().map_err(|error| format!("signals: {}", error_text(&error)))?;
    let mut leave_at = Instant::now() + kube::PODS_WAIT + UNATTENDED_MAX;
    while signal::stop_requested().is_none() && Instant::now() < leave_at {
        if leftovers::agents().next().is_some() {
            leave_at = Instant::now() + UNATTENDED_MAX;
        }
        clock::sleep_until_ns(clock::monotonic_ns() + u64::capped(TICK.as_nanos()));
    }
    Ok(())
}
