//! Tests of each construct by which a file names something.

use super::*;

fn paths(text: &str) -> Vec<String> {
    let body = parse(text).unwrap();
    let paths = body.paths.iter();
    paths
        .map(|(path, line)| format!("{line} {}", path.join("::")))
        .collect()
}

#[test]
fn paths_types_and_calls_are_named() {
    let text = "fn f<T>(a: b::C<D>) -> Vec<T> {\n    let e = g(h, i::j::<k::L>());\n    \
                e.m(N { o: 1 }).p::<Q>()\n}";
    let expected = [
        "1 T", "1 b::C", "1 D", "1 Vec", "2 g", "2 i::j", "2 k::L", "3 N", "3 Q",
    ];
    assert_eq!(paths(text), expected);
    assert_eq!(
        paths("static A: B = ::c::D(<E as F>::G);"),
        ["1 B", "1 E", "1 F"]
    );
    assert_eq!(paths("fn f() { a::<B>() }"), ["1 a", "1 B"]);
    assert_eq!(paths("fn f() { println!(\"{}\", a::b()) }"), ["1 a::b"]);
}

#[test]
fn variants_are_no_paths_where_they_are_declared() {
    let text = "enum A<T> {\n    #[default]\n    B,\n    C(D, E),\n    F { g: H },\n    I = J,\n}";
    assert_eq!(paths(text), ["1 T", "4 D", "4 E", "5 H", "6 J"]);
}

#[test]
fn imports_are_those_of_the_tree() {
    let text = "use a::{self, b::*, c as d, e::{f, g}};\npub(crate) use h;\nuse ::i::j;";
    let body = parse(text).unwrap();
    let written = |import: &Import| {
        let (path, name) = (import.path.join("::"), import.name.as_deref());
        format!("{} {path} {}", import.line, name.unwrap_or("*"))
    };
    let imports: Vec<String> = body.imports.iter().map(written).collect();
    let expected = [
        "1 a a",
        "1 a::b *",
        "1 a::c d",
        "1 a::e::f f",
        "1 a::e::g g",
        "2 h h",
    ];
    assert_eq!(imports, expected);
    let public: Vec<bool> = body.imports.iter().map(|import| import.public).collect();
    assert_eq!(public, [false, false, false, false, false, true]);
}

#[test]
fn modules_and_items_are_those_of_the_file() {
    let text = "#[path = \"x.rs\"]\nmod a;\npub mod b {\n    const C: D = 1;\n    mod e;\n}\n\
                pub const fn f(_: *const G) {\n    fn h() {}\n}\nimpl I {\n    fn j() {}\n}\n\
                pub struct K<const L: usize>;\nmacro_rules! m {\n    () => { n::O };\n}";
    let body = parse(text).unwrap();
    let mut items: Vec<&str> = body.items.iter().map(String::as_str).collect();
    items.sort_unstable();
    assert_eq!(items, ["K", "f", "m"]);
    let [a, b] = &body.children[..] else {
        panic!("{:?}", body.children)
    };
    assert_eq!((a.name.as_str(), a.path.as_deref()), ("a", Some("x.rs")));
    let inner = b.body.as_ref().unwrap();
    assert!(inner.items.contains("C") && inner.children[0].name == "e");
    assert_eq!(paths(text), ["7 G", "10 I"]);
}

#[test]
fn what_only_tests_see_is_left_out() {
    let text = "#[cfg(test)]\nuse a::{b, C};\n#[cfg(all(test, d))]\nmod e;\n#[test]\nfn f() { \
                G }\nimpl H {\n    #[cfg(test)]\n    fn i<J, K>() { L }\n    fn m() { N }\n}\n\
                #[cfg(not(test))]\nfn o() { P }";
    assert_eq!(paths(text), ["7 H", "10 N", "13 P"]);
    let body = parse(text).unwrap();
    assert!(body.imports.is_empty() && body.children.is_empty());
}
