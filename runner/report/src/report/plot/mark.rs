//! The marks of a plot: curves of points, bands and reference lines, in tones of one palette.

/// A colour of the palette. Colour-blind readers can distinguish them, at 4.5 : 1 on the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// The main curve.
    #[default]
    Blue,
    /// The curve for comparison.
    Orange,
    /// A third curve.
    Green,
    /// A fourth curve.
    Purple,
    /// A fifth curve.
    Ochre,
    /// Context: limits, reference lines.
    Grey,
}

impl Tone {
    /// Returns the tone of curve number `index`, from 0. Tones repeat after the sixth.
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

/// A point of a curve. Non-finite values interrupt the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Horizontal value.
    pub x: f64,
    /// Vertical value.
    pub y: f64,
    /// Half the length of an error bar, in the units of `y`. Zero draws none.
    pub error: f64,
}

impl Point {
    /// Returns a point without an error bar.
    #[must_use]
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, error: 0.0 }
    }

    /// Returns a point with an error bar from `y - error` to `y + error`.
    #[must_use]
    pub const fn with_error(x: f64, y: f64, error: f64) -> Self {
        Self { x, y, error }
    }
}

/// A curve: its points from left to right.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name, shown at its end. Empty for none.
    pub label: String,
    /// The value at its end in words, for example `84.3 %`. Empty for none.
    pub end: String,
    /// The points. Long curves are thinned without losing a peak.
    pub points: Vec<Point>,
    /// The colour.
    pub tone: Tone,
    /// Whether the line is dashed.
    pub dashed: bool,
}

/// The vertical extent of a band at one position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Horizontal value.
    pub x: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A filled band behind the curves. Its meaning belongs in the caption.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Band {
    /// The spans from left to right.
    pub spans: Vec<Span>,
    /// The colour.
    pub tone: Tone,
}

/// A horizontal line at a special value, such as a limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// Its name, shown at its right end.
    pub label: String,
    /// The value in words, below the name. Empty for none.
    pub end: String,
    /// The value. A rule without a position on the axis is not drawn.
    pub y: f64,
}
