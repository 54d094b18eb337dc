//! The header of a NumPy array: a Python dict with the type, the order and the shape.

/// White space between tokens.
const SPACES: [char; 3] = [' ', '\t', '\x0c'];
/// Maximum number of dimensions in NumPy.
const MAX_DIMENSIONS: usize = 64;

/// The content of a header.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Header<'a> {
    pub kind: Kind<'a>,
    pub is_fortran: bool,
    pub shape: Vec<u64>,
}

/// The type of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind<'a> {
    Number(Number<'a>),
    /// Another type, as written.
    Other(&'a str),
}

/// Booleans (`b`), integers (`i`, `u`) or floats (`f`) of `size` bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number<'a> {
    pub name: &'a str,
    pub letter: u8,
    pub size: usize,
    pub is_big_endian: bool,
}

/// Parses the bytes of a header.
pub(super) fn parse(bytes: &[u8]) -> Result<Header<'_>, String> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let rest = std::str::from_utf8(bytes).map_err(|_| "could not parse utf-8")?;
    let mut tokens = Tokens { rest };
    if tokens.next()? != Token::Mark('{') {
        return Err("expected a python dict literal".into());
    }
    let (mut kind, mut is_fortran, mut shape) = (None, None, None);
    loop {
        let key = match tokens.next()? {
            Token::Text(key) => key,
            Token::Mark('}') => break,
            _ => return Err("key is not string".into()),
        };
        match tokens.next()? {
            Token::Mark(':') => {}
            other => return Err(unexpected(other)),
        }
        let is_again = match key {
            "descr" => kind.replace(tokens.kind()?).is_some(),
            "fortran_order" => is_fortran.replace(tokens.boolean()?).is_some(),
            "shape" => shape.replace(tokens.shape()?).is_some(),
            _ => return Err(format!("dict has the unknown key '{key}'")),
        };
        if is_again {
            return Err(format!("dict has the key '{key}' twice"));
        }
        match tokens.next()? {
            Token::Mark(',') => {}
            Token::Mark('}') => break,
            other => return Err(unexpected(other)),
        }
    }
    match tokens.next()? {
        Token::End => {}
        other => return Err(unexpected(other)),
    }
    let missing = |key| move || format!("dict is missing key '{key}'");
    Ok(Header {
        is_fortran: is_fortran.ok_or_else(missing("fortran_order"))?,
        shape: shape.ok_or_else(missing("shape"))?,
        kind: kind.ok_or_else(missing("descr"))?,
    })
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    /// The text between quotes, including escapes.
    Text(&'a str),
    /// A number or a name.
    Word(&'a str),
    Mark(char),
    End,
}

fn unexpected(token: Token) -> String {
    let found = match token {
        Token::Text(text) => format!("'{text}'"),
        Token::Word(word) => word.to_owned(),
        Token::Mark(mark) => format!("{mark:?}"),
        Token::End => "end".to_owned(),
    };
    format!("could not parse Python expression: unexpected {found}")
}

struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Result<Token<'a>, String> {
        let text = self.rest.trim_start_matches(SPACES);
        let (token, length) = match text.chars().next() {
            None => (Token::End, 0),
            Some(quote @ ('\'' | '"')) => {
                let inside = &text[1..];
                let length = length_of_text(inside, quote)
                    .ok_or("could not parse Python expression: a string does not end")?;
                (Token::Text(&inside[..length]), length + 2)
            }
            Some(mark @ ('{' | '}' | '[' | ']' | '(' | ')' | ',' | ':')) => (Token::Mark(mark), 1),
            Some(other) => {
                let is_of_word = |c: char| c.is_ascii_alphanumeric() || "_.+-".contains(c);
                let length = text.find(|c| !is_of_word(c)).unwrap_or(text.len());
                if length == 0 {
                    return Err(unexpected(Token::Mark(other)));
                }
                (Token::Word(&text[..length]), length)
            }
        };
        self.rest = &text[length..];
        Ok(token)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        match self.next()? {
            Token::Word("True") => Ok(true),
            Token::Word("False") => Ok(false),
            _ => Err("'fortran_order' value is not a bool".into()),
        }
    }

    fn shape(&mut self) -> Result<Vec<u64>, String> {
        let no_sequence = || Err("shape must be list or tuple".into());
        let end = match self.next()? {
            Token::Mark('(') => Token::Mark(')'),
            Token::Mark('[') => Token::Mark(']'),
            _ => return no_sequence(),
        };
        let mut shape = Vec::new();
        loop {
            match self.next()? {
                token if token == end => return Ok(shape),
                Token::Word(word) => shape.push(dimension(word)?),
                _ => return Err("dimension must be an integer".into()),
            }
            if shape.len() > MAX_DIMENSIONS {
                return Err(format!("shape has more than {MAX_DIMENSIONS} dimensions"));
            }
            match self.next()? {
                Token::Mark(',') => {}
                // `(3)` is a number in Python, and `(3,)` a tuple.
                Token::Mark(')') if end == Token::Mark(')') && shape.len() == 1 => {
                    return no_sequence();
                }
                token if token == end => return Ok(shape),
                other => return Err(unexpected(other)),
            }
        }
    }

    fn kind(&mut self) -> Result<Kind<'a>, String> {
        let begin = self.rest.trim_start_matches(SPACES);
        let text = match self.next()? {
            Token::Text(text) => Some(text),
            Token::Mark('[') => {
                self.skip_list()?;
                None
            }
            _ => return Err("'descr' must be string or list".into()),
        };
        let written = &begin[..begin.len() - self.rest.len()];
        text.map_or(Ok(Kind::Other(written)), |text| kind_of(text, written))
    }

    /// Skips the content of a list after its opening bracket, including the closing one.
    fn skip_list(&mut self) -> Result<(), String> {
        let mut ends = vec![']'];
        while let Some(end) = ends.last() {
            match self.next()? {
                Token::Mark('[') => ends.push(']'),
                Token::Mark('(') => ends.push(')'),
                Token::Mark(',') | Token::Text(_) | Token::Word(_) => {}
                Token::Mark(mark) if mark == *end => {
                    ends.pop();
                }
                other => return Err(unexpected(other)),
            }
        }
        Ok(())
    }
}

