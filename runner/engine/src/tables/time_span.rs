//! Spans of time (durations) in files, such as "90s" or "1h 30min", and their limit.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A span of time, written as in "90s" or "1h 30min". It is above 0 and of whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(transparent)]
pub struct TimeSpan(#[schemars(with = "String")] Duration);

impl TimeSpan {
    /// So many seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// The span as a duration.
    #[must_use]
    pub const fn duration(self) -> Duration {
        self.0
    }

    /// Milliseconds.
    #[must_use]
    pub fn millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl Serialize for TimeSpan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TimeSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Ten years: sums of spans fit everywhere.
        const LONGEST: Duration = Duration::from_secs(10 * 366 * 86_400);
        let text = String::deserialize(deserializer)?;
        let span = humantime::parse_duration(&text).ok();
        let is_valid = |span: &Duration| {
            let is_whole = span.subsec_nanos().is_multiple_of(1_000_000);
            !span.is_zero() && *span <= LONGEST && is_whole
        };
        span.filter(is_valid).map(Self).ok_or_else(|| {
            let expected = "a time such as \"90s\", \"500ms\" or \"1h 30min\"";
            D::Error::invalid_value(Unexpected::Str(&text), &expected)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_written() {
        for (text, written, millis) in [
            ("90s", "1m 30s", 90_000),
            ("500ms", "500ms", 500),
            ("1h 30min", "1h 30m", 5_400_000),
        ] {
            let json = format!("\"{text}\"");
            let span: TimeSpan = serde_json::from_str(&json).unwrap();
            assert_eq!(
                (span.to_string().as_str(), span.millis()),
                (written, millis)
            );
            let again = serde_json::to_string(&span).unwrap();
            assert_eq!(serde_json::from_str::<TimeSpan>(&again).unwrap(), span);
        }
        for text in ["0s", "-1s", "1", "1us", "soon", "", "100years"] {
            let json = format!("\"{text}\"");
            assert!(serde_json::from_str::<TimeSpan>(&json).is_err(), "{text}");
        }
    }
}
