//! Clouds of points, each with its name at its centre.

use std::fmt::Write;

use super::frame::{Frame, TOP};
use super::labels::{LINE, width};
use super::mark::{Point, Tone};
use crate::report::html::escape;

/// Maximum distance in lines of a name from the centre of its cloud. With few clouds all have their
/// names. With many, a distant name would mislead, so a name without room is left out.
const LINES_OF_FEW: i32 = 6;
const LINES_OF_MANY: i32 = 2;
/// Length to which names are cut.
const MAX_LETTERS: usize = 16;
/// The number of colours. As many clouds have dots, and the next ones have crosses.
const TONES: usize = 6;

/// A group of points, in no order. Error bars are not drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cloud {
    /// Its name, shown at its centre if there is room. Empty for none.
    pub label: String,
    /// The points.
    pub points: Vec<Point>,
    /// The colour.
    pub tone: Tone,
    /// Whether the points are crosses instead of dots.
    pub crosses: bool,
}

impl Cloud {
    /// Number of clouds with distinct colour or mark. Later ones repeat.
    pub const DISTINCT: usize = 2 * TONES;

    /// Returns cloud number `index`, from 0. The first six have dots, the next six crosses, and so
    /// on in turn.
    #[must_use]
    pub fn nth(index: usize, label: String, points: Vec<Point>) -> Self {
        Self {
            label,
            points,
            tone: Tone::nth(index),
            crosses: (index / TONES) % 2 == 1,
        }
    }
}

/// The name of a cloud: its centre, its middle line and its half width.
struct Name<'a> {
    text: String,
    cloud: &'a Cloud,
    centre: (f64, f64),
    y: f64,
    half: f64,
}

pub(super) fn write(svg: &mut String, frame: &Frame, clouds: &[Cloud]) {
    let mut names: Vec<Name<'_>> = Vec::new();
    let max_lines = match clouds.len() <= Cloud::DISTINCT {
        true => LINES_OF_FEW,
        false => LINES_OF_MANY,
    };
    for cloud in clouds {
        let places = cloud.points.iter().filter_map(|p| frame.place(p.x, p.y));
        let places: Vec<(f64, f64)> = places.collect();
        let (class, mark) = match cloud.crosses {
            true => ("speck cross", "m-2.2-2.2l4.4 4.4m0-4.4l-4.4 4.4"),
            false => ("speck", "h0"),
        };
        let mut path = String::new();
        let (mut x_sum, mut y_sum) = (0.0, 0.0);
        for (x, y) in &places {
            let _ = write!(path, "M{x:.1} {y:.1}{mark}");
            x_sum += x;
            y_sum += y;
        }
        if places.is_empty() {
            continue;
        }
        let _ = write!(
            svg,
            "<path class=\"{class} {}\" d=\"{path}\"/>",
            cloud.tone.class()
        );
        let count = places.len() as f64;
        names.extend(placed(
            frame,
            cloud,
            (x_sum / count, y_sum / count),
            max_lines,
            &names,
        ));
    }
    for name in &names {
        let tone = name.cloud.tone.class();
        let (x, y) = name.centre;
        // A moved name gets a line to the centre of its cloud.
        if (name.y - y).abs() > LINE {
            let end = name.y + LINE / 2.0 * (y - name.y).signum();
            let _ = write!(
                svg,
                "<path class=\"leader {tone}\" d=\"M{x:.1} {y:.1}V{end:.1}\"/>"
            );
        }
        let _ = write!(
            svg,
            "<text class=\"name {tone}\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            name.y + 4.0,
            escape(&name.text)
        );
    }
}

/// Returns the name of a cloud at the free line nearest to its centre.
fn placed<'a>(
    frame: &Frame,
    cloud: &'a Cloud,
    centre: (f64, f64),
    max_lines: i32,
    others: &[Name<'_>],
) -> Option<Name<'a>> {
    let text = shortened(&cloud.label);
    let half = width(&text) / 2.0 + 1.0;
    let is_free = |y: f64| {
        let inside = y > TOP && y < Frame::BASE - LINE / 2.0;
        let beside = |other: &Name<'_>| {
            (other.centre.0 - centre.0).abs() >= other.half + half || (other.y - y).abs() >= LINE
        };
        inside && others.iter().all(beside)
    };
    let offsets = (0..=max_lines).flat_map(|lines| [-lines, lines]);
    let y = offsets
        .map(|lines| centre.1 + LINE * f64::from(lines))
        .find(|y| is_free(*y))?;
    (!text.is_empty()).then_some(Name {
        text,
        cloud,
        centre: (
            centre.0.clamp(
                frame.left + half,
                (frame.right - half).max(frame.left + half),
            ),
            centre.1,
        ),
        y,
        half,
    })
}

fn shortened(label: &str) -> String {
    if label.chars().count() <= MAX_LETTERS {
        return label.to_owned();
    }
    let kept = label.chars().take(MAX_LETTERS - 1);
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::markup::assert_well_formed;
    use crate::report::plot::Plot;

    fn svg(clouds: Vec<Cloud>) -> String {
        let svg = Plot {
            clouds,
            ..Plot::default()
        }
        .to_svg();
        assert_well_formed(&svg);
        svg
    }

    fn square(index: usize, label: &str) -> Cloud {
        let corners = [(0.0, 0.0), (0.0, 2.0), (2.0, 0.0), (2.0, 2.0)];
        let points = corners.map(|(x, y)| Point::new(x, y)).to_vec();
        Cloud::nth(index, label.to_owned(), points)
    }

    #[test]
    fn every_point_is_a_mark_and_every_name_is_there() {
        let svg = svg(vec![square(0, "first"), square(6, "<second>")]);
        assert_eq!(svg.matches("h0").count(), 4);
        assert_eq!(svg.matches("l4.4 4.4").count(), 4);
        assert!(svg.contains(">first<") && svg.contains(">&lt;second&gt;<"));
    }

    #[test]
    fn names_in_one_place_move_apart_until_there_is_no_room() {
        let names = |count: usize| {
            let svg = svg((0..count).map(|index| square(index, "same")).collect());
            let heights: Vec<String> = svg
                .split("class=\"name ")
                .skip(1)
                .filter_map(|text| text.split(" y=\"").nth(1)?.split('"').next())
                .map(str::to_owned)
                .collect();
            let distinct: std::collections::BTreeSet<&String> = heights.iter().collect();
            assert_eq!(distinct.len(), heights.len());
            heights.len()
        };
        assert_eq!(names(10), 10);
        assert_eq!(names(30), 2 * LINES_OF_MANY as usize + 1);
    }

    #[test]
    fn clouds_without_a_place_or_a_name_are_silent() {
        let nowhere = Cloud::nth(0, "nowhere".to_owned(), vec![Point::new(f64::NAN, 1.0)]);
        let svg = svg(vec![nowhere, Cloud::default(), square(1, "")]);
        assert!(!svg.contains("nowhere") && !svg.contains("class=\"name"));
        assert_eq!(svg.matches("<path class=\"speck").count(), 1);
    }

    #[test]
    fn long_names_are_cut() {
        let svg = svg(vec![square(0, "walking slowly upstairs")]);
        assert!(svg.contains(">walking slowly …<"));
    }
}
