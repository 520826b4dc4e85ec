//! What is watched, on the whole terminal: the tables of the last second, and what stands out so far.
//!
//! Invariant: only looks; tables and sentences are those that are printed at the end. The terminal is restored whatever ends
//! the view.

use std::time::Duration;

use fiord_host::DiskCounters;
use fiord_live::{Page, draw_page};
use fiord_report::path::visible;
use fiord_report::table::Table;
use fiord_sys::tty;
use fiord_watch::{Conclusion, Observation, conclusion, tables};

use super::Watch;
use crate::layout::{duration, folded};
use crate::live::{LiveMode, Screen};

/// The tables of an observation, the devices by these columns; at most `width` columns of a terminal wide where words can be
/// broken to fit.
pub(crate) fn tables(observation: &Observation, of_devices: &[&str], width: usize) -> Vec<String> {
    let named = usize::from(observation.devices.len() == 1);
    let select = |table: Table, columns: &[&str]| table.select(columns).text(width);
    let mut tables = vec![
        select(tables::devices(observation), of_devices),
        select(tables::parties(observation), &tables::PARTIES_SHOWN[named..]),
        select(tables::issuers(observation), &tables::ISSUERS_SHOWN[named..]),
        tables::dirtiers(observation).text(width),
    ];
    tables.retain(|table| !table.is_empty());
    tables
}

/// What is said of an observation, in lines of this width: a paragraph for each sentence.
pub(crate) fn sentences(observation: &Observation, found: &[Conclusion], width: usize) -> Vec<String> {
    let mut sentences = vec![conclusion::verdict(observation, found)];
    sentences.extend(found.iter().skip(1).map(|also| format!("{} {}", also.sentence, also.remedy)));
    if observation.lost > 0 {
        sentences.push(format!("{} events were lost: the kernel had no room for them.", observation.lost));
    }
    sentences.extend(observation.lacking.iter().cloned());
    // Anyone may call a process as a terminal's sequence.
    sentences.iter().map(|sentence| folded(&visible(sentence), width, 0)).collect()
}

/// The view.
pub(crate) struct View {
    screen: Screen,
    title: String,
    /// Whether devices that nobody uses are left out, as all are watched.
    leaves_out_idle: bool,
    so_far: Option<Observation>,
    tables: Vec<String>,
}

impl View {
    /// Shows the view of these devices, or of all; `None` without a terminal for it.
    pub(crate) fn open(target: Option<String>) -> Option<View> {
        let has_terminal = tty::stdout_is_terminal() && LiveMode::of(false, true) == Ok(LiveMode::ByKey);
        (has_terminal && tty::open_keyboard().is_ok()).then(|| View {
            screen: Screen::open(),
            leaves_out_idle: target.is_none(),
            title: format!("fiord watch {}: the last second", target.as_deref().unwrap_or("all disks")),
            so_far: None,
            tables: Vec::new(),
        })
    }

    /// What was observed so far, a second after the last time.
    pub(crate) fn saw(&mut self, so_far: Observation) {
        if let Some(before) = &self.so_far {
            let mut last = so_far.since(before);
            let is_idle = |name: &str| {
                let mut devices = so_far.devices.iter();
                devices.any(|one| one.name == name && one.counters == DiskCounters::default())
            };
            if self.leaves_out_idle && last.devices.iter().any(|device| !is_idle(&device.name)) {
                last.devices.retain(|device| !is_idle(&device.name));
            }
            self.tables = tables(&last, &tables::DEVICES_LIVE, usize::MAX);
        }
        self.so_far = Some(so_far);
    }

    /// Acts on keys and draws a frame, if one is due or the terminal has another size. Returns whether to go on watching.
    pub(crate) fn look(&mut self, watch: &Watch<'_>, time: Duration, is_due: bool) -> bool {
        if tty::typed().contains(&b'q') {
            return false;
        }
        if !is_due && !self.screen.is_resized() {
            return true;
        }
        let (elapsed, left) = (watch.elapsed(), time.saturating_sub(watch.elapsed()));
        let View { screen, title, so_far, tables, .. } = self;
        screen.draw(|area, buffer| {
            let text = so_far.as_ref().map_or_else(String::new, |so_far| {
                let found = conclusion::conclusions(so_far);
                format!("SO FAR\n{}", sentences(so_far, &found, usize::from(area.width)).concat())
            });
            let page = Page {
                title: title.clone(),
                progress: format!("{}, {} left", duration(elapsed), duration(left)),
                tables: tables.clone(),
                text,
                keys: "q or Ctrl-C: end, and print what was seen",
            };
            draw_page(&page, area, buffer);
        });
        true
    }
}

impl Drop for View {
    fn drop(&mut self) {
        tty::restore();
    }
}

#[cfg(test)]
mod tests {
    use fiord_profile::tracepoints::{Completed, Operation};
    use fiord_watch::{DeviceFigures, Issuer, WatchedDevice};

    use super::*;

    #[test]
    fn names_of_processes_move_no_cursor() {
        let mut figures = DeviceFigures::default();
        (0..200).for_each(|_| {
            let request = Completed { operation: Operation::Read, sectors: 8, ..Completed::default() };
            figures.add(&Completed { issued_ns: 5, completed_ns: 5000, ..request }, 0, None);
        });
        let observation = Observation {
            elapsed_ns: 1_000_000_000,
            devices: vec![WatchedDevice { figures: Some(figures), ..WatchedDevice::default() }],
            issuers: vec![Issuer { name: "\u{1b}[2Jx".to_string(), pid: 7, ..Issuer::default() }],
            ..Observation::default()
        };
        let sentences = sentences(&observation, &[], 80).concat();
        assert!(sentences.contains("\\u{1b}[2Jx (7)") && !sentences.contains('\u{1b}'), "{sentences}");
        let tables = tables(&observation, &tables::DEVICES_LIVE, 80).concat();
        assert!(tables.contains("\\u{1b}[2Jx") && !tables.contains('\u{1b}'), "{tables}");
    }
}
