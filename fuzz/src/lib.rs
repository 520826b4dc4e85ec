//! The fuzz targets: each a function over arbitrary bytes that panics if a property is violated.
//!
//! Invariant: every target is in `TARGETS`, and also runs in an ordinary test, so that machines without libFuzzer
//! exercise all of them.

#![allow(clippy::panic, clippy::print_stdout, reason = "a target panics, and the program lists its targets")]

use std::sync::OnceLock;

pub mod checks;
pub mod grammar;
pub mod health;
pub mod history;
pub mod hosts;
pub mod logs;
pub mod network;
pub mod plan;
pub mod profile;
pub mod report;
pub mod trace;
pub mod values;
pub mod verify;

/// A target.
pub type Target = fn(&[u8]);

macro_rules! targets {
    ($($module:ident: $($name:ident)+;)+) => {
        /// Every target by name.
        pub const TARGETS: &[(&str, Target)] = &[$($((stringify!($name), $module::$name)),+),+];
    };
}

targets! {
    grammar: job_file command_line expansion option_value profile_jobs resolve;
    checks: check_file config_file;
    plan: build_plan;
    trace: trace merged_trace;
    history: stored_report;
    report: report;
    profile: kernel_profile;
    logs: compressed_log log_lines;
    network: http_response nbd_server address;
    verify: verify_block verify_state;
    hosts: hosts_file wire_frames wire_messages;
    health: health_nvme health_ata health_scsi power_ipmi power_nvme;
    values: value_choice value_number_set value_direction value_errors value_file_service value_floats value_memory
        value_mode value_number value_output value_pattern value_size value_split value_text value_time;
}

/// The variable that names the target of the fuzz binary.
pub const CHOICE: &str = "FIORD_FUZZ_TARGET";

/// The target that the variable names. Without it all names are printed, and nothing is tried; with a wrong one it fails.
pub fn chosen() -> Target {
    static CHOSEN: OnceLock<Target> = OnceLock::new();
    *CHOSEN.get_or_init(|| {
        let Some(chosen) = std::env::var_os(CHOICE) else {
            TARGETS.iter().for_each(|(name, _)| println!("{name}"));
            // The fuzzer takes a program that ends in a target for one that has failed.
            return |_| ();
        };
        let found = TARGETS.iter().find(|(name, _)| chosen == *name);
        found.unwrap_or_else(|| panic!("{CHOICE}: no target is named {chosen:?}")).1
    })
}

/// Text from bytes, where two bytes (the first from 0x80 on) represent an option's name. Any text can be written
/// that way, and a fuzzer that changes a byte gets another option instead of an unknown name.
pub fn spelled_out(bytes: &[u8]) -> String {
    let names: Vec<&str> = every_option().map(|spec| spec.name).collect();
    let mut text = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if first.is_ascii() {
            text.push(*first);
        } else {
            let (second, after) = rest.split_first().map_or((0, rest), |(second, after)| (*second, after));
            rest = after;
            let index = (usize::from(*first) & 0x7f) << 8 | usize::from(second);
            text.extend_from_slice(names[index % names.len()].as_bytes());
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Every declaration of the table.
pub fn every_option() -> impl Iterator<Item = &'static fiord_options::Spec> {
    use fiord_options::table;
    table::job_specs().chain(table::program_specs()).chain(table::engine_specs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_stats::Random;
    use std::path::{Path, PathBuf};

    /// Parts of inputs, in addition to single bytes.
    const WORDS: &[&str] = &[
        "[global]\n",
        "[a]\n",
        "\n",
        "=",
        ",",
        ":",
        "-",
        "%",
        "/",
        "(",
        ")",
        " ",
        "\0",
        "\"",
        "'",
        "0x",
        "${V}",
        "${",
        "}",
        "$ncpus",
        "$pagesize*",
        "include j.fio\n",
        "include x\n",
        "--",
        "--name=a\n",
        "j.fio\n",
        "--rw",
        "rw=",
        "randrw",
        "write",
        "read",
        "bs=",
        "4k",
        "1m",
        "512",
        "size=",
        "filename=",
        "numjobs=",
        "ioengine=",
        "io_uring",
        "libaio",
        "null",
        "bssplit=",
        "4k/50",
        "18446744073709551615",
        "9223372036854775808",
        "4294967296",
        "-1",
        "0",
        "1",
        "100%",
        "z",
        "1.5",
        "1e308",
        "nan",
        "inf",
        "zipf:1.2",
        "normal:50",
        "1-3",
        "0,2",
        "us",
        "ms",
        "10s",
        "1d",
        "kib",
        "0xdead",
        "%o",
        "ä",
        "random",
        "sequential",
        "roundrobin:8",
        "gauss",
        "mmap:",
        "write:",
        "bind:",
        "ENOENT",
        "EIO,ENOSPC:5",
    ];

    /// Rounds each target runs in the ordinary test.
    const ROUNDS: usize = 300;

    fn seeds(target: &str) -> Vec<Vec<u8>> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
        let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
    }

    /// An input: pieces of a seed, words, bytes.
    fn input(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = match seeds.len() {
            0 => vec![random.next_u64() as u8],
            count => seeds[random.below(count as u64) as usize].clone(),
        };
        for _ in 0..random.below(20) {
            let at = random.below(bytes.len() as u64 + 1) as usize;
            match random.below(4) {
                0 => bytes.insert(at, random.next_u64() as u8),
                1 if at < bytes.len() => {
                    bytes.remove(at);
                }
                2 if at < bytes.len() => bytes[at] = random.next_u64() as u8,
                _ => {
                    let word = WORDS[random.below(WORDS.len() as u64) as usize];
                    bytes.splice(at..at, word.bytes());
                }
            }
        }
        bytes
    }

    /// The first input on which a target panics, if any.
    fn first_fall(name: &str, target: Target) -> Option<String> {
        let seeds = seeds(name);
        let mut random = Random::new(7);
        let thrown = (0..ROUNDS).map(|_| input(&mut random, &seeds));
        let mut inputs = seeds.iter().cloned().chain([Vec::new()]).chain(thrown);
        inputs.find(|bytes| std::panic::catch_unwind(|| target(bytes)).is_err()).map(|bytes| {
            let text: String =
                bytes.iter().flat_map(|byte| std::ascii::escape_default(*byte)).map(char::from).collect();
            format!("{name}: b\"{text}\"")
        })
    }

    #[test]
    fn no_target_panics() {
        let falls: Vec<String> =
            TARGETS.iter().filter_map(|(name, target)| first_fall(name, *target)).collect();
        assert!(falls.is_empty(), "panics, each printed above:\n{}", falls.join("\n"));
    }

    #[test]
    fn text_can_be_spelled_and_options_have_their_bytes() {
        assert_eq!(spelled_out(b"[a]\nbs=4k"), "[a]\nbs=4k");
        let first = every_option().next().unwrap().name;
        assert_eq!(spelled_out(b"x\x80\x00=1"), format!("x{first}=1"));
        assert_eq!(spelled_out(b"\xff"), spelled_out(b"\xff\x00"));
    }
}
