//! A log that stays in memory, compressed, until its job has ended (`log_compression`).
//!
//! Invariant: the chunks, decompressed one after the other, are the bytes that were added. A chunk that is complete is
//! never touched again.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

/// Bytes that are decompressed at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A log in memory.
pub(super) struct HeldLog {
    chunk_bytes: u64,
    complete: Vec<Vec<u8>>,
    /// The chunk that is being filled, and its bytes before compression.
    open: Option<(ZlibEncoder<Vec<u8>>, u64)>,
}

impl HeldLog {
    /// An empty log in chunks of this many bytes before compression.
    pub(super) fn new(chunk_bytes: u64) -> HeldLog {
        HeldLog { chunk_bytes: chunk_bytes.max(1), complete: Vec::new(), open: None }
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// The compressor fails.
    pub(super) fn add(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let new = || (ZlibEncoder::new(Vec::new(), Compression::fast()), 0);
            let (encoder, filled_bytes) = self.open.get_or_insert_with(new);
            let room = usize::try_from(self.chunk_bytes - *filled_bytes).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            encoder.write_all(now)?;
            *filled_bytes += now.len() as u64;
            bytes = later;
            if *filled_bytes == self.chunk_bytes {
                self.complete_chunk()?;
            }
        }
        Ok(())
    }

    /// Hands all bytes to `write`, piece by piece, and forgets each chunk when it is written.
    ///
    /// # Errors
    /// Those of `write`.
    pub(super) fn drain(mut self, mut write: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.complete_chunk()?;
        let mut piece = vec![0; PIECE_BYTES];
        for chunk in self.complete {
            let mut stream = ZlibDecoder::new(chunk.as_slice());
            loop {
                match stream.read(&mut piece)? {
                    0 => break,
                    read => write(&piece[..read])?,
                }
            }
        }
        Ok(())
    }

    fn complete_chunk(&mut self) -> io::Result<()> {
        if let Some((encoder, _)) = self.open.take() {
            let mut chunk = encoder.finish()?;
            chunk.shrink_to_fit();
            self.complete.push(chunk);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_comes_back_whatever_the_chunks() {
        let log: Vec<u8> =
            (0..40_000_u32).flat_map(|time| format!("{time}, 4096, 1, 4096, 0\n").into_bytes()).collect();
        for (chunk_bytes, added_bytes) in [(1024, 37), (1024, 1024), (4096, 100_000), (1 << 29, 5000)] {
            let mut held = HeldLog::new(chunk_bytes);
            log.chunks(added_bytes).for_each(|bytes| held.add(bytes).unwrap());
            let complete = (log.len() as u64 / chunk_bytes) as usize;
            assert_eq!(held.complete.len(), complete, "{chunk_bytes}: compressed as soon as they are full");
            let taken_bytes: usize = held.complete.iter().map(Vec::len).sum();
            assert!(taken_bytes * 2 < log.len(), "{chunk_bytes}: {taken_bytes}");
            let mut back = Vec::new();
            held.drain(|piece| back.write_all(piece)).unwrap();
            assert_eq!(back, log, "{chunk_bytes}");
        }
    }

    #[test]
    fn nothing_is_nothing_and_a_failed_write_ends() {
        let mut calls = 0;
        HeldLog::new(1024).drain(|_| Err(io::Error::other("not called"))).unwrap();
        let mut held = HeldLog::new(10);
        held.add(&[7; 35]).unwrap();
        let failed = held.drain(|_| {
            calls += 1;
            Err(io::Error::other("full"))
        });
        assert!(failed.is_err());
        assert_eq!(calls, 1);
    }
}
