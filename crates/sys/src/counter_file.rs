//! A file of `/proc` or `/sys` whose text changes, kept open to be read repeatedly.
//!
//! Invariant: a reading opens nothing, and allocates only if the text has become longer than ever before.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Room for the text of most files.
const BYTES_MIN: usize = 1024;

/// The file, and what makes a value of its text.
#[derive(Debug)]
pub struct CounterFile<T> {
    file: File,
    text: Vec<u8>,
    parse: fn(&str) -> Option<T>,
}

impl<T> CounterFile<T> {
    /// Opens a file whose text has a value now; `None` if it cannot be read or has none.
    pub fn open(path: impl AsRef<Path>, parse: fn(&str) -> Option<T>) -> Option<CounterFile<T>> {
        let mut file = CounterFile { file: File::open(path).ok()?, text: vec![0; BYTES_MIN], parse };
        file.read().is_some().then_some(file)
    }

    /// The value now; `None` if the text cannot be read or has none any more.
    pub fn read(&mut self) -> Option<T> {
        let mut length = 0;
        loop {
            // A reading from the start makes the kernel write the text anew. It may return a part of it.
            match self.file.read_at(&mut self.text[length..], length as u64).ok()? {
                0 => return (self.parse)(std::str::from_utf8(&self.text[..length]).ok()?),
                count => length += count,
            }
            if length == self.text.len() {
                self.text.resize(2 * length, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempFile;

    #[test]
    fn each_reading_has_the_text_of_its_time_however_long_it_is() {
        let file = TempFile::new("counter");
        let length = |text: &str| (!text.is_empty()).then_some(text.len());
        assert!(CounterFile::open(&file.path, length).is_none(), "it has no value");
        file.file.write_all_at(b"7", 0).unwrap();
        let mut counter = CounterFile::open(&file.path, length).unwrap();
        assert_eq!(counter.read(), Some(1));
        file.file.write_all_at(&[b'x'; 5000], 0).unwrap();
        assert_eq!((counter.read(), counter.read()), (Some(5000), Some(5000)));
        file.file.set_len(0).unwrap();
        assert_eq!(counter.read(), None);
        assert!(CounterFile::open("/nowhere", length).is_none());
    }
}
