//! How random offsets are spread over a file: `zipf:1.2`, `zoned:60/10:40/90`, one for all directions or one for each.
//!
//! Invariant: the parameters are within what the distribution is defined for; the shares of zones add up to 100.

use super::choice::{split_word, unknown_word};
use super::contract::{Choice, Reading, Value};
use super::kind::ValueKind;
use super::number::{integer, note_rest};
use super::scan::scan;
use super::skew::Skew;

/// Zones fio takes per direction.
const ZONES_MAX: usize = 256;

/// How random offsets are spread.
#[derive(Debug, Clone, PartialEq)]
pub enum RandomDistribution {
    /// Each place is as likely as any other.
    Uniform,
    /// By this distribution.
    Skewed(Skew),
    /// By zones that are parts of the file.
    Zoned(Vec<ZoneShare>),
    /// By zones of a given length.
    ZonedAbsolute(Vec<ZoneBytes>),
    /// These blocks, one after the other, over and over.
    Sequence(Vec<u64>),
}

/// A zone that is a part of the file, after the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZoneShare {
    /// Share of the I/Os in percent.
    pub access_percent: u8,
    /// Part of the file in percent; `None` for an equal part of what the others leave.
    pub size_percent: Option<u8>,
}

/// A zone of a given length, after the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZoneBytes {
    /// Share of the I/Os in percent.
    pub access_percent: u8,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The distributions of reads, writes and trims.
#[derive(Debug, Clone, PartialEq)]
pub struct RandomDistributions(pub [RandomDistribution; 3]);

impl Value for RandomDistributions {
    const KIND: ValueKind = ValueKind::Distribution;
    const CHOICES: &'static [Choice] = &[
        Choice { word: "random", help: "Every place equally likely." },
        Choice { word: "zipf", help: "By a Zipf distribution: `zipf:1.2`, `zipf:1.2:0.25`." },
        Choice { word: "pareto", help: "By a Pareto distribution: `pareto:0.2`." },
        Choice { word: "normal", help: "By a normal distribution: `normal:20`." },
        Choice { word: "zoned", help: "Shares of the I/O and of the file: `zoned:60/10:40/90`." },
        Choice { word: "zoned_abs", help: "Shares of the I/O and sizes: `zoned_abs:60/10g:40/90g`." },
        Choice { word: "sequence", help: "These blocks in this order: `sequence:0,2,1,3`." },
    ];

    fn parse(text: &str, reading: &mut Reading) -> Result<RandomDistributions, String> {
        let (word, rest) = split_word(text);
        if word == "sequence" {
            return sequence(text, rest, reading)
                .map(|one| RandomDistributions([one.clone(), one.clone(), one]));
        }
        let mut parts = text.split(',');
        let first = one(word, text.split(',').next().unwrap_or_default(), reading)?;
        parts.next();
        let mut distributions = [first.clone(), first.clone(), first];
        for (index, part) in parts.enumerate() {
            let Some(place) = distributions.get_mut(index + 1) else {
                return Err(format!("{text:?} has more than three distributions (read, write, trim)"));
            };
            // The numbers alone are of the same distribution.
            let starts_with_number = part.trim_start().starts_with(|letter: char| letter.is_ascii_digit());
            *place = match starts_with_number {
                true => one(word, &format!("{word}:{part}"), reading)?,
                false => one(split_word(part).0, part, reading)?,
            };
            let given = distributions[index + 1].clone();
            distributions[index + 1..].fill(given);
        }
        Ok(RandomDistributions(distributions))
    }

    fn print(&self) -> String {
        let [read, write, trim] = &self.0;
        match read == write && write == trim {
            true => read.print(),
            false => format!("{},{},{}", read.print(), write.print(), trim.print()),
        }
    }
}

impl RandomDistribution {
    fn print(&self) -> String {
        let joined =
            |word: &str, parts: Vec<String>, separator: &str| format!("{word}:{}", parts.join(separator));
        match self {
            RandomDistribution::Uniform => "random".to_string(),
            RandomDistribution::Skewed(skew) => skew.print(),
            RandomDistribution::Zoned(zones) => {
                let size = |zone: &ZoneShare| zone.size_percent.map(|percent| percent.to_string());
                let part =
                    |zone: &ZoneShare| format!("{}/{}", zone.access_percent, size(zone).unwrap_or_default());
                joined("zoned", zones.iter().map(part).collect(), ":")
            }
            RandomDistribution::ZonedAbsolute(zones) => {
                let part = |zone: &ZoneBytes| format!("{}/{}", zone.access_percent, zone.bytes);
                joined("zoned_abs", zones.iter().map(part).collect(), ":")
            }
            RandomDistribution::Sequence(blocks) => {
                joined("sequence", blocks.iter().map(u64::to_string).collect(), ",")
            }
        }
    }
}

/// One distribution, `text` being `word` and its numbers.
fn one(word: &str, text: &str, reading: &mut Reading) -> Result<RandomDistribution, String> {
    let (_, rest) = split_word(text);
    match word {
        "random" => Ok(RandomDistribution::Uniform),
        "zoned" => zones(text, rest, reading),
        "zoned_abs" => zones_absolute(text, rest, reading),
        "sequence" => Err(format!("a sequence is for all directions: {text:?}")),
        _ => match Skew::parse(word, text, rest) {
            Some(skew) => skew.map(RandomDistribution::Skewed),
            None => Err(unknown_word(word, RandomDistributions::CHOICES, reading)),
        },
    }
}

