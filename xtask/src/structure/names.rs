//! Definitions, declarations, imports and names of the modules in one file, read from its tokens.
//!
//! It skips test-only code and the names in a `macro_rules!`, which belong to the callers of the
//! macro.

use std::collections::HashSet;
use std::ops::Range;

use super::body::{Body, Child, Import};
use super::tokens::{self, Kind, Token};

#[cfg(test)]
mod tests;

/// Parses the content of a file.
///
/// # Errors
/// The text is not Rust.
pub fn parse(text: &str) -> Result<Body, String> {
    let tokens = tokens::of(text)?;
    Ok(Reader::module(&tokens, 0..tokens.len()))
}

/// Reads one module.
struct Reader<'a> {
    tokens: &'a [Token<'a>],
    body: Body,
    seen: HashSet<Vec<&'a str>>,
    /// Value of a `path` attribute.
    path: Option<String>,
    /// Positions of variant names in `enum` declarations.
    variants: HashSet<usize>,
}

impl<'a> Reader<'a> {
    fn module(tokens: &'a [Token<'a>], range: Range<usize>) -> Body {
        let mut reader = Self {
            tokens,
            body: Body::default(),
            seen: HashSet::new(),
            path: None,
            variants: HashSet::new(),
        };
        let (mut at, mut depth) = (range.start, 0_usize);
        while at < range.end {
            at = match reader.kind(at) {
                Some(Kind::Open(..)) => {
                    depth += 1;
                    at + 1
                }
                Some(Kind::Close(_)) => {
                    depth = depth.saturating_sub(1);
                    at + 1
                }
                Some(Kind::Mark(b'#')) => reader.attribute(at),
                Some(Kind::Name(name)) => reader.name(at, name, depth),
                _ => at + 1,
            };
        }
        reader.body
    }

    fn kind(&self, at: usize) -> Option<Kind<'a>> {
        self.tokens.get(at).map(|token| token.kind)
    }

    fn before(&self, at: usize, back: usize) -> Option<Kind<'a>> {
        self.kind(at.checked_sub(back)?)
    }

    fn name_at(&self, at: usize) -> Option<&'a str> {
        match self.kind(at)? {
            Kind::Name(name) => Some(name),
            _ => None,
        }
    }

    fn colons(&self, at: usize) -> bool {
        self.kind(at) == Some(Kind::Mark(b':')) && self.kind(at + 1) == Some(Kind::Mark(b':'))
    }

    /// Returns the token after an attribute, or after its test-only item.
    fn attribute(&mut self, at: usize) -> usize {
        let inner = self.kind(at + 1) == Some(Kind::Mark(b'!'));
        let open = if inner { at + 2 } else { at + 1 };
        let Some(Kind::Open(b'[', end)) = self.kind(open) else {
            return at + 1;
        };
        if inner {
            return end + 1;
        }
        if let (Some("path"), Some(Kind::Literal(path))) =
            (self.name_at(open + 1), self.kind(open + 3))
        {
            self.path = Some(path.trim_matches('"').to_owned());
        }
        if !self.only_tests(open + 1) {
            return end + 1;
        }
        self.path = None;
        let mut at = end + 1;
        loop {
            at = match self.kind(at) {
                Some(Kind::Open(b'{', end)) => return end + 1,
                Some(Kind::Open(_, end)) => end + 1,
                Some(Kind::Mark(b';')) => return at + 1,
                Some(Kind::Close(_)) | None => return at,
                Some(_) => at + 1,
            };
        }
    }

    /// Returns whether this is `test`, `cfg(test)` or `cfg(all(test, ..))`.
    fn only_tests(&self, at: usize) -> bool {
        let test = |at| self.name_at(at) == Some("test");
        let alone = |at| test(at) && matches!(self.kind(at + 1), Some(Kind::Close(_)));
        let all = self.name_at(at + 2) == Some("all");
        alone(at) || (self.name_at(at) == Some("cfg") && (alone(at + 2) || (all && test(at + 4))))
    }

    /// Reads the construct that starts with this name. Returns the token after it.
    fn name(&mut self, at: usize, name: &'a str, depth: usize) -> usize {
        match (name, self.kind(at + 1)) {
            ("use", Some(_)) => {
                let public = self.is_public(at);
                let end = self.import(at + 1, &[], public);
                return end.max(at + 1);
            }
            ("mod", Some(Kind::Name(name))) => return self.child(at, name, depth),
            ("macro_rules", Some(Kind::Mark(b'!'))) => return self.macro_rules(at, depth),
            _ => {}
        }
        if let Some(defined) = self.defined(at, name) {
            // As in `<const N: usize>`.
            let parameter = matches!(self.before(at, 1), Some(Kind::Mark(b'<' | b',')));
            if depth == 0
                && !parameter
                && let Some(name) = self.name_at(defined)
            {
                self.body.items.insert(name.to_owned());
            }
            if name == "enum" {
                self.declare_variants(defined + 1);
            }
            return defined + 1;
        }
        self.reference(at)
    }

    /// Returns the position of the name defined by a keyword.
    fn defined(&self, at: usize, keyword: &str) -> Option<usize> {
        let pointer = self.before(at, 1) == Some(Kind::Mark(b'*'));
        let name = match keyword {
            "static" if self.name_at(at + 1) == Some("mut") => at + 2,
            "const" | "static" if !pointer => at + 1,
            "enum" | "fn" | "struct" | "trait" | "type" | "union" => at + 1,
            _ => return None,
        };
        let modifier = matches!(self.name_at(name)?, "fn" | "unsafe" | "extern" | "async");
        (!modifier).then_some(name)
    }

    /// Records the variants of the `enum` whose name is before `at`.
    fn declare_variants(&mut self, mut at: usize) {
        let (mut next, end) = loop {
            match self.kind(at) {
                Some(Kind::Open(b'{', end)) => break (at + 1, end),
                Some(Kind::Open(_, end)) => at = end + 1,
                Some(_) => at += 1,
                None => return,
            }
        };
        let mut expected = true;
        while next < end {
            match self.kind(next) {
                Some(Kind::Open(_, end)) => next = end,
                Some(Kind::Mark(b',')) => expected = true,
                Some(Kind::Name(_)) if expected => {
                    self.variants.insert(next);
                    expected = false;
                }
                _ => {}
            }
            next += 1;
        }
    }

    fn is_public(&self, at: usize) -> bool {
        match self.before(at, 1) {
            Some(Kind::Name(name)) => name == "pub",
            Some(Kind::Close(open)) => self.before(open, 1) == Some(Kind::Name("pub")),
            _ => false,
        }
    }

    fn child(&mut self, at: usize, name: &str, depth: usize) -> usize {
        let path = self.path.take();
        let (body, end) = match self.kind(at + 2) {
            Some(Kind::Open(b'{', end)) => (Some(Self::module(self.tokens, at + 3..end)), end),
            Some(Kind::Mark(b';')) => (None, at + 2),
            _ => return at + 2,
        };
        if depth == 0 {
            let name = name.to_owned();
            self.body.children.push(Child { name, path, body });
        }
        end + 1
    }

    fn macro_rules(&mut self, at: usize, depth: usize) -> usize {
        if depth == 0
            && let Some(name) = self.name_at(at + 2)
        {
            self.body.items.insert(name.to_owned());
        }
        match self.kind(at + 3) {
            Some(Kind::Open(_, end)) => end + 1,
            _ => at + 1,
        }
    }

    /// Reads a tree of a `use` declaration. Returns the token after it.
    fn import(&mut self, at: usize, prefix: &[&'a str], public: bool) -> usize {
        let line = self.tokens.get(at).map_or(0, |token| token.line);
        match self.kind(at) {
            Some(Kind::Name(name)) if self.colons(at + 1) => {
                self.import(at + 3, &[prefix, &[name]].concat(), public)
            }
            Some(Kind::Name(last)) => {
                let renamed = self.name_at(at + 1) == Some("as");
                let path = match last {
                    "self" => prefix.to_vec(),
                    _ => [prefix, &[last]].concat(),
                };
                let name = if renamed {
                    self.name_at(at + 2)
                } else {
                    path.last().copied()
                };
                self.add_import(&path, name, public, line);
                at + if renamed { 3 } else { 1 }
            }
            Some(Kind::Mark(b'*')) => {
                self.add_import(prefix, None, public, line);
                at + 1
            }
            Some(Kind::Open(_, end)) => {
                let mut next = at + 1;
                while next < end {
                    // The comma after a tree, or an invalid tree.
                    next = self.import(next, prefix, public) + 1;
                }
                end + 1
            }
            _ => at,
        }
    }

    fn add_import(&mut self, path: &[&str], name: Option<&str>, public: bool, line: usize) {
        self.body.imports.push(Import {
            path: path.iter().map(|&part| part.to_owned()).collect(),
            name: name.map(str::to_owned),
            public,
            line,
        });
    }

    /// Reads a path. Single lower-case names are mostly locals, unless they are called.
    fn reference(&mut self, at: usize) -> usize {
        if self.variants.contains(&at) {
            return at + 1;
        }
        let mut path = Vec::new();
        let mut next = at;
        while let Some(name) = self.name_at(next) {
            path.push(name);
            next += 1;
            if !self.colons(next) || self.name_at(next + 2).is_none() {
                break;
            }
            next += 2;
        }
        // Part of another crate, or of a type in `<>`, or a method or a field.
        let continued = at.checked_sub(2).is_some_and(|before| self.colons(before));
        let member = self.before(at, 1) == Some(Kind::Mark(b'.'))
            && self.before(at, 2) != Some(Kind::Mark(b'.'));
        let upper = path
            .first()
            .is_some_and(|name| name.starts_with(char::is_uppercase));
        // Also as in `name::<T>()`.
        let called = matches!(self.kind(next), Some(Kind::Open(b'(', _))) || self.colons(next);
        let named = path.len() > 1 || upper || called;
        if named && !continued && !member && !self.seen.contains(&path) {
            let owned = path.iter().map(|&name| name.to_owned()).collect();
            self.body.paths.push((owned, self.tokens[at].line));
            self.seen.insert(path);
        }
        next
    }
}
