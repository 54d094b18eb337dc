//! What was read from the devices' rows without noise while the data were prepared: no ε covers
//! that, and a statement about the run is no upper bound.

use serde::Serialize;

/// A step of the preparation that read private rows without noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Read {
    /// Means and standard deviations of features.
    Scale,
    /// Mean and standard deviation of the regression target.
    TargetScale,
    /// Means of features, in the place of missing values.
    Missing,
    /// Which classes there are, and their names.
    Classes,
}

impl Read {
    /// The key of `[data]` that decides it.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Scale => "scale",
            Self::TargetScale => "target_scale",
            Self::Missing => "missing",
            Self::Classes => "classes",
        }
    }

    /// What was computed, to be followed by "from the devices' rows".
    #[must_use]
    pub const fn what(self) -> &'static str {
        match self {
            Self::Scale => "the scale of the features was computed",
            Self::TargetScale => "the scale of the target was computed",
            Self::Missing => "the values in the place of missing ones were computed",
            Self::Classes => "the list of classes was taken",
        }
    }

    /// The sentence of a privacy statement.
    #[must_use]
    pub fn note(self) -> String {
        let mut what = self.what().to_owned();
        what[..1].make_ascii_uppercase();
        format!(
            "{what} from the devices' rows, without noise (`data.{}`): this epsilon does not cover \
             it.",
            self.key()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_name_the_step_and_the_key() {
        let note = Read::Classes.note();
        assert!(note.starts_with("The list of classes was taken from the devices' rows"));
        assert!(note.contains("`data.classes`"));
    }
}
