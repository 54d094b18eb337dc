//! Dates and times (timestamps) in cells: their accepted formats, ambiguous dates, and their parts
//! as features (hour, weekday, day).

use std::time::UNIX_EPOCH;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SECONDS_PER_HOUR: f64 = 3600.0;
const SECONDS_PER_DAY: f64 = 24.0 * SECONDS_PER_HOUR;

/// A part of a point in time that can be a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TimePart {
    /// Hours since midnight, with their fraction: from 0 to below 24.
    Hour,
    /// Whole days since Monday: from 0 to 6.
    Weekday,
    /// Days since 1970, with their fraction.
    Day,
}

impl TimePart {
    /// Returns the name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Weekday => "weekday",
            Self::Day => "day",
        }
    }
}

/// A point in time, in seconds since 1970 on the clock that recorded it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Time(f64);

impl Time {
    /// Parses `2024-03-04`, `2024-03-04 10:15` or `2024-03-04T10:15:30.5+02:00`, from 1970 on, with
    /// slashes or hyphens, and `4.3.2024`. The time zone is dropped: the hour is that of the clock
    /// that recorded it. Other orders of days and months are ambiguous, and refused.
    pub(crate) fn parse(cell: &str) -> Option<Self> {
        let (date, clock) = match cell.split_once([' ', 'T']) {
            Some((date, clock)) => (date, clock.trim()),
            None => (cell, ""),
        };
        let date = year_first(date)?;
        let clock = without_zone(clock);
        let clock = match clock.len() {
            0 => "00:00:00",
            5 => &format!("{clock}:00"),
            _ => clock,
        };
        let time = humantime::parse_rfc3339_weak(&format!("{date} {clock}")).ok()?;
        let since = time.duration_since(UNIX_EPOCH).ok()?;
        Some(Self(since.as_secs_f64()))
    }

    /// Returns whether a cell is a date that begins with the numbers of day and month in an unknown
    /// order.
    pub(crate) fn is_ambiguous(cell: &str) -> bool {
        let date = cell.split([' ', 'T']).next().unwrap_or_default();
        let has_form = |mark| parts(date, mark).is_some_and(|parts| is_day_month_year(&parts));
        has_form('/') || has_form('-')
    }

    /// Returns whether it is not midnight.
    pub(crate) fn has_hours(self) -> bool {
        self.part(TimePart::Hour) > 0.0
    }

    /// Returns a part of it.
    pub(crate) fn part(self, part: TimePart) -> f32 {
        let Self(seconds) = self;
        let value = match part {
            TimePart::Hour => seconds % SECONDS_PER_DAY / SECONDS_PER_HOUR,
            // 1 January 1970 was a Thursday, three days after a Monday.
            TimePart::Weekday => (libm::floor(seconds / SECONDS_PER_DAY) + 3.0) % 7.0,
            TimePart::Day => seconds / SECONDS_PER_DAY,
        };
        value as f32
    }
}

/// Returns the three parts of a date between `mark`s, if they are all digits.
fn parts(date: &str, mark: char) -> Option<[&str; 3]> {
    let mut parts = date.split(mark);
    let all = [parts.next()?, parts.next()?, parts.next()?];
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    (parts.next().is_none() && all.into_iter().all(is_digits)).then_some(all)
}

fn is_day_month_year(parts: &[&str; 3]) -> bool {
    let first = [parts[0], parts[1]].map(|part| part.parse().unwrap_or(0));
    let is_month = |number: &u8| (1..=12).contains(number);
    let is_day = |number: &u8| (1..=31).contains(number);
    let is_short = parts[0].len() <= 2 && parts[1].len() <= 2;
    is_short
        && first.iter().all(is_day)
        && first.iter().any(is_month)
        && matches!(parts[2].len(), 2 | 4)
}

/// Returns a date with hyphens and the year first. Dots are used only with the day first.
fn year_first(date: &str) -> Option<String> {
    // Quickly rejects texts that do not begin with a digit.
    if !date.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Some([day, month, year]) = parts(date, '.') {
        let is_date = day.len() <= 2 && month.len() <= 2 && year.len() == 4;
        return is_date.then(|| format!("{year}-{month:0>2}-{day:0>2}"));
    }
    match date.as_bytes() {
        [_, _, _, _, b'-', _, _, b'-', _, _] => Some(date.to_owned()),
        [_, _, _, _, b'/', _, _, b'/', _, _] => Some(date.replace('/', "-")),
        _ => None,
    }
}

/// Returns the time without `Z`, `UTC` or an offset: `+02:00`, `+0200`, `-05`.
fn without_zone(clock: &str) -> &str {
    for zone in ["Z", "z", "UTC", "GMT"] {
        if let Some(clock) = clock.strip_suffix(zone) {
            return clock.trim_end();
        }
    }
    let Some(at) = clock.find(['+', '-']) else {
        return clock;
    };
    let digits = clock[at + 1..].replacen(':', "", 1);
    let is_offset = matches!(digits.len(), 2 | 4) && digits.bytes().all(|b| b.is_ascii_digit());
    match is_offset {
        true => clock[..at].trim_end(),
        false => clock,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_to_their_parts() {
        // 22 November 2026 is a Sunday, 20,779 days after 1970 (date -d 2026-11-22 +%s / 86,400).
        for (text, hour) in [
            ("2026-11-22", 0.0),
            ("2026/11/22", 0.0),
            ("2026-11-22 18:30", 18.5),
            ("2026-11-22T18:30:00", 18.5),
            ("2026-11-22T18:30:00Z", 18.5),
            ("2026-11-22 18:30:36.000", 18.51),
            ("2026-11-22T18:30:00+02:00", 18.5),
            ("2026-11-22 18:30:00-0530", 18.5),
            ("2026-11-22 18:30:00.000 +02", 18.5),
            ("2026-11-22 18:30 UTC", 18.5),
            ("22.11.2026", 0.0),
            ("22.11.2026 18:30", 18.5),
        ] {
            let time = Time::parse(text).unwrap();
            assert_eq!(time.part(TimePart::Hour), hour, "{text}");
            assert_eq!(time.part(TimePart::Weekday), 6.0, "{text}");
            let day = f64::from(time.part(TimePart::Day)).floor();
            assert_eq!(day, 20_779.0, "{text}");
        }
    }

    #[test]
    fn other_text_is_no_time() {
        for text in [
            "",
            "soon",
            "12",
            "1.5",
            "22-11-2026",
            "11/22/2026",
            "2026-13-01",
            "1969-01-01",
            "2026-11-22T18:30:00+2",
            "2026-11-22T18:30:00+02:00:00",
            "22.11.26",
            "2026-11-22T18:30:00Europe/Berlin",
        ] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }

    #[test]
    fn dates_without_a_known_order_are_named() {
        for text in [
            "31/12/2024 10:15",
            "3/4/24",
            "04-03-2024",
            "12/31/2024T10:15",
        ] {
            assert!(Time::is_ambiguous(text), "{text}");
        }
        for text in [
            "45/99/20",
            "12-34-56",
            "2024-03-04",
            "22.11.2026",
            "1/2",
            "1-2-3",
            "a/b/2024",
            "3/4/2024/5",
            "",
        ] {
            assert!(!Time::is_ambiguous(text), "{text}");
        }
    }
}
