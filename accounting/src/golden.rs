//! The golden values of the tests: `tests/vectors/accounting_*.json` of the repository, which is
//! not part of a published package.

use serde_json::Value;

/// Reads one file of golden values.
pub(crate) fn file(name: &str) -> Value {
    let path = format!("{}/../tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap()
}

/// Returns the rows of one table. Dots separate nested keys.
pub(crate) fn rows(name: &str, table: &str) -> Vec<Value> {
    let file = file(name);
    let rows = table
        .split('.')
        .fold(&file, |value, key| &value[key])
        .as_array()
        .cloned();
    rows.filter(|rows| !rows.is_empty())
        .unwrap_or_else(|| panic!("{name} has no {table}"))
}

/// Returns a number of a row, written as a number or as text.
pub(crate) fn number(row: &Value, key: &str) -> f64 {
    let value = &row[key];
    value
        .as_f64()
        .or_else(|| value.as_str().and_then(|text| text.parse().ok()))
        .unwrap_or_else(|| panic!("{key} of {row}"))
}
