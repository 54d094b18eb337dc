//! The data read from the devices' rows without noise during preparation. No ε covers these reads,
//! and a statement about the run is not an upper bound.

/// A step of the preparation that read private rows without noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// Means and standard deviations of features.
    Scale,
    /// Mean and standard deviation of the regression target.
    TargetScale,
    /// Means of features that replace missing values.
    Missing,
    /// The list of classes.
    Classes,
    /// A list of the configuration that `smolfed init` read and the user has not confirmed.
    List(List),
    /// The selection of devices with enough samples.
    DeviceCount,
}

/// A list of the configuration that may have been read from rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// `data.classes`.
    Classes,
    /// `data.categories`.
    Categories,
}

impl List {
    /// Returns the key of `[data]`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Classes => "classes",
            Self::Categories => "categories",
        }
    }

    /// Returns the key of `[data]` that declares the list public.
    #[must_use]
    pub const fn confirmation(self) -> &'static str {
        match self {
            Self::Classes => "classes_are_public",
            Self::Categories => "categories_are_public",
        }
    }
}

impl Read {
    /// Returns the key of `[data]` that determines it.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Scale => "scale",
            Self::TargetScale => "target_scale",
            Self::Missing => "missing",
            Self::Classes => "classes",
            Self::List(list) => list.key(),
            Self::DeviceCount => "min_samples",
        }
    }

    /// Returns the computed quantity, to be followed by "from the devices' rows".
    #[must_use]
    pub const fn what(self) -> &'static str {
        match self {
            Self::Scale => "the scale of the features was computed",
            Self::TargetScale => "the scale of the target was computed",
            Self::Missing => "the replacements for missing values were computed",
            Self::Classes | Self::List(List::Classes) => "the list of classes was taken",
            Self::List(List::Categories) => "the uses and the categories of columns were taken",
            Self::DeviceCount => "the number of devices was computed",
        }
    }
}
