//! Container images, made by buildah without a daemon, mounts or registries.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::place::{self, VERSION, quietly};
use super::processor::{self, Processor};
use super::tree::{Tree, said};
use crate::repo;

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

/// buildah with a store of images of its own.
fn buildah(args: &[&str]) -> Command {
    let state = repo::target_dir().join("buildah");
    let mut command = Command::new("buildah");
    command.args(["--storage-driver", "vfs", "--root"]).arg(state.join("root")).arg("--runroot");
    command.arg(state.join("run")).args(args).current_dir(repo::root()).stderr(Stdio::inherit());
    command
}
