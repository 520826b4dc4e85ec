//! The times of CI's stages, as recorded in the repository.
//!
//! Invariant: a record names machine and commit; a stage without a record is not compared.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{machine, repo};

const RECORD: &str = "bench/ci.json";

/// A stage that takes this many times its recorded time is reported.
const SLOWER: f64 = 2.0;

/// Shorter times vary with other load.
const SECONDS_MIN: f64 = 5.0;

/// Seconds per stage.
#[derive(Debug, Default)]
pub struct Times {
    seconds: BTreeMap<String, f64>,
}

impl Times {
    fn of(document: &Value) -> Times {
        let seconds = document["seconds"].as_object().into_iter().flatten();
        let seconds = seconds.filter_map(|(stage, seconds)| Some((stage.clone(), seconds.as_f64()?)));
        Times { seconds: seconds.collect() }
    }

    /// The remark about a stage that took this long; `None` if it is about as recorded.
    pub fn remark(&self, stage: &str, took: Duration) -> Option<String> {
        let recorded = *self.seconds.get(stage)?;
        let is_slow = took.as_secs_f64() > (recorded * SLOWER).max(SECONDS_MIN);
        is_slow.then(|| format!("slow: {recorded:.1} s recorded in {RECORD}"))
    }
}

/// The recorded times; empty without a record.
pub fn recorded() -> Times {
    let document = repo::read(RECORD).and_then(|text| serde_json::from_str(&text).ok());
    document.as_ref().map(Times::of).unwrap_or_default()
}

/// Records the times of stages. Others keep theirs.
pub fn record(took: &[(&str, Duration)]) -> Result<(), String> {
    let mut seconds: Map<String, Value> =
        recorded().seconds.into_iter().map(|(stage, seconds)| (stage, seconds.into())).collect();
    for (stage, took) in took {
        seconds.insert((*stage).to_string(), ((took.as_secs_f64() * 10.0).round() / 10.0).into());
    }
    let document = json!({ "machine": machine::describe(), "seconds": seconds });
    let text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    repo::write(RECORD, &(text + "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_takes_twice_its_time_is_named() {
        let times = Times::of(&json!({ "seconds": { "test": 100.0, "fmt": 0.1 } }));
        let remark = |stage, seconds| times.remark(stage, Duration::from_secs(seconds));
        assert_eq!(remark("test", 199), None);
        assert!(remark("test", 201).is_some_and(|text| text.contains("100.0 s recorded")));
        assert_eq!(remark("fmt", 4), None, "too short to tell");
        assert_eq!(remark("doc", 1000), None, "not recorded");
    }
}
