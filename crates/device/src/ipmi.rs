//! Power by DCMI: the question to the controller that manages a machine (BMC), and its answer.
//!
//! Invariant: pure, and total: any bytes are an answer; one that does not tell the power of a machine that runs has none.

use crate::health::little_endian_u16;

/// The group of commands of DCMI, its command Get Power Reading, and what identifies the group in question and answer.
pub const DCMI_NET_FUNCTION: u8 = 0x2c;
/// The command.
pub const GET_POWER_READING: u8 = 0x02;
const DCMI: u8 = 0xdc;

/// The data of the question: the power of the whole system, without attributes.
pub const POWER_QUESTION: [u8; 4] = [DCMI, 0x01, 0, 0];

/// Length of the data of the answer, from the completion code on.
pub const POWER_ANSWER_BYTES: usize = 19;

/// In the last byte: the controller measures at present.
const MEASURES: u8 = 1 << 6;

/// The power now in watts, of the data of an answer; `None` if the controller refuses, knows no DCMI or does not measure.
pub fn parse_power(answer: &[u8]) -> Option<u16> {
    let answer: &[u8; POWER_ANSWER_BYTES] = answer.first_chunk()?;
    let tells = answer[0] == 0 && answer[1] == DCMI && answer[18] & MEASURES != 0;
    // A machine that answers uses some.
    Some(little_endian_u16(answer, 2)).filter(|watts| tells && *watts > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 300 W now, 100 to 500 W and 256 W on average within a second.
    const ANSWER: [u8; POWER_ANSWER_BYTES] =
        [0, 0xdc, 0x2c, 1, 100, 0, 0xf4, 1, 0, 1, 1, 2, 3, 4, 0xe8, 3, 0, 0, 0x40];

    #[test]
    fn the_power_is_that_of_the_moment() {
        assert_eq!(parse_power(&ANSWER), Some(300));
        let longer = [&ANSWER[..], &[7]].concat();
        assert_eq!(parse_power(&longer), Some(300), "later versions may add to it");
    }

    #[test]
    fn what_does_not_tell_the_power_has_none() {
        for length in 0..ANSWER.len() {
            assert_eq!(parse_power(&ANSWER[..length]), None, "{length} bytes");
        }
        for (at, value) in [(0, 0xc1), (1, 0), (18, 0)] {
            let mut answer = ANSWER;
            answer[at] = value;
            assert_eq!(parse_power(&answer), None, "byte {at} is {value}");
        }
        let mut off = ANSWER;
        (off[2], off[3]) = (0, 0);
        assert_eq!(parse_power(&off), None);
    }
}
