//! `fiord devices` on the real machine: a directory on a disk, in memory, on loop devices; as root and as an ordinary
//! user.
//!
//! Invariant: a test gets expected values from the kernel or sets them up; nothing depends on one machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use fiord_testing::{need, skip};
use serde_json::Value;

use crate::common::study::public;
use crate::common::{Dir, LoopDevice, Mount, Ran, finish, fiord, helper, start};

const WIDTH: usize = 80;

fn devices(directory: &Dir, arguments: &str) -> Ran {
    directory.run(&format!("devices {arguments}"))
}

fn json(directory: &Dir, target: &str) -> Value {
    let ran = devices(directory, &format!("--json {target}"));
    ran.assert_success();
    ran.json()
}

/// A field of every row of a list.
fn field<'v>(document: &'v Value, list: &str, key: &str) -> Vec<&'v str> {
    document[list].as_array().unwrap().iter().map(|row| row[key].as_str().unwrap_or("-")).collect()
}

/// `depth:type` of every link of the chain.
fn shape(document: &Value) -> Vec<String> {
    let links = document["chain"].as_array().unwrap().iter();
    links.map(|link| format!("{}:{}", link["depth"], link["type"].as_str().unwrap())).collect()
}

#[track_caller]
fn assert_fits(ran: &Ran) {
    ran.assert_success();
    for line in ran.stdout.lines() {
        assert!(line.chars().count() <= WIDTH, "{} columns: {line}", line.chars().count());
    }
}

/// Whether it stays while other tests create and remove devices.
fn lasts(name: &str) -> bool {
    let place = fs::canonicalize(format!("/sys/class/block/{name}"));
    place.is_ok_and(|place| !place.starts_with("/sys/devices/virtual"))
}

#[test]
fn the_disks_are_those_the_kernel_lists() {
    let dir = Dir::new();
    let document = json(&dir, "");
    assert_eq!(document["chain"], serde_json::json!([]));
    let named: Vec<_> = field(&document, "devices", "name").into_iter().filter(|name| lasts(name)).collect();
    let entries = fs::read_dir("/sys/class/block").unwrap();
    let mut listed: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    listed.retain(|name| {
        let has = |file: &str| Path::new(&format!("/sys/class/block/{name}/{file}")).exists();
        let size = fs::read_to_string(format!("/sys/class/block/{name}/size")).unwrap_or_default();
        lasts(name) && !has("partition") && size.trim() != "0"
    });
    listed.sort();
    let mut sorted = named.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, listed);
    let shown = devices(&dir, "");
    assert_fits(&shown);
    let (csv, markdown) = (devices(&dir, "--csv"), devices(&dir, "--markdown"));
    csv.assert_success();
    markdown.assert_success();
    assert!(csv.stdout.starts_with("name,rotational,type,size_bytes,"));
    for name in named {
        assert!(shown.stdout.lines().any(|line| line.split_whitespace().next() == Some(name)), "{shown:?}");
        assert!(csv.stdout.contains(&format!("\r\n{name},")), "{csv:?}");
        assert!(markdown.stdout.contains(&format!("\n| {name} |")), "{markdown:?}");
    }
}

#[test]
fn a_chain_leads_from_a_directory_to_a_disk() {
    let dir = Dir::new();
    dir.write("data", [0u8; 5000]);
    let document = json(&dir, "data");
    assert_eq!(document["chain"][0]["name"], "data");
    assert_eq!(
        (&document["chain"][0]["type"], &document["chain"][0]["size_bytes"]),
        (&"file".into(), &5000.into())
    );
    let text =
        helper("stat", &["--file-system", "--format=%S %b %a", &dir.path().to_string_lossy()]).unwrap();
    let numbers: Vec<u64> = text.split(' ').map(|word| word.parse().unwrap()).collect();
    assert_eq!(document["file_systems"][0]["size_bytes"], numbers[0] * numbers[1]);
    assert_fits(&devices(&dir, "data"));
    assert_fits(&devices(&dir, "."));
    let disks = field(&document, "devices", "name");
    if disks.is_empty() {
        skip!("no disk below the directory of the build");
    }
    let by_name = json(&dir, disks[0]);
    assert_eq!(by_name["chain"][0]["name"], format!("/dev/{}", disks[0]));
    assert_eq!(by_name["devices"][0], document["devices"][0]);
}

#[test]
fn a_directory_in_memory_has_no_device() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=1m"));
    let document = json(&dir, "tmpfs");
    assert_eq!(shape(&document), ["0:directory", "1:tmpfs", "2:memory"]);
    assert_eq!(document["devices"], serde_json::json!([]));
    let system = &document["file_systems"][0];
    assert_eq!(system["mount_point"], mount.path.to_str().unwrap());
    assert_eq!((&system["size_bytes"], &system["available_bytes"]), (&(1 << 20).into(), &(1 << 20).into()));
    assert!(system["options"].as_str().unwrap().contains("size=1024k"));
    let shown = devices(&dir, "tmpfs");
    assert_fits(&shown);
    shown.assert_prints(&["memory"]);
}

