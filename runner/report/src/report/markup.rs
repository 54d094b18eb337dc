//! A small markup reader for tests: every opened tag is closed, in order.

/// HTML elements without an end tag.
const VOID: [&str; 4] = ["meta", "br", "hr", "img"];

/// Panics unless the tags of `text` are balanced, attributes are quoted and `&` begins an entity.
pub(super) fn assert_well_formed(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        assert_entities(&rest[..start]);
        let length = rest[start..].find('>').expect("a tag that ends");
        let tag = &rest[start + 1..start + length];
        rest = &rest[start + length + 1..];
        if tag.starts_with('!') {
            continue;
        }
        assert!(!tag.contains('<'), "`<` in a tag: {tag}");
        assert!(tag.matches('"').count().is_multiple_of(2), "quotes: {tag}");
        assert_entities(tag);
        let name = tag
            .trim_matches('/')
            .split([' ', '\n'])
            .next()
            .unwrap_or_default();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closed out of order");
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
            if name == "style" {
                let end = rest.find("</style>").expect("a style that ends");
                rest = &rest[end..];
            }
        }
    }
    assert_entities(rest);
    assert!(open.is_empty(), "left open: {open:?}");
}

fn assert_entities(text: &str) {
    for part in text.split('&').skip(1) {
        let name = part.split(';').next().unwrap_or_default();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '#';
        assert!(
            part.contains(';') && !name.is_empty() && name.chars().all(is_name),
            "`&{part}` is no entity"
        );
    }
}

#[test]
fn balanced_markup_passes() {
    assert_well_formed("<!doctype html><a b=\"1\">x &amp; y<br><c/></a>");
}

#[test]
#[should_panic(expected = "closed out of order")]
fn crossed_tags_fail() {
    assert_well_formed("<a><b></a></b>");
}
