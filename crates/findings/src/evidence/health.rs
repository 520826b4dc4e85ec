//! What processors and disks report about their own health: heat, errors of the medium, wear, failure.
//!
//! Invariant: what grew must have grown during the run; what a disk warns of must hold at its end.

use fiord_host::{FailureWarning, HealthLog};
use fiord_report::table::Cell;
use fiord_report::{Code, Finding, Subject};

use super::measured::Measurements;

/// A disk that has used this much of its rated life is worn out, in percent.
const USED_MIN: u64 = 100;

/// Of a run.
pub(super) fn of(measured: &Measurements<'_>) -> Vec<Finding> {
    let (before, after) = measured.health;
    let mut findings: Vec<Finding> = processors(measured).into_iter().collect();
    for end in after {
        let Some(start) = before.iter().find(|start| start.device == end.device) else { continue };
        findings.extend(hot(&end.device, &start.log, &end.log));
        findings.extend(errors(&end.device, &start.log, &end.log));
        findings.extend(worn(&end.device, &end.log));
    }
    findings
}

/// Processors slow themselves down, or the kernel does so by limiting their frequency.
fn processors(measured: &Measurements<'_>) -> Option<Finding> {
    let (start, end) = measured.ends()?;
    let times = grown(
        start.totals.as_ref().and_then(|totals| totals.thermal_throttles),
        end.totals.as_ref().and_then(|totals| totals.thermal_throttles),
    );
    let (cooled_s, all_s) = measured.seconds_when(|_, later| later.is_cooling);
    let mut parts = Vec::new();
    if times > 0 {
        parts.push(format!("processors slowed down {times} times because they were too hot"));
    }
    if cooled_s > 0.0 {
        parts.push(format!(
            "the kernel slowed processors down for {cooled_s:.0} of {all_s:.0} s to cool them"
        ));
    }
    if parts.is_empty() {
        return None;
    }
    let hottest = measured.host.iter().filter_map(|reading| reading.temperature_celsius).max();
    let remedy = "cool the machine, and repeat the run";
    let finding = Finding::new(Code::CpuOverheated, Subject::Machine, parts.join(", and "), remedy);
    let finding =
        finding.based_on([("slowdowns", Cell::Count(times)), ("cooled_s", Cell::Number(cooled_s, 0))]);
    Some(with_temperature(finding, hottest))
}

fn hot(device: &str, start: &HealthLog, end: &HealthLog) -> Option<Finding> {
    let slowdowns = grown(start.thermal_slowdowns, end.thermal_slowdowns);
    if slowdowns == 0 && !end.is_too_hot {
        return None;
    }
    let at =
        end.temperature_celsius.map_or_else(String::new, |celsius| format!(" ({celsius} degrees Celsius)"));
    let sentence = match slowdowns {
        0 => format!("it reports that it is too hot{at}"),
        _ => format!("it slowed down {slowdowns} times during the run because it was too hot{at}"),
    };
    let finding =
        Finding::new(Code::DeviceOverheated, disk(device), sentence, "cool the disk, and repeat the run");
    Some(with_temperature(finding.based_on([("slowdowns", Cell::Count(slowdowns))]), end.temperature_celsius))
}

fn errors(device: &str, start: &HealthLog, end: &HealthLog) -> Option<Finding> {
    let errors = grown(start.media_errors, end.media_errors);
    (errors > 0).then(|| {
        let sentence = format!("it reported {errors} uncorrectable media errors during the run");
        let finding =
            Finding::new(Code::MediaErrors, disk(device), sentence, "replace the disk, and repeat the run");
        finding.based_on([("media_errors", Cell::Count(errors))])
    })
}

fn worn(device: &str, end: &HealthLog) -> Option<Finding> {
    let used_percent = end.used_percent.filter(|used| *used >= USED_MIN);
    let sentence = match (end.failure_warning, used_percent) {
        (Some(warning), _) => format!("it warns that it has failed or is about to fail ({warning})"),
        (None, Some(used)) => format!("it has used {used} % of its rated life"),
        (None, None) => return None,
    };
    let finding = Finding::new(Code::DeviceWorn, disk(device), sentence, "measure a disk in good condition");
    let warning = end.failure_warning.and_then(|warning| match warning {
        FailureWarning::Critical(bits) => Some(("critical_warning", u64::from(bits))),
        FailureWarning::Sense(code, qualifier) => {
            Some(("additional_sense", u64::from(u16::from_be_bytes([code, qualifier]))))
        }
        FailureWarning::ThresholdExceeded => None,
    });
    let figures = end.used_percent.map(|used| ("used_percent", used)).into_iter().chain(warning);
    Some(finding.based_on(figures.map(|(name, value)| (name, Cell::Count(value)))))
}

