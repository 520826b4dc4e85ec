//! `cargo x kube`: runs on pods, against a real API server of Kubernetes.
//!
//! Invariant: its programs are built by Go from its module proxy, once, outside the repository; nothing listens beyond loopback
//! in a network of the test's own.

use std::path::PathBuf;
use std::process::Command;

use crate::{compat, repo, stage};

const HELP: &str = "cargo x kube [--build] [NAME…]

Runs the cases of runs on pods with a real API server, controller manager, etcd and kubectl (tests/fleet/cases/cluster.rs says
what stands in for the rest). It needs root, etcd (Debian's etcd-server) and kubectl.

  --build   builds the API server and the controller manager first, in ~/.cache/fiord-kube: Go 1.26 or later, its module proxy,
            3 GB, and a quarter of an hour of processor time
";

/// In the directory of the cache. The repository of Kubernetes is a module that needs the parts of itself replaced by what they
/// are published as.
const BUILD: &str = r#"set -e
version=1.37.2
mkdir -p bin src
cd src
export GOTOOLCHAIN=local GOCACHE=$PWD/../gocache GOMODCACHE=$PWD/../mod GOFLAGS="-mod=mod -buildvcs=false"
rm -f go.mod go.sum
go mod init kube
go mod download k8s.io/kubernetes@v$version
own=$GOMODCACHE/cache/download/k8s.io/kubernetes/@v/v$version.mod
for module in $(grep -oE '^[[:space:]]+k8s.io/[a-z0-9-]+ v0.0.0( |$)' "$own" | awk '{ print $1 }' | sort -u); do
    go mod edit "-replace=$module=$module@v0${version#1}"
done
go mod edit "-require=k8s.io/kubernetes@v$version"
for program in kube-apiserver kube-controller-manager; do
    go build -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v$version" -o ../bin/$program \
        k8s.io/kubernetes/cmd/$program
done
"#;

/// `cargo x kube [--build] [NAME…]`
pub fn run(args: &[String]) -> Result<(), String> {
    let (mut is_built, mut names) = (false, Vec::new());
    for arg in args {
        match arg.as_str() {
            "--build" => is_built = true,
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            flag if flag.starts_with('-') => return Err(format!("{flag}: unknown argument\n\n{HELP}")),
            name => names.push(name),
        }
    }
    let home = std::env::var_os("HOME").ok_or("HOME names no directory")?;
    let cache = PathBuf::from(home).join(".cache/fiord-kube");
    let programs = cache.join("bin");
    if is_built {
        std::fs::create_dir_all(&cache).map_err(|error| format!("{}: {error}", cache.display()))?;
        let mut build = Command::new("sh");
        build.args(["-c", BUILD]).current_dir(&cache);
        stage::command(build)?;
    }
    if let Some(missing) =
        ["kube-apiserver", "kube-controller-manager"].into_iter().find(|name| !programs.join(name).exists())
    {
        return Err(format!(
            "{} is not there: build it by `cargo x kube --build`",
            programs.join(missing).display()
        ));
    }
    let fiord = compat::binary(false)?;
    let mut tests =
        repo::cargo(&["test", "--workspace", "--test", "fleet", "--", "--test-threads=1", "cluster::"]);
    tests.args(names).env("FIORD", fiord).env("FIORD_KUBE", programs);
    stage::command(tests)
}
