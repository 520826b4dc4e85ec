//! The options that a study varies, and their values, as `--over` of a sweep and `vary` of a profile take them.
//!
//! Invariant: every value went through its option's own parser, and counts as a whole.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use fiord_lab::ranges;
use fiord_lab::sweep::{Counted, Key};
use fiord_options::value::{Bytes, EngineName, Micros, Reading, Seconds, Value, ValueKind};
use fiord_options::{Lookup, Scope, Spec, job, masked, table};
use fiord_report::path::{self, shown};

use super::typed_job::TypedJob;

/// The keys of these arguments, with every value checked by its option's parser; errors call each `called`: `--over`.
pub(crate) fn keys(called: &str, over: &[OsString], typed: &TypedJob) -> Result<Vec<Key>, String> {
    let mut keys: Vec<Key> = Vec::new();
    for argument in over {
        let (bytes, shown_argument) = (argument.as_bytes(), masked::of_arguments(&[argument]));
        let text = shown_argument.iter().map(path::text).collect::<String>();
        let Some(equals) = bytes.iter().position(|byte| *byte == b'=') else {
            return Err(format!("{called} {text}: give an option and its values: {called} bs=4k,64k"));
        };
        let (name, list) =
            (shown(OsStr::from_bytes(&bytes[..equals])), OsStr::from_bytes(&bytes[equals + 1..]));
        let key = key(name.trim_start_matches('-'), list, typed)
            .map_err(|why| format!("{called} {text}: {why}"))?;
        if keys.iter().any(|known| known.spec == key.spec) {
            return Err(format!(
                "{called} {text}: {} is already varied; give all its values at once",
                key.name()
            ));
        }
        keys.push(key);
    }
    Ok(keys)
}

fn key(name: &str, list: &OsStr, typed: &TypedJob) -> Result<Key, String> {
    let engines = typed.engines();
    let spec = match table::find_job_option(name, false, &engines) {
        Lookup::Found(spec) if spec == job::General::name => {
            return Err("name cannot be varied".to_string());
        }
        Lookup::Found(spec) if spec.secret => {
            return Err(format!(
                "{name} is secret, and a study shows what it varies; set it as an option of the job"
            ));
        }
        Lookup::Found(spec) => spec,
        Lookup::Ambiguous(_) => return Err(format!("no option of a job is called {name:?}")),
        Lookup::Unknown { suggestion } => return Err(unknown(name, suggestion)),
    };
    let (counted, number) = numbers(spec);
    let number = number.as_ref().map(|number| number as ranges::Number<'_>);
    let values = ranges::values(&typed.expanded(spec, list)?, number)?;
    for value in &values {
        spec.check(Some(&value.setting)).map_err(|why| match spec.allowed() {
            allowed if allowed.is_empty() => why,
            allowed => format!("{why}; allowed: {allowed}"),
        })?;
        typed.reads_whole(spec, value, number)?;
    }
    Ok(Key { spec, counted, values })
}

fn unknown(name: &str, suggestion: Option<&str>) -> String {
    let of_engine = table::engine_specs().find(|spec| spec.names().any(|known| known == name));
    match (of_engine.map(|spec| spec.scope), suggestion) {
        (Some(Scope::Engine(engines)), _) => {
            format!(
                "{name} is an option of {}; name that engine: --ioengine={}",
                EngineName::join(engines, " and "),
                engines[0]
            )
        }
        (_, Some(suggestion)) => {
            format!("no option of a job is called {name:?}; did you mean {suggestion:?}?")
        }
        _ => format!("no option of a job is called {name:?}; fiord --cmdhelp lists them"),
    }
}

/// Parses one value as a number.
type Number = fn(&str) -> Option<f64>;

/// What the option's values count, and how to parse one as a number in the unit it has without a suffix; `None` if they
/// are text.
fn numbers(spec: &Spec) -> (Counted, Option<Number>) {
    fn whole(text: &str) -> Option<f64> {
        // Lists for several directions are not numbers.
        let single = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let Bytes(number) = Bytes::parse(text, &mut Reading::default()).ok().filter(|_| single)?;
        Some(number as f64)
    }
    fn seconds(text: &str) -> Option<f64> {
        Some(Seconds::parse(text, &mut Reading::default()).ok()?.us as f64 / 1e6)
    }
    fn micros(text: &str) -> Option<f64> {
        Some(Micros::parse(text, &mut Reading::default()).ok()?.us as f64)
    }
    match spec.kind {
        ValueKind::Integer => (Counted::Other, Some(whole)),
        ValueKind::Seconds => (Counted::Other, Some(seconds)),
        ValueKind::Micros => (Counted::Other, Some(micros)),
        ValueKind::Size | ValueKind::Amount | ValueKind::SizeOrRange => (Counted::Bytes, Some(whole)),
        ValueKind::Decimals => (Counted::Other, Some(|text| text.parse().ok())),
        ValueKind::Text | ValueKind::OptionalText => (Counted::Other, None),
        _ => (Counted::Other, Some(|_| None)),
    }
}
