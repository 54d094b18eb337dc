//! `cargo xtask template FOLDER [NAME=VALUE]...`: creates a project from
//! `firmware-example/template/`, as `cargo generate` does with the same placeholders.
//!
//! `cargo-generate.toml` has the placeholders, their values, and the files of each choice. Files
//! use a subset of the `cargo generate` language: `{{name}}`, and lines `{%- if name == "value" %}`
//! and `{%- endif %}` around the text of one choice.

pub mod build;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use toml::{Table, Value};

use crate::toolchain::root;

/// Settings file of `cargo generate`, which is not part of a project.
const SETTINGS: &str = "cargo-generate.toml";

/// Extension of files that are invalid before the substitution.
const ENDING: &str = ".liquid";

/// Placeholders for crates of this repository, with their folders.
const CRATES: [(&str, &str); 2] = [("smolfed", "core"), ("memory", "firmware-example/memory")];

/// Placeholders with their values, and the files of other choices.
struct Choices {
    values: BTreeMap<String, String>,
    ignored: Vec<String>,
}

pub fn run(folder: &str, given: &[&str]) -> Result<(), Box<dyn Error>> {
    let to = Path::new(folder);
    if to.exists() {
        return Err(format!("{folder} is there already").into());
    }
    make(to, given)
}

/// Creates a project in a new folder. It uses the crates of this copy of the repository, unless
/// others are given.
pub fn make(to: &Path, given: &[&str]) -> Result<(), Box<dyn Error>> {
    let crates = CRATES.map(|(name, folder)| format!("{name}=path = {:?}", root().join(folder)));
    let of_crates = crates.iter().map(String::as_str);
    let given: Vec<&str> = of_crates.chain(given.iter().copied()).collect();
    let from = root().join("firmware-example/template");
    let settings: Table = fs::read_to_string(from.join(SETTINGS))?.parse()?;
    let choices = Choices::new(&settings, &given)?;
    choices.copy(&from, "", to)
}

/// Returns the allowed values of a placeholder.
pub fn choices(name: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let path = root().join("firmware-example/template").join(SETTINGS);
    let settings: Table = fs::read_to_string(path)?.parse()?;
    Ok(listed(&settings, name))
}

fn listed(settings: &Table, name: &str) -> Vec<String> {
    let values = settings["placeholders"][name].get("choices");
    let values = values.and_then(Value::as_array).into_iter().flatten();
    let values = values.filter_map(Value::as_str);
    values.map(str::to_owned).collect()
}

impl Choices {
    /// Returns the defaults, with the given values.
    fn new(settings: &Table, given: &[&str]) -> Result<Self, Box<dyn Error>> {
        let mut values = BTreeMap::new();
        values.insert("project-name".to_owned(), "smolfed-client".to_owned());
        let placeholders = settings.get("placeholders").and_then(Value::as_table);
        for (name, placeholder) in placeholders.into_iter().flatten() {
            let default = placeholder.get("default").and_then(Value::as_str);
            values.insert(name.clone(), default.unwrap_or_default().to_owned());
        }
        for word in given {
            let (name, value) = word
                .split_once('=')
                .ok_or(format!("`{word}`: NAME=VALUE"))?;
            let place = values.get_mut(name);
            *place.ok_or(format!("no placeholder `{name}`"))? = value.to_owned();
            let choices = match name {
                "project-name" => Vec::new(),
                name => listed(settings, name),
            };
            if !choices.is_empty() && !choices.iter().any(|choice| choice == value) {
                let choices = choices.join(", ");
                return Err(format!("`{name}` is {value}: one of {choices}").into());
            }
        }
        let ignored = ignored(settings, &values)?;
        Ok(Self { values, ignored })
    }

