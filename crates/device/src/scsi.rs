//! Log pages of SCSI disks (LOG SENSE of the SCSI primary and block commands): temperature, informational exceptions,
//! error counters, wear.
//!
//! Invariant: pure, and total: a page that is cut, or another page than was asked for, reports only what it contains.

use crate::health::{FailureWarning, HealthLog, big_endian};

/// The pages that are read, by their codes.
pub const LOG_PAGES: [u8; 5] = [WRITE_ERRORS, READ_ERRORS, TEMPERATURE, SOLID_STATE_MEDIA, EXCEPTIONS];

const WRITE_ERRORS: u8 = 0x02;
const READ_ERRORS: u8 = 0x03;
const TEMPERATURE: u8 = 0x0d;
const SOLID_STATE_MEDIA: u8 = 0x11;
const EXCEPTIONS: u8 = 0x2f;

/// Parameters of these pages.
const TOTAL_UNCORRECTED: u16 = 6;
const CURRENT_TEMPERATURE: u16 = 0;
const HIGHEST_TEMPERATURE: u16 = 1;
const USED_PERCENT: u16 = 1;
const LAST_EXCEPTION: u16 = 0;

/// A temperature that is not known.
const NO_TEMPERATURE: u8 = 0xff;

/// Additional sense codes: a warning, of which the first kind is its temperature; and the prediction of a failure.
const WARNING: u8 = 0x0b;
const TEMPERATURE_EXCEEDED: u8 = 0x01;
const FAILURE_PREDICTED: u8 = 0x5d;

/// What the disk reports in these pages, each as it was answered, in any order.
pub fn parse_log_pages<'p>(pages: impl IntoIterator<Item = &'p [u8]>) -> HealthLog {
    let mut log = HealthLog::default();
    let mut highest_celsius = None;
    for page in pages {
        // With a page code goes a flag for pages below it; none is asked for.
        let Some(code) = page.first().map(|byte| byte & 0x3f) else { continue };
        for (parameter, value) in parameters(page) {
            match (code, parameter) {
                (WRITE_ERRORS | READ_ERRORS, TOTAL_UNCORRECTED) => {
                    let errors = log.media_errors.unwrap_or(0).saturating_add(big_endian(value));
                    log.media_errors = Some(errors);
                }
                (TEMPERATURE, CURRENT_TEMPERATURE) => log.temperature_celsius = celsius(value.get(1)),
                (TEMPERATURE, HIGHEST_TEMPERATURE) => highest_celsius = celsius(value.get(1)),
                (SOLID_STATE_MEDIA, USED_PERCENT) => {
                    log.used_percent = value.get(3).map(|used| u64::from(*used))
                }
                (EXCEPTIONS, LAST_EXCEPTION) => exception(value, &mut log),
                _ => {}
            }
        }
    }
    let is_beyond = log.temperature_celsius.zip(highest_celsius).is_some_and(|(now, highest)| now > highest);
    log.is_too_hot |= is_beyond;
    log
}

/// The code and the value of each parameter after the header of four bytes.
fn parameters(page: &[u8]) -> Vec<(u16, &[u8])> {
    let length = if let [_, _, high, low, ..] = page { u16::from_be_bytes([*high, *low]) } else { 0 };
    let mut rest = page.get(4..).unwrap_or_default();
    rest = &rest[..usize::from(length).min(rest.len())];
    let mut found = Vec::new();
    while let [high, low, _, length, after @ ..] = rest {
        let Some(value) = after.get(..usize::from(*length)) else { break };
        found.push((u16::from_be_bytes([*high, *low]), value));
        rest = &after[value.len()..];
    }
    found
}

fn celsius(byte: Option<&u8>) -> Option<i64> {
    byte.filter(|byte| **byte != NO_TEMPERATURE).map(|byte| i64::from(*byte))
}

/// The last exception: its code, its qualifier, and the temperature when it was read.
fn exception(value: &[u8], log: &mut HealthLog) {
    let [code, qualifier, rest @ ..] = value else { return };
    match (*code, *qualifier) {
        (WARNING, TEMPERATURE_EXCEEDED) => log.is_too_hot = true,
        (WARNING | FAILURE_PREDICTED, _) => {
            log.failure_warning = Some(FailureWarning::Sense(*code, *qualifier));
        }
        _ => {}
    }
    if log.temperature_celsius.is_none() {
        log.temperature_celsius = celsius(rest.first()).filter(|celsius| *celsius > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with these parameters.
    fn page(code: u8, parameters: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (parameter, value) in parameters {
            body.extend(parameter.to_be_bytes());
            body.extend([3, value.len() as u8]);
            body.extend(*value);
        }
        let mut page = vec![code, 0];
        page.extend((body.len() as u16).to_be_bytes());
        page.extend(body);
        page
    }

    fn parse(pages: &[Vec<u8>]) -> HealthLog {
        parse_log_pages(pages.iter().map(Vec::as_slice))
    }

    #[test]
    fn a_disk_is_too_hot_beyond_its_own_reference() {
        let of = |celsius: u8, highest: u8| parse(&[page(0x0d, &[(0, &[0, celsius]), (1, &[0, highest])])]);
        assert_eq!(of(38, 65), HealthLog { temperature_celsius: Some(38), ..HealthLog::default() });
        assert!(of(66, 65).is_too_hot && !of(65, 65).is_too_hot);
        assert!(!of(90, 255).is_too_hot, "it has no reference");
        assert_eq!(of(255, 65), HealthLog::default(), "it has no sensor");
    }

    #[test]
    fn exceptions_are_heat_failures_or_none() {
        let of = |code: u8, qualifier: u8| parse(&[page(0x2f, &[(0, &[code, qualifier, 40])])]);
        assert_eq!(of(0, 0), HealthLog { temperature_celsius: Some(40), ..HealthLog::default() });
        assert!(of(0x0b, 1).is_too_hot && of(0x0b, 1).failure_warning.is_none());
        assert_eq!(of(0x5d, 0x10).failure_warning, Some(FailureWarning::Sense(0x5d, 0x10)));
        assert_eq!(of(0x0b, 3).failure_warning, Some(FailureWarning::Sense(0x0b, 3)));
    }

    #[test]
    fn errors_of_both_directions_are_summed_and_wear_is_read() {
        let errors = |code: u8, count: u8| page(code, &[(0, &[9; 4]), (6, &[0, 0, 1, count])]);
        let log = parse(&[errors(2, 5), errors(3, 7), page(0x11, &[(1, &[0, 0, 0, 96])])]);
        assert_eq!((log.media_errors, log.used_percent), (Some(524), Some(96)));
    }

    #[test]
    fn a_page_that_is_cut_or_of_another_kind_reports_what_it_has() {
        let whole = page(0x0d, &[(0, &[0, 38]), (1, &[0, 20])]);
        assert!(parse(std::slice::from_ref(&whole)).is_too_hot);
        let cut = parse(&[whole[..whole.len() - 1].to_vec()]);
        assert_eq!((cut.temperature_celsius, cut.is_too_hot), (Some(38), false));
        assert_eq!(parse(&[page(0x0e, &[(0, &[0, 38])]), vec![], vec![0x0d]]), HealthLog::default());
    }
}
