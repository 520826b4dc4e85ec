//! A map that is looked into for every event.
//!
//! Invariant: whoever chooses the keys can make it slow and no more, so it is for keys of which there are never many.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by numbers, whose hash takes a nanosecond, and not the twenty of one that nobody can foresee.
pub type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// Mixes numbers by multiplying them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_ne_bytes(word));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        // The golden ratio: an odd number whose bits are as irregular as any. Adding it keeps zeros from being zero.
        const RATIO: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = self.0.wrapping_add(RATIO) ^ number;
        let high = (u128::from(mixed) * u128::from(RATIO)) >> 64;
        self.0 = mixed.wrapping_mul(RATIO) ^ high as u64;
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::Mixer;

    /// The map looks at the lowest bits, and at the seven highest.
    #[test]
    fn keys_that_differ_in_a_few_bits_are_spread() {
        for step in [1_u64, 8, 64, 2048, 1 << 20, 1 << 40] {
            let hash = |at: u64| BuildHasherDefault::<Mixer>::default().hash_one((7_u32, at * step));
            let lowest: BTreeSet<u64> = (0..4096).map(|at| hash(at) % 4096).collect();
            let highest: BTreeSet<u64> = (0..4096).map(|at| hash(at) >> 57).collect();
            // Of 4096 numbers drawn from as many, 2,590 occur.
            assert!(
                lowest.len() > 1500 && highest.len() == 128,
                "{step}: {}, {}",
                lowest.len(),
                highest.len()
            );
        }
    }
}
