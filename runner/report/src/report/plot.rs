//! Plots as SVG: lines with error bars, bands, reference lines and clouds of points over linear or
//! logarithmic axes.
//!
//! A plot takes its colours from the variables of [`STYLE`], so that it follows the reader's choice
//! of light or dark. Use [`Plot::to_svg`] in a page with this style, and [`Plot::to_svg_file`] for
//! a separate file. Curves are labelled at their ends instead of in a legend.
//!
//! ```
//! use smolfed_report::report::plot::{Plot, Point, Scale, Series, Tone};
//!
//! let plot = Plot {
//!     title: "Test accuracy".to_owned(),
//!     x_label: "epsilon".to_owned(),
//!     y_label: "accuracy, %".to_owned(),
//!     series: vec![Series {
//!         label: "smoothing 1".to_owned(),
//!         points: vec![Point::with_error(6.0, 84.3, 0.2), Point::with_error(7.0, 85.9, 0.1)],
//!         ..Series::default()
//!     }],
//!     ..Plot::default()
//! };
//! assert!(plot.to_svg().starts_with("<svg"));
//! ```

mod axis;
mod cloud;
mod frame;
mod labels;
mod mark;
mod thin;

use std::fmt::Write;

use self::axis::Axis;
use self::frame::{Frame, HEIGHT, WIDTH};
use self::labels::{GAP, LINE};
use super::html::escape;

pub use axis::Scale;
pub use cloud::Cloud;
pub use mark::{Band, Point, Rule, Series, Span, Tone};

/// Style sheet of all plots: the palette, light, dark and for print, and the classes of marks.
pub const STYLE: &str = include_str!("plot/style.css");

/// Curves with more points than this are lines. Shorter ones get a dot per point.
const DOTTED: usize = 12;
/// With more curves than this, labels have one line.
const TALL_LABELS: usize = 3;

/// Contents of a plot. Only `series`, `bands` or `clouds` must not be empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plot {
    /// Read out by screen readers. The page has a separate heading.
    pub title: String,
    /// Description in a sentence, for readers who cannot see the plot.
    pub description: String,
    /// Name of the horizontal axis, with its unit.
    pub x_label: String,
    /// Name of the vertical axis, with its unit.
    pub y_label: String,
    /// Horizontal scale.
    pub x_scale: Scale,
    /// Vertical scale.
    pub y_scale: Scale,
    /// Values that the horizontal axis must include.
    pub x_reach: Vec<f64>,
    /// Values that the vertical axis must include, for example 0.
    pub y_reach: Vec<f64>,
    /// The curves, the last one on top.
    pub series: Vec<Series>,
    /// The bands, behind all curves.
    pub bands: Vec<Band>,
    /// Reference lines.
    pub rules: Vec<Rule>,
    /// Clouds of points. Their names are above everything else.
    pub clouds: Vec<Cloud>,
}

/// The label at the right end of a curve or a rule.
struct Label {
    x: f64,
    y: f64,
    lines: Vec<String>,
    tone: Tone,
}

/// Returns several plots, one below the other, as a separate file.
#[must_use]
pub fn stacked_file(plots: &[Plot]) -> String {
    let height = HEIGHT * plots.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\">\
         <style>{STYLE}svg {{ background: var(--paper); }}</style>"
    );
    for (index, plot) in plots.iter().enumerate() {
        let y = HEIGHT * index as f64;
        plot.write_at(
            &mut svg,
            &format!(" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\""),
        );
    }
    svg.push_str("</svg>\n");
    svg
}

