//! The power states of NVMe disks: what Identify Controller says of each (NVMe base specification).
//!
//! Invariant: pure, and total: any bytes describe states. What a disk says of a state is no measurement.

use serde::{Deserialize, Serialize};

use crate::health::little_endian_u16;
use crate::nvme_namespace::IDENTIFY_BYTES;

/// The number of the last state, and where the descriptions are, of this length each.
const LAST_STATE_AT: usize = 263;
const STATES_AT: usize = 2048;
const STATE_BYTES: usize = 32;
const STATES_MAX: u8 = 32;

/// A power state, as the disk describes it; `None` for what it does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerState {
    /// Its number; 0 uses the most power.
    pub number: u8,
    /// Whether the disk does I/O in it.
    pub does_io: bool,
    /// The most power that it uses, in microwatts.
    pub max_uw: Option<u64>,
    /// Its power in microwatts after a while without I/O.
    pub idle_uw: Option<u64>,
    /// Its highest mean power in microwatts under a load that the disk's maker chose.
    pub active_uw: Option<u64>,
}

/// The states in which a disk began a run and ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerStates {
    /// When the run began.
    pub start: PowerState,
    /// When it ended.
    pub end: PowerState,
}

/// The state that Get Features names in its answer, as Identify Controller describes it; `None` if the disk has no such state.
pub fn parse_power_state(controller: &[u8; IDENTIFY_BYTES], feature: u32) -> Option<PowerState> {
    let number = (feature & 0x1f) as u8;
    if number > controller[LAST_STATE_AT].min(STATES_MAX - 1) {
        return None;
    }
    let state = &controller[STATES_AT + usize::from(number) * STATE_BYTES..][..STATE_BYTES];
    // Bits 1 and 0 after the maximum: no I/O, and its unit.
    let max_unit_uw = if state[3] & 1 == 0 { 10_000 } else { 100 };
    let told = |at: usize| {
        let unit_uw = match state[at + 2] >> 6 {
            1 => 100,
            2 => 10_000,
            _ => return None,
        };
        Some(u64::from(little_endian_u16(state, at)) * unit_uw)
    };
    let max_uw = u64::from(little_endian_u16(state, 0)) * max_unit_uw;
    Some(PowerState {
        number,
        does_io: state[3] & 2 == 0,
        max_uw: (max_uw > 0).then_some(max_uw),
        idle_uw: told(16),
        active_uw: told(20),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_with_its_units() {
        let mut page = [0; IDENTIFY_BYTES];
        page[LAST_STATE_AT] = 2;
        // 25 W at most, 5.12 W idle, 8.25 W active; then 0.0025 W without I/O; then nothing.
        page[STATES_AT..][..4].copy_from_slice(&[0xc4, 0x09, 0, 0]);
        page[STATES_AT + 16..][..7].copy_from_slice(&[0, 2, 0x80, 0, 0x39, 3, 0x82]);
        page[STATES_AT + 32..][..4].copy_from_slice(&[25, 0, 0, 3]);
        page[STATES_AT + 48..][..3].copy_from_slice(&[25, 0, 0x40]);
        let first = PowerState {
            number: 0,
            does_io: true,
            max_uw: Some(25_000_000),
            idle_uw: Some(5_120_000),
            active_uw: Some(8_250_000),
        };
        assert_eq!(parse_power_state(&page, 0), Some(first));
        let second = PowerState {
            number: 1,
            does_io: false,
            max_uw: Some(2500),
            idle_uw: Some(2500),
            active_uw: None,
        };
        assert_eq!(
            parse_power_state(&page, 0x21),
            Some(second),
            "what is above the number is a hint of load"
        );
        let third = PowerState { number: 2, does_io: true, ..PowerState::default() };
        assert_eq!(parse_power_state(&page, 2), Some(third));
        assert_eq!(parse_power_state(&page, 3), None, "there is no such state");
    }
}
