//! Numbers for readers (formatting): a few significant digits, rounding up or down, groups of three
//! digits, and counted nouns.

/// Formats a number with the noun that it counts: `1 round`, `2 rounds`.
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(count))
}

/// Formats `value` with `digits` significant digits, without trailing zeros: `0.3`, `12.35`,
/// `4.2×10⁻⁷`.
///
/// Powers of ten appear below 0.001 and from a million on. Other values than finite ones are `∞`,
/// `−∞` or `–`.
#[must_use]
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return not_finite(value);
    }
    let digits = digits.max(1);
    let scientific = format!("{:.*e}", digits - 1, value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if value < 0.0 { "−" } else { "" };
    let is_zero = value.abs() < f64::MIN_POSITIVE;
    if !is_zero && !(-3..6).contains(&exponent) {
        let mantissa = drop_zeros(mantissa);
        let power = superscript(exponent);
        return match mantissa.as_str() {
            "1" => format!("{sign}10{power}"),
            _ => format!("{sign}{mantissa}×10{power}"),
        };
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    format!(
        "{sign}{}",
        drop_zeros(&format!("{:.decimals$}", value.abs()))
    )
}

/// Formats like [`significant`], rounded up: for upper bounds, which must not shrink when printed.
#[must_use]
pub fn upper(value: f64, digits: usize) -> String {
    significant(rounded(value, digits, f64::ceil), digits)
}

/// Formats like [`significant`], rounded down: for lower bounds.
#[must_use]
pub fn lower(value: f64, digits: usize) -> String {
    significant(rounded(value, digits, f64::floor), digits)
}

/// Rounds `value` to `digits` significant digits by `round`, ignoring an error in its last bits.
fn rounded(value: f64, digits: usize, round: impl Fn(f64) -> f64) -> f64 {
    let exponent = libm::log10(value.abs()).floor();
    let unit = libm::pow(10.0, exponent + 1.0 - digits.max(1) as f64);
    let steps = value / unit;
    if !steps.is_finite() {
        return value;
    }
    let nearest = steps.round();
    let is_exact = (steps - nearest).abs() < 1e-9 * nearest.abs();
    unit * if is_exact { nearest } else { round(steps) }
}

/// Formats `value` with exactly `decimals` decimals and a real minus sign.
#[must_use]
pub fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return not_finite(value);
    }
    let digits = format!("{:.decimals$}", value.abs());
    let is_zero = digits.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    if value < 0.0 && !is_zero {
        format!("−{digits}")
    } else {
        digits
    }
}

/// Formats an integer in groups of three digits: `1,000,000`.
#[must_use]
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn not_finite(value: f64) -> String {
    let text = match value {
        _ if value.is_nan() => "–",
        _ if value > 0.0 => "∞",
        _ => "−∞",
    };
    text.to_owned()
}

/// Formats an exponent in superscript digits, as in `10⁻³`.
pub fn superscript(exponent: i32) -> String {
    let digit = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '0' => '⁰',
        // The superscripts from 4 on have successive code points.
        _ => c
            .to_digit(10)
            .and_then(|digit| char::from_u32(0x2070 + digit))
            .unwrap_or(c),
    };
    exponent.to_string().chars().map(digit).collect()
}

fn drop_zeros(text: &str) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_that_count_are_kept_and_zeros_are_not() {
        let cases = [
            (0.0, "0"),
            (0.3, "0.3"),
            (12.3456, "12.35"),
            (-1.5, "−1.5"),
            (99_999.6, "100000"),
            (0.001234, "0.001234"),
            (0.000_25, "2.5×10⁻⁴"),
            (1e-10, "10⁻¹⁰"),
            (-4.56e7, "−4.56×10⁷"),
            (f64::INFINITY, "∞"),
            (f64::NAN, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(significant(value, 4), text);
        }
    }

    #[test]
    fn bounds_are_rounded_to_the_safe_side() {
        assert_eq!(upper(5.99947, 4), "6");
        assert_eq!(upper(5.9911, 4), "5.992");
        assert_eq!(lower(5.9999, 4), "5.999");
        for value in [6.0, 0.3, 5.012, 1e-5, 0.0, f64::INFINITY] {
            assert_eq!(upper(value, 4), significant(value, 4));
            assert_eq!(lower(value, 4), significant(value, 4));
        }
    }

    #[test]
    fn decimals_are_fixed_and_zero_has_no_sign() {
        assert_eq!(fixed(84.3, 2), "84.30");
        assert_eq!(fixed(-0.001, 2), "0.00");
        assert_eq!(fixed(-2.0, 0), "−2");
        assert_eq!(fixed(f64::NEG_INFINITY, 1), "−∞");
    }

    #[test]
    fn thousands_are_grouped() {
        for (value, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(value), text);
        }
    }
}
