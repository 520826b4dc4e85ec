//! Counts of a job, or of what it did in one direction, that are declared once.
//!
//! Invariant: what prints, stores, exports, compares or explains them goes through [`Count::ALL`] and names none of them, so
//! that a new one takes its declaration here and the line that records it.

use serde::{Deserialize, Serialize};

/// What is counted of a job or of one of its directions, beyond what fio counts.
#[derive(Debug, PartialEq, Eq, PartialOrd)]
pub struct Count {
    /// Its key in JSON, its column in exports and its name in conditions; in text with spaces.
    pub key: &'static str,
    /// Its name as a metric.
    pub metric: &'static str,
    /// Its columns in exports: of each direction, or one for all jobs.
    pub columns: &'static [&'static str],
    /// What it means, as sentences.
    pub meaning: &'static str,
}

macro_rules! counts {
    (@columns direction $key:literal) => { &[concat!("read_", $key), concat!("write_", $key), concat!("trim_", $key)] };
    (@columns job $key:literal) => { &[$key] };
    ($($name:ident: $place:ident, $key:literal, $meaning:literal;)+) => {
        $(
            #[doc = $meaning]
            pub static $name: Count = Count {
                key: $key,
                metric: concat!("fiord_", $key, "_total"),
                columns: counts!(@columns $place $key),
                meaning: $meaning,
            };
        )+

        impl Count {
            /// Every count, in the order of reports.
            pub const ALL: &[&Count] = &[$(&$name),+];
        }
    };
}

counts! {
    DROPPED_ARRIVALS: direction, "dropped_arrivals",
        "I/Os of an open loop (rate_arrivals=open) that were due while as many were waiting as may, and were never issued.";
    WAITING_ARRIVALS: direction, "waiting_arrivals",
        "I/Os of an open loop (rate_arrivals=open) that were still waiting to be issued when the job ended.";
    UNQUEUED_TRIMS: job, "unqueued_trims",
        "Trims that ended before the job went on, because the engine or the kernel did not queue them.";
    ZONE_RESETS: job, "zone_resets",
        "Zones that the job reset so that they could be written again; counted if a target is zoned.";
}

impl Count {
    /// Those of each direction, or those of jobs.
    pub fn all(of_directions: bool) -> impl Iterator<Item = &'static Count> {
        Count::ALL.iter().copied().filter(move |count| count.is_of_directions() == of_directions)
    }

    /// Whether each direction has it, and not the job.
    pub fn is_of_directions(&self) -> bool {
        self.columns.len() > 1
    }

    /// Its name in text.
    pub fn name(&self) -> String {
        self.key.replace('_', " ")
    }
}

/// The counts of a job or of a direction. One that nothing recorded is absent, which is not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(String, u64)>", into = "Vec<(String, u64)>")]
pub struct Counts(Vec<(&'static Count, u64)>);

impl Counts {
    /// Adds to a count, which is there from then on.
    pub fn add(&mut self, count: &'static Count, number: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == count) {
            Some((_, sum)) => *sum = sum.saturating_add(number),
            None => self.0.push((count, number)),
        }
    }

    /// A count; `None` if nothing recorded it.
    pub fn get(&self, count: &Count) -> Option<u64> {
        self.0.iter().find(|(known, _)| *known == count).map(|(_, number)| *number)
    }

    /// Those that are there, in the order in which they were recorded.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Count, u64)> {
        self.0.iter().copied()
    }

    /// Whether none is there.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds those of another job that ran concurrently.
    pub fn merge(&mut self, other: &Counts) {
        other.iter().for_each(|(count, number)| self.add(count, number));
    }
}

impl From<Counts> for Vec<(String, u64)> {
    fn from(counts: Counts) -> Self {
        counts.iter().map(|(count, number)| (count.key.to_string(), number)).collect()
    }
}

/// Those that another version of fiord counts, and this one does not know, are left out.
impl From<Vec<(String, u64)>> for Counts {
    fn from(stored: Vec<(String, u64)>) -> Counts {
        let known = |key: &str| Count::ALL.iter().find(|count| count.key == key);
        Counts(stored.iter().filter_map(|(key, number)| Some((*known(key)?, *number))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_and_those_that_nothing_recorded_are_absent() {
        let (mut one, mut other) = (Counts::default(), Counts::default());
        one.add(&DROPPED_ARRIVALS, 3);
        other.add(&DROPPED_ARRIVALS, 4);
        other.add(&WAITING_ARRIVALS, 0);
        one.merge(&other);
        let all = [&DROPPED_ARRIVALS, &WAITING_ARRIVALS, &ZONE_RESETS].map(|count| one.get(count));
        assert_eq!(all, [Some(7), Some(0), None]);
    }

    #[test]
    fn what_is_stored_comes_back_without_what_is_not_known() {
        let stored = vec![("zone_resets".to_string(), 5), ("of_a_later_version".to_string(), 1)];
        let counts = Counts::from(stored);
        assert_eq!(counts.iter().collect::<Vec<_>>(), [(&ZONE_RESETS, 5)]);
    }
}
