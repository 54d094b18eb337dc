//! No import cycle between files. A file imports another if it names an item that is defined there.
//!
//! What a module declares (`mod`) or re-exports of the modules below it is no import, and a
//! re-exported item counts for the file that defines it. Code that only tests see does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::modules::{Modules, Target};

/// For each pair of files, the first line of the importing one that needs the other, and the path.
type Imports = BTreeMap<(PathBuf, PathBuf), (usize, String)>;

/// The cycles of all targets, given by their root files.
///
/// # Errors
/// A file cannot be read or parsed.
pub fn cycles(root: &Path, targets: &[PathBuf]) -> Result<Vec<Finding>, Box<dyn Error>> {
    let mut imports = Imports::new();
    for target in targets {
        collect(&Modules::read(target)?, &mut imports);
    }
    Ok(components(&imports)
        .iter()
        .filter_map(|files| describe(root, files, &imports))
        .collect())
}

fn collect(modules: &Modules, imports: &mut Imports) {
    for (index, module) in modules.iter() {
        let mut add = |path: &[String], line: usize, re_export: bool| {
            let Some(Target::Item(other)) = modules.resolve(index, path) else {
                return;
            };
            let file = modules.file(other);
            if file != module.file && !(re_export && modules.is_below(other, index)) {
                imports
                    .entry((module.file.clone(), file.to_path_buf()))
                    .or_insert_with(|| (line, path.join("::")));
            }
        };
        for import in &module.imports {
            add(&import.path, import.line, import.public);
        }
        for (path, line) in &module.paths {
            add(path, *line, false);
        }
    }
}

/// Strongly connected components of more than one file.
fn components(imports: &Imports) -> Vec<BTreeSet<&Path>> {
    let mut next: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
    for (from, to) in imports.keys() {
        next.entry(from).or_default().push(to);
    }
    let reached: BTreeMap<&Path, BTreeSet<&Path>> = next
        .keys()
        .map(|&file| (file, reachable(file, &next)))
        .collect();
    let mut found = BTreeSet::new();
    for (&file, others) in &reached {
        let mutual = |other: &&Path| reached.get(other).is_some_and(|back| back.contains(file));
        let component: BTreeSet<&Path> = others.iter().copied().filter(mutual).collect();
        if component.len() > 1 {
            found.insert(component);
        }
    }
    found.into_iter().collect()
}

fn reachable<'a>(start: &'a Path, next: &BTreeMap<&'a Path, Vec<&'a Path>>) -> BTreeSet<&'a Path> {
    let mut found = BTreeSet::new();
    let mut open = vec![start];
    while let Some(file) = open.pop() {
        for &other in next.get(file).into_iter().flatten() {
            if found.insert(other) {
                open.push(other);
            }
        }
    }
    found
}

fn describe(root: &Path, files: &BTreeSet<&Path>, imports: &Imports) -> Option<Finding> {
    let name = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_path_buf();
    let mut message = format!("import cycle of {} files", files.len());
    for ((from, to), (line, path)) in imports {
        if files.contains(from.as_path()) && files.contains(to.as_path()) {
            let (from, to) = (name(from), name(to));
            write!(
                message,
                "\n    {}:{line} -> {}: {path}",
                from.display(),
                to.display()
            )
            .ok()?;
        }
    }
    Some(Finding {
        file: name(files.first()?),
        line: 1,
        message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a crate and gives its cycles.
    fn cycles_of(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (file, text) in files {
            let file = root.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let found = cycles(&root, &[root.join("lib.rs")]).unwrap();
        found.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_cycle_is_found_with_its_imports() {
        let found = cycles_of(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B;\npub struct A(B);"),
            (
                "b.rs",
                "pub struct B;\nfn f() {\n    println!(\"{}\", super::c::g());\n}",
            ),
            ("c.rs", "use super::a;\npub fn g() { a::A::new(); }"),
        ]);
        let expected = "a.rs:1: import cycle of 3 files\n    a.rs:1 -> b.rs: crate::b::B\n    \
                        b.rs:3 -> c.rs: super::c::g\n    c.rs:2 -> a.rs: a::A::new";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn re_exports_of_a_parent_are_no_imports() {
        let found = cycles_of(&[
            ("lib.rs", "mod a;\npub use a::b::B;"),
            ("a.rs", "pub mod b;\nmod c;\npub use c::C;"),
            ("a/b.rs", "use crate::a::C;\npub struct B(C);"),
            ("a/c.rs", "pub struct C;"),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn a_re_exported_item_counts_for_the_file_that_defines_it() {
        let found = cycles_of(&[
            ("lib.rs", "mod a;"),
            ("a.rs", "mod b;\nmod c;\npub use b::B;\npub use c::*;"),
            ("a/b.rs", "pub struct B(super::C);"),
            ("a/c.rs", "pub struct C;\nimpl From<super::B> for C {}"),
        ]);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].contains("a/b.rs:1 -> a/c.rs: super::C"),
            "{found:?}"
        );
    }

    #[test]
    fn a_parent_and_its_child_are_a_cycle_too() {
        let found = cycles_of(&[
            (
                "lib.rs",
                "mod a;\npub struct Input;\npub fn run() { a::run(Input) }",
            ),
            ("a.rs", "use super::Input;\npub fn run(_: Input) {}"),
        ]);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn the_body_of_a_macro_does_not_count() {
        let found = cycles_of(&[
            ("lib.rs", "#[macro_use] mod a; mod b;"),
            (
                "a.rs",
                "macro_rules! all { () => { $crate::b::B } }\npub struct A;",
            ),
            ("b.rs", "use crate::a::A;\npub struct B(A);"),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn what_only_tests_import_does_not_count() {
        let tests = "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}";
        let found = cycles_of(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", &format!("pub struct A;\n{tests}")),
            ("b.rs", "pub struct B(crate::a::A);"),
        ]);
        assert_eq!(found, [""; 0]);
    }
}
