//! A name with ranges: `db[01-12,15]`, `rack[a-c]n[1-4]`.
//!
//! Invariant: how many names there are is known before one is made.

use std::ops::RangeInclusive;

/// The most hosts of a list.
pub const HOSTS_MAX: usize = 16_384;

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    /// The byte of the text.
    pub at: usize,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl Mistake {
    pub(super) fn new(at: usize, message: impl Into<String>, remedy: impl Into<String>) -> Mistake {
        Mistake { at, message: message.into(), remedy: remedy.into() }
    }
}

/// A part of a name.
enum Part<'a> {
    Text(&'a str),
    OneOf(Vec<Choice<'a>>),
}

/// What may stand between the brackets, more than once.
enum Choice<'a> {
    Word(&'a str),
    Numbers(RangeInclusive<u64>, usize),
    Letters(RangeInclusive<char>),
}

impl Choice<'_> {
    fn count(&self) -> u64 {
        match self {
            Choice::Word(_) => 1,
            Choice::Numbers(range, _) => (range.end() - range.start()).saturating_add(1),
            Choice::Letters(range) => u64::from(u32::from(*range.end()) - u32::from(*range.start())) + 1,
        }
    }

    fn words(&self) -> Vec<String> {
        match self {
            Choice::Word(word) => vec![(*word).to_string()],
            Choice::Numbers(range, width) => {
                range.clone().map(|number| format!("{number:0width$}")).collect()
            }
            Choice::Letters(range) => range.clone().map(String::from).collect(),
        }
    }
}

/// The names that a text with ranges stands for, in their order.
pub(super) fn names(text: &str) -> Result<Vec<String>, Mistake> {
    let parts = parts(text)?;
    let count_of = |part: &Part<'_>| match part {
        Part::Text(_) => 1,
        Part::OneOf(choices) => choices.iter().map(Choice::count).fold(0, u64::saturating_add),
    };
    let count = parts.iter().map(count_of).fold(1, u64::saturating_mul);
    if count > HOSTS_MAX as u64 {
        let message = format!("\"{text}\" stands for {count} hosts, and a list has at most {HOSTS_MAX}");
        return Err(Mistake::new(0, message, "make the range smaller"));
    }
    let mut names = vec![String::new()];
    for part in &parts {
        match part {
            Part::Text(text) => names.iter_mut().for_each(|name| name.push_str(text)),
            Part::OneOf(choices) => {
                let words: Vec<String> = choices.iter().flat_map(Choice::words).collect();
                let with_each = |name: &String| words.iter().map(|word| format!("{name}{word}")).collect();
                names = names.iter().flat_map(|name| -> Vec<String> { with_each(name) }).collect();
            }
        }
    }
    Ok(names)
}

fn parts(text: &str) -> Result<Vec<Part<'_>>, Mistake> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find('[').map(|open| at + open) {
        let Some(close) = text[open..].find(']').map(|close| open + close) else {
            return Err(Mistake::new(open, "this \"[\" has no \"]\"", "write for example db[1-12]"));
        };
        parts.push(Part::Text(&text[at..open]));
        let mut start = open + 1;
        let mut choices = Vec::new();
        for item in text[start..close].split(',') {
            choices.push(choice(item).map_err(|mistake| Mistake { at: start + mistake.at, ..mistake })?);
            start += item.len() + 1;
        }
        parts.push(Part::OneOf(choices));
        at = close + 1;
    }
    if let Some(stray) = text[at..].find(']') {
        return Err(Mistake::new(at + stray, "this \"]\" has no \"[\"", "write for example db[1-12]"));
    }
    parts.push(Part::Text(&text[at..]));
    Ok(parts)
}

fn choice(item: &str) -> Result<Choice<'_>, Mistake> {
    let range_help = "ranges are like 1-12, 01-12 or a-c";
    if item.is_empty() || item.contains('[') {
        return Err(Mistake::new(0, "nothing, or another \"[\", between the brackets", range_help));
    }
    let Some((from, to)) = item.split_once('-') else { return Ok(Choice::Word(item)) };
    let backwards =
        || Mistake::new(0, format!("the range \"{item}\" runs backwards"), format!("write {to}-{from}"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number(from) && is_number(to) {
        let too_large = |_| Mistake::new(0, format!("\"{item}\" has a number that is too large"), range_help);
        let (first, last) = (from.parse::<u64>().map_err(too_large)?, to.parse().map_err(too_large)?);
        let width = if from.starts_with('0') { from.len() } else { 1 };
        return if first > last { Err(backwards()) } else { Ok(Choice::Numbers(first..=last, width)) };
    }
    let letter = |text: &str| match text.as_bytes() {
        [byte] if byte.is_ascii_alphabetic() => Some(char::from(*byte)),
        _ => None,
    };
    match (letter(from), letter(to)) {
        (Some(first), Some(last)) if first.is_ascii_lowercase() == last.is_ascii_lowercase() => {
            if first > last { Err(backwards()) } else { Ok(Choice::Letters(first..=last)) }
        }
        _ => Err(Mistake::new(0, format!("\"{item}\" is not a range"), range_help)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_expanded_in_their_order() {
        for (text, expected) in [
            ("db7", "db7"),
            ("db[1-3]", "db1 db2 db3"),
            ("db[08-11,15]", "db08 db09 db10 db11 db15"),
            ("rack[a-b]n[1-2].x", "rackan1.x rackan2.x rackbn1.x rackbn2.x"),
            ("[web,db]-[9-10]", "web-9 web-10 db-9 db-10"),
            ("n[0-2]", "n0 n1 n2"),
            ("n[0-10]", "n0 n1 n2 n3 n4 n5 n6 n7 n8 n9 n10"),
        ] {
            assert_eq!(names(text).unwrap().join(" "), expected, "{text}");
        }
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, at, message) in [
            ("db[1-3", 2, "has no \"]\""),
            ("db1-3]", 5, "has no \"[\""),
            ("db[1,3-2]", 5, "runs backwards"),
            ("db[]", 3, "nothing"),
            ("db[a-Z]", 3, "is not a range"),
            ("db[1-x]", 3, "is not a range"),
            ("db[[1-2]]", 3, "another \"[\""),
            ("db[1-1000000]", 0, "stands for 1000000 hosts"),
            ("db[0-9][0-9][0-9][0-9][0-9]", 0, "stands for 100000 hosts"),
            ("db[0-18446744073709551615]", 0, "stands for 18446744073709551615 hosts"),
            ("db[0-18446744073709551616]", 3, "too large"),
        ] {
            let mistake = names(text).unwrap_err();
            assert_eq!(mistake.at, at, "{text}: {}", mistake.message);
            assert!(mistake.message.contains(message), "{text}: {}", mistake.message);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_expanded_or_refused(text in "[a-c0-3\\[\\],-]{0,16}") {
            match names(&text) {
                Ok(names) => prop_assert!(names.len() <= HOSTS_MAX && !names.iter().any(|name| name.contains('['))),
                Err(mistake) => prop_assert!(mistake.at <= text.len()),
            }
        }

        #[test]
        fn a_range_has_its_ends_and_all_between(from in 0..1000_u64, more in 0..1000_u64) {
            let names = names(&format!("h[{from}-{}]", from + more)).unwrap();
            prop_assert_eq!(names.len() as u64, more + 1);
            prop_assert_eq!(&names[0], &format!("h{from}"));
            prop_assert_eq!(names.last().unwrap(), &format!("h{}", from + more));
        }
    }
}
