//! The picture of hosts over time: a row for each host, a column for each part of the run.
//!
//! Invariant: a cell's colour is its rate relative to the highest of any host; one path per colour, so that the size of the
//! picture is bounded. What is not known is marked as such.

use fiord_import::HostOverTime;
use fiord_stats::{Capped, OrderBy};
use fiord_svg::{Anchor, Document, Element, Path};

use crate::axis::Axis;
use crate::chart::{Frame, LABEL_GAP, cell};
use crate::figures;
use crate::heat::{SHADES, shade};

/// The most rows: names below each other can be read.
const ROWS_MAX: usize = 40;

/// The height of a row, and of what is around all.
const ROW_HEIGHT: f64 = 18.0;
const AROUND: f64 = 52.0;

/// The letters of a name that there is room for.
const LETTERS_MAX: usize = 9;

/// What hosts did over time.
#[derive(Clone, Debug)]
pub(crate) struct HostsMap<'a> {
    pub id: String,
    pub title: String,
    /// The slowest first.
    rows: Vec<&'a HostOverTime>,
    left_out: usize,
    most: f64,
    end_s: f64,
}

impl<'a> HostsMap<'a> {
    /// `None` without hosts, or if none did anything.
    pub(crate) fn new(id: String, title: String, hosts: &'a [HostOverTime]) -> Option<HostsMap<'a>> {
        let mut rows: Vec<&HostOverTime> = hosts.iter().collect();
        let sum = |host: &HostOverTime| host.iops.iter().flatten().sum::<f64>();
        rows.order_by(|one, other| sum(one).total_cmp(&sum(other)));
        let most = rows.iter().flat_map(|host| &host.iops).flatten().copied().fold(0.0, f64::max);
        let end_s = rows.iter().map(|host| host.iops.len() as f64 * host.window_s).fold(0.0, f64::max);
        let left_out = rows.len().saturating_sub(ROWS_MAX);
        rows.truncate(ROWS_MAX);
        (most > 0.0 && end_s > 0.0).then_some(HostsMap { id, title, rows, left_out, most, end_s })
    }

    pub(crate) fn description(&self) -> String {
        let more = match self.left_out {
            0 => String::new(),
            more => format!(" {more} faster hosts are left out."),
        };
        let has_gaps = self.rows.iter().any(|host| host.iops.contains(&None));
        let gaps = match has_gaps {
            true => {
                " Where a row is a line the host gave no figures: it, or fiord on it, stood still or waited for other hosts."
            }
            false => "",
        };
        format!(
            "Each row is a host, the slowest at the top, each column a part of the run on one clock; the stronger the colour, the \
             more I/Os per second, up to {}. A host without colour did none.{gaps}{more}",
            figures::count(self.most)
        )
    }

    fn x(&self) -> Axis {
        Axis::linear(0.0, self.end_s)
    }

    /// A frame of this kind with room for all rows.
    pub(crate) fn frame(&self, frame: &Frame) -> Frame {
        Frame { height: self.rows.len() as f64 * ROW_HEIGHT + AROUND, ..*frame }
    }

    /// The picture.
    pub(crate) fn draw(&self, frame: &Frame) -> String {
        let frame = &self.frame(frame);
        let id = format!("{}-{}", self.id, frame.suffix);
        let mut svg = Document::inline((frame.width, frame.height), &id, &self.title, &self.description());
        let back = (frame.right() - frame.left, frame.row(0.0) - frame.row(1.0));
        svg.add(Element::rectangle((frame.left, frame.row(1.0)), back).class("heat-back"));
        let x = self.x();
        let count = self.rows.len() as f64;
        let mut paths: Vec<Option<Path>> = vec![None; SHADES];
        let mut gaps: Option<Path> = None;
        for (row, host) in self.rows.iter().enumerate() {
            let (top, bottom) =
                (frame.row(1.0 - row as f64 / count), frame.row(1.0 - (row + 1) as f64 / count));
            for (window, rate) in host.iops.iter().enumerate() {
                let at = |window: usize| frame.column(x.share(window as f64 * host.window_s));
                let (left, right) = (at(window), at(window + 1));
                let Some(rate) = rate else {
                    let middle = f64::midpoint(top, bottom);
                    gaps = Some(gaps.take().unwrap_or_default().move_to((left, middle)).horizontal_to(right));
                    continue;
                };
                if *rate <= 0.0 {
                    continue;
                }
                let shade = shade(rate / self.most);
                let path = paths[shade].take().unwrap_or_default();
                paths[shade] = Some(cell(path, (left, top + 1.0), (right - left, bottom - top - 2.0)));
            }
        }
        for (shade, path) in paths.into_iter().enumerate() {
            if let Some(path) = path {
                svg.add(Element::path(&path).class(&format!("h{shade}")));
            }
        }
        gaps.into_iter().for_each(|gaps| svg.add(Element::path(&gaps).class("axis")));
        for (row, host) in self.rows.iter().enumerate() {
            let middle = frame.row(1.0 - (row as f64 + 0.5) / count);
            svg.add(Element::text(
                (frame.left - LABEL_GAP, middle + 4.0),
                Anchor::End,
                &shortened(&host.host),
            ));
        }
        let labels: Vec<(f64, String)> = x
            .ticks(frame.x_labels, 1000.0)
            .into_iter()
            .map(|tick| (x.share(tick), figures::seconds(tick)))
            .collect();
        frame.axes(&mut svg, &[], &labels, "Time since the first start");
        svg.finish()
    }

    /// The names of the hosts that are shown.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.rows.iter().map(|host| host.host.as_str()).collect()
    }

