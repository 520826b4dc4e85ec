//! `--inflate-log`: prints a compressed log as text.
//!
//! Invariant: what a damaged or cut-off log still holds is printed, and its state is reported.

use fiord_sys::errno::error_text;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;

use fiord_report::log::LogDecoder;
use fiord_report::path::shown;
use flate2::bufread::ZlibDecoder;

use crate::output::{Output, say};
use crate::status;

const PIECE_BYTES: usize = 64 << 10;

/// Prints the log at `path`.
pub(super) fn run(path: &Path, output: &mut Output) -> ExitCode {
    let mut print = |text: &str| output.write(text);
    let printed = File::open(path).and_then(|log| print_all(log, &mut print));
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("fiord: --inflate-log={}: {}\n", shown(path), error_text(&error)));
            ExitCode::from(status::FAILED)
        }
    }
}

/// Hands the lines of a compressed log, which is a row of zlib streams, to `print`.
fn print_all(log: impl Read, print: &mut dyn FnMut(&str)) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(PIECE_BYTES, log);
    let (mut decoder, mut text) = (LogDecoder::default(), String::new());
    let mut piece = vec![0; PIECE_BYTES];
    // A log for which nothing was recorded is empty.
    while !reader.fill_buf()?.is_empty() {
        let mut stream = ZlibDecoder::new(&mut reader);
        loop {
            let read = stream.read(&mut piece).map_err(|error| damage(&error))?;
            if read == 0 {
                break;
            }
            decoder.decode(&piece[..read], &mut text);
            print(&text);
            text.clear();
        }
    }
    match decoder.is_complete() {
        true => Ok(()),
        false => Err(io::Error::other("the log ends in the middle of an entry")),
    }
}

/// Why a log could not be read to its end.
fn damage(error: &io::Error) -> io::Error {
    io::Error::other(match error.kind() {
        io::ErrorKind::UnexpectedEof => "the log is cut off".to_string(),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            format!("not a compressed log, or a damaged one: {}", error_text(error))
        }
        _ => error_text(error),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    /// One entry: at 3 ms, 5, a read of 4096 bytes.
    fn entry() -> Vec<u8> {
        [3_u64, 5, 0, 4096].into_iter().flat_map(u64::to_le_bytes).collect()
    }

    fn compressed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn printed(log: &[u8]) -> (String, Option<String>) {
        let mut all = String::new();
        let result = print_all(log, &mut |text| all.push_str(text));
        (all, result.err().map(|error| error.to_string()))
    }

    #[test]
    fn all_streams_of_a_file_are_printed() {
        let log = [compressed(&entry()), compressed(&entry().repeat(2))].concat();
        assert_eq!(printed(&log), ("3, 5, 0, 4096, 0\n".repeat(3), None));
        assert_eq!(printed(&[]), (String::new(), None), "nothing was recorded");
    }

    #[test]
    fn a_damaged_log_is_reported_and_its_beginning_is_printed() {
        let (_, error) = printed(b"no zlib stream at all");
        assert!(error.unwrap().starts_with("not a compressed log"));
        let (_, error) = printed(&compressed(&entry()[..20]));
        assert_eq!(error.as_deref(), Some("the log ends in the middle of an entry"));
        let whole = compressed(&entry().repeat(10_000));
        let (text, error) = printed(&whole[..whole.len() - 8]);
        assert_eq!(error.as_deref(), Some("the log is cut off"));
        assert!(text.lines().all(|line| line == "3, 5, 0, 4096, 0"));
    }
}
