//! Thinning of long curves without changing the picture: each stretch of points is replaced by its
//! lowest and its highest, so no peak is lost. First and last always stay.

use super::mark::{Point, Span};

/// Maximum number of stretches: more than a screen shows side by side in one plot.
const STRETCHES: usize = 240;

/// Returns at most two points per stretch, in order.
pub(super) fn points(all: &[Point]) -> Vec<Point> {
    let (Some(first), Some(last)) = (all.first(), all.last()) else {
        return Vec::new();
    };
    if all.len() <= 2 * STRETCHES {
        return all.to_vec();
    }
    let inner = &all[1..all.len() - 1];
    let mut kept = vec![*first];
    for stretch in inner.chunks(inner.len().div_ceil(STRETCHES)) {
        let extreme = |sign: f64| {
            let by_height =
                |&a: &usize, &b: &usize| (sign * stretch[a].y).total_cmp(&(sign * stretch[b].y));
            (0..stretch.len()).max_by(by_height).unwrap_or(0)
        };
        let (low, high) = (extreme(-1.0), extreme(1.0));
        kept.push(stretch[low.min(high)]);
        if low != high {
            kept.push(stretch[low.max(high)]);
        }
    }
    kept.push(*last);
    kept
}

/// Returns one span per stretch, with its lowest and highest values.
pub(super) fn spans(all: &[Span]) -> Vec<Span> {
    if all.len() <= 2 * STRETCHES {
        return all.to_vec();
    }
    all.chunks(all.len().div_ceil(STRETCHES))
        .filter_map(|stretch| {
            let (first, last) = (stretch.first()?, stretch.last()?);
            let envelope = stretch.iter().fold(*first, |sum, span| Span {
                low: sum.low.min(span.low),
                high: sum.high.max(span.high),
                ..sum
            });
            // Covers the ends of the axis.
            Some([
                envelope,
                Span {
                    x: last.x,
                    ..envelope
                },
            ])
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_and_ends_survive() {
        let mut all: Vec<Point> = (0..10_000)
            .map(|i| Point::new(f64::from(i), f64::from(i % 7)))
            .collect();
        all[5_000].y = 99.0;
        all[5_003].y = -99.0;
        let kept = points(&all);
        assert!(kept.len() <= 2 * STRETCHES + 2);
        assert!(kept.iter().any(|p| p.y > 98.0) && kept.iter().any(|p| p.y < -98.0));
        assert_eq!((kept[0], kept[kept.len() - 1]), (all[0], all[9_999]));
        assert!(kept.windows(2).all(|pair| pair[0].x < pair[1].x));
    }

    #[test]
    fn short_curves_stay_as_they_are() {
        let all: Vec<Point> = (0..30).map(|i| Point::new(f64::from(i), 1.0)).collect();
        assert_eq!(points(&all), all);
        assert!(points(&[]).is_empty());
    }

    #[test]
    fn spans_cover_what_they_replace() {
        let all: Vec<Span> = (0..5_000)
            .map(|i| Span {
                x: f64::from(i),
                low: -f64::from(i),
                high: f64::from(i),
            })
            .collect();
        let kept = spans(&all);
        assert!(kept.len() <= 2 * STRETCHES);
        let last = kept.last().unwrap();
        assert!(last.x > 4_998.5 && last.high > 4_998.5 && last.low < -4_998.5);
    }
}
