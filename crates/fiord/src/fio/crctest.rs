//! `--crctest`: how fast this machine computes each checksum.
//!
//! Invariant: measures the code that verification uses, on blocks of a common size.

use std::hint::black_box;
use std::process::ExitCode;

use fiord_checksum::Checksum;
use fiord_stats::Capped;
use fiord_sys::clock::monotonic_ns;

use crate::output::{Output, say};

const BLOCK_BYTES: usize = 128 << 10;
/// How long one checksum is measured, in nanoseconds; the last block runs to its end.
const MEASURED_NS: u64 = 250_000_000;

/// Measures the checksums listed in `names`, separated by commas, or all of them. An unknown name, such as `help`,
/// prints the known names.
pub(super) fn run(names: Option<&str>, output: &mut Output) -> ExitCode {
    match chosen(names) {
        Ok(checksums) => {
            let block: Vec<u8> = (0..BLOCK_BYTES).map(|index| u8::capped(index % 251)).collect();
            for checksum in checksums {
                output.write(&line(checksum.name(), speed_mib_s(checksum, &block)));
            }
            ExitCode::SUCCESS
        }
        Err(unknown) => {
            say(&format!("fiord: unknown checksum `{unknown}`. Available:\n"));
            let names = Checksum::ALL.map(|checksum| format!("{}\n", checksum.name()));
            output.write(&names.concat());
            ExitCode::from(1)
        }
    }
}

fn chosen(names: Option<&str>) -> Result<Vec<Checksum>, &str> {
    match names {
        None => Ok(Checksum::ALL.to_vec()),
        Some(names) => names.split(',').map(|name| Checksum::named(name).ok_or(name)).collect(),
    }
}

fn speed_mib_s(checksum: Checksum, block: &[u8]) -> f64 {
    // Warms up tables and code.
    black_box(checksum.of(block));
    let start_ns = monotonic_ns();
    let mut bytes = 0;
    loop {
        black_box(checksum.of(black_box(block)));
        bytes += block.len();
        let taken_ns = monotonic_ns() - start_ns;
        if taken_ns >= MEASURED_NS {
            return bytes as f64 / f64::from(1 << 20) / (taken_ns as f64 / 1e9);
        }
    }
}

/// fio's columns: one tab, or two after a short name.
fn line(name: &str, speed_mib_s: f64) -> String {
    let tabs = if name.len() < 7 { "\t\t" } else { "\t" };
    format!("{name}:{tabs}{speed_mib_s:8.2} MiB/sec\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_order() {
        assert_eq!(chosen(Some("sha1,md5")), Ok(vec![Checksum::Sha1, Checksum::Md5]));
        assert_eq!(chosen(None).map(|all| all.len()), Ok(Checksum::ALL.len()));
        assert_eq!(chosen(Some("md5,help")), Err("help"));
        assert_eq!(chosen(Some("md5,")), Err(""));
    }

    #[test]
    fn speeds_are_aligned() {
        assert_eq!(line("md5", 311.054), "md5:\t\t  311.05 MiB/sec\n");
        assert_eq!(line("sha3-224", 41.37), "sha3-224:\t   41.37 MiB/sec\n");
    }
}
