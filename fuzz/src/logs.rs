//! The targets for logs over time: any bytes as the entries of a compressed log, and as the lines of a log.
//!
//! Invariant: entries give the same lines however their bytes are cut, and every line that is printed can be read back.

use fiord_import::log;
use fiord_report::log::LogDecoder;

/// Bytes of the shortest entry.
const ENTRY_BYTES: usize = 32;

/// The lines of the bytes, which are given in two pieces, and whether they end with an entry.
fn lines(first: &[u8], second: &[u8]) -> (String, bool) {
    let (mut decoder, mut text) = (LogDecoder::default(), String::new());
    decoder.decode(first, &mut text);
    decoder.decode(second, &mut text);
    (text, decoder.is_complete())
}

/// Decodes the bytes as the entries of a compressed log, cut where the first byte says.
pub fn compressed_log(data: &[u8]) {
    let Some((cut, entries)) = data.split_first() else { return };
    let (first, second) = entries.split_at(usize::from(*cut).min(entries.len()));
    let (text, is_complete) = lines(first, second);
    assert_eq!((text.clone(), is_complete), lines(entries, &[]));
    let count = text.lines().count();
    assert!(count <= entries.len() / ENTRY_BYTES && (count > 0 || entries.is_empty() || !is_complete));
    // A damaged entry may have a direction that no log has.
    let is_direction =
        |line: &str| line.split(", ").nth(2).is_some_and(|word| matches!(word, "0" | "1" | "2"));
    if text.lines().all(is_direction) {
        assert_eq!(log::read(&text).map(|lines| lines.len()), Ok(count));
    }
}

/// Reads the bytes as the lines of a log, and its first line as the name of one.
pub fn log_lines(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let count = text.lines().filter(|line| !line.trim().is_empty()).count();
    match log::read(&text) {
        Ok(lines) => {
            assert_eq!(lines.len(), count);
            assert!(lines.iter().all(|line| line.direction < 3));
        }
        Err(why) => {
            let number = why.split(':').next().and_then(|number| number.parse::<usize>().ok());
            assert!(number.is_some_and(|number| (1..=text.lines().count()).contains(&number)), "{why}");
        }
    }
    if let Some(name) = text.lines().next().and_then(|line| log::name(line).map(|name| (line, name))) {
        assert!(name.0.starts_with(&name.1.prefix) && name.0.ends_with(".log"));
    }
}
