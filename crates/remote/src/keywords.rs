//! Keywords of job files that are facts of a machine: they stay as typed until the host is known that they are of.
//!
//! Invariant: text without a `$` is unchanged.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use fiord_options::bytes::replace;
use fiord_options::environment::KeywordValues;
use fiord_options::{Problem, Section, Setting, change_settings, lookup};

/// The keywords that name a host. `${hostnum}` is the same as `$hostnum`.
const HOST_KEYWORDS: [&str; 3] = ["hostname", "hostnum", "hosts"];

/// What a grammar is given for `${name}` where hosts are named: a variable of this process, or a keyword as `$name`, which the
/// host replaces.
pub fn variable(name: &OsStr) -> Option<OsString> {
    let keyword = HOST_KEYWORDS.iter().find(|keyword| name == **keyword);
    std::env::var_os(name).or_else(|| keyword.map(|keyword| OsString::from(format!("${keyword}"))))
}

/// What the keywords stand for on one host.
#[derive(Clone, Debug)]
pub struct HostKeywords {
    /// `$ncpus`, `$mb_memory`, `$pagesize`.
    pub machine: KeywordValues,
    /// `$hostname`: the host's name in the list.
    pub name: String,
    /// `$hostnum`: its number, from 0.
    pub number: u32,
    /// `$hosts`: how many there are.
    pub hosts: u32,
}

impl HostKeywords {
    /// Of the only host of a list, like this machine: to find wrong values before any host is reached.
    pub fn of_any_host(machine: KeywordValues) -> HostKeywords {
        HostKeywords { machine, name: "host".to_string(), number: 0, hosts: 1 }
    }
}

/// Replaces the keywords in all settings.
///
/// # Errors
/// Sums that cannot be computed.
pub fn expand(sections: &mut [Section], keywords: &HostKeywords) -> Result<(), Vec<Problem>> {
    let problems = RefCell::new(Vec::new());
    change_settings(sections, |setting| {
        expanded(setting, keywords).map_err(|problem| problems.borrow_mut().push(problem)).ok()
    });
    let problems = fiord_options::without_repeats(problems.into_inner());
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn expanded(setting: &Setting, keywords: &HostKeywords) -> Result<Setting, Problem> {
    let Some(value) = setting.value.as_ref().filter(|value| value.as_bytes().contains(&b'$')) else {
        return Ok(setting.clone());
    };
    let texts = [keywords.name.clone(), keywords.number.to_string(), keywords.hosts.to_string()];
    let mut bytes = value.as_bytes().to_vec();
    let had_host = HOST_KEYWORDS.iter().zip(&texts).fold(false, |had, (keyword, text)| {
        let replaced = replace(&bytes, format!("${keyword}").as_bytes(), text.as_bytes());
        let had = had || replaced != bytes;
        bytes = replaced;
        had
    });
    let value = OsString::from_vec(bytes);
    let place = &setting.value_place;
    let value = lookup::with_keywords(setting.spec, Some(value), &keywords.machine, place)?;
    let is_number = had_host && setting.spec.kind.is_number();
    let value = value.map(|value| if is_number { multiplied(value) } else { value });
    Ok(Setting { value, ..setting.clone() })
}

/// `3*1G` as `3g` is written: a number of hosts times a size, which sums with units are not.
fn multiplied(value: OsString) -> OsString {
    let product = || {
        let (count, size) = value.to_str()?.split_once('*')?;
        let digits = size.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(size.len());
        let (number, unit) = size.split_at(digits);
        let product = count.trim().parse::<u64>().ok()?.checked_mul(number.parse().ok()?)?;
        Some(OsString::from(format!("{product}{unit}")))
    };
    product().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use fiord_options::job::{Amount, Blocks, Files};

    use super::*;

    fn keywords() -> HostKeywords {
        let machine = KeywordValues { cpus: 4, memory_mib: 1024, page_bytes: 4096 };
        HostKeywords { machine, name: "db3".to_string(), number: 2, hosts: 12 }
    }

    #[test]
    fn keywords_are_those_of_the_host() {
        let section = Section::new("a").with([
            (Files::filename, "/mnt/nfs/$hostname-$hostnum-of-$hosts"),
            (Blocks::bs, "$pagesize*2"),
            (Amount::size, "$hostnum*1G"),
        ]);
        let mut sections = [section];
        expand(&mut sections, &keywords()).unwrap();
        let values: Vec<&str> = sections[0].own.iter().filter_map(Setting::text).collect();
        assert_eq!(values, ["/mnt/nfs/db3-2-of-12", "8192", "2G"]);
        let mut wrong = [Section::new("a").with([(Amount::size, "$ncpus*x")])];
        assert_eq!(expand(&mut wrong, &keywords()).unwrap_err().len(), 1);
    }
}
