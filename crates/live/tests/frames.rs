//! The view on screens of several sizes, as characters.
//!
//! Invariant: figures of the model are where a user looks for them, and nothing leaves the screen.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

use fiord_live::{Cpu, DeviceRow, DirectionRow, HeatMap, JobRow, Model, Page, draw, draw_page};
use fiord_report::Severity;
use fiord_stats::Histogram;
use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Color;
use ratatui_core::terminal::Terminal;

/// A minute of a device that is slower each tenth second.
fn heat() -> HeatMap {
    let mut map = HeatMap::default();
    for second in 0..60_u64 {
        let mut histogram = Histogram::allocated();
        for io in 0..1000_u64 {
            let slow = if second % 10 == 9 && io % 20 == 0 { 40 } else { 1 };
            histogram.record((80_000 + io * 60) * slow);
        }
        map.add(&histogram);
    }
    map
}

fn model() -> Model {
    let job = |name: &str, state: &'static str| JobRow {
        name: name.to_string(),
        state: state.into(),
        iops: 10_500.0,
        bytes_per_s: 43_008_000.0,
        p99_ns: Some(383_000),
        done: Some(0.4),
    };
    let jobs = [job("oltp", "running"), job("log", "ramp"), job("backup", "waiting"), job("scan", "ended")];
    Model {
        title: "fiord oltp and 3 more".to_string(),
        progress: "12 s, 18 s left".to_string(),
        directions: vec![
            DirectionRow {
                name: "read",
                iops: 84_173.0,
                bytes_per_s: 344_772_608.0,
                mean_ns: Some(314_000),
                percentiles_ns: Some([293_000, 383_000, 4_230_000, 9_100_000]),
            },
            DirectionRow { name: "write", iops: 996.0, bytes_per_s: 4_079_616.0, ..DirectionRow::default() },
        ],
        heat: heat(),
        jobs: jobs.to_vec(),
        devices: vec![DeviceRow {
            name: "nvme0n1".to_string(),
            ios_per_s: [84_173.0, 996.0],
            bytes_per_s: [344_772_608.0, 4_079_616.0],
            await_ms: [0.31, 0.05],
            queue_length: 26.4,
            util_percent: 99.7,
        }],
        cpu: Some(Cpu {
            count: 2,
            user: 10.1,
            system: 20.2,
            io_wait: 1.0,
            steal: 0.0,
            idle: 68.7,
            own: 31.0,
        }),
        findings: vec![(Severity::Caution, "caution busy-device: another process uses nvme0n1".to_string())],
        are_hosts: false,
        is_coloured: false,
    }
}

/// The lines of the model on a screen, and whether any cell has a colour.
fn lines(model: &Model, columns: u16, rows: u16) -> (Vec<String>, bool) {
    drawn(columns, rows, |area, buffer| draw(model, area, buffer))
}

fn lines_of_page(page: &Page, columns: u16, rows: u16) -> Vec<String> {
    drawn(columns, rows, |area, buffer| draw_page(page, area, buffer)).0
}

fn drawn(columns: u16, rows: u16, draw: impl FnOnce(Rect, &mut Buffer)) -> (Vec<String>, bool) {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(frame.area(), frame.buffer_mut())).unwrap();
    let buffer = terminal.backend().buffer();
    let is_coloured = buffer.content.iter().any(|cell| cell.fg != Color::Reset);
    let lines = buffer.content.chunks(usize::from(columns).max(1));
    let text = |line: &[ratatui_core::buffer::Cell]| -> String {
        line.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_string()
    };
    (lines.map(text).collect(), is_coloured)
}

