//! `fiord devices` on invented devices, compared with its documentation.
//!
//! Invariant: nothing here depends on the machine the tests run on.

use fiord_host::{Device, DeviceFacts};

use super::*;
use crate::layout::WIDTH;

/// The columns that a device's section leaves for the meaning of a fact, after the longest usual value.
const MEANING_WIDTH: usize = WIDTH - "hardware queues".len() - "write through".len() - 4;

fn facts(name: &str, kind: &str) -> DeviceFacts {
    let device = Device {
        name: name.to_owned(),
        kind: kind.to_owned(),
        transport: Some("virtio".to_owned()),
        size_bytes: 1 << 30,
        ..Device::default()
    };
    DeviceFacts { device, claims: Vec::new(), file_systems: Vec::new(), caches_in_memory: false, pci: None }
}

fn found(chain: &[&DeviceFacts], devices: &[&DeviceFacts]) -> Found {
    let layer = |(depth, facts): (usize, &&DeviceFacts)| Layer {
        depth,
        kind: LayerKind::Device(Box::new((*facts).clone())),
    };
    Found {
        chain: chain_table(&StorageStack { layers: chain.iter().enumerate().map(layer).collect() }),
        devices: device_table(devices.iter().copied()),
        file_systems: Table::new(FILE_SYSTEM),
    }
}

fn text(found: &Found) -> String {
    found.sections(&Style::Text(WIDTH))
}

#[test]
fn one_disk_is_explained_and_several_are_compared() {
    let (part, disk, other) = (facts("sda1", "part"), facts("sda", "disk"), facts("sdb", "disk"));
    let explained = text(&found(&[&part, &disk], &[&part, &disk]));
    assert!(explained.contains("\n\nsda: disk, virtio, 1GiB\nFACT"), "{explained}");
    assert!(explained.contains("sda1   part  1GiB  -\n  sda  disk"), "{explained}");
    let compared = text(&found(&[&part, &other], &[&part, &disk, &other]));
    assert!(!compared.contains("FACT") && compared.contains("READ-AHEAD"), "{compared}");
    let listed = text(&found(&[], &[&disk]));
    assert!(!listed.contains("FACT") && !listed.contains("READ-AHEAD"), "{listed}");
}

#[test]
fn what_a_device_lacks_is_left_out_of_its_section() {
    let disk = facts("sda", "disk");
    let shown = text(&found(&[&disk], &[&disk]));
    assert!(!shown.contains("scheduler") && shown.contains("write cache"), "{shown}");
    assert!(text(&found(&[], &[])).starts_with("no device"));
}

#[test]
fn markdown_has_a_heading_for_a_device_and_csv_a_line_for_each() {
    let (part, disk) = (facts("sda1", "part"), facts("sda", "disk"));
    let found = found(&[&part, &disk], &[&part, &disk]);
    let page = found.sections(&Style::Markdown);
    assert!(page.contains("\n### sda: disk, virtio, 1GiB\n\n| FACT |"), "{page}");
    assert_eq!(found.devices.csv().lines().count(), 3);
}

#[test]
fn every_column_is_shown_somewhere_and_every_key_is_one() {
    let keys: Vec<&str> = DEVICE.iter().map(|fact| fact.column.key).collect();
    let tables = [device_table::OVERVIEW, device_table::QUEUE, device_table::REST].concat();
    assert!(keys.iter().all(|key| tables.contains(key)), "{keys:?}");
    assert!(tables.iter().chain(device_table::HEADLINE).all(|key| keys.contains(key)), "{tables:?}");
}

#[test]
fn meanings_fit_beside_their_facts() {
    for fact in DEVICE.iter().filter(|fact| !fact.is_in_headline()) {
        assert!(fact.meaning.len() <= MEANING_WIDTH, "{}: {}", fact.column.key, fact.meaning);
    }
}

#[test]
fn the_page_explains_every_column() {
    let row = |fact: &device_table::Fact| {
        format!("| {} | `{}` | {} |\n", fact.column.title, fact.column.key, fact.meaning)
    };
    let rows: String = DEVICE.iter().map(row).collect();
    let page = include_str!("../../../../../docs/devices.md");
    assert!(page.contains(&rows), "docs/devices.md should have these rows:\n{rows}");
    let second = page.split("\n## Columns of file systems\n").nth(1).unwrap();
    let titles = second.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next()).skip(1);
    let rule = |title: &&str| *title != "---";
    let columns: Vec<&str> = FILE_SYSTEM.iter().map(|column| column.title).collect();
    assert_eq!(titles.filter(rule).collect::<Vec<_>>(), columns);
}

#[test]
fn the_schema_lists_every_key_in_order() {
    let page = include_str!("../../../../../docs/json.md");
    let section = page.split("\n## ").find(|section| section.starts_with("devices\n")).unwrap();
    let documented = |list: &str| -> Vec<String> {
        let start = format!("| `{list}[].");
        let keys = section.lines().filter_map(|line| line.strip_prefix(&start)?.split('`').next());
        keys.map(str::to_owned).collect()
    };
    let empty = found(&[], &[]);
    let lists = [("chain", &empty.chain), ("devices", &empty.devices), ("file_systems", &empty.file_systems)];
    for (list, table) in lists {
        let printed: Vec<&str> = table.columns.iter().map(|column| column.key).collect();
        assert_eq!(documented(list), printed, "docs/json.md, devices, {list}");
    }
}

#[test]
fn errors_say_what_to_do() {
    for (kind, part) in [
        (io::ErrorKind::NotFound, "its directory"),
        (io::ErrorKind::PermissionDenied, "can access"),
        (io::ErrorKind::NotADirectory, "a block device"),
    ] {
        let text = no_target(Path::new("x"), &io::Error::from(kind));
        assert!(text.starts_with("cannot examine x: ") && text.contains(part), "{text}");
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
    }
}
