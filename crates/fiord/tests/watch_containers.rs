//! `fiord watch` of containers: made by runc, as engines have it make them, and told apart by their identifiers.
//!
//! Invariant: a container ends with its value, and its control groups with it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use fiord_testing::need;
use serde_json::{Value, json};

use crate::common::{Dir, Running, fiord, helper, root, start};
use crate::watch::{MILLISECOND, SlowDevice, codes, endless, row, sentence, stopped, until_read, watching};

/// What of this machine a container sees as its own.
const SHOWN: [&str; 6] = ["/usr", "/bin", "/lib", "/lib64", "/dev", env!("CARGO_TARGET_TMPDIR")];

/// A container that runs until it is dropped.
struct Container {
    id: String,
    bundle: PathBuf,
    state: PathBuf,
    _running: Running,
}

impl Container {
    /// One whose processes are these commands, all at once.
    fn running(dir: &Dir, number: u32, commands: &[Command]) -> Result<Container, String> {
        root()?;
        helper("runc", &["--version"])?;
        // As long as those of engines, which call the control group by it.
        let id = format!("{number:02x}{:062x}", std::process::id());
        let (bundle, state) = (dir.join(&format!("bundle-{number}")), dir.join(&format!("state-{number}")));
        fs::create_dir_all(bundle.join("root")).map_err(|error| error.to_string())?;
        let program = fiord(dir.path(), "").get_program().to_os_string();
        let program_directory = PathBuf::from(program);
        let program_directory = program_directory.parent().unwrap().to_string_lossy().into_owned();
        let places = SHOWN.iter().copied().chain([program_directory.as_str()]);
        let places = places.filter(|place| fs::metadata(place).is_ok());
        let bind = |place: &str| json!({"destination": place, "source": place, "type": "bind", "options": ["rbind"]});
        let proc = json!({"destination": "/proc", "source": "proc", "type": "proc"});
        let mounts: Vec<Value> = std::iter::once(proc).chain(places.map(bind)).collect();
        let words = |command: &Command| -> String {
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            words.map(|word| format!("'{}'", word.to_string_lossy())).collect::<Vec<_>>().join(" ") + " & "
        };
        let script: String = commands.iter().map(words).collect::<String>() + "wait";
        let document = json!({
            "ociVersion": "1.0.2",
            "process": {
                "args": ["/bin/sh", "-c", script], "cwd": dir.path(), "user": {"uid": 0, "gid": 0},
                "env": ["PATH=/usr/bin:/bin", format!("XDG_STATE_HOME={}", dir.path().display())],
                "capabilities": {"bounding": [], "effective": [], "permitted": []},
            },
            "root": {"path": "root"},
            "mounts": mounts,
            "linux": {
                "cgroupsPath": format!("/docker-{id}.scope"),
                "namespaces": [{"type": "pid"}, {"type": "mount"}],
                "resources": {"devices": [{"allow": true, "access": "rwm"}]},
            },
        });
        fs::write(bundle.join("config.json"), document.to_string()).map_err(|error| error.to_string())?;
        let mut runc = Command::new("runc");
        runc.arg("--root").arg(&state).args(["run", "--bundle"]).arg(&bundle).arg(&id);
        Ok(Container { id, bundle, state, _running: start(runc) })
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let state = self.state.to_string_lossy().into_owned();
        let _ = helper("runc", &["--root", &state, "delete", "--force", &self.id]);
        let _ = fs::remove_dir_all(&self.bundle);
    }
}

#[test]
fn a_container_is_chosen_by_its_identifier_and_its_neighbor_is_named() {
    let dir = Dir::new();
    let slow = need!(SlowDevice::answering(&dir, 16 << 20, |_| MILLISECOND));
    let device = &slow.device;
    let reads = fiord(dir.path(), &(endless(device, 1, "randread") + " --rate_iops=100"));
    let own = need!(Container::running(&dir, 1, &[reads]));
    until_read(device, 10);
    let chosen = format!("--json --container {}", &own.id[..12]);

    let running = watching(&dir, device, &chosen);
    until_read(device, 200);
    let quiet = stopped(running);
    assert_eq!(codes(&quiet), [""; 0], "{quiet:#}");
    assert_eq!(quiet["chosen"], json!(format!("container {}", &own.id[..12])), "{quiet:#}");
    let verdict = quiet["verdict"].as_str().unwrap();
    assert!(verdict.contains(&format!("Container {} had 100 % of the time", &own.id[..12])), "{verdict}");

    // Many processes, each of which has some.
    let reads = || fiord(dir.path(), &endless(device, 64, "randread"));
    let other = need!(Container::running(&dir, 2, &[(); 4].map(|()| reads())));
    until_read(device, 500);
    let running = watching(&dir, device, &chosen);
    until_read(device, 1000);
    let document = stopped(running);
    assert_eq!(codes(&document), ["neighbor"], "{document:#}");
    let said = sentence(&document, "neighbor");
    let named = format!(" in container {}, ", &other.id[..12]);
    assert!(said.contains(&format!("Others than container {} keep", &own.id[..12])), "{said}");
    assert!(said.contains(", first of all ") && said.contains(&named), "{said}");
    let group = format!("/docker-{}.scope", other.id);
    row(&document, "issuers", "cgroup", &json!(group));

    // Whom nobody chose is named as well.
    let running = watching(&dir, device, "--json");
    until_read(device, 1000);
    let document = stopped(running);
    assert_eq!(codes(&document), ["queue-full"], "{document:#}");
    let said = sentence(&document, "queue-full");
    assert!(said.contains("most of it is ") && said.contains(&named), "{said}");
}
