//! Dates and times in cells, and their parts as features.

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
    /// The name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Weekday => "weekday",
            Self::Day => "day",
        }
    }
}

/// A point in time, in seconds since 1970 of the clock that wrote it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Time(f64);

impl Time {
    /// `2024-03-04`, `2024-03-04 10:15` or `2024-03-04T10:15:30.5Z`, from 1970 on; slashes as well
    /// as hyphens. Days and months in another order are ambiguous, and not read.
    pub(crate) fn parse(cell: &str) -> Option<Self> {
        // Whatever has no digits and a mark where a date has them is decided quickly.
        let &[b'0'..=b'9', _, _, _, mark @ (b'-' | b'/'), ..] = cell.as_bytes() else {
            return None;
        };
        let mut text = match mark {
            b'/' => cell.replace('/', "-"),
            _ => cell.to_owned(),
        };
        match text.len() {
            10 => text += " 00:00:00",
            16 => text += ":00",
            _ => {}
        }
        let time = humantime::parse_rfc3339_weak(&text).ok()?;
        let since = time.duration_since(UNIX_EPOCH).ok()?;
        Some(Self(since.as_secs_f64()))
    }

    /// Whether it is not midnight.
    pub(crate) fn has_hours(self) -> bool {
        self.part(TimePart::Hour) > 0.0
    }

    /// A part of it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_to_their_parts() {
        // 22 November 2026 is a Sunday; 20,779 days after 1970 (date -d 2026-11-22 +%s / 86,400).
        for (text, hour) in [
            ("2026-11-22", 0.0),
            ("2026/11/22", 0.0),
            ("2026-11-22 18:30", 18.5),
            ("2026-11-22T18:30:00", 18.5),
            ("2026-11-22T18:30:00Z", 18.5),
            ("2026-11-22 18:30:36.000", 18.51),
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
        ] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }
}