/// Compares with a file; `BLESS=1` writes it.
fn assert_shows(name: &str, lines: &[String]) {
    let path = format!("{}/tests/frames/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = lines.join("\n") + "\n";
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(text == expected, "{name} is now\n{text}\ninstead of\n{expected}");
}

#[test]
fn a_terminal_of_24_lines() {
    let (lines, is_coloured) = lines(&model(), 80, 24);
    assert_shows("80x24", &lines);
    assert!(!is_coloured, "without colours the shades are characters");
}

#[test]
fn hosts_stand_where_jobs_do() {
    let row = |name: &str, state: &'static str, iops| JobRow {
        name: name.to_string(),
        state: state.into(),
        iops,
        p99_ns: Some(383_000),
        done: Some(0.4),
        ..JobRow::default()
    };
    let jobs =
        vec![row("db7", "silent 12s", 0.0), row("db3", "running", 800.0), row("db1", "running", 9_000.0)];
    let title = "fiord oltp on 3 hosts".to_string();
    let hosts = Model { title, jobs, are_hosts: true, devices: Vec::new(), cpu: None, ..model() };
    assert_shows("hosts-80x24", &lines(&hosts, 80, 24).0);
}

#[test]
fn a_terminal_of_40_lines() {
    assert_shows("120x40", &lines(&model(), 120, 40).0);
}

#[test]
fn colours_change_no_character() {
    let coloured = Model { is_coloured: true, ..model() };
    let (with, is_coloured) = lines(&coloured, 80, 24);
    assert!(is_coloured);
    assert_eq!(with, lines(&model(), 80, 24).0);
}

#[test]
fn a_finding_that_does_not_fit_ends_visibly() {
    let findings = |words: usize| {
        let sentence = "void cpu-contended: ".to_string() + &"programs ".repeat(words);
        let model = Model { findings: vec![(Severity::Void, sentence.trim_end().to_string())], ..model() };
        lines(&model, 80, 24).0.into_iter().find(|line| line.starts_with("void")).unwrap()
    };
    assert!(findings(6).ends_with("programs"), "{}", findings(6));
    let cut = findings(20);
    assert!(cut.ends_with('…') && cut.chars().count() <= 80, "{cut}");
}

#[test]
fn the_first_second_says_what_is_missing() {
    assert_shows("empty", &lines(&Model::default(), 80, 24).0);
}

#[test]
fn any_size_is_drawn() {
    for columns in [1, 8, 9, 10, 40, 79, 500] {
        for rows in 0..60 {
            assert_eq!(lines(&model(), columns, rows).0.len(), usize::from(rows));
        }
    }
}

/// Devices, and who had requests made, as they are printed.
fn page() -> Page {
    let devices = "DEVICE  OP      IOPS  MiB/s  DEPTH  QUEUE P50   QUEUE    P50     P99\n\
                   vda     read   14807  970.3  12.19     2.03ms  6.78ms  782us  1.17ms\n\
                   vda     write     23   10.4   0.02     1.01ms  14.6ms  807us  1.94ms\n";
    let rows = (1..=7).map(|number| format!("job{number}   4{number}11   2111  138.6      14  /\n"));
    let text = "SO FAR\n\
                vda is full: 12.2 requests at the device\n\
                and 41.1 waiting in the queue on average;\n\
                most of it is fio (29505), 100 % of the\n\
                device's time. Have it do less, limit it\n\
                (io.max, ionice), or spread it over more\n\
                devices.\n";
    Page {
        title: "fiord watch vda: the last second".to_string(),
        progress: "12 s, 48 s left".to_string(),
        tables: vec![
            devices.to_string(),
            "WHO     PID   IOPS  MiB/s  TIME %  CGROUP\n".to_string() + &rows.collect::<String>(),
        ],
        text: text.to_string(),
        keys: "q or Ctrl-C: end, and print what was seen",
    }
}

#[test]
fn tables_are_apart_where_there_is_room() {
    assert_shows("watch-80x24", &lines_of_page(&page(), 80, 24));
}

#[test]
fn a_small_terminal_has_the_beginning_of_each_part_and_says_that_more_follows() {
    assert_shows("watch-50x14", &lines_of_page(&page(), 50, 14));
}

#[test]
fn a_page_is_drawn_at_any_size() {
    for columns in [1, 8, 40, 79, 500] {
        for rows in 0..60 {
            let lines = lines_of_page(&page(), columns, rows);
            assert_eq!(lines.len(), usize::from(rows));
            // The keys stay.
            assert!(lines.last().is_none_or(|last| rows < 2 || page().keys.starts_with(last)), "{lines:?}");
        }
    }
}
