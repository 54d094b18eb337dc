//! The tables of keys in `docs/`, which are printed from the schema of experiment files.
//!
//! A line such as `<!-- keys of train -->` comes before a table. Each row begins with the name of a
//! key, and the rest of the row is printed from the comment of the key and from its default:
//! `WRITE_KEYS=1 cargo test -p smolfed reference`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use smolfed_engine::config::Config;
use smolfed_report::sweep;

/// Lines before the tables of an experiment's top level, and of other tables.
const TOP: &str = "<!-- keys -->";
const BEGIN: &str = "<!-- keys of ";
/// Environment variable for writing the pages instead of comparing them.
const WRITE: &str = "WRITE_KEYS";

/// Keys in a table by layer.
const ELSEWHERE: &str = "model.layers";

/// Begins the last paragraph of a comment.
const DEFAULT: &str = "Default: ";

/// A key of an experiment.
struct Key<'a> {
    schema: &'a Value,
    is_required: bool,
}

/// Follows references and single alternatives to the part of the schema that lists keys.
fn table<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(path) = schema["$ref"].as_str() {
        let target = path.strip_prefix('#').and_then(|path| root.pointer(path));
        return table(root, target.expect("a definition"));
    }
    if schema["items"].is_object() {
        return table(root, &schema["items"]);
    }
    let alternatives = ["allOf", "anyOf"].map(|name| schema[name].as_array());
    let mut alternatives = alternatives.into_iter().flatten().flatten();
    match alternatives.find(|alternative| alternative["type"] != "null") {
        Some(alternative) => table(root, alternative),
        None => schema,
    }
}

/// Returns the key with this dotted name.
fn key<'a>(root: &'a Value, name: &str) -> Key<'a> {
    let mut found = Key {
        schema: root,
        is_required: false,
    };
    for part in name.split('.') {
        let table = table(root, found.schema);
        let required = table["required"].as_array().into_iter().flatten();
        found = Key {
            schema: &table["properties"][part],
            is_required: required.into_iter().any(|name| name == part),
        };
        assert!(found.schema.is_object(), "there is no key {name}");
    }
    found
}

/// Turns names of pages into links.
fn linked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("docs/") {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-.#_".contains(c);
        let end = after.find(|c| !is_part(c)).unwrap_or(after.len());
        let target = after.get(..end).unwrap_or_default().trim_end_matches('.');
        let page = target.split('#').next().unwrap_or_default();
        write!(out, "{before}[{page}]({target})").expect("a string");
        rest = after.get(target.len()..).unwrap_or_default();
    }
    out + rest
}

impl Key<'_> {
    /// Returns the default and the meaning.
    fn cells(&self) -> (String, String) {
        let comment = self.schema["description"].as_str().expect("a comment");
        let mut paragraphs: Vec<String> = comment
            .split("\n\n")
            .map(|paragraph| linked(&paragraph.replace('\n', " ")))
            .collect();
        let last = paragraphs
            .last()
            .and_then(|last| last.strip_prefix(DEFAULT));
        let default = match last {
            Some(text) => {
                let text = text.trim_end_matches('.').to_owned();
                paragraphs.pop();
                text
            }
            None => self.default(),
        };
        (default, paragraphs.join(" "))
    }

    /// Returns the default in the schema.
    fn default(&self) -> String {
        match &self.schema["default"] {
            _ if self.is_required => "required".to_owned(),
            Value::String(text) => format!("`\"{text}\"`"),
            Value::Bool(value) => value.to_string(),
            Value::Number(number) => match number.as_f64().expect("a number") {
                number if number != 0.0 && number < 1e-4 => format!("{number:e}"),
                number => number.to_string(),
            },
            _ => "none".to_owned(),
        }
    }
}

/// Returns a page with the tables as they should be, and the dotted names of their keys.
fn page(root: &Value, text: &str) -> (String, Vec<String>) {
    let (mut out, mut names, mut place) = (String::new(), Vec::new(), None);
    for line in text.lines() {
        let name = line.strip_prefix("| `").and_then(|row| row.split_once('`'));
        match (&place, name) {
            (Some(place), Some((name, _))) => {
                let path = format!("{place}{name}");
                let (default, meaning) = key(root, &path).cells();
                writeln!(out, "| `{name}` | {default} | {meaning} |").expect("a string");
                names.push(path);
                continue;
            }
            // The head of the table, and the empty line before it.
            (Some(_), None) if line.is_empty() || line.starts_with("| ") => {}
            _ => place = None,
        }
        if line == TOP {
            place = Some(String::new());
        } else if let Some(table) = line.strip_prefix(BEGIN) {
            place = Some(table.trim_end_matches(" -->").to_owned() + ".");
        }
        out += line;
        out.push('\n');
    }
    (out, names)
}

fn pages() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let entries = std::fs::read_dir(folder).expect("the pages");
    let paths = entries.map(|entry| entry.expect("a page").path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    paths.sort();
    paths
}

/// Compares or writes the pages. Every key has a row, except those that depend on a layer.
#[test]
fn the_tables_of_keys_are_printed_from_the_comments() {
    let (root, mut documented) = (sweep::schema(), Vec::new());
    for path in pages() {
        let text = std::fs::read_to_string(&path).expect("a page");
        let (expected, names) = page(&root, &text);
        if std::env::var_os(WRITE).is_some() && !names.is_empty() {
            std::fs::write(&path, &expected).expect("a page");
        }
        documented.extend(names);
        let text = std::fs::read_to_string(&path).expect("a page");
        assert!(
            text == expected,
            "{} is out of date: {WRITE}=1 cargo test -p smolfed reference",
            path.display()
        );
    }
    documented.push(ELSEWHERE.to_owned());
    let is_in = |key: &str, table: &str| {
        let rest = key.strip_prefix(table);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    // A row describes all keys of a table, and the rows of a table describe it.
    let has_row = |key: &str| {
        documented
            .iter()
            .any(|row| is_in(key, row) || is_in(row, key))
    };
    let of_sweeps = table(&root, &root["properties"]["sweep"])["properties"].as_object();
    let of_sweeps = of_sweeps.expect("a table").keys();
    let of_sweeps = of_sweeps.map(|key| format!("sweep.{key}"));
    let missing = Config::keys().into_iter().chain(of_sweeps);
    let missing: Vec<String> = missing.filter(|key| !has_row(key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn names_of_pages_become_links() {
    assert_eq!(
        linked("A part (docs/a-b.md#c_d). See docs/e.md."),
        "A part ([a-b.md](a-b.md#c_d)). See [e.md](e.md)."
    );
}
