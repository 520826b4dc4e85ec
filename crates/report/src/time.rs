//! Dates as reports print them: `Sat Nov 21 01:16:52 2026`.
//!
//! Invariant: a date is a function of the time and the offset it is given; no time zone is looked up.

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The local date of `timestamp_ms` (since the epoch), `utc_offset_s` east of UTC.
pub fn date(timestamp_ms: u64, utc_offset_s: i32) -> String {
    let local_s = (timestamp_ms / 1000).saturating_add_signed(i64::from(utc_offset_s));
    let (days, second_of_day) = (local_s / 86_400, local_s % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{} {} {day:2} {:02}:{:02}:{:02} {year}",
        DAYS[(days % 7) as usize],
        MONTHS[month],
        second_of_day / 3600,
        second_of_day / 60 % 60,
        second_of_day % 60
    )
}

/// Year, month (from 0) and day (from 1) of the day `days` after 1970-01-01.
fn civil(mut days: u64) -> (u64, usize, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970 + days / 146_097 * 400;
    days %= 146_097;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 0;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        for (seconds, text) in [
            (0, "Thu Jan  1 00:00:00 1970"),
            (951_782_400, "Tue Feb 29 00:00:00 2000"),
            (1_795_223_828, "Sat Nov 21 01:17:08 2026"),
            (4_102_444_799, "Thu Dec 31 23:59:59 2099"),
            (4_107_542_400, "Mon Mar  1 00:00:00 2100"),
        ] {
            assert_eq!(date(seconds * 1000, 0), text);
        }
    }

    #[test]
    fn offset_moves_the_day() {
        assert_eq!(date(1_795_223_828_000, -7200), "Fri Nov 20 23:17:08 2026");
        assert_eq!(date(0, -3600), "Thu Jan  1 00:00:00 1970");
    }
}
