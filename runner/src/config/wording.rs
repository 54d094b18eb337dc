//! What the parser of TOML says, in the words of somebody who writes a file.
//!
//! The parser speaks of fields, variants and types of Rust. What it says has few forms, which are
//! those of `serde::de::Error`; anything else is a sentence of ours, and stays as it is.

use crate::spelling::similar;

/// The message in plain words. One that begins with "is" follows the name of a key.
#[must_use]
pub fn reworded(message: &str) -> String {
    let message = message.trim_end().replace('\n', ", ");
    let forms = [unknown_key, wrong_name, wrong_value, missing_key];
    let found = forms.iter().find_map(|form| form(&message));
    found.unwrap_or(message)
}

/// "unknown field `a`, expected one of `b`, `c`"
fn unknown_key(message: &str) -> Option<String> {
    let (name, expected) = message.strip_prefix("unknown field `")?.split_once('`')?;
    Some(match similar(name, in_quotes(expected)) {
        Some(meant) => format!("unknown key `{name}`; did you mean `{meant}`?"),
        None => {
            let known: Vec<String> = in_quotes(expected).map(|key| format!("`{key}`")).collect();
            format!("unknown key `{name}`; the keys are {}", known.join(", "))
        }
    })
}

/// "unknown variant `a`, expected `b` or `c`"
fn wrong_name(message: &str) -> Option<String> {
    let (name, expected) = message.strip_prefix("unknown variant `")?.split_once('`')?;
    let expected = expected.strip_prefix(", expected ").unwrap_or(expected);
    let meant = similar(name, in_quotes(expected));
    let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
    Some(format!("is `{name}`, but must be {expected}{meant}"))
}

/// "invalid type: string "a", expected u32", and "invalid value"
fn wrong_value(message: &str) -> Option<String> {
    let rest = message.strip_prefix("invalid type: ");
    let rest = rest.or_else(|| message.strip_prefix("invalid value: "))?;
    let (found, expected) = rest.rsplit_once(", expected ")?;
    let found = match found {
        "map" => "a table".to_owned(),
        "sequence" => "a list".to_owned(),
        "unit value" => "nothing".to_owned(),
        // "integer `3`", "floating point `0.5`", "boolean `true`" and "string "a""
        _ => match found.split_once(['`', '"']) {
            Some((kind, value)) if kind.starts_with("string") => format!("\"{value}"),
            Some((_, value)) => value.trim_end_matches('`').to_owned(),
            None => found.to_owned(),
        },
    };
    Some(format!("is {found}, but must be {}", of_type(expected)))
}

/// "missing field `a`"
fn missing_key(message: &str) -> Option<String> {
    let name = message.strip_prefix("missing field `")?.strip_suffix('`')?;
    Some(format!("the key `{name}` is missing"))
}

/// What a type of Rust is in a file.
fn of_type(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" | "boolean" => "true or false",
        "a string" | "string" | "path string" | "a character" => "text",
        "a sequence" | "sequence" => "a list",
        "a map" | "map" => "a table",
        _ if expected.starts_with("a nonzero") => "a whole number, 1 or more",
        _ if expected.starts_with("struct") => "a table",
        _ if expected.ends_with("enum") || expected.starts_with("enum") => "a name",
        _ => expected,
    }
}

/// The names between backticks.
fn in_quotes(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_rust_become_words() {
        for (message, expected) in [
            (
                "unknown field `epsilom`, expected one of `epsilon`, `delta`",
                "unknown key `epsilom`; did you mean `epsilon`?",
            ),
            (
                "unknown field `x`, expected `epsilon` or `delta`",
                "unknown key `x`; the keys are `epsilon`, `delta`",
            ),
            (
                "unknown variant `possion`, expected one of `uniform`, `poisson`",
                "is `possion`, but must be one of `uniform`, `poisson`; did you mean `poisson`?",
            ),
            (
                "invalid type: string \"two\", expected u32",
                "is \"two\", but must be a whole number, 0 or more",
            ),
            (
                "invalid value: integer `-1`, expected u64",
                "is -1, but must be a whole number, 0 or more",
            ),
            (
                "invalid type: floating point `0.5`, expected a boolean",
                "is 0.5, but must be true or false",
            ),
            (
                "invalid type: integer `3`, expected struct RawData",
                "is 3, but must be a table",
            ),
            (
                "invalid value: integer `0`, expected a nonzero u32\n",
                "is 0, but must be a whole number, 1 or more",
            ),
            (
                "invalid type: map, expected a string",
                "is a table, but must be text",
            ),
            ("missing field `method`", "the key `method` is missing"),
            ("`data.devices` is 0", "`data.devices` is 0"),
        ] {
            assert_eq!(reworded(message), expected);
        }
    }
}
