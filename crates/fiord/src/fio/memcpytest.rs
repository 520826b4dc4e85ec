//! `--memcpytest`: how fast this machine copies memory.
//!
//! Invariant: every size is copied within the same two buffers, so that figures of sizes and methods compare.

use std::hint::black_box;
use std::process::ExitCode;

use fiord_sys::clock::monotonic_ns;

use crate::output::{Output, say};

/// Sizes of a copy, in bytes, as fio has them.
const SIZES_BYTES: [usize; 11] = [8, 16, 96, 128, 256, 512, 2048, 8192, 131_072, 262_144, 524_288];
const BUFFER_BYTES: usize = 1 << 20;
/// From this size on, `hybrid` copies byte by byte.
const HYBRID_BYTES: usize = 64;
/// How long one size is measured, in nanoseconds; the last pass runs to its end.
const MEASURED_NS: u64 = 20_000_000;

/// A way to copy memory.
struct CopyMethod {
    name: &'static str,
    /// Copies the first bytes of the buffer, whose number is the last argument, to its second half.
    copy: fn(&mut [u8], usize),
}

const METHODS: [CopyMethod; 4] = [
    CopyMethod { name: "memcpy", copy: copy_whole },
    CopyMethod { name: "memmove", copy: |buffer, bytes| buffer.copy_within(..bytes, BUFFER_BYTES / 2) },
    CopyMethod { name: "simple", copy: copy_bytes },
    CopyMethod {
        name: "hybrid",
        copy: |buffer, bytes| {
            if bytes < HYBRID_BYTES { copy_whole(buffer, bytes) } else { copy_bytes(buffer, bytes) }
        },
    },
];

fn copy_whole(buffer: &mut [u8], bytes: usize) {
    let (from, to) = buffer.split_at_mut(BUFFER_BYTES / 2);
    to[..bytes].copy_from_slice(&from[..bytes]);
}

/// Byte by byte; the compiler would make a `memcpy` of a plain loop.
fn copy_bytes(buffer: &mut [u8], bytes: usize) {
    let (from, to) = buffer.split_at_mut(BUFFER_BYTES / 2);
    for (to, from) in to[..bytes].iter_mut().zip(&from[..bytes]) {
        *to = black_box(*from);
    }
}

/// Measures the methods listed in `names`, separated by commas, or all of them. An unknown name, such as `help`, prints
/// the known names.
pub(super) fn run(names: Option<&str>, output: &mut Output) -> ExitCode {
    match chosen(names) {
        Ok(methods) => {
            let mut buffer = vec![1; BUFFER_BYTES];
            for method in methods {
                output.write(&format!("{}\n", method.name));
                for bytes in SIZES_BYTES {
                    output.write(&line(bytes, speed_mib_s(method, &mut buffer, bytes)));
                }
            }
            ExitCode::SUCCESS
        }
        Err(unknown) => {
            if unknown != "help" {
                say(&format!("fiord: unknown method of copying `{unknown}`. Available:\n"));
            }
            output.write(&METHODS.map(|method| format!("{}\n", method.name)).concat());
            ExitCode::from(1)
        }
    }
}

fn chosen(names: Option<&str>) -> Result<Vec<&'static CopyMethod>, &str> {
    let named = |name| METHODS.iter().find(|method| method.name == name).ok_or(name);
    names.map_or_else(|| Ok(METHODS.iter().collect()), |names| names.split(',').map(named).collect())
}

fn speed_mib_s(method: &CopyMethod, buffer: &mut [u8], bytes: usize) -> f64 {
    let copies = (BUFFER_BYTES / 2 / bytes).max(1);
    // Warms up code and caches.
    (method.copy)(buffer, bytes);
    let start_ns = monotonic_ns();
    let mut copied = 0;
    loop {
        for _ in 0..copies {
            (method.copy)(black_box(&mut *buffer), bytes);
        }
        copied += copies * bytes;
        let taken_ns = monotonic_ns() - start_ns;
        if taken_ns >= MEASURED_NS {
            return copied as f64 / f64::from(1 << 20) / (taken_ns as f64 / 1e9);
        }
    }
}

/// A line in fio's columns.
fn line(bytes: usize, speed_mib_s: f64) -> String {
    format!("\t{bytes} bytes:\t{speed_mib_s:8.2} MiB/sec\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_copies_all_bytes_and_no_more() {
        for method in &METHODS {
            for bytes in SIZES_BYTES {
                let mut buffer = vec![0; BUFFER_BYTES];
                buffer[..BUFFER_BYTES / 2].fill(7);
                (method.copy)(&mut buffer, bytes);
                let copied = buffer[BUFFER_BYTES / 2..].iter().take_while(|byte| **byte == 7).count();
                assert_eq!(copied, bytes, "{}", method.name);
            }
        }
    }

    #[test]
    fn methods_are_chosen_by_name_in_order() {
        let names =
            |names| chosen(names).map(|chosen| chosen.iter().map(|method| method.name).collect::<Vec<_>>());
        assert_eq!(names(Some("simple,memcpy")), Ok(vec!["simple", "memcpy"]));
        assert_eq!(names(None), Ok(vec!["memcpy", "memmove", "simple", "hybrid"]));
        assert_eq!(names(Some("memcpy,help")), Err("help"));
    }

    #[test]
    fn lines_are_as_in_fio() {
        assert_eq!(line(8, 532.111), "\t8 bytes:\t  532.11 MiB/sec\n");
        assert_eq!(line(524_288, 1614.49), "\t524288 bytes:\t 1614.49 MiB/sec\n");
    }
}
