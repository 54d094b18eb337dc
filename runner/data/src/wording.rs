//! Messages of the TOML parser, in the words of somebody who writes a file.
//!
//! The parser mentions fields, variants and types of Rust. Its messages have few forms, those of
//! `serde::de::Error`. Anything else is a message of smolfed, and stays unchanged.

use serde_json::error::Category;

use crate::spelling::similar;

/// Returns the message in plain words. If it begins with "is", it follows the name of a key.
#[must_use]
pub fn reworded(message: &str) -> String {
    let message = message.trim_end().replace('\n', ", ");
    let forms = [unknown_key, wrong_name, wrong_value, missing_key, syntax];
    let found = forms.iter().find_map(|form| form(&message));
    found.unwrap_or(message)
}

/// Rewords "unknown field `a`, expected one of `b`, `c`".
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

/// Rewords "unknown variant `a`, expected `b` or `c`".
fn wrong_name(message: &str) -> Option<String> {
    let (name, expected) = message.strip_prefix("unknown variant `")?.split_once('`')?;
    let expected = expected.strip_prefix(", expected ").unwrap_or(expected);
    let meant = similar(name, in_quotes(expected));
    let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
    Some(format!("is `{name}`, but must be {expected}{meant}"))
}

/// Rewords "invalid type: string "a", expected u32", and "invalid value".
fn wrong_value(message: &str) -> Option<String> {
    let rest = message.strip_prefix("invalid type: ");
    let rest = rest.or_else(|| message.strip_prefix("invalid value: "))?;
    let (found, expected) = rest.rsplit_once(", expected ")?;
    let found = match found {
        "unit variant" => return Some("is not text, but must be a name in quotes".to_owned()),
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
    let max = match expected {
        "u8" => Some(u64::from(u8::MAX)),
        "u16" => Some(u64::from(u16::MAX)),
        "u32" => Some(u64::from(u32::MAX)),
        _ => None,
    };
    match (found.parse::<u64>(), max) {
        (Ok(value), Some(max)) if value > max => {
            Some(format!("is {found}, but must be at most {max}"))
        }
        _ => Some(format!("is {found}, but must be {}", of_type(expected))),
    }
}

/// Rewords "missing field `a`".
fn missing_key(message: &str) -> Option<String> {
    let name = message.strip_prefix("missing field `")?.strip_suffix('`')?;
    Some(format!("the key `{name}` is missing"))
}

/// Rewords the error for a line that is not TOML, in which the parser names the violated rule.
fn syntax(message: &str) -> Option<String> {
    let rules = [
        ("key with no value", LINE),
        ("unquoted keys cannot be empty", LINE),
        ("string values must be quoted", VALUE),
        ("invalid boolean", VALUE),
        ("missing escaped value", BACKSLASH),
        (
            "invalid basic string",
            "the text is not closed: a quote is missing",
        ),
        (
            "invalid literal string",
            "the text is not closed: a quote is missing",
        ),
        ("unexpected key or value", AFTER),
        ("unexpected leading zero", NUMBER),
        ("integer number overflowed", NUMBER),
        ("invalid float", NUMBER),
        ("invalid exponent", NUMBER),
        ("invalid mantissa", NUMBER),
        ("invalid fraction", NUMBER),
        ("duplicate key", "duplicate key: remove one of the two"),
    ];
    let broken = rules.iter().find(|(rule, _)| message.starts_with(rule));
    broken.map(|(_, advice)| (*advice).to_owned())
}

const LINE: &str = "expected `key = value` or `[table]`";
const VALUE: &str =
    "expected a number, true, false, a list, or text in quotes as in `name = \"a\"`";
const BACKSLASH: &str = "a backslash in quotes has a special meaning: write / or \\\\ instead";
const AFTER: &str =
    "there is more after the value: write one key per line, and numbers with a point, as in 0.5";
const NUMBER: &str = "not a number: write it as in 5, 0.05 or 1e-5";

/// Returns an error of the JSON parser for a file, with the place in it.
#[must_use]
pub fn of_json(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    format!("line {line}, column {column}: {}", of_json_record(error))
}

/// Returns an error of the JSON parser for a line.
#[must_use]
pub fn of_json_record(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    let message = error.to_string();
    let place = format!(" at line {line} column {column}");
    match error.classify() {
        Category::Data => reworded(message.strip_suffix(&place).unwrap_or(&message)),
        Category::Eof => "it ends too early".to_owned(),
        _ => "it is not JSON".to_owned(),
    }
}

/// Returns the name in a file for a type of Rust.
fn of_type(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
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

/// Iterates over the names between backticks.
fn in_quotes(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns the first names, as listed in an error message.
pub fn listed<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    const MAX_SHOWN: usize = 12;
    let more = names.clone().count().saturating_sub(MAX_SHOWN);
    let mut shown: Vec<String> = names
        .take(MAX_SHOWN)
        .map(|name| format!("`{name}`"))
        .collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
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
                "is \"two\", but must be a whole number that is not negative",
            ),
            (
                "invalid value: integer `-1`, expected u64",
                "is -1, but must be a whole number that is not negative",
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
            (
                "invalid value: integer `5000000000`, expected u32",
                "is 5000000000, but must be at most 4294967295",
            ),
            (
                "invalid type: unit variant, expected string only",
                "is not text, but must be a name in quotes",
            ),
            ("key with no value, expected `=`", LINE),
            ("missing field `method`", "the key `method` is missing"),
            ("`data.devices` is 0", "`data.devices` is 0"),
        ] {
            assert_eq!(reworded(message), expected);
        }
    }
}
