//! Names that a disk gives itself, with bytes that a terminal would act upon.
//!
//! Invariant: a name is put over that of a real disk, whose file in `/sys` is seen again when the case has ended.

#![allow(clippy::unwrap_used, reason = "what a case needs and does not get fails it")]

use std::fs;
use std::process::Command;

use fiord_guest::nvme;

use crate::guest;

/// Escape sequences that set colours and a title, a character of the second set of control characters, and markup.
const MODEL: &[u8] = b"\x1b[31mRED\x1b]0;title\x07 \xc2\x9b31m <b>\n";

/// The model of a disk.
struct Model(String);

impl Model {
    fn of(disk: &str, model: &[u8]) -> Model {
        let file = format!("/sys/block/{}/device/model", disk.trim_start_matches("/dev/"));
        fs::write("/run/model", model).unwrap();
        let mount = Command::new("mount").args(["--bind", "/run/model", &file]).status().unwrap();
        assert!(mount.success(), "{file}");
        Model(file)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// What fiord prints on both streams, and what it writes to a file.
fn printed(args: &[&str], file: Option<&str>) -> Vec<u8> {
    let fiord = std::env::var_os("FIORD").expect("FIORD names the binary");
    let ran = Command::new(fiord).args(args).current_dir("/run").env("XDG_STATE_HOME", "/run/state").output();
    let ran = ran.expect("fiord runs");
    assert!(ran.status.success(), "{args:?}: {ran:?}");
    let written = file.map(|file| fs::read(file).unwrap()).unwrap_or_default();
    [ran.stdout, ran.stderr, written].concat()
}

#[test]
fn nothing_of_a_disks_name_reaches_a_terminal_as_a_command() {
    guest!();
    let disk = nvme("plain").expect("the machine has one");
    let _model = Model::of(&disk, MODEL);
    let run = ["--name=r", "--rw=read", "--bs=64k", "--size=1m", "--direct=1", "--filename", &disk];
    let document = [&run[..], &["--output-format=json", "--output=/run/r.out"]].concat();
    for (args, file) in [
        (&["devices"][..], None),
        (&["devices", "--json"], None),
        (&["devices", &disk], None),
        (&run, None),
        (&document, Some("/run/r.out")),
        (&["report", "/run/r.out", "-o", "/run/r.html", "--force"], Some("/run/r.html")),
        (&["explain", "/run/r.out"], None),
    ] {
        let bytes = printed(args, file);
        let text = String::from_utf8(bytes).unwrap_or_else(|error| panic!("{args:?}: {error}"));
        let is_unsafe = |character: &char| character.is_control() && !"\n\t".contains(*character);
        assert_eq!(text.chars().find(is_unsafe), None, "{args:?}: {text:?}");
        assert!(args[0] != "devices" || text.contains("RED"), "{args:?}: {text}");
        let is_page = file.is_some_and(|file| file.ends_with(".html"));
        assert!(!is_page || !text.contains("<b>"), "{text}");
    }
}
