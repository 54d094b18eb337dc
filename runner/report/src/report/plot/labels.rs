//! Labels at the ends of curves, moved apart so that none hides another.

use super::frame::{Frame, HEIGHT};

/// Height of a line of text.
pub(super) const LINE: f64 = 15.0;
/// Room between two labels, so that the lines of one are closer than two labels.
pub(super) const GAP: f64 = 6.0;

/// Returns the lowest end of labels that begin at `top`: above the last tick of the horizontal
/// axis, which extends as far to the right, if all fit there.
pub(super) fn bottom(wanted: &[(f64, f64)], top: f64) -> f64 {
    // A tick is written 18 below the axis, and its digits are 10 high.
    let above_ticks = Frame::BASE + 6.0;
    let height: f64 = wanted.iter().map(|label| label.1).sum();
    match top + height <= above_ticks {
        true => above_ticks,
        false => HEIGHT - 4.0,
    }
}

/// Places labels: `wanted` has the middle and the height of each. Returns the middles in the order
/// of the input, between `top` and `bottom` if all fit.
pub(super) fn spread(wanted: &[(f64, f64)], top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].0.total_cmp(&wanted[b].0));
    let mut middles: Vec<f64> = wanted.iter().map(|label| label.0).collect();
    // Down from the top: no label above the end of the previous one.
    let mut free = top;
    for &index in &order {
        let half = wanted[index].1 / 2.0;
        middles[index] = middles[index].max(free + half);
        free = middles[index] + half;
    }
    // Back up from the bottom, if the first pass pushed them out.
    let mut free = bottom;
    for &index in order.iter().rev() {
        let half = wanted[index].1 / 2.0;
        middles[index] = middles[index].min(free - half);
        free = middles[index] - half;
    }
    middles
}

/// Estimates the width of a text at the size of the plot's labels on a narrow screen.
pub(super) fn width(text: &str) -> f64 {
    7.2 * text.chars().count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_fit_stay() {
        assert_eq!(
            spread(&[(50.0, 14.0), (100.0, 14.0)], 0.0, 200.0),
            [50.0, 100.0]
        );
        assert!(spread(&[], 0.0, 1.0).is_empty());
    }

    /// Returns the end of the lowest label of a curve that ends on the axis.
    fn lowest(labels: usize) -> f64 {
        let wanted = vec![(Frame::BASE, 2.0 * LINE + GAP); labels];
        let middles = spread(&wanted, 4.0, bottom(&wanted, 4.0));
        middles.iter().fold(0.0, |low, middle| middle.max(low)) + LINE + GAP / 2.0
    }

    #[test]
    fn labels_stay_above_the_last_tick_where_they_fit() {
        for labels in 1..=6 {
            assert!(lowest(labels) <= Frame::BASE + 8.0, "{labels}");
        }
        // More labels need the whole height.
        assert!((lowest(7) - (HEIGHT - 4.0)).abs() < 1e-9);
    }

    #[test]
    fn labels_move_apart_and_stay_inside() {
        let wanted = [(198.0, 28.0), (199.0, 28.0), (10.0, 14.0), (197.0, 14.0)];
        let middles = spread(&wanted, 0.0, 200.0);
        let mut ends: Vec<(f64, f64)> = middles
            .iter()
            .zip(&wanted)
            .map(|(middle, (_, height))| (middle - height / 2.0, middle + height / 2.0))
            .collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(
            ends.windows(2).all(|pair| pair[0].1 <= pair[1].0 + 1e-9),
            "{ends:?}"
        );
        assert!(ends[3].1 <= 200.0 && (ends[0].0 - 3.0).abs() < 1e-9);
    }
}