/// The halves of each `60/10` of a list.
fn pairs<'t>(whole: &str, text: &'t str) -> Result<Vec<(u8, &'t str)>, String> {
    let parts: Vec<&str> = text.split(':').filter(|part| !part.trim().is_empty()).collect();
    if parts.is_empty() || parts.len() > ZONES_MAX {
        return Err(format!("{whole:?} has {} zones, not 1 to {ZONES_MAX}", parts.len()));
    }
    let mut pairs = Vec::with_capacity(parts.len());
    for part in parts {
        let (access, size) = part.split_once('/').unwrap_or((part, ""));
        let percent = scan(access).and_then(|(number, _)| u8::try_from(number).ok());
        let percent = percent.filter(|percent| *percent <= 100);
        let wrong = || format!("{part:?} does not start with a percentage of the I/Os");
        pairs.push((percent.ok_or_else(wrong)?, size.trim()));
    }
    let total: u32 = pairs.iter().map(|pair| u32::from(pair.0)).sum();
    match total {
        100 => Ok(pairs),
        _ => Err(format!("the shares of the I/Os in {whole:?} add up to {total}, not to 100")),
    }
}

fn zones(whole: &str, text: &str, reading: &mut Reading) -> Result<RandomDistribution, String> {
    let mut zones = Vec::new();
    for (access_percent, size) in pairs(whole, text)? {
        let size_percent = match size {
            "" => None,
            size => {
                let (number, rest) =
                    scan(size).ok_or_else(|| format!("{size:?} in {whole:?} is not a percentage"))?;
                note_rest(whole, rest.trim_start_matches('%'), number, reading);
                let percent = u8::try_from(number).ok().filter(|percent| *percent <= 100);
                Some(percent.ok_or_else(|| format!("{size} in {whole:?} is not between 0 and 100 percent"))?)
            }
        };
        zones.push(ZoneShare { access_percent, size_percent });
    }
    let total: u32 = zones.iter().filter_map(|zone| zone.size_percent).map(u32::from).sum();
    match total > 100 {
        true => Err(format!("the sizes of the zones in {whole:?} add up to {total} percent")),
        false => Ok(RandomDistribution::Zoned(zones)),
    }
}

fn zones_absolute(whole: &str, text: &str, reading: &mut Reading) -> Result<RandomDistribution, String> {
    let mut zones = Vec::new();
    for (access_percent, size) in pairs(whole, text)? {
        let bytes = u64::try_from(integer(size, reading)?).ok().filter(|bytes| *bytes > 0);
        let bytes = bytes.ok_or_else(|| format!("{size:?} in {whole:?} is not the size of a zone"))?;
        zones.push(ZoneBytes { access_percent, bytes });
    }
    Ok(RandomDistribution::ZonedAbsolute(zones))
}

fn sequence(whole: &str, text: &str, reading: &mut Reading) -> Result<RandomDistribution, String> {
    let mut blocks = Vec::new();
    for part in text.split([',', ':']).filter(|part| !part.trim().is_empty()) {
        let block = u64::try_from(integer(part, reading)?);
        blocks.push(block.map_err(|_| format!("{part:?} in {whole:?} is not the number of a block"))?);
    }
    match blocks.is_empty() {
        true => Err(format!("{whole:?} names no blocks")),
        false => Ok(RandomDistribution::Sequence(blocks)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<RandomDistributions, String> {
        RandomDistributions::parse(text, &mut Reading::default())
    }

    #[test]
    fn what_is_printed_is_read_again() {
        for text in [
            "random",
            "zipf:1.2",
            "zipf:1.2:0.25",
            "pareto:0.2",
            "normal:20:0.1",
            "zoned:60/10:30/20:10/",
            "zoned_abs:60/1048576:40/4096",
            "sequence:0,2,1,3",
            "zipf:1.2,pareto:0.3,random",
        ] {
            assert_eq!(parsed(text).unwrap().print(), text);
        }
    }

    #[test]
    fn directions_may_differ() {
        let [read, write, trim] = parsed("zoned:50/5:30/15:20/,50/10:50/90").unwrap().0;
        assert_eq!(read.print(), "zoned:50/5:30/15:20/");
        assert_eq!((write.print().as_str(), trim), ("zoned:50/10:50/90", write.clone()));
        assert_eq!(parsed("zipf:1.2,0.8,random").unwrap().print(), "zipf:1.2,zipf:0.8,random");
        assert!(parsed("zipf:1.2,1.3,1.4,1.5").is_err());
    }

    #[test]
    fn what_fio_refuses_is_refused() {
        // `fio --random_distribution=... --parse-only`, exit status 1
        for text in [
            "foo",
            "zipf:1",
            "zipf:abc",
            "zipf:1.2:2",
            "pareto:1",
            "pareto:0",
            "normal:100",
            "normal:-1",
            "zoned",
            "zoned:60/10:30/20",
            "zoned:60/10:50/20",
            "zoned:60/60:40/60",
            "zoned:/10:/20",
            "zoned:30:40",
            "zoned_abs:60/1m:60/1m",
            "zoned_abs:60/1m:40/",
        ] {
            assert!(parsed(text).is_err(), "{text}");
        }
        for text in ["zipf", "pareto", "normal", "zipf:0", "zoned:100/50", "zoned:50/0:50/100", "random:3"] {
            assert!(parsed(text).is_ok(), "{text}");
        }
    }
}
