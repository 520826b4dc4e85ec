//! Points in time as signatures need them: `20130524T000000Z`.
//!
//! Invariant: the proleptic Gregorian calendar in UTC, without leap seconds, as Unix counts.

use std::fmt;

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    year: u64,
    month: u64,
    day: u64,
    second_of_day: u64,
}

impl Timestamp {
    /// This many seconds after the beginning of 1970.
    pub fn of_unix(seconds: u64) -> Timestamp {
        // Years begin in March here, so that a leap day is a year's last; 719468 days precede 1970 since March of year 0.
        let days = seconds / 86400 + 719_468;
        let era = days / 146_097;
        let day_of_era = days % 146_097;
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        Timestamp {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day: day_of_year - (153 * month_from_march + 2) / 5 + 1,
            second_of_day: seconds % 86400,
        }
    }

    /// The day, `20130524`.
    pub fn day(&self) -> impl fmt::Display + use<> {
        Day(*self)
    }

    /// Whether both are on one day.
    pub fn is_same_day(&self, other: &Timestamp) -> bool {
        (self.year, self.month, self.day) == (other.year, other.month, other.day)
    }
}

struct Day(Timestamp);

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Timestamp { year, month, day, .. } = self.0;
        write!(f, "{year:04}{month:02}{day:02}")
    }
}

impl fmt::Display for Timestamp {
    /// `20130524T000000Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hour, minute, second) =
            (self.second_of_day / 3600, self.second_of_day / 60 % 60, self.second_of_day % 60);
        write!(f, "{}T{hour:02}{minute:02}{second:02}Z", self.day())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let shown = |seconds| Timestamp::of_unix(seconds).to_string();
        assert_eq!(shown(0), "19700101T000000Z");
        assert_eq!(shown(951_782_400), "20000229T000000Z");
        assert_eq!(shown(1_369_353_600), "20130524T000000Z");
        assert_eq!(shown(4_107_542_399), "21000228T235959Z");
        assert_eq!(shown(4_107_542_400), "21000301T000000Z");
        let (first, last) = (Timestamp::of_unix(86400), Timestamp::of_unix(2 * 86400 - 1));
        assert!(first.is_same_day(&last) && !first.is_same_day(&Timestamp::of_unix(2 * 86400)));
    }
}
