//! The NVMe commands that writes are issued as, and their shares: `write`, `write/40:zeroes/:verify/`.
//!
//! Invariant: at least one command, each once; the shares are positive and add up to 100 %.

use fiord_stats::Capped;

use super::choice::{NvmeWrite, unknown_word};
use super::contract::{Choice, Reading, Value};
use super::kind::ValueKind;

/// Commands and their weights: a share is a weight of the sum of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvmeWrites(pub Vec<(NvmeWrite, u32)>);

impl NvmeWrites {
    /// Whether all writes are Write commands.
    pub fn are_plain(&self) -> bool {
        self.0.iter().all(|(command, _)| *command == NvmeWrite::Write)
    }

    /// Whether all writes are Zone Append commands.
    pub fn append(&self) -> bool {
        matches!(self.0[..], [(NvmeWrite::ZoneAppend, _)])
    }

    /// The sum of all weights.
    fn total(&self) -> u32 {
        self.0.iter().map(|(_, weight)| weight).sum()
    }
}

impl Value for NvmeWrites {
    const KIND: ValueKind = ValueKind::Words;
    const CHOICES: &'static [Choice] = NvmeWrite::CHOICES;

    fn parse(text: &str, reading: &mut Reading) -> Result<NvmeWrites, String> {
        let parts: Vec<(NvmeWrite, Option<u32>)> =
            text.split(':').map(|part| entry(part, reading)).collect::<Result<_, String>>()?;
        let repeated = parts
            .iter()
            .enumerate()
            .find(|(at, (command, _))| parts[..*at].iter().any(|(earlier, _)| earlier == command));
        if let Some((_, (command, _))) = repeated {
            return Err(format!("{text:?} names {} twice", command.word()));
        }
        if parts.len() > 1 && parts.iter().any(|(command, _)| *command == NvmeWrite::ZoneAppend) {
            return Err(format!(
                "{text:?}: other commands write at the write pointer of a zone, which Zone Append commands in flight move; \
                 use zone_append alone"
            ));
        }
        let given: u32 = parts.iter().filter_map(|(_, percent)| *percent).sum();
        // What is left is divided evenly.
        let open = u32::capped(parts.iter().filter(|(_, percent)| percent.is_none()).count());
        if given > 100 || (open == 0 && given < 100) || (open > 0 && given == 100) {
            return Err(format!("the shares of {text:?} do not add up to 100 %"));
        }
        let weight = |percent: Option<u32>| percent.map_or(100 - given, |percent| percent * open.max(1));
        Ok(NvmeWrites(parts.into_iter().map(|(command, percent)| (command, weight(percent))).collect()))
    }

    fn print(&self) -> String {
        if let [(command, _)] = self.0[..] {
            return command.word().to_string();
        }
        let total = f64::from(self.total());
        let one = |(command, weight): &(NvmeWrite, u32)| {
            let percent = (f64::from(*weight) * 10_000.0 / total).round() / 100.0;
            format!("{}/{percent}", command.word())
        };
        self.0.iter().map(one).collect::<Vec<String>>().join(":")
    }
}

/// `COMMAND`, `COMMAND/` or `COMMAND/PERCENT`.
fn entry(part: &str, reading: &mut Reading) -> Result<(NvmeWrite, Option<u32>), String> {
    let (word, share) = part.split_once('/').unwrap_or((part, ""));
    let command =
        NvmeWrite::from_word(word).ok_or_else(|| unknown_word(word, NvmeWrite::CHOICES, reading))?;
    let percent = match share {
        "" => None,
        share => {
            let number = share.parse::<u32>().ok().filter(|percent| (1..=100).contains(percent));
            Some(number.ok_or_else(|| format!("{share:?} is not a share from 1 to 100 %"))?)
        }
    };
    Ok((command, percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<NvmeWrites, String> {
        NvmeWrites::parse(text, &mut Reading::default())
    }

    #[test]
    fn shares_that_are_not_given_divide_what_is_left() {
        use NvmeWrite::{Uncorrectable, Verify, Write, Zeroes};
        assert_eq!(parsed("zeroes").unwrap().0, [(Zeroes, 100)]);
        assert_eq!(parsed("write/:zeroes/").unwrap().0, [(Write, 100), (Zeroes, 100)]);
        let four = parsed("write/40:zeroes/:uncor/:verify/").unwrap();
        assert_eq!(four.0, [(Write, 120), (Zeroes, 60), (Uncorrectable, 60), (Verify, 60)]);
        assert_eq!(four.print(), "write/40:zeroes/20:uncor/20:verify/20");
        assert_eq!(parsed("write/25:zeroes/75").unwrap().print(), "write/25:zeroes/75");
        assert!(parsed("write").unwrap().are_plain() && !four.are_plain());
        assert!(parsed("zone_append").unwrap().append() && !four.append());
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for (text, why) in [
            ("write/40:zeroes/40", "do not add up"),
            ("write/100:zeroes/", "do not add up"),
            ("write/60:zeroes/60", "do not add up"),
            ("write/0:zeroes/", "not a share"),
            ("write/x", "not a share"),
            ("write/:write/", "twice"),
            ("writes", "not one of the allowed"),
            ("write/50:zone_append/50", "use zone_append alone"),
        ] {
            let refused = parsed(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
