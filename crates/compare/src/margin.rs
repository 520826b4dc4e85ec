//! The bound within which two figures are the same.
//!
//! Invariant: a change is called the same only if its whole interval lies within the bound, which is said beside it.

use std::str::FromStr;

use crate::figure::Measure;

/// Up to this percentile a latency is as steady as a rate.
const STEADY_PERCENTILE_MAX: f64 = 75.0;

/// How far a figure may change and be the same, in percent to either side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// Of rates, means, and percentiles up to the 75th.
    steady_percent: f64,
    /// Of higher percentiles, which vary more.
    tail_percent: f64,
}

impl Default for Margin {
    fn default() -> Margin {
        Margin { steady_percent: 10.0, tail_percent: 25.0 }
    }
}

impl Margin {
    /// Of this figure.
    pub(crate) fn percent(self, measure: Measure) -> f64 {
        match measure {
            Measure::Percentile(percentile) if percentile > STEADY_PERCENTILE_MAX => self.tail_percent,
            _ => self.steady_percent,
        }
    }

    /// In words: `±10 % (±25 % above p75)`.
    pub fn shown(self) -> String {
        let Margin { steady_percent, tail_percent } = self;
        match steady_percent == tail_percent {
            true => format!("±{steady_percent} %"),
            false => format!("±{steady_percent} % (±{tail_percent} % above p{STEADY_PERCENTILE_MAX})"),
        }
    }
}

/// One for all figures: `5%`, `5`.
impl FromStr for Margin {
    type Err = String;

    fn from_str(text: &str) -> Result<Margin, String> {
        let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
        let percent = number.filter(|percent| *percent > 0.0 && *percent < 100.0);
        let percent =
            percent.ok_or_else(|| format!("{text:?} is not a margin; write a percentage, such as 5%"))?;
        Ok(Margin { steady_percent: percent, tail_percent: percent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_is_a_percentage_of_every_figure() {
        let margin: Margin = "5%".parse().unwrap();
        assert_eq!((margin, margin.shown().as_str()), ("5".parse().unwrap(), "±5 %"));
        assert_eq!(Margin::default().shown(), "±10 % (±25 % above p75)");
        let percents = [Measure::Iops, Measure::Percentile(50.0), Measure::Percentile(99.0)]
            .map(|measure| Margin::default().percent(measure));
        assert_eq!(percents, [10.0, 10.0, 25.0]);
        for wrong in ["", "%", "0", "-5%", "100", "NaN", "inf", "ten"] {
            assert!(wrong.parse::<Margin>().unwrap_err().contains("such as 5%"), "{wrong}");
        }
    }
}
