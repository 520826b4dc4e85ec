//! Container images, made by buildah without a daemon, mounts or registries, and started by podman.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::chroot;
use super::place::{self, VERSION, quietly};
use super::processor::{self, Processor};
use super::tree::{Tree, said};
use crate::{packages, repo};

/// A profile of the volume in which a container starts.
const PROFILE: [&str; 6] = ["quick", "--time", "10s", "--json", "--trust=off", "."];

/// The image for one processor, with the binary and its licences alone.
pub fn make(tree: &Tree) -> Result<PathBuf, String> {
    let path = path_of(tree.processor)?;
    let container = repo::output_of(buildah(&["from", "--arch", tree.processor.debian, "scratch"]))?;
    let container = container.trim();
    let made = fill(container, tree, &path);
    let removed = quietly(buildah(&["rm", container]));
    made.and(removed).map(|()| path)
}

fn fill(container: &str, tree: &Tree, path: &Path) -> Result<(), String> {
    let binary = tree.binary.to_string_lossy();
    quietly(buildah(&["copy", "--quiet", container, &binary, "/usr/bin/fiord"]))?;
    let licences = ["LICENSE-APACHE", "LICENSE-MIT"];
    quietly(buildah(&[&["copy", "--quiet", container][..], &licences, &["/usr/share/doc/fiord/"]].concat()))?;
    let labels = [
        "org.opencontainers.image.title=fiord",
        "org.opencontainers.image.licenses=MIT OR Apache-2.0",
        &format!("org.opencontainers.image.version={VERSION}"),
    ];
    let mut config =
        vec!["config", "--entrypoint", "[\"/usr/bin/fiord\"]", "--cmd", "help", "--workingdir", "/data"];
    config.extend(["--env", "PATH=/usr/bin", "--env", "XDG_STATE_HOME=/data/.fiord"]);
    config.extend(labels.iter().flat_map(|label| ["--label", label]));
    config.push(container);
    quietly(buildah(&config))?;
    quietly(buildah(&["commit", "--quiet", container, &destination(path)?]))
}

/// Why no container can be made here, or started.
pub fn is_possible() -> Result<(), String> {
    packages::have_programs(&["buildah", "podman", "runc"].map(|program| (program, program)))
}

/// The image in podman, as the documentation has it: it profiles a volume, with the calls that podman's own filter permits.
pub fn check(image: &Path) -> Result<(), String> {
    let volume = repo::target_dir().join("podman/volume");
    fs::create_dir_all(&volume).map_err(|error| said(&volume, &error))?;
    let mut load = with_store("podman", &["load", "--quiet", "--input"]);
    load.arg(image);
    quietly(load)?;
    let mount = format!("{}:/data", volume.display());
    let image = format!("fiord:{VERSION}");
    // crun refuses this machine's mixture of control groups, and podman's own limits are more than may be set everywhere.
    let start =
        ["--runtime=runc", "run", "--rm", "--network=none", "--ulimit=nofile=1024", "--ulimit=nproc=1024"];
    let run = [&start[..], &["--volume", &mount, &image]].concat();
    let fiord = |words: &[&str]| with_store("podman", &[&run[..], words].concat());
    chroot::study(fiord(&PROFILE))?;
    let engines = chroot::json(fiord(&["engines", "--json"]))?;
    let refused = |engine: &&serde_json::Value| engine["name"] == "io_uring" && engine["works"] == false;
    match engines["engines"].as_array().is_some_and(|engines| engines.iter().any(|engine| refused(&engine))) {
        true => Ok(()),
        false => Err(format!("podman permits io_uring, which docs/install.md denies: {engines}")),
    }
}

/// One image for the processors whose images are there, of which a container takes that of its machine.
pub fn write_index(directory: &Path) -> Result<(), String> {
    let path = directory.join(format!("fiord-{VERSION}-image.tar"));
    let list = repo::output_of(buildah(&["manifest", "create", "fiord-index"]))?;
    let list = list.trim();
    let made = processor::ALL.iter().try_for_each(|processor| {
        let image = path_of(processor)?;
        let name = processor.name;
        if !image.exists() {
            return Err(format!("--index: needs the image for {name}: cargo x dist --for {name} image"));
        }
        quietly(buildah(&["manifest", "add", list, &format!("oci-archive:{}", image.display())]))
    });
    let pushed = made.and_then(|()| destination(&path)).and_then(|destination| {
        quietly(buildah(&["manifest", "push", "--quiet", "--all", list, &destination]))
    });
    let removed = quietly(buildah(&["manifest", "rm", list]));
    pushed.and(removed)?;
    place::write_sums(&[path])
}

fn path_of(processor: &Processor) -> Result<PathBuf, String> {
    Ok(place::directory()?.join(format!("fiord-{VERSION}-{}-image.tar", processor.name)))
}

/// What buildah writes to for a file, which is not there any more.
fn destination(path: &Path) -> Result<String, String> {
    if path.exists() {
        fs::remove_file(path).map_err(|error| said(path, &error))?;
    }
    Ok(format!("oci-archive:{}:fiord:{VERSION}", path.display()))
}

fn buildah(args: &[&str]) -> Command {
    with_store("buildah", args)
}

/// buildah or podman with a store of images of its own.
fn with_store(program: &str, args: &[&str]) -> Command {
    let state = repo::target_dir().join(program);
    let mut command = Command::new(program);
    command.args(["--storage-driver", "vfs", "--root"]).arg(state.join("root")).arg("--runroot");
    command.arg(state.join("run")).args(args).current_dir(repo::root()).stderr(Stdio::inherit());
    command
}