fn disk(device: &str) -> Subject {
    Subject::Device(device.to_string())
}

/// By how much a counter has grown; 0 if it is not known at both ends.
fn grown(start: Option<u64>, end: Option<u64>) -> u64 {
    end.zip(start).map_or(0, |(end, start)| end.saturating_sub(start))
}

fn with_temperature(finding: Finding, celsius: Option<i64>) -> Finding {
    finding.based_on(celsius.map(|celsius| ("temperature_celsius", Cell::Number(celsius as f64, 0))))
}

#[cfg(test)]
mod tests {
    use fiord_host::{Health, HostReading, HostTotals};

    use crate::evidence::testing::nothing;

    use super::*;

    fn found(start: &HealthLog, end: HealthLog) -> Vec<(Code, String)> {
        let of = |log| [Health { device: "sda".to_string(), log, power: None }];
        let (start, end) = (of(start.clone()), of(end));
        let findings = super::of(&Measurements { health: (&start, &end), ..nothing() });
        assert!(findings.iter().all(|finding| finding.subject == Subject::Device("sda".into())));
        findings.into_iter().map(|finding| (finding.code, finding.sentence)).collect()
    }

    fn codes(start: &HealthLog, end: HealthLog) -> Vec<Code> {
        found(start, end).into_iter().map(|(code, _)| code).collect()
    }

    fn log() -> HealthLog {
        HealthLog {
            temperature_celsius: Some(40),
            thermal_slowdowns: Some(3),
            media_errors: Some(7),
            used_percent: Some(99),
            ..HealthLog::default()
        }
    }

    #[test]
    fn a_disk_that_slowed_down_or_warns_of_its_heat_is_found() {
        let slowed = found(&log(), HealthLog { thermal_slowdowns: Some(4), ..log() });
        let sentence = "it slowed down 1 times during the run because it was too hot (40 degrees Celsius)";
        assert_eq!(slowed, [(Code::DeviceOverheated, sentence.to_string())]);
        let bare = HealthLog { is_too_hot: true, ..HealthLog::default() };
        let sentence = "it reports that it is too hot".to_string();
        assert_eq!(found(&HealthLog::default(), bare), [(Code::DeviceOverheated, sentence)]);
        let hot = HealthLog { temperature_celsius: Some(77), ..log() };
        assert_eq!(codes(&log(), hot), [], "it does not report that this is too hot");
        assert_eq!(codes(&log(), log()), [], "what it did before the run");
        assert_eq!(codes(&HealthLog::default(), log()), [], "it was not known before");
    }

    #[test]
    fn errors_during_the_run_and_a_worn_disk_are_found() {
        assert_eq!(codes(&log(), HealthLog { media_errors: Some(8), ..log() }), [Code::MediaErrors]);
        assert_eq!(codes(&log(), HealthLog { used_percent: Some(100), ..log() }), [Code::DeviceWorn]);
        for warning in [FailureWarning::Critical(4), FailureWarning::ThresholdExceeded] {
            let failing = HealthLog { failure_warning: Some(warning), ..HealthLog::default() };
            assert_eq!(codes(&log(), failing), [Code::DeviceWorn]);
        }
        assert_eq!(codes(&log(), HealthLog::default()), []);
    }

    #[test]
    fn processors_that_were_slowed_down_by_heat_are_found() {
        let found = |from: Option<u64>, to: Option<u64>, is_cooling: bool| {
            let reading = |at_s: u64, times| HostReading {
                taken_ns: at_s * 1_000_000_000,
                temperature_celsius: Some(90),
                totals: Some(HostTotals { thermal_throttles: times, ..HostTotals::default() }),
                ..HostReading::default()
            };
            let during = HostReading { is_cooling, totals: None, ..reading(1, None) };
            let host = [reading(0, from), during, reading(3, to)];
            processors(&Measurements { host: &host, ..nothing() }).map(|finding| finding.sentence)
        };
        let slowed = found(Some(3), Some(4), false).unwrap();
        assert_eq!(slowed, "processors slowed down 1 times because they were too hot");
        let cooled = found(None, None, true).unwrap();
        assert_eq!(cooled, "the kernel slowed processors down for 1 of 3 s to cool them");
        assert!(found(Some(3), Some(3), false).is_none() && found(None, Some(1), false).is_none());
    }
}
