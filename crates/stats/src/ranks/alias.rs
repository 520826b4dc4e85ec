//! Walker's alias method: a number below n, each with a probability of its own, for one random number and one lookup.
//!
//! Invariant: the table gives each number its weight's share of all weights, to 64 bits.

use crate::capped::Capped;
use crate::random::{Random, low_half};

/// The table.
#[derive(Clone, Debug)]
pub(super) struct AliasTable {
    slots: Box<[AliasSlot]>,
}

/// A slot is drawn evenly, then one of its two numbers.
#[derive(Clone, Copy, Debug)]
struct AliasSlot {
    /// Of 2^64: up to here it is the first of the numbers.
    own_up_to: u64,
    numbers: [u32; 2],
}

impl AliasTable {
    /// Of the numbers 0.. with these weights, of which one at least is above 0.
    pub(super) fn new(weights: &[f64]) -> AliasTable {
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..u32::capped(weights.len())).partition(|number| shares[*number as usize] < 1.0);
        let mut slots: Vec<AliasSlot> = (0..u32::capped(weights.len()))
            .map(|number| AliasSlot { own_up_to: u64::MAX, numbers: [number; 2] })
            .collect();
        // Each small one fills its slot up from a large one, which then may be small.
        while let (Some(poor), Some(rich)) = (small.pop(), large.pop()) {
            let share = shares[poor as usize];
            slots[poor as usize] =
                AliasSlot { own_up_to: u64::capped(share * 2.0_f64.powi(64)), numbers: [poor, rich] };
            shares[rich as usize] -= 1.0 - share;
            if shares[rich as usize] < 1.0 { small.push(rich) } else { large.push(rich) }
        }
        AliasTable { slots: slots.into() }
    }

    /// A number.
    #[inline]
    pub(super) fn sample(&self, random: &mut Random) -> usize {
        let product = u128::from(random.next_u64()) * self.slots.len() as u128;
        let slot = &self.slots[usize::capped((product >> 64) as u64)];
        // An index instead of a branch: which of the two it is cannot be predicted.
        slot.numbers[usize::from(low_half(product) > slot.own_up_to)] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_share() {
        let weights = [0.5, 0.0, 3.0, 1.0, 0.25, 7.0];
        let table = AliasTable::new(&weights);
        let total: f64 = weights.iter().sum();
        for (number, weight) in weights.iter().enumerate() {
            let of_slot = |slot: &AliasSlot| {
                let own = slot.own_up_to as f64 / u64::MAX as f64;
                let is = |index: usize| f64::from(u8::from(slot.numbers[index] as usize == number));
                own * is(0) + (1.0 - own) * is(1)
            };
            let share = table.slots.iter().map(of_slot).sum::<f64>() / weights.len() as f64;
            assert!((share - weight / total).abs() < 1e-12, "{number}: {share}");
        }
    }
}
