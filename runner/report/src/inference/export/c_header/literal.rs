//! Literals of C.

use std::fmt::Write;

/// The shortest text that is read as the same number.
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

/// A string literal, with all but plain ASCII as octal escapes: they end after three digits, where
/// hexadecimal ones would go on. A question mark could begin a trigraph.
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
