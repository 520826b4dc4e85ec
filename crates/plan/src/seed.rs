//! Seeds, and the few draws that are made without a generator.
//!
//! Invariant: a function of its arguments alone; the same job file gives the same plan.

/// Mixes two numbers into one that looks unrelated to both (the finaliser of SplitMix64, Steele et al. 2014).
pub(crate) fn mix(seed: u64, salt: u64) -> u64 {
    let mut mixed = seed ^ salt.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A number in `low..=high`, the same for the same seed and salt.
pub fn draw(seed: u64, salt: u64, low: u64, high: u64) -> u64 {
    let span = u128::from(high - low) + 1;
    low + ((u128::from(mix(seed, salt)) * span) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_within_their_bounds_and_reach_both() {
        let draws: Vec<u64> = (0..200).map(|salt| draw(1, salt, 3, 6)).collect();
        assert_eq!(draws.iter().min(), Some(&3));
        assert_eq!(draws.iter().max(), Some(&6));
        assert_eq!(draw(9, 9, u64::MAX, u64::MAX), u64::MAX);
    }

    #[test]
    fn neighbouring_salts_give_unrelated_seeds() {
        assert_ne!(mix(0x89, 0), mix(0x89, 1));
        assert_eq!(mix(0x89, 1), mix(0x89, 1));
    }
}