    /// Rows of rates: time as text and as a share of the axis, and the I/Os per second of each host.
    pub(crate) fn rows(&self) -> Vec<(String, String, Vec<String>)> {
        let (x, window_s) = (self.x(), self.rows.first().map_or(0.0, |host| host.window_s));
        let row = |window: usize| {
            let (from_s, to_s) = (window as f64 * window_s, (window + 1) as f64 * window_s);
            let cell = |host: &&HostOverTime| match host.iops.get(window).copied().unwrap_or(Some(0.0)) {
                Some(rate) => figures::grouped(u64::capped(rate)),
                None => "not known".to_string(),
            };
            let cells = self.rows.iter().map(cell).collect();
            (figures::seconds(to_s), format!("{:.4}", x.share(f64::midpoint(from_s, to_s))), cells)
        };
        (0..self.rows.iter().map(|host| host.iops.len()).max().unwrap_or(0)).map(row).collect()
    }
}

/// A name that fits beside its row: its end tells hosts apart.
fn shortened(name: &str) -> String {
    let letters = name.chars().count();
    match letters > LETTERS_MAX {
        true => "…".chars().chain(name.chars().skip(letters - LETTERS_MAX + 1)).collect(),
        false => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_host_is_at_the_top_and_a_stall_has_no_colour() {
        let host = |name: &str, iops: &[f64]| HostOverTime {
            host: name.to_string(),
            window_s: 1.0,
            iops: iops.iter().map(|rate| (*rate >= 0.0).then_some(*rate)).collect(),
        };
        let hosts = [host("fast", &[100.0, 100.0, -1.0]), host("a-very-long-name-7", &[50.0, 0.0, 0.0])];
        let map = HostsMap::new("m".to_string(), "Hosts".to_string(), &hosts).unwrap();
        assert_eq!(map.names(), ["a-very-long-name-7", "fast"]);
        let svg = map.draw(&crate::chart::BIG);
        assert!(svg.contains("…g-name-7") && svg.contains("class=\"h6\""), "{svg}");
        let cells = |shade: &str| {
            let part = svg.split('<').find(|part| part.contains(&format!("class=\"{shade}\"")));
            part.map_or(0, |part| part.matches('M').count())
        };
        assert_eq!((cells("h3"), cells("h6")), (1, 2), "{svg}");
        assert_eq!(cells("axis"), 1, "what is not known: {svg}");
        assert!(map.description().contains("gave no figures"));
        assert_eq!([&map.rows()[1].2, &map.rows()[2].2], [&["0", "100"], &["0", "not known"]]);
        assert!(HostsMap::new(String::new(), String::new(), &[host("idle", &[0.0])]).is_none());
    }
}
