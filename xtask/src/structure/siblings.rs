//! No cycle between sibling modules. A module includes all modules below it.
//!
//! A module depends on a sibling if one of its paths leads to an item defined in the sibling or
//! below. Re-exports and imports of their parent are not dependencies, as the parent is neither.
//! The check covers all levels: the modules in the root of each crate, and those in each module.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::graph::{self, Graph};
use super::modules::{Modules, Reference};

/// For each pair of dependent siblings, the first file, line and path where the first needs the
/// second.
type Arrows = BTreeMap<(usize, usize), (PathBuf, usize, String)>;

/// Returns the cycles of all crates.
pub fn cycles(root: &Path, crates: &[Modules<'_>]) -> Vec<Finding> {
    let mut seen = BTreeSet::new();
    let found = crates.iter().flat_map(|modules| of_crate(root, modules));
    found
        .filter(|finding| seen.insert(finding.to_string()))
        .collect()
}

fn of_crate(root: &Path, modules: &Modules<'_>) -> Vec<Finding> {
    let mut arrows = Arrows::new();
    for reference in modules.references() {
        let Some(siblings) = siblings(modules, &reference) else {
            continue;
        };
        let file = modules.file(reference.from);
        let file = file.strip_prefix(root).unwrap_or(file).to_path_buf();
        let needs = (file, reference.line, reference.path.join("::"));
        let first = arrows.entry(siblings).or_insert_with(|| needs.clone());
        if needs < *first {
            *first = needs;
        }
    }
    let mut graph: Graph = vec![Vec::new(); modules.count()];
    for &(from, to) in arrows.keys() {
        graph[from].push(to);
    }
    graph::components(&graph)
        .iter()
        .filter_map(|component| describe(root, modules, component, &graph, &arrows))
        .collect()
}

/// Returns the ancestors of both ends of `reference`, or the ends themselves, that have the same
/// parent. Returns `None` if one end is above the other.
fn siblings(modules: &Modules<'_>, reference: &Reference<'_>) -> Option<(usize, usize)> {
    let from: Vec<usize> = modules.ancestry(reference.from).collect();
    let to: Vec<usize> = modules.ancestry(reference.to).collect();
    let mut pairs = from.iter().rev().zip(to.iter().rev());
    pairs.find(|(a, b)| a != b).map(|(&a, &b)| (a, b))
}

/// A component contains only siblings, as all arrows connect siblings.
fn describe(
    root: &Path,
    modules: &Modules<'_>,
    component: &[usize],
    graph: &Graph,
    arrows: &Arrows,
) -> Option<Finding> {
    let parent = modules.parent(*component.first()?)?;
    let names: Vec<&str> = component.iter().map(|&at| modules.name(at)).collect();
    let mut message = format!(
        "{} of the {} modules of `{}` depend on each other: {}; a shortest cycle is",
        names.len(),
        modules.children(parent),
        modules.path(parent),
        names.join(", ")
    );
    let cycle = graph::shortest_cycle(graph, component);
    for (&from, &to) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
        let (file, line, path) = arrows.get(&(from, to))?;
        let (from, to) = (modules.name(from), modules.name(to));
        write!(
            message,
            "\n    {from} -> {to}: {}:{line}: {path}",
            file.display()
        )
        .ok()?;
    }
    let file = modules.file(parent);
    Some(Finding {
        file: file.strip_prefix(root).unwrap_or(file).to_path_buf(),
        line: 1,
        message,
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::findings;
    use super::*;

    #[test]
    fn siblings_whose_files_have_no_cycle_may_have_one() {
        let found = findings(
            cycles,
            &[
                ("lib.rs", "mod a; mod b; mod c;"),
                ("a.rs", "pub mod first;\npub mod second;"),
                ("a/first.rs", "use crate::b::B;\npub struct First(B);"),
                ("a/second.rs", "pub struct Second;"),
                ("b.rs", "pub struct B;\nmod below;"),
                (
                    "b/below.rs",
                    "use super::super::a::second;\n\nfn f(_: second::Second) {}",
                ),
                ("c.rs", "use crate::{a::first::First, b::B};"),
            ],
        );
        let expected = "lib.rs:1: 2 of the 3 modules of `crate` depend on each other: a, b; \
                        a shortest cycle is\n    \
                        a -> b: a/first.rs:1: crate::b::B\n    \
                        b -> a: b/below.rs:3: second::Second";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_re_export_of_the_parent_is_no_dependency_and_its_item_counts_where_it_is_defined() {
        let files = [
            (
                "lib.rs",
                "mod a; mod b; mod c;\npub use a::A;\npub use b::B;",
            ),
            ("a.rs", "pub struct A;"),
            ("b.rs", "pub struct B(crate::A);"),
            ("c.rs", "pub struct C(crate::A, crate::B);"),
        ];
        assert_eq!(findings(cycles, &files), [""; 0]);
        let mut back = files;
        back[1].1 = "pub struct A;\nfn f(_: crate::B) {}";
        let found = findings(cycles, &back);
        assert_eq!(found.len(), 1);
        assert!(found[0].ends_with("\n    a -> b: a.rs:2: crate::B\n    b -> a: b.rs:1: crate::A"));
    }

    #[test]
    fn what_a_parent_and_its_children_need_of_each_other_is_no_cycle_of_siblings() {
        let files = [
            (
                "lib.rs",
                "mod a;\npub struct Input;\npub fn run() { a::run(Input) }",
            ),
            ("a.rs", "mod b;\nuse b::B;\npub fn run(_: super::Input) {}"),
            (
                "a/b.rs",
                "pub struct B;\nfn f() { super::run(crate::Input) }",
            ),
        ];
        assert_eq!(findings(cycles, &files), [""; 0]);
    }

    #[test]
    fn what_only_tests_name_does_not_count() {
        let tests = "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}";
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", &format!("pub struct A;\n{tests}")),
            ("b.rs", "pub struct B(crate::a::A);"),
        ];
        assert_eq!(findings(cycles, &files), [""; 0]);
    }

    #[test]
    fn nested_siblings_are_checked_too() {
        let found = findings(
            cycles,
            &[
                ("lib.rs", "mod outer;"),
                ("outer.rs", "mod a;\nmod b { pub struct B(super::a::A); }"),
                (
                    "outer/a.rs",
                    "use super::b;\npub struct A;\npub fn f(_: b::B) {}",
                ),
            ],
        );
        assert_eq!(found.len(), 1);
        let start = "outer.rs:1: 2 of the 2 modules of `crate::outer` depend on each other: a, b;";
        assert!(found[0].starts_with(start), "{found:?}");
    }

    #[test]
    fn paths_to_other_crates_do_not_matter() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use other::b::B;\npub struct A(B, other::b::C);"),
            ("b.rs", "pub struct B(crate::a::A, other::a::A);"),
        ];
        assert_eq!(findings(cycles, &files), [""; 0]);
    }
}
