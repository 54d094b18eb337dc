//! The program of the sanitizers calls every function of the header.

use std::collections::BTreeSet;

/// Names in front of a parenthesis.
fn calls(text: &str) -> BTreeSet<&str> {
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let heads = code.flat_map(|line| line.split_inclusive('('));
    let heads = heads.filter_map(|head| head.strip_suffix('('));
    let names = heads.map(|head| {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let start = head.trim_end_matches(is_name).len();
        head.get(start..).unwrap_or_default()
    });
    names.filter(|name| name.starts_with("sf_")).collect()
}

#[test]
fn the_program_of_the_sanitizers_calls_every_function() {
    let mut declared = calls(include_str!("../include/smolfed.h"));
    // The firmware's own.
    declared.remove("sf_panic");
    let called = calls(include_str!("whole_api.c"));
    assert!(declared.len() > 25, "{declared:?}");
    let missing: Vec<_> = declared.difference(&called).collect();
    assert!(
        missing.is_empty(),
        "tests/whole_api.c does not call {missing:?}"
    );
}