#[test]
fn a_chain_through_a_loop_device_includes_its_file() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 32 << 20));
    let mount = need!(Mount::ext4(&dir, &device));
    mount.write("data", b"x");
    let document = json(&dir, "ext4/data");
    assert_eq!(shape(&document)[..4], ["0:file", "1:ext4", "2:loop", "3:file"]);
    let backing = dir.join("backing");
    assert_eq!(document["chain"][3]["name"], backing.to_str().unwrap());
    let ours = &document["devices"][0];
    assert_eq!(format!("/dev/{}", ours["name"].as_str().unwrap()), device.path);
    assert_eq!(
        (&ours["size_bytes"], &ours["model"]),
        (&(32 << 20).into(), &backing.to_str().unwrap().into())
    );
    assert_eq!(ours["used_by"], serde_json::json!([mount.path.to_str().unwrap()]));
    assert_fits(&devices(&dir, "ext4/data"));
    let listed = json(&dir, "");
    assert!(listed["devices"].as_array().unwrap().contains(ours), "{listed}");
    assert!(field(&listed, "file_systems", "mount_point").contains(&mount.path.to_str().unwrap()));
}

#[test]
fn a_chain_from_btrfs_leads_to_both_devices() {
    let dir = Dir::new();
    let make = |name: &str| {
        let file = fs::File::create(dir.join(name)).unwrap();
        file.set_len(128 << 20).unwrap();
        LoopDevice::over(&dir.join(name))
    };
    let (first, second) = (need!(make("first")), need!(make("second")));
    need!(helper("mkfs.btrfs", &["-q", "-f", "-d", "raid1", "-m", "raid1", &first.path, &second.path]));
    let mount = need!(Mount::new(&dir, "btrfs", &[&first.path]));
    let document = json(&dir, "btrfs");
    let links = shape(&document);
    assert_eq!(links[..2], ["0:directory", "1:btrfs"]);
    assert_eq!(links.iter().filter(|link| *link == "2:loop").count(), 2, "{links:?}");
    let point = mount.path.to_str().unwrap();
    for row in document["devices"].as_array().unwrap().iter().filter(|row| row["type"] == "loop") {
        assert_eq!(row["used_by"], serde_json::json!([point]), "the mount table names only one of them");
    }
}

#[test]
fn a_chain_from_an_overlay_leads_to_its_upper_layer() {
    let dir = Dir::new();
    for name in ["lower", "upper", "work"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    let place = |name: &str| dir.join(name).to_string_lossy().into_owned();
    let options =
        format!("lowerdir={},upperdir={},workdir={}", place("lower"), place("upper"), place("work"));
    let _mount = need!(Mount::new(&dir, "overlay", &["-t", "overlay", "-o", &options, "none"]));
    let document = json(&dir, "overlay");
    assert_eq!(shape(&document)[..3], ["0:directory", "1:overlay", "2:directory"]);
    assert_eq!(document["chain"][2]["name"], place("upper"));
    assert_eq!(document["devices"], json(&dir, "upper")["devices"]);
}

#[test]
fn an_ordinary_user_sees_the_same_as_root() {
    let (dir, binary) = need!(public(&std::env::temp_dir()));
    let device = LoopDevice::new(&dir, 1 << 20);
    let at = device.as_ref().map_or(".", |device| &device.path);
    let both = |arguments: &[&str]| {
        let run = |command: &mut Command| {
            let output = command.args(arguments).current_dir(dir.path()).output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let mut ordinary = Command::new("setpriv");
        ordinary.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary);
        (run(&mut Command::new(&binary)), run(&mut ordinary))
    };
    // Free bytes change all the time, and other tests have their own devices and mounts.
    let facts = |text: &str| {
        let mut document: Value = serde_json::from_str(text).unwrap();
        for list in ["chain", "file_systems", "devices"] {
            let rows = document[list].as_array_mut().unwrap();
            let ours =
                |row: &Value| row["name"].as_str().is_none_or(|name| lasts(name) || at.ends_with(name));
            rows.retain(|row| list != "devices" || ours(row));
            rows.retain(|row| !row["source"].as_str().unwrap_or("").starts_with("/dev/loop"));
            rows.iter_mut().for_each(|row| row["available_bytes"] = Value::Null);
        }
        document
    };
    for arguments in [&["devices", "--json"][..], &["devices", "--json", "."], &["devices", "--json", at]] {
        let (mine, theirs) = both(arguments);
        assert_eq!(facts(&mine), facts(&theirs), "{arguments:?}");
    }
    let words = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.contains("GiB") && !line.contains("MiB"));
        lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let (mine, theirs) = both(&["devices", at]);
    assert_eq!(words(&mine), words(&theirs));
}

#[test]
fn a_target_that_cannot_be_probed_is_an_error_with_a_remedy() {
    let dir = Dir::new();
    dir.write("file", b"");
    for (target, parts) in [
        ("no/such/place", ["no/such/place", "does not exist", "its directory"]),
        ("file/below", ["file/below", "Not a directory", "name a file, a directory or a block device"]),
    ] {
        let ran = devices(&dir, target);
        ran.assert_status(1).assert_prints(&parts);
        assert_eq!(ran.stdout, "");
    }
    devices(&dir, "--json --csv").assert_status(1).assert_prints(&["--json", "--csv"]);
}

#[test]
fn a_reader_that_goes_away_is_not_an_error() {
    let dir = Dir::new();
    let mut running = start(fiord(dir.path(), "devices --json"));
    drop(running.0.stdout.take());
    finish(running).assert_success();
}
