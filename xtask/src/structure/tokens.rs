//! The tokens of a Rust file, without comments: names, brackets with their partners, and the rest.
//!
//! A parser would give more details, but takes ten times as long, and longer to compile.

/// A token and its first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: Kind<'a>,
    pub line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// An identifier or keyword, without `r#`.
    Name(&'a str),
    /// An opening bracket, and the token that closes it.
    Open(u8, usize),
    /// A closing bracket, and the token that opens it.
    Close(usize),
    /// One punctuation character.
    Mark(u8),
    /// A string, character, number or lifetime, as written.
    Literal(&'a str),
}

/// Returns the tokens of `text`.
///
/// # Errors
/// A bracket has no partner, or a string or a comment has no end. The error gives the line.
pub fn of(text: &str) -> Result<Vec<Token<'_>>, String> {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
        tokens: Vec::with_capacity(text.len() / 4),
        open: Vec::new(),
    };
    while lexer.at < text.len() {
        let line = lexer.line;
        lexer
            .next()
            .ok_or_else(|| format!("line {line}: no Rust"))?;
    }
    match lexer.open.last() {
        Some(&open) => Err(format!("line {}: never closed", lexer.tokens[open].line)),
        None => Ok(lexer.tokens),
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    tokens: Vec<Token<'a>>,
    /// The enclosing opening brackets.
    open: Vec<usize>,
}

impl<'a> Lexer<'a> {
    fn peek(&self, ahead: usize) -> u8 {
        self.rest().get(ahead).copied().unwrap_or(0)
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// Adds a token of `length` bytes.
    fn push(&mut self, length: usize, kind: impl FnOnce(&'a str) -> Kind<'a>) -> Option<()> {
        let text = self.text.get(self.at..self.at + length)?;
        let line = self.line;
        self.tokens.push(Token {
            kind: kind(text),
            line,
        });
        self.skip(length);
        Some(())
    }

    fn skip(&mut self, length: usize) {
        let skipped = &self.rest()[..length];
        self.line += skipped.iter().filter(|&&byte| byte == b'\n').count();
        self.at += length;
    }

    /// Reads the next token, comment or space.
    fn next(&mut self) -> Option<()> {
        let first = self.peek(0);
        match first {
            b'/' if self.peek(1) == b'/' => {
                let line = self.rest().iter().take_while(|&&byte| byte != b'\n');
                self.skip(line.count());
            }
            b'/' if self.peek(1) == b'*' => self.block_comment()?,
            b'"' => self.push(string(self.rest(), 0)?, Kind::Literal)?,
            b'\'' => self.quote()?,
            b'0'..=b'9' => self.push(number(self.rest()), Kind::Literal)?,
            b'(' | b'[' | b'{' => {
                self.open.push(self.tokens.len());
                self.push(1, |_| Kind::Open(first, 0))?;
            }
            b')' | b']' | b'}' => {
                let (open, end) = (self.open.pop()?, self.tokens.len());
                if let Kind::Open(_, close) = &mut self.tokens[open].kind {
                    *close = end;
                }
                self.push(1, |_| Kind::Close(open))?;
            }
            _ if in_name(first) => self.name()?,
            _ if first.is_ascii_whitespace() => self.skip(1),
            _ => self.push(1, |_| Kind::Mark(first))?,
        }
        Some(())
    }

    /// Reads a name, or a string or character prefix: `b"..."`, `r#"..."#`, `b'.'`, `r#name`.
    fn name(&mut self) -> Option<()> {
        let rest = self.rest();
        let length = rest.iter().take_while(|&&byte| in_name(byte)).count();
        let raw = matches!(&rest[..length], b"r" | b"br" | b"cr");
        let hashes = rest[length..].iter().take_while(|&&byte| byte == b'#');
        let hashes = if raw { hashes.count() } else { 0 };
        match (&rest[..length], self.peek(length + hashes)) {
            (b"r" | b"br" | b"cr", b'"') => {
                let end: Vec<u8> = std::iter::once(b'"')
                    .chain(std::iter::repeat_n(b'#', hashes))
                    .collect();
                let start = length + hashes + 1;
                let found = find(&rest[start..], &end)?;
                self.push(start + found + end.len(), Kind::Literal)
            }
            (b"b" | b"c", b'"') => self.push(string(rest, length)?, Kind::Literal),
            (b"b", b'\'') => {
                self.skip(length);
                self.quote()
            }
            (b"r", _) if hashes == 1 => {
                self.skip(2);
                self.name()
            }
            _ => self.push(length, Kind::Name),
        }
    }

    /// Reads a character or a lifetime.
    fn quote(&mut self) -> Option<()> {
        let rest = self.rest();
        let width = self.text[self.at + 1..].chars().next()?.len_utf8();
        let length = match self.peek(1) {
            b'\\' => 4 + rest.get(3..)?.iter().position(|&byte| byte == b'\'')?,
            _ if self.peek(1 + width) == b'\'' => width + 2,
            _ => 1 + rest[1..].iter().take_while(|&&byte| in_name(byte)).count(),
        };
        self.push(length, Kind::Literal)
    }

    fn block_comment(&mut self) -> Option<()> {
        let (mut depth, mut length) = (0, 0);
        loop {
            let two = self.rest().get(length..length + 2)?;
            length += match two {
                b"/*" => {
                    depth += 1;
                    2
                }
                b"*/" => {
                    depth -= 1;
                    2
                }
                _ => 1,
            };
            if depth == 0 {
                self.skip(length);
                return Some(());
            }
        }
    }
}

fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Returns the length of a string whose quote is at `start`.
fn string(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Returns the length of a number. A point belongs to it if a digit follows.
fn number(text: &[u8]) -> usize {
    let mut length = 0;
    while text.get(length).is_some_and(|&byte| {
        let point = byte == b'.' && text.get(length + 1).is_some_and(u8::is_ascii_digit);
        in_name(byte) || point
    }) {
        length += 1;
    }
    length
}

fn find(text: &[u8], end: &[u8]) -> Option<usize> {
    text.windows(end.len()).position(|window| window == end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<(&str, usize)> {
        let tokens = of(text).unwrap();
        let names = tokens.into_iter().filter_map(|token| match token.kind {
            Kind::Name(name) => Some((name, token.line)),
            _ => None,
        });
        names.collect()
    }

    #[test]
    fn names_are_found_outside_of_comments_strings_and_characters() {
        let text =
            "a /* b /* c */ d */ e // f\n\"g \\\" h\n\" r#\"i \" j\"# k b'\\'' l 'm' 'n: r#o";
        assert_eq!(
            names(text),
            [("a", 1), ("e", 1), ("k", 3), ("l", 3), ("o", 3)]
        );
        assert_eq!(
            names("'\\u{e9}' a 'é' b '\\\\' c '{' d"),
            [("a", 1), ("b", 1), ("c", 1), ("d", 1)]
        );
        assert_eq!(
            names("1.0e-3f32.a(0..b, 1.max(2))"),
            [("a", 1), ("b", 1), ("max", 1)]
        );
    }

    #[test]
    fn brackets_know_their_partners() {
        let tokens = of("f([a])").unwrap();
        assert_eq!(tokens[1].kind, Kind::Open(b'(', 5));
        assert_eq!(tokens[4].kind, Kind::Close(2));
        assert_eq!(of("a\n{ b"), Err("line 2: never closed".to_owned()));
        assert_eq!(of("a\n}"), Err("line 2: no Rust".to_owned()));
    }
}