/// Returns the number of bytes up to the closing quote. The text must not contain control
/// characters.
fn length_of_text(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if c.is_control() => return None,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return Some(at),
            _ => {}
        }
    }
    None
}

fn dimension(word: &str) -> Result<u64, String> {
    let digits = word.trim_start_matches('-');
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("dimension must be an integer".into());
    }
    if digits.len() < word.len() {
        return Err("dimension cannot be negative".into());
    }
    let too_large = |_| "dimension cannot be larger than u64".into();
    word.parse().map_err(too_large)
}

/// Parses a type string: byte order, letter, size.
fn kind_of<'a>(name: &'a str, written: &'a str) -> Result<Kind<'a>, String> {
    let invalid = |why: &str| Err(format!("invalid type string: '{name}' has invalid {why}"));
    let (order, letter, size) = match name.as_bytes() {
        [order @ (b'<' | b'>' | b'|'), letter, size @ ..] => (*order, *letter, size),
        _ => return invalid("endianness"),
    };
    let sizes: &[usize] = match letter {
        b'b' => &[1],
        b'i' | b'u' => &[1, 2, 4, 8],
        b'f' => &[2, 4, 8, 16],
        _ if letter.is_ascii_alphabetic() => return Ok(Kind::Other(written)),
        _ => return invalid("letter"),
    };
    let matching = |wanted: &&usize| size == wanted.to_string().as_bytes();
    match sizes.iter().find(matching) {
        Some(2..) if order == b'|' => invalid("endianness"),
        Some(size) => Ok(Kind::Number(Number {
            name,
            letter,
            size: *size,
            is_big_endian: order == b'>',
        })),
        None => invalid(&format!("size. Valid sizes are: {sizes:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn keys_in_any_order_with_any_spaces_are_read() {
        let expected = Header {
            kind: Kind::Number(Number {
                name: ">u2",
                letter: b'u',
                size: 2,
                is_big_endian: true,
            }),
            is_fortran: true,
            shape: vec![2, 3],
        };
        for text in [
            "{'descr': '>u2', 'fortran_order': True, 'shape': (2, 3), }   \n",
            "{'descr':'>u2','fortran_order':True,'shape':(2,3)}",
            "\t{ \"shape\" :[2,3 , ],'fortran_order' : True ,\x0c\"descr\": '>u2' } \n",
        ] {
            assert_eq!(parse(text.as_bytes()), Ok(expected.clone()), "{text}");
        }
    }

    #[test]
    fn other_types_are_named_as_they_are_written() {
        for kind in [
            "'<U3'",
            "'|O'",
            "'<M8[25s]'",
            "'|T16'",
            "[('a', '<i4'), (\"it's\", '<f4', (2, 3)), ('in\\'', [('b', '|b1')])]",
        ] {
            let text = format!("{{'shape': (), 'descr': {kind} , 'fortran_order': False}}");
            assert_eq!(parse(text.as_bytes()).unwrap().kind, Kind::Other(kind));
        }
    }

    #[test]
    fn types_that_are_none_are_refused() {
        for (kind, words) in [
            ("'|f4'", "'|f4' has invalid endianness"),
            ("'=f4'", "'=f4' has invalid endianness"),
            ("'f'", "'f' has invalid endianness"),
            ("'<i9'", "size. Valid sizes are: [1, 2, 4, 8]"),
            ("'<i04'", "invalid size"),
            ("'<f4 '", "invalid size"),
            ("'<é'", "invalid letter"),
            ("('<f4', (2,))", "must be string or list"),
            ("[('a', '<f4')", "unexpected '}'"),
            ("[('a', '<f4']", "unexpected ']'"),
            ("['a", "does not end"),
            ("'<f4", "does not end"),
            ("'<f\n4'", "does not end"),
        ] {
            let text = format!("{{'fortran_order': False, 'shape': (2,), 'descr': {kind}}}");
            let refusal = refusal(&text);
            assert!(refusal.contains(words), "{kind}: {refusal}");
        }
    }

    #[test]
    fn shapes_that_are_none_are_refused() {
        let many = format!("({})", "1,".repeat(65));
        for (shape, words) in [
            ("(-2,)", "negative"),
            ("(18446744073709551616,)", "larger than u64"),
            ("(2.0,)", "must be an integer"),
            ("(2, '3')", "must be an integer"),
            ("(3L,)", "must be an integer"),
            ("(,)", "must be an integer"),
            ("(2, (3,))", "must be an integer"),
            ("(3)", "must be list or tuple"),
            ("3", "must be list or tuple"),
            ("(2 3)", "unexpected 3"),
            ("(2, 3]", "unexpected ']'"),
            ("(2,,3)", "must be an integer"),
            (&many, "more than 64 dimensions"),
        ] {
            let text = format!("{{'shape': {shape}, 'descr': '|u1', 'fortran_order': False}}");
            let refusal = refusal(&text);
            assert!(refusal.contains(words), "{shape}: {refusal}");
        }
    }

    #[test]
    fn what_is_no_dict_of_the_three_keys_is_refused() {
        for (text, words) in [
            ("", "expected a python dict"),
            ("[('shape', ())]", "expected a python dict"),
            ("{}", "missing key 'fortran_order'"),
            ("{'fortran_order': False}", "missing key 'shape'"),
            (
                "{'fortran_order': False, 'shape': ()}",
                "missing key 'descr'",
            ),
            ("{'shape': (), 'shape': ()}", "key 'shape' twice"),
            ("{'order': 'C'}", "unknown key 'order'"),
            ("{3: 'C'}", "key is not string"),
            ("{,}", "key is not string"),
            ("{'shape' ()}", "unexpected '('"),
            ("{'shape': () 'descr'", "unexpected 'descr'"),
            ("{'shape': (),", "key is not string"),
            ("{'fortran_order': 1}", "not a bool"),
            ("{'shape': ()}\n\n", "unexpected '\\n'"),
            ("{'shape': ()} #", "unexpected '#'"),
            ("{} {}", "unexpected '{'"),
        ] {
            let refusal = refusal(text);
            assert!(refusal.contains(words), "{text}: {refusal}");
        }
        assert_eq!(parse(b"{'\xff': 1}"), Err("could not parse utf-8".into()));
    }
}
