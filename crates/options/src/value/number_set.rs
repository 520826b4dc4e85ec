//! Sets of numbers: of CPUs, of NUMA nodes, of placements on a drive; and lists of them: of GPUs.
//!
//! Invariant: a set is sorted, without repeats; every number is below `NUMBERS`.

use super::contract::{Reading, Value};
use super::kind::ValueKind;
use super::scan::scan;

/// Numbers from here on are refused: no machine has them, and a typo should not cost gigabytes.
const NUMBERS: u32 = 65_536;

/// Numbers and ranges of numbers: `0,5,8-15`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NumberSet(pub Vec<u32>);

impl Value for NumberSet {
    const KIND: ValueKind = ValueKind::NumberList;

    fn parse(text: &str, _reading: &mut Reading) -> Result<NumberSet, String> {
        let mut numbers = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (low, high) = part.split_once(['-', ':']).unwrap_or((part, part));
            let (low, high) = (number(low, text)?, number(high, text)?);
            numbers.extend(low.min(high)..=low.max(high));
        }
        if numbers.is_empty() {
            return Err(format!("{text:?} names no number"));
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(NumberSet(numbers))
    }

    fn print(&self) -> String {
        let mut parts = Vec::new();
        let mut rest = self.0.as_slice();
        while let Some(&low) = rest.first() {
            let length = rest.iter().zip(low..).take_while(|(number, expected)| *number == expected).count();
            parts.push(match rest[length - 1] {
                high if high == low => low.to_string(),
                high => format!("{low}-{high}"),
            });
            rest = &rest[length..];
        }
        parts.join(",")
    }
}

/// Numbers separated by colons, in the order given and as often: `0:2:0`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ColonList(pub Vec<u32>);

impl Value for ColonList {
    const KIND: ValueKind = ValueKind::ColonList;

    fn parse(text: &str, _reading: &mut Reading) -> Result<ColonList, String> {
        text.split(':').map(|part| number(part, text)).collect::<Result<_, String>>().map(ColonList)
    }

    fn print(&self) -> String {
        self.0.iter().map(u32::to_string).collect::<Vec<_>>().join(":")
    }
}

/// A number of a list, in full: nothing is ignored here, because a missing number is not noticed in a result.
fn number(text: &str, whole: &str) -> Result<u32, String> {
    match scan(text) {
        Some((number, rest)) if rest.trim().is_empty() => match u32::try_from(number) {
            Ok(number) if number < NUMBERS => Ok(number),
            _ => Err(format!("{text:?} in {whole:?} is not between 0 and {}", NUMBERS - 1)),
        },
        _ => Err(format!("{text:?} in {whole:?} is not a number")),
    }
}

/// NUMA nodes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NumaNodes {
    /// Every node the machine has.
    All,
    /// These.
    List(NumberSet),
}

impl Value for NumaNodes {
    const KIND: ValueKind = ValueKind::NodeList;

    fn parse(text: &str, reading: &mut Reading) -> Result<NumaNodes, String> {
        match text.trim() {
            "all" => Ok(NumaNodes::All),
            list => NumberSet::parse(list, reading).map(NumaNodes::List),
        }
    }

    fn print(&self) -> String {
        match self {
            NumaNodes::All => "all".to_string(),
            NumaNodes::List(list) => list.print(),
        }
    }
}

/// Where a job's memory comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NumaPolicy {
    /// The system's default.
    Default,
    /// The node of the CPU that touches it.
    Local,
    /// This node while it has any.
    Prefer(u32),
    /// These nodes only.
    Bind(NumaNodes),
    /// These nodes in turn.
    Interleave(NumaNodes),
}

impl Value for NumaPolicy {
    const KIND: ValueKind = ValueKind::NumaPolicy;

    fn parse(text: &str, reading: &mut Reading) -> Result<NumaPolicy, String> {
        let (mode, nodes) = match text.split_once(':') {
            Some((mode, nodes)) => (mode, Some(nodes)),
            None => (text, None),
        };
        let wanted = || nodes.ok_or_else(|| format!("{mode} needs nodes: {mode}:0"));
        match mode {
            "default" => Ok(NumaPolicy::Default),
            "local" => Ok(NumaPolicy::Local),
            "prefer" => number(wanted()?, text).map(NumaPolicy::Prefer),
            "bind" => NumaNodes::parse(wanted()?, reading).map(NumaPolicy::Bind),
            "interleave" => NumaNodes::parse(wanted()?, reading).map(NumaPolicy::Interleave),
            _ => Err(format!("{mode:?} is not one of default, local, prefer, bind and interleave")),
        }
    }

    fn print(&self) -> String {
        match self {
            NumaPolicy::Default => "default".to_string(),
            NumaPolicy::Local => "local".to_string(),
            NumaPolicy::Prefer(node) => format!("prefer:{node}"),
            NumaPolicy::Bind(nodes) => format!("bind:{}", nodes.print()),
            NumaPolicy::Interleave(nodes) => format!("interleave:{}", nodes.print()),
        }
    }
}
