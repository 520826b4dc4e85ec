//! Dates as reports print them: `Sat Nov 21 01:16:52 2026`.
//!
//! Invariant: a date is a function of a time and an offset; no time zone is looked up.

use fiord_stats::Capped;

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Local time in ISO 8601: `2026-11-21T02:17:08+01:00`.
pub fn iso(timestamp_ms: u64, utc_offset_s: i32) -> String {
    let CivilTime { year, month, day, hour, minute, second } = clock(timestamp_ms, utc_offset_s);
    let sign = if utc_offset_s < 0 { '-' } else { '+' };
    let offset_minutes = utc_offset_s.unsigned_abs() / 60;
    let (hours, minutes) = (offset_minutes / 60, offset_minutes % 60);
    let month = month + 1;
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{sign}{hours:02}:{minutes:02}")
}

/// Local time for a list: `11-21 02:17`, or `2025-11-21` if it is more than ten months before `now_ms`, when the
/// year matters.
pub fn short(timestamp_ms: u64, utc_offset_s: i32, now_ms: u64) -> String {
    const TEN_MONTHS_MS: u64 = 300 * 86_400_000;
    let CivilTime { year, month, day, hour, minute, .. } = clock(timestamp_ms, utc_offset_s);
    let month = month + 1;
    if now_ms.saturating_sub(timestamp_ms) < TEN_MONTHS_MS {
        format!("{month:02}-{day:02} {hour:02}:{minute:02}")
    } else {
        format!("{year}-{month:02}-{day:02}")
    }
}

/// The local date of `timestamp_ms` (since the epoch), `utc_offset_s` east of UTC.
pub fn date(timestamp_ms: u64, utc_offset_s: i32) -> String {
    let CivilTime { year, month, day, hour, minute, second } = clock(timestamp_ms, utc_offset_s);
    let weekday = DAYS[(local_s(timestamp_ms, utc_offset_s) / 86_400 % 7) as usize];
    format!("{weekday} {} {day:2} {hour:02}:{minute:02}:{second:02} {year}", MONTHS[month])
}

/// The time that [`date`] or [`iso`] printed: in milliseconds since the epoch, with its offset from UTC in seconds if the
/// text has that; without, the time is as if it were UTC. `None` if it is no such text, or before 1970.
pub fn read(text: &str) -> Option<(u64, Option<i32>)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (day, clock, offset_s) = match words.as_slice() {
        [_, month, day, clock, year] => {
            let month = MONTHS.iter().position(|known| known == month)? as u64;
            (days(year.parse().ok()?, month, day.parse().ok()?)?, *clock, None)
        }
        [only] => {
            let (date, time) = only.split_once('T')?;
            let [year, month, day] = numbers(date, '-')?;
            let sign = time.find(['+', '-'])?;
            let [hours, minutes] = numbers(&time[sign + 1..], ':')?;
            let offset_s = i32::try_from(hours.min(24) * 3600 + minutes.min(59) * 60).ok()?;
            let is_west = time[sign..].starts_with('-');
            let day = days(year, month.checked_sub(1)?, day)?;
            (day, &time[..sign], Some(if is_west { -offset_s } else { offset_s }))
        }
        _ => return None,
    };
    let [hour, minute, second] = numbers(clock, ':')?;
    let local_s = day * 86_400 + hour.min(23) * 3600 + minute.min(59) * 60 + second.min(60);
    let utc_s = local_s.checked_add_signed(-i64::from(offset_s.unwrap_or(0)))?;
    Some((utc_s * 1000, offset_s))
}

/// As many numbers as are asked for, with this between them.
fn numbers<const COUNT: usize>(text: &str, between: char) -> Option<[u64; COUNT]> {
    let all: Vec<u64> = text.split(between).map(|part| part.parse().ok()).collect::<Option<_>>()?;
    all.try_into().ok()
}

/// Days since 1970-01-01 of a year, a month (from 0) and a day (from 1); `None` if there is no such day until the year 9999.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || month > 11 {
        return None;
    }
    // Every year has 365 days and a quarter: the first guess is at most a month away.
    let guess = (year - 1970) * 365 + (year - 1969) / 4 + month * 30;
    (guess.saturating_sub(30)..guess + 62).find(|days| civil(*days) == (year, usize::capped(month), day))
}

/// Calendar date and wall-clock time.
struct CivilTime {
    year: u64,
    /// From 0.
    month: usize,
    /// From 1.
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

fn clock(timestamp_ms: u64, utc_offset_s: i32) -> CivilTime {
    let local_s = local_s(timestamp_ms, utc_offset_s);
    let (year, month, day) = civil(local_s / 86_400);
    let second = local_s % 86_400;
    CivilTime { year, month, day, hour: second / 3600, minute: second / 60 % 60, second: second % 60 }
}

fn local_s(timestamp_ms: u64, utc_offset_s: i32) -> u64 {
    (timestamp_ms / 1000).saturating_add_signed(i64::from(utc_offset_s))
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
    fn printed_times_are_read_back() {
        // Seventy-odd years, in steps that meet every month, hour and minute.
        for step in 0..20_000 {
            let time_ms = step * 123_457_000;
            assert_eq!(read(&date(time_ms, 0)), Some((time_ms, None)), "{}", date(time_ms, 0));
            for offset_s in [0, 3600, -19_800].into_iter().filter(|_| time_ms > 86_400_000) {
                assert_eq!(read(&iso(time_ms, offset_s)), Some((time_ms, Some(offset_s))));
            }
        }
        for text in [
            "",
            "Sat Nov 31 01:16:52 2026",
            "Sat Now 21 01:16:52 2026",
            "2026-13-01T00:00:00+00:00",
            "1+1",
            "é",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        for text in [
            "Sat Nov 21 99999999999999999999:1:1 2026",
            "2026-11-21T1:1:1+99999999999999999:00",
            "2026-0-1T0:0:0+0:0",
        ] {
            read(text);
        }
    }

    #[test]
    fn lists_show_the_year_of_old_dates() {
        let now_ms = 1_795_223_828_000;
        assert_eq!(iso(now_ms, 3600), "2026-11-21T02:17:08+01:00");
        assert_eq!(iso(now_ms, -19_800), "2026-11-20T19:47:08-05:30");
        assert_eq!(short(now_ms - 1000, 0, now_ms), "11-21 01:17");
        assert_eq!(short(951_782_400_000, 0, now_ms), "2000-02-29");
    }

    #[test]
    fn offset_moves_the_day() {
        assert_eq!(date(1_795_223_828_000, -7200), "Fri Nov 20 23:17:08 2026");
        assert_eq!(date(0, -3600), "Thu Jan  1 00:00:00 1970");
    }
}