impl Plot {
    /// Returns the plot as an `<svg>` element for a page with [`STYLE`]. The same plot gives the
    /// same text everywhere. Title, labels and names are escaped.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let mut svg = String::new();
        self.write(&mut svg);
        svg
    }

    /// Returns the plot as a separate file, with its style.
    #[must_use]
    pub fn to_svg_file(&self) -> String {
        let style = format!("<style>{STYLE}svg {{ background: var(--paper); }}</style></svg>\n");
        let svg = self.to_svg();
        svg.strip_suffix("</svg>").unwrap_or(&svg).to_owned() + &style
    }

    fn write(&self, svg: &mut String) {
        self.write_at(svg, "");
    }

    /// Writes the element, with additional attributes.
    fn write_at(&self, svg: &mut String, attributes: &str) {
        let frame = self.frame();
        let _ = write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\"{attributes} \
             viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>{}</title><desc>{}</desc>",
            escape(&self.title),
            escape(&self.description)
        );
        self.write_axes(svg, &frame);
        for band in &self.bands {
            write_band(svg, &frame, band);
        }
        let mut labels = self.write_rules(svg, &frame);
        for series in &self.series {
            labels.extend(self.write_series(svg, &frame, series));
        }
        cloud::write(svg, &frame, &self.clouds);
        write_labels(svg, &frame, &labels);
        svg.push_str("</svg>");
    }

    fn frame(&self) -> Frame {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let spans = || self.bands.iter().flat_map(|band| &band.spans);
        let specks = || self.clouds.iter().flat_map(|cloud| &cloud.points);
        let xs = points()
            .map(|p| p.x)
            .chain(spans().map(|span| span.x))
            .chain(specks().map(|p| p.x))
            .chain(self.x_reach.iter().copied());
        let ys = points()
            .flat_map(|p| [p.y, p.y - p.error, p.y + p.error])
            .chain(spans().flat_map(|span| [span.low, span.high]))
            .chain(specks().map(|p| p.y))
            .chain(self.rules.iter().map(|rule| rule.y))
            .chain(self.y_reach.iter().copied());
        let x = Axis::new(self.x_scale, xs, 6, false);
        let y = Axis::new(self.y_scale, ys, 5, true);
        let ticks = y.ticks.iter().map(|tick| labels::width(&tick.text));
        let ends = self
            .series
            .iter()
            .flat_map(|series| self.end_lines(&series.label, &series.end))
            .chain(
                self.rules
                    .iter()
                    .flat_map(|rule| self.end_lines(&rule.label, &rule.end)),
            )
            .map(|line| labels::width(&line));
        Frame {
            left: ticks.fold(22.0, f64::max) + 10.0,
            right: WIDTH - ends.fold(4.0, f64::max).min(WIDTH / 3.0) - 12.0,
            x,
            y,
        }
    }

    /// Returns the lines of the label at the end of a curve or a rule: its name and its value in
    /// words.
    fn end_lines(&self, name: &str, value: &str) -> Vec<String> {
        let parts = [name, value].into_iter().filter(|part| !part.is_empty());
        if self.series.len() <= TALL_LABELS {
            parts.map(str::to_owned).collect()
        } else {
            let words: Vec<&str> = parts.collect();
            Some(words.join(" "))
                .filter(|line| !line.is_empty())
                .into_iter()
                .collect()
        }
    }

    fn write_axes(&self, svg: &mut String, frame: &Frame) {
        let (left, right, base) = (frame.left, frame.right, Frame::BASE);
        for tick in &frame.y.ticks {
            let y = Frame::y(frame.y.tick_place(tick));
            let _ = write!(
                svg,
                "<path class=\"grid\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 8.0,
                y + 4.0,
                tick.text
            );
        }
        let _ = write!(
            svg,
            "<path class=\"base\" d=\"M{left:.1} {base:.1}H{right:.1}\"/>"
        );
        for tick in &frame.x.ticks {
            let x = frame.x(frame.x.tick_place(tick));
            let _ = write!(
                svg,
                "<path class=\"base\" d=\"M{x:.1} {base:.1}v4\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                base + 18.0,
                tick.text
            );
        }
        let _ = write!(
            svg,
            "<text x=\"0\" y=\"14\">{}</text>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            escape(&self.y_label),
            f64::midpoint(left, right),
            HEIGHT - 6.0,
            escape(&self.x_label)
        );
    }

    fn write_rules(&self, svg: &mut String, frame: &Frame) -> Vec<Label> {
        let mut labels = Vec::new();
        for rule in &self.rules {
            let Some(y) = frame.y.place(rule.y).map(Frame::y) else {
                continue;
            };
            let _ = write!(
                svg,
                "<path class=\"rule grey\" d=\"M{:.1} {y:.1}H{:.1}\"/>",
                frame.left, frame.right
            );
            labels.push(Label {
                x: frame.right,
                y,
                lines: self.end_lines(&rule.label, &rule.end),
                tone: Tone::Grey,
            });
        }
        labels
    }

    fn write_series(&self, svg: &mut String, frame: &Frame, series: &Series) -> Option<Label> {
        let tone = series.tone.class();
        let points = thin::points(&series.points);
        let mut path = String::new();
        let mut pen_down = false;
        let mut end = None;
        for point in &points {
            let Some((x, y)) = frame.place(point.x, point.y) else {
                pen_down = false;
                continue;
            };
            let _ = write!(path, "{}{x:.1} {y:.1}", if pen_down { 'L' } else { 'M' });
            pen_down = true;
            end = Some((x, y));
            let error = point.error.abs();
            let low = frame.y.place(point.y - error).map(Frame::y);
            let high = frame.y.place(point.y + error).map(Frame::y);
            if let (true, Some(low), Some(high)) = (error > 0.0, low, high) {
                let _ = write!(
                    svg,
                    "<path class=\"error {tone}\" d=\"M{x:.1} {low:.1}V{high:.1}\
                     M{:.1} {low:.1}h6M{:.1} {high:.1}h6\"/>",
                    x - 3.0,
                    x - 3.0
                );
            }
        }
        let (x, y) = end?;
        let dashed = if series.dashed { " dashed" } else { "" };
        let _ = write!(svg, "<path class=\"line {tone}{dashed}\" d=\"{path}\"/>");
        let dots = if points.len() <= DOTTED {
            points.len()
        } else {
            0
        };
        let dots = points.iter().take(dots);
        for (x, y) in dots.filter_map(|p| frame.place(p.x, p.y)).chain([(x, y)]) {
            let _ = write!(
                svg,
                "<circle class=\"dot {tone}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>"
            );
        }
        let lines = self.end_lines(&series.label, &series.end);
        (!lines.is_empty()).then_some(Label {
            x,
            y,
            lines,
            tone: series.tone,
        })
    }
}

