//! Escaping of external text, which makes it safe for an HTML page.

use std::borrow::Cow;

/// Escapes `& < > " '` in `text` as entities, and replaces characters forbidden in XML by `�`. The
/// result may stand between tags and between quotes.
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| !matches!(c, '&' | '<' | '>' | '"' | '\'') && is_allowed(c);
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ if is_allowed(c) => safe.push(c),
            _ => safe.push(char::REPLACEMENT_CHARACTER),
        }
    }
    Cow::Owned(safe)
}

fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n') || !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(
            escape("<b a='1'>\"R&D\"</b>\u{0}"),
            "&lt;b a=&#39;1&#39;&gt;&quot;R&amp;D&quot;&lt;/b&gt;\u{fffd}"
        );
        assert!(matches!(escape("plain, ä\n"), Cow::Borrowed(_)));
    }
}
