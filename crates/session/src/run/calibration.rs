//! The calibration of fiord's own cost, kept in a file as long as the machine, its kernel and this program stay the same.
//!
//! Invariant: a file that is damaged, or of another machine, kernel or program, counts as none; a file that cannot be
//! written is no error, since the figures are as good without it.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fiord_findings::OwnCost;
use fiord_host::Machine;
use fiord_report::path::shown;
use fiord_sys::errno::error_text;
use fiord_sys::sysfs::Sysfs;
use fiord_worker::TargetOpener;

use super::self_cost;

/// The name of the file beside the history.
pub const FILE: &str = "calibration";

/// The first and the last line of the file.
const FIRST: &str = "fiord calibration 1";
const LAST: &str = "end";

/// What the figures depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The machine's id, else its name.
    pub machine: String,
    /// The model of its processors, if the kernel names one.
    pub cpu_model: String,
    /// The kernel's release.
    pub kernel: String,
    /// What decides the processors' frequency, if anything does.
    pub governor: String,
    /// The version of fiord, and the length and the time of its file: a build without optimisation costs ten times as much.
    pub fiord: String,
}

impl Key {
    /// Of this program on this machine.
    pub(crate) fn of(machine: &Machine) -> Key {
        let id = std::fs::read_to_string("/etc/machine-id").ok().filter(|id| !id.trim().is_empty());
        let cpu = machine.cpus_allowed.first().copied().unwrap_or_default();
        let program = std::fs::metadata("/proc/self/exe");
        let build = program.map_or(String::new(), |file| format!(" {}-{}", file.len(), file.mtime()));
        let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        Key {
            machine: line(&id.unwrap_or_else(|| machine.hostname.clone())),
            cpu_model: line(machine.cpu_model.as_deref().unwrap_or(machine.architecture)),
            kernel: line(&machine.kernel_release),
            governor: Sysfs::default()
                .frequency(cpu)
                .map_or_else(|| "none".to_string(), |of| line(&of.governor)),
            fiord: format!("{}{build}", env!("CARGO_PKG_VERSION")),
        }
    }

    /// Each part by its name.
    pub fn parts(&self) -> [(&'static str, &str); 5] {
        let Key { machine, cpu_model, kernel, governor, fiord } = self;
        [
            ("machine", machine),
            ("cpu_model", cpu_model),
            ("kernel", kernel),
            ("governor", governor),
            ("fiord", fiord),
        ]
    }

    /// The file of these figures.
    fn text(&self, cost: &OwnCost) -> String {
        let parts = self.parts().map(|(name, value)| format!("{name} {value}"));
        let figures = cost.figures().into_iter().map(|(name, ns)| format!("{name} {ns}"));
        let lines = std::iter::once(FIRST.to_string()).chain(parts).chain(figures);
        lines.chain([LAST.to_string()]).map(|line| line + "\n").collect()
    }

    /// The figures in a file, if it is whole and of this key.
    fn figures(&self, text: &str) -> Option<OwnCost> {
        let mut lines = text.strip_suffix(&format!("{LAST}\n"))?.lines();
        let is_ours = lines.next() == Some(FIRST)
            && self
                .parts()
                .iter()
                .all(|(name, value)| lines.next() == Some(format!("{name} {value}").as_str()));
        let figure = |line: &str| {
            let (name, ns) = line.split_once(' ')?;
            Some((name.to_string(), ns.parse().ok()?))
        };
        OwnCost::from_figures(&lines.map(figure).collect::<Option<Vec<_>>>().filter(|_| is_ours)?)
    }
}

/// A calibration, and where it is kept.
#[derive(Debug)]
pub struct Calibration {
    /// What it depends on.
    pub key: Key,
    /// The figures.
    pub cost: OwnCost,
    /// Whether it was measured just now, and not earlier.
    pub is_new: bool,
    /// Its file; `None` if it is not kept.
    pub file: Option<PathBuf>,
}

/// The calibration for this machine: the one that is kept, or a new one, which is kept from then on if `keeps`. With
/// `again`, it is always measured.
///
/// # Errors
/// Why it cannot be measured.
pub fn get(keeps: bool, again: bool) -> Result<Calibration, String> {
    let machine = super::environment::machine()?;
    let key = Key::of(&machine);
    let file = fiord_store::state_path(|name| std::env::var_os(name), FILE);
    let kept =
        file.as_deref().filter(|_| !again).and_then(|file| key.figures(&std::fs::read_to_string(file).ok()?));
    if let Some(cost) = kept {
        return Ok(Calibration { key, cost, is_new: false, file });
    }
    let cost = self_cost::calibrate(&machine)?;
    let file = file.filter(|file| keeps && keep(file, &key.text(&cost)).is_ok());
    Ok(Calibration { key, cost, is_new: true, file })
}

/// Writes the file.
fn keep(file: &Path, text: &str) -> Result<(), String> {
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory)
            .map_err(|error| format!("{}: {}", shown(directory), error_text(&error)))?;
    }
    let mut open = TargetOpener::default().create(file, false).map_err(|failure| failure.to_string())?;
    open.write_all(text.as_bytes()).map_err(|error| format!("{}: {}", shown(file), error_text(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        let of = |text: &str| text.to_string();
        Key {
            machine: of("7f"),
            cpu_model: of("AMD EPYC 9"),
            kernel: of("6.1"),
            governor: of("none"),
            fiord: of("0.1.0 5-6"),
        }
    }

    #[test]
    fn figures_are_of_one_machine_kernel_and_program() {
        let cost = OwnCost {
            sync_ns: 12.25,
            verify_ns_per_kib: vec![("crc32c".to_string(), 61.5)],
            ..OwnCost::default()
        };
        let text = key().text(&cost);
        assert_eq!(key().figures(&text), Some(cost));
        for other in [
            Key { machine: "8".to_string(), ..key() },
            Key { cpu_model: "AMD".to_string(), ..key() },
            Key { kernel: "6.2".to_string(), ..key() },
            Key { governor: "powersave".to_string(), ..key() },
            Key { fiord: "0.1.0 5-7".to_string(), ..key() },
        ] {
            assert_eq!(other.figures(&text), None, "{other:?}");
        }
    }

    #[test]
    fn a_damaged_file_counts_as_none() {
        let text = key().text(&OwnCost::default());
        for length in 0..text.len() {
            assert_eq!(key().figures(&text[..length]), None, "{length}");
        }
        assert_eq!(key().figures(&text.replace("sync_ns 0", "sync_ns x")), None);
        assert_eq!(key().figures(&text.replace("sync_ns 0", "sync_ns -5")), None);
        assert_eq!(key().figures(&text.replace(FIRST, "fiord calibration 2")), None);
    }
}
