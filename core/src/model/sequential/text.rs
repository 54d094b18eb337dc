//! Compile-time texts for compiler errors.

/// A text built at compile time, where formatting is not available.
pub(super) struct Text {
    bytes: [u8; 96],
    length: usize,
}

impl Text {
    pub(super) const fn new() -> Self {
        Self {
            bytes: [0; 96],
            length: 0,
        }
    }

    /// Appends as much as fits.
    pub(super) const fn push(&mut self, part: &str) {
        let (part, mut i) = (part.as_bytes(), 0);
        while i < part.len() && self.length < self.bytes.len() {
            self.bytes[self.length] = part[i];
            self.length += 1;
            i += 1;
        }
    }

    /// Appends a number below 100.
    pub(super) const fn push_number(&mut self, number: usize) {
        const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        if number >= 10 {
            self.push(DIGITS[number / 10 % 10]);
        }
        self.push(DIGITS[number % 10]);
    }

    /// Returns the text, which is ASCII like all parts.
    pub(super) const fn get(&self) -> &str {
        let (text, _) = self.bytes.split_at(self.length);
        match core::str::from_utf8(text) {
            Ok(text) => text,
            Err(_) => "the layers do not fit each other",
        }
    }
}