fn write_band(svg: &mut String, frame: &Frame, band: &Band) {
    let spans = thin::spans(&band.spans);
    let highs = spans.iter().map(|span| (span.x, span.high));
    let lows = spans.iter().rev().map(|span| (span.x, span.low));
    let corners: Vec<String> = highs
        .chain(lows)
        .filter_map(|(x, y)| frame.place(x, y))
        .map(|(x, y)| format!("{x:.1} {y:.1}"))
        .collect();
    if !corners.is_empty() {
        let _ = write!(
            svg,
            "<path class=\"band {}\" d=\"M{}Z\"/>",
            band.tone.class(),
            corners.join("L")
        );
    }
}

fn write_labels(svg: &mut String, frame: &Frame, labels: &[Label]) {
    let wanted: Vec<(f64, f64)> = labels
        .iter()
        .map(|label| (label.y, LINE * label.lines.len() as f64 + GAP))
        .collect();
    let middles = labels::spread(&wanted, 4.0, labels::bottom(&wanted, 4.0));
    for (label, middle) in labels.iter().zip(middles) {
        let tone = label.tone.class();
        // A moved label, or one whose curve ends early, gets a line to the end of its curve.
        if (middle - label.y).abs() > LINE || frame.right - label.x > LINE {
            let _ = write!(
                svg,
                "<path class=\"leader {tone}\" d=\"M{:.1} {:.1}L{:.1} {middle:.1}\"/>",
                label.x + 4.0,
                label.y,
                frame.right + 5.0
            );
        }
        let first = middle - LINE * (label.lines.len() as f64 - 1.0) / 2.0 + 4.0;
        for (index, line) in label.lines.iter().enumerate() {
            let _ = write!(
                svg,
                "<text class=\"end {tone}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                frame.right + 8.0,
                first + LINE * index as f64,
                escape(line)
            );
        }
    }
}

#[cfg(test)]
mod tests;
