//! Errors by name or number, for `ignore_error`.
//!
//! Invariant: an error is held as Linux's number; names are those of `fiord-errno`.

use fiord_errno::Errno;

use super::contract::{Reading, Value};
use super::kind::ValueKind;

/// Errors to ignore, one list per kind of I/O.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IgnoreErrors {
    /// For reads.
    pub read: Vec<Errno>,
    /// For writes.
    pub write: Vec<Errno>,
    /// For verifying.
    pub verify: Vec<Errno>,
}

/// An error by its name or number.
fn parse_errno(text: &str) -> Result<Errno, String> {
    let text = text.trim();
    if let Some(errno) = Errno::from_name(text) {
        return Ok(errno);
    }
    match text.parse() {
        Ok(number @ 1..=4095) => Ok(Errno(number)),
        _ => Err(format!("{text:?} is neither the name nor the number of an error")),
    }
}

/// Its name, or its number where it has none.
fn print_errno(errno: &Errno) -> String {
    match Errno::from_name(errno.name()) {
        Some(_) => errno.name().to_string(),
        None => errno.0.to_string(),
    }
}

impl Value for IgnoreErrors {
    const KIND: ValueKind = ValueKind::Errors;

    fn parse(text: &str, reading: &mut Reading) -> Result<IgnoreErrors, String> {
        let mut lists = [const { Vec::new() }; 3];
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > lists.len() {
            reading.note(format!("three lists are taken (read, write, verify) of {text:?}"));
        }
        for (list, part) in lists.iter_mut().zip(parts) {
            for error in part.split(':').filter(|error| !error.trim().is_empty()) {
                list.push(parse_errno(error)?);
            }
        }
        let [read, write, verify] = lists;
        Ok(IgnoreErrors { read, write, verify })
    }

    fn print(&self) -> String {
        let list = |errors: &[Errno]| {
            let names: Vec<String> = errors.iter().map(print_errno).collect();
            names.join(":")
        };
        let lists = format!("{},{},{}", list(&self.read), list(&self.write), list(&self.verify));
        lists.trim_end_matches(',').to_string()
    }

    fn unset() -> Option<IgnoreErrors> {
        Some(IgnoreErrors::default())
    }
}
