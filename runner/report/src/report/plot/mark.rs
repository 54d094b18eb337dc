//! What a plot shows: curves of points, bands and reference lines, in tones of one palette.

/// A colour of the palette: told apart by colour-blind readers, 4.5 : 1 on the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// The main curve.
    #[default]
    Blue,
    /// What it is compared with.
    Orange,
    /// A third.
    Green,
    /// A fourth.
    Purple,
    /// A fifth.
    Ochre,
    /// Context: limits, reference lines.
    Grey,
}

impl Tone {
    /// The tone of curve number `index`, from 0; they repeat after the sixth.
    #[must_use]
    pub const fn nth(index: usize) -> Self {
        match index % 6 {
            0 => Self::Blue,
            1 => Self::Orange,
            2 => Self::Green,
            3 => Self::Purple,
            4 => Self::Ochre,
            _ => Self::Grey,
        }
    }

    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Blue => "blue",
            Self::Orange => "orange",
            Self::Green => "green",
            Self::Purple => "purple",
            Self::Ochre => "ochre",
            Self::Grey => "grey",
        }
    }
}

/// A point of a curve. Values that are not finite interrupt the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// Half the length of an error bar, in the units of `y`; 0 draws none.
    pub error: f64,
}

impl Point {
    /// A point without an error bar.
    #[must_use]
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, error: 0.0 }
    }

    /// A point with an error bar from `y - error` to `y + error`.
    #[must_use]
    pub const fn with_error(x: f64, y: f64, error: f64) -> Self {
        Self { x, y, error }
    }
}

/// A curve: its points from left to right.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name, shown at its end; empty for none.
    pub label: String,
    /// The value at its end in words, for example `84.3 %`; empty for none.
    pub end: String,
    /// The points; long curves are thinned without losing a peak.
    pub points: Vec<Point>,
    /// The colour.
    pub tone: Tone,
    /// Whether the line is dashed.
    pub dashed: bool,
}

/// The vertical extent of a band at one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Across.
    pub x: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A filled band behind the curves; what it shows belongs into the caption.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Band {
    /// The spans from left to right.
    pub spans: Vec<Span>,
    /// The colour.
    pub tone: Tone,
}

/// A horizontal line at a value of its own meaning, such as a limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// Its name, shown at its right end.
    pub label: String,
    /// The value in words, below the name; empty for none.
    pub end: String,
    /// The value; a rule whose value has no place on the axis is not drawn.
    pub y: f64,
}
