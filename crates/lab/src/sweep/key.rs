//! A swept option and the values it takes.
//!
//! Invariant: text shows a value as it was typed, JSON and CSV its number.

use fiord_options::{Spec, job};
use fiord_report::table::Cell;

use crate::ranges::SweptValue;

/// What the values of an option measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Bytes.
    Bytes,
    /// Something else, or words.
    Other,
}

/// A swept option.
#[derive(Clone, Debug)]
pub struct Key {
    /// The option.
    pub spec: &'static Spec,
    /// What its values measure.
    pub counted: Counted,
    /// The values, in the order they are run.
    pub values: Vec<SweptValue>,
}

impl Key {
    /// The option's name.
    pub fn name(&self) -> &'static str {
        self.spec.name
    }

    /// Keys with their values, as typed: `bs=4k,64k x iodepth=1,32`.
    pub(crate) fn list(keys: &[Key]) -> String {
        let one = |key: &Key| {
            let texts: Vec<&str> = key.values.iter().map(|value| value.text.as_str()).collect();
            format!("{}={}", key.name(), texts.join(","))
        };
        keys.iter().map(one).collect::<Vec<String>>().join(" x ")
    }

    /// The option's title in tables and charts.
    pub(super) fn title(&self) -> &'static str {
        const TITLES: [(&Spec, &str); 4] = [
            (job::Access::rw, "RW"),
            (job::Blocks::bs, "BlockSize"),
            (job::General::numjobs, "Threads"),
            (job::Queue::iodepth, "Depth"),
        ];
        TITLES.iter().find(|(option, _)| *option == self.spec).map_or(self.spec.name, |(_, title)| title)
    }

    /// The title below the axis of a chart.
    pub(super) fn axis_title(&self) -> String {
        match self.counted {
            Counted::Bytes => format!("{} (bytes)", self.title()),
            _ => self.title().to_string(),
        }
    }

    /// Whether a curve can be drawn over its values.
    pub(super) fn is_axis(&self) -> bool {
        self.values.len() > 1 && self.values.iter().all(|value| value.number.is_some())
    }

    /// A value: as typed in text, as a number in JSON and CSV.
    pub(super) fn cell(&self, value: usize) -> Cell {
        let SweptValue { text, number, .. } = &self.values[value];
        match number {
            Some(number) => Cell::Formatted(text.clone(), *number),
            None => Cell::Text(text.clone()),
        }
    }
}