    /// Copies the folder `inner` of `from`, with values substituted for placeholders.
    fn copy(&self, from: &Path, inner: &str, to: &Path) -> Result<(), Box<dyn Error>> {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from.join(inner))? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_str().ok_or("a file without a name")?;
            let path = match inner {
                "" => name.to_owned(),
                inner => format!("{inner}/{name}"),
            };
            if entry.file_type()?.is_dir() {
                self.copy(from, &path, &to.join(name))?;
            } else if name != SETTINGS && !self.ignored.contains(&path) {
                let text = fs::read_to_string(entry.path())?;
                let text = self.substituted(&text);
                let text = text.map_err(|reason| format!("{path}: {reason}"))?;
                fs::write(to.join(name.strip_suffix(ENDING).unwrap_or(name)), text)?;
            }
        }
        Ok(())
    }

    /// Substitutes the placeholders in the text of a file.
    fn substituted(&self, text: &str) -> Result<String, String> {
        let mut lines = Vec::new();
        let mut condition = None;
        for line in text.lines() {
            if let Some(tag) = tag(line) {
                condition = match (tag, condition) {
                    ("endif", Some(_)) => None,
                    (tag, None) => Some(self.holds(tag)?),
                    (tag, Some(_)) => return Err(format!("`{tag}` within another `if`")),
                };
                // `{%-` removes empty lines before it.
                if lines.last().is_some_and(|line: &&str| line.is_empty()) {
                    return Err("an empty line before `{%-`".into());
                }
            } else if condition != Some(false) {
                lines.push(line);
            }
        }
        let mut text = lines.join("\n") + "\n";
        for (name, value) in &self.values {
            text = text.replace(&format!("{{{{{name}}}}}"), value);
        }
        match text.split_once("{{") {
            None => Ok(text),
            Some((_, rest)) => {
                let unknown: String = rest.chars().take_while(|c| *c != '}').collect();
                Err(format!("no placeholder `{unknown}`"))
            }
        }
    }

    /// Returns whether `if NAME == "VALUE"` holds.
    fn holds(&self, tag: &str) -> Result<bool, String> {
        let condition = tag
            .strip_prefix("if ")
            .and_then(|tag| tag.split_once(" == "));
        let (name, value) = condition.ok_or(format!("`{tag}`: if NAME == \"VALUE\""))?;
        let found = self
            .values
            .get(name)
            .ok_or(format!("no placeholder `{name}`"))?;
        Ok(value == format!("{found:?}"))
    }
}

/// Returns the tag of a line without other text.
fn tag(line: &str) -> Option<&str> {
    let tag = line.strip_prefix("{%-")?.strip_suffix("%}")?;
    Some(tag.trim())
}

/// Returns the files excluded by the tables `[conditional.'NAME != "VALUE"']`.
fn ignored(
    settings: &Table,
    values: &BTreeMap<String, String>,
) -> Result<Vec<String>, Box<dyn Error>> {
    let mut ignored = Vec::new();
    let tables = settings.get("conditional").and_then(Value::as_table);
    for (condition, table) in tables.into_iter().flatten() {
        let (name, value) = condition
            .split_once(" != ")
            .ok_or(format!("`{condition}`: NAME != \"VALUE\""))?;
        let found = values.get(name).ok_or(format!("no placeholder `{name}`"))?;
        if value != format!("{found:?}") {
            let files = table.get("ignore").and_then(Value::as_array);
            let files = files.into_iter().flatten().filter_map(Value::as_str);
            ignored.extend(files.map(str::to_owned));
        }
    }
    Ok(ignored)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str) -> Result<String, String> {
        let pairs = [("board", "pico"), ("classes", "3")];
        let values = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let choices = Choices {
            values: values.into(),
            ignored: Vec::new(),
        };
        choices.substituted(text)
    }

    #[test]
    fn files_are_substituted_line_by_line() {
        let text = "a {{classes}}\n{%- if board == \"pico\" %}\n\nb\n{%- endif %}\n\
                    {%- if board == \"nano\" %}\nc\n{%- endif %}\nd\n";
        assert_eq!(made(text).unwrap(), "a 3\n\nb\nd\n");
        for (text, reason) in [
            (
                "a\n\n{%- if board == \"pico\" %}\nb\n{%- endif %}\n",
                "an empty line",
            ),
            ("{%- if colour == \"red\" %}\n", "no placeholder `colour`"),
            ("{%- unless board %}\n", "if NAME == \"VALUE\""),
            ("{{colour}}\n", "no placeholder `colour`"),
        ] {
            let error = made(text).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_project_has_the_files_of_its_choices() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("project");
        make(&to, &["board=rp2350", "sensor=image", "arithmetic=integer"]).unwrap();
        let names = |folder: &str| -> Vec<String> {
            let entries = fs::read_dir(to.join(folder)).unwrap();
            let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
            entries
                .map(|entry| name(entry).into_string().unwrap())
                .collect()
        };
        assert_eq!(names("src/board"), ["rp2350.rs"]);
        assert_eq!(names("src/sensor"), ["image.rs"]);
        assert_eq!(names("src/recipe"), ["image-integer.rs"]);
        assert_eq!(names("memory"), ["rp2350.x"]);
        let error = make(&folder.path().join("other"), &["board=pdp11"]).unwrap_err();
        assert!(error.to_string().contains("one of nrf52840"), "{error}");
    }
}
