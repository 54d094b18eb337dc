//! C literals of an exported header: numbers, and strings in quotes.

use std::fmt::Write;

/// Returns the shortest text that parses to the same number.
pub(super) fn float(value: f32) -> String {
    format!("{value:e}f")
}

pub(super) fn double(value: f64) -> String {
    if value.is_nan() {
        "(double)NAN".to_owned()
    } else if value.is_infinite() {
        let sign = if value < 0.0 { "-" } else { "" };
        format!("{sign}(double)INFINITY")
    } else if value < 0.0 {
        format!("({value:e})")
    } else {
        format!("{value:e}")
    }
}

/// Returns a string literal, with octal escapes for everything except plain ASCII: they end after
/// three digits, where hexadecimal ones would continue. A question mark could begin a trigraph.
pub(super) fn quoted(text: &str) -> String {
    let mut literal = "\"".to_owned();
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | b'?' => {
                literal.push('\\');
                literal.push(byte.into());
            }
            b' '..=b'~' => literal.push(byte.into()),
            _ => {
                let _ = write!(literal, "\\{byte:03o}");
            }
        }
    }
    literal.push('"');
    literal
}
