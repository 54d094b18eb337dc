//! Axes: from a range of values to round ticks and positions on the page.

use smolfed_release::number::{fixed, grouped, superscript};

/// Mapping of values to distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equal distances.
    #[default]
    Linear,
    /// Like `Linear`, with ticks at whole numbers only: rounds, devices.
    Whole,
    /// Equal ratios are equal distances. Values not above 0 are left out.
    Log,
}

/// One axis, fitted to its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    pub(super) ticks: Vec<Tick>,
}

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) text: String,
}

impl Scale {
    /// Returns whether a value has a position on this scale.
    pub(super) fn holds(self, value: f64) -> bool {
        // Differences of larger values may overflow.
        value.abs() < 1e300 && (self != Self::Log || value > 0.0)
    }
}

impl Axis {
    /// Returns an axis that includes all of `values`, with about `count` ticks. With `outward` its
    /// ends are ticks as well, if the scale allows.
    pub(super) fn new(
        scale: Scale,
        values: impl Iterator<Item = f64>,
        count: usize,
        outward: bool,
    ) -> Self {
        let (low, high) = values
            .filter(|value| scale.holds(*value))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        match scale {
            Scale::Log if low <= high => Self::log(low, high, count),
            Scale::Log => Self::log(0.1, 1.0, count),
            _ if low <= high => Self::linear(scale, low, high, count, outward),
            _ => Self::linear(scale, 0.0, 1.0, count, outward),
        }
    }

    fn linear(scale: Scale, low: f64, high: f64, count: usize, outward: bool) -> Self {
        let size = low.abs().max(high.abs());
        // A single value gets room on both sides, and so do values that differ only by rounding.
        let (low, high) = if high - low > 1e-9 * size {
            (low, high)
        } else {
            // For whole numbers one is room enough, unless they are too large to distinguish.
            let is_small = size == 0.0 || (scale == Scale::Whole && size < 1e9);
            let room = if is_small { 1.0 } else { 0.1 * size };
            (low - room, high + room)
        };
        let mut step = round_step((high - low) / count.max(1) as f64);
        if scale == Scale::Whole {
            step = step.max(1.0).round();
        }
        let (first, last) = if outward {
            ((low / step).floor(), (high / step).ceil())
        } else {
            ((low / step).ceil(), (high / step).floor())
        };
        let ticks = (0..=((last - first).max(0.0) as usize).min(4 * count.max(1)))
            .map(|index| {
                let value = (first + index as f64) * step;
                Tick {
                    value,
                    text: tick_text(value, step),
                }
            })
            .filter(|tick| outward || (tick.value >= low && tick.value <= high))
            .collect();
        let (low, high) = if outward {
            (low.min(first * step), high.max(last * step))
        } else {
            (low, high)
        };
        Self {
            scale,
            low,
            high,
            ticks,
        }
    }

    fn log(low: f64, high: f64, count: usize) -> Self {
        let (low, high) = (libm::log10(low), libm::log10(high));
        let room = (0.04 * (high - low)).max(0.05);
        let (low, high) = (low - room, high + room);
        let decades = (low.ceil() as i32..=high.floor() as i32).collect::<Vec<_>>();
        let every = decades.len().div_ceil(count.max(1)).max(1);
        let tick = |exponent: f64, text: String| Tick {
            value: exponent,
            text,
        };
        let ticks = if decades.len() >= 3 {
            decades
                .iter()
                .filter(|exponent| exponent.rem_euclid(every as i32) == 0)
                .map(|exponent| tick(f64::from(*exponent), power_text(*exponent)))
                .collect()
        } else {
            // Too short for only powers of ten.
            (low.floor() as i32..=high.ceil() as i32)
                .flat_map(|exponent| [1.0, 2.0, 5.0].map(|factor| (factor, exponent)))
                .map(|(factor, exponent)| {
                    let place = f64::from(exponent) + libm::log10(factor);
                    tick(place, factor_text(factor, exponent))
                })
                .filter(|tick| tick.value >= low && tick.value <= high)
                .collect()
        };
        Self {
            scale: Scale::Log,
            low,
            high,
            ticks,
        }
    }

