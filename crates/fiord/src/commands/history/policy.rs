//! Which runs a history keeps (`fiord history --keep`), in words.
//!
//! Invariant: what is shown of a policy can be given to `--keep` again.

use fiord_stats::Capped;
use fiord_store::Retention;

use crate::commands::parse;

/// What `--keep` asks for; without a policy all runs are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keep(pub(super) Option<Retention>);

/// The value of `--keep`.
///
/// # Errors
/// What is wrong, and what to write instead.
pub(super) fn read(text: &str) -> Result<Keep, String> {
    let wrong = || {
        format!("{text:?} is neither an age nor a number of runs; write 30d, 12h, 1000, or all to keep all")
    };
    Ok(Keep(match text.parse::<u64>() {
        _ if text == "all" => None,
        Ok(0) => {
            return Err(
                "the run just recorded is always kept; write 1, or rm --all to delete all".to_string()
            );
        }
        Ok(count) => Some(Retention::Runs(count)),
        // A time without a unit would be one in seconds.
        Err(_) if !text.ends_with(|c: char| c.is_ascii_alphabetic()) => return Err(wrong()),
        Err(_) => {
            let ms = u64::capped(parse::positive_duration(text).map_err(|_| wrong())?.as_millis());
            Some(Retention::Age { ms: ms.max(1) })
        }
    }))
}

/// What is kept, in a sentence.
pub(super) fn words(policy: Option<Retention>) -> String {
    match policy {
        None => "All runs are kept.".to_string(),
        Some(Retention::Runs(1)) => "The newest run is kept.".to_string(),
        Some(age @ Retention::Age { .. }) => format!("Runs are kept for {age}."),
        Some(count) => format!("The newest {count} runs are kept."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_or_a_number_of_runs_is_kept() {
        let of = |text| read(text).map(|Keep(policy)| policy);
        assert_eq!(of("30d"), Ok(Some(Retention::Age { ms: 30 * 86_400_000 })));
        assert_eq!([of("1000"), of("all")], [Ok(Some(Retention::Runs(1000))), Ok(None)]);
        for text in ["", "0", "0d", "-1", "1.5", "30days", "al"] {
            assert!(of(text).is_err(), "{text}");
        }
        for text in ["30d", "90m", "1", "1000"] {
            assert_eq!(of(text).unwrap().unwrap().to_string(), text);
        }
        let shown = ["all", "1", "20", "2d"].map(|text| words(of(text).unwrap()));
        let expected = [
            "All runs are kept.",
            "The newest run is kept.",
            "The newest 20 runs are kept.",
            "Runs are kept for 2d.",
        ];
        assert_eq!(shown, expected);
    }
}
