//! No import cycle between files. A file imports another if it names an item defined there.
//!
//! A module's declarations (`mod`) and re-exports of modules below it are not imports. A
//! re-exported item counts for the file that defines it. Test-only code does not count.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::graph;
use super::modules::Modules;

/// For each pair of files, the first line and path in the importing file that need the other file.
type Imports = BTreeMap<(PathBuf, PathBuf), (usize, String)>;

/// Returns the cycles between files in all crates.
pub fn cycles(root: &Path, crates: &[Modules<'_>]) -> Vec<Finding> {
    let mut imports = Imports::new();
    for modules in crates {
        collect(modules, &mut imports);
    }
    components(&imports)
        .iter()
        .filter_map(|files| describe(root, files, &imports))
        .collect()
}

fn collect(modules: &Modules<'_>, imports: &mut Imports) {
    for found in modules.references() {
        let (file, other) = (modules.file(found.from), modules.file(found.to));
        let re_export = found.public && modules.ancestry(found.to).any(|above| above == found.from);
        if file == other || re_export {
            continue;
        }
        let import = || (found.line, found.path.join("::"));
        imports
            .entry((file.to_path_buf(), other.to_path_buf()))
            .and_modify(|first| {
                if found.line < first.0 {
                    *first = import();
                }
            })
            .or_insert_with(import);
    }
}

/// Returns the sorted files of each strongly connected component of more than one file.
fn components(imports: &Imports) -> Vec<Vec<&Path>> {
    let mut files: Vec<&Path> = imports
        .keys()
        .flat_map(|(from, to)| [from.as_path(), to.as_path()])
        .collect();
    files.sort_unstable();
    files.dedup();
    let mut imported = vec![Vec::new(); files.len()];
    for (from, to) in imports.keys() {
        let number = |file: &PathBuf| files.binary_search(&file.as_path());
        if let (Ok(from), Ok(to)) = (number(from), number(to)) {
            imported[from].push(to);
        }
    }
    let found = graph::components(&imported).into_iter();
    found
        .map(|component| component.into_iter().map(|file| files[file]).collect())
        .collect()
}

fn describe(root: &Path, files: &[&Path], imports: &Imports) -> Option<Finding> {
    let name = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_path_buf();
    let mut message = format!("import cycle of {} files", files.len());
    for ((from, to), (line, path)) in imports {
        if files.contains(&from.as_path()) && files.contains(&to.as_path()) {
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
    use super::super::fixture::findings;
    use super::*;

    fn cycles_of(files: &[(&str, &str)]) -> Vec<String> {
        findings(cycles, files)
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