    /// Returns a value's position between the low end (0) and the high end (1), if it has one.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        if !self.scale.holds(value) {
            return None;
        }
        let value = if self.scale == Scale::Log {
            libm::log10(value)
        } else {
            value
        };
        Some(self.part(value))
    }

    /// Returns a tick's position.
    pub(super) fn tick_place(&self, tick: &Tick) -> f64 {
        self.part(tick.value)
    }

    fn part(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }
}

/// Returns the smallest of 1, 2, 5 times a power of ten not below `least`.
fn round_step(least: f64) -> f64 {
    let power = libm::pow(10.0, libm::log10(least).floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|factor| factor * power)
        // A step too small only by rounding is as good.
        .find(|step| *step >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

fn tick_text(value: f64, step: f64) -> String {
    let exponent = libm::log10(step).floor();
    if exponent < -5.0 || value.abs() >= 1e7 {
        return smolfed_release::number::significant(value, 4);
    }
    if value >= 10_000.0 && step >= 1.0 {
        return grouped(value as u64);
    }
    fixed(value, (-exponent).max(0.0) as usize)
}

fn power_text(exponent: i32) -> String {
    match exponent {
        -2..=3 => factor_text(1.0, exponent),
        _ => format!("10{}", superscript(exponent)),
    }
}

fn factor_text(factor: f64, exponent: i32) -> String {
    smolfed_release::number::significant(factor * libm::pow(10.0, f64::from(exponent)), 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round() {
        let axis = Axis::new(Scale::Linear, [0.13, 0.87].into_iter(), 5, true);
        assert_eq!(texts(&axis), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        let axis = Axis::new(Scale::Whole, [1.0, 30.0].into_iter(), 6, false);
        assert_eq!(texts(&axis), ["5", "10", "15", "20", "25", "30"]);
        let axis = Axis::new(Scale::Whole, [1.0, 10_000.0].into_iter(), 5, false);
        assert_eq!(axis.ticks.last().unwrap().text, "10,000");
    }

    #[test]
    fn whole_axes_have_no_ticks_between() {
        let axis = Axis::new(Scale::Whole, [1.0].into_iter(), 6, false);
        assert_eq!(texts(&axis), ["0", "1", "2"]);
        let axis = Axis::new(Scale::Whole, [1.0, 3.0].into_iter(), 6, false);
        assert_eq!(texts(&axis), ["1", "2", "3"]);
    }

    #[test]
    fn decades_are_ticks_of_a_log_axis() {
        let axis = Axis::new(Scale::Log, [2e-9, 3e-2].into_iter(), 4, false);
        assert_eq!(texts(&axis), ["10⁻⁸", "10⁻⁶", "10⁻⁴", "0.01"]);
        let short = Axis::new(Scale::Log, [0.9, 6.0].into_iter(), 4, false);
        assert_eq!(texts(&short), ["1", "2", "5"]);
    }

    #[test]
    fn values_without_a_place_are_left_out() {
        let axis = Axis::new(
            Scale::Log,
            [0.0, 1.0, 100.0, f64::NAN].into_iter(),
            4,
            false,
        );
        assert_eq!(axis.place(0.0), None);
        assert_eq!(axis.place(f64::INFINITY), None);
        assert!((axis.place(10.0).unwrap() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn every_range_has_an_axis() {
        let ranges = [
            vec![],
            vec![0.0],
            vec![-3.0],
            vec![f64::NAN, f64::INFINITY],
            vec![1e299, -1e299, f64::MAX],
            vec![1e-300, 2e-300],
            vec![1.0, 1.0 + 1e-13],
        ];
        for scale in [Scale::Linear, Scale::Whole, Scale::Log] {
            for values in &ranges {
                for outward in [false, true] {
                    let axis = Axis::new(scale, values.iter().copied(), 5, outward);
                    assert!(axis.ticks.len() < 40, "{scale:?} {values:?}");
                    for value in values {
                        let place = axis.place(*value);
                        assert!(place.is_none_or(|p| (0.0..=1.0).contains(&p)), "{place:?}");
                    }
                }
            }
        }
    }
}
