//! Little-endian numbers in byte slices, without panics: a value that does not fit is `None`.

/// Reads a body from its first byte to its last.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    /// Returns a reader of the next `N` bytes. The compiler knows its length, and does not check it
    /// again for every number.
    pub(crate) fn part<const N: usize>(&mut self) -> Option<Self> {
        let (part, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(Self(part))
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn f32(&mut self) -> Option<f32> {
        self.array().map(f32::from_le_bytes)
    }

    /// Returns the remaining bytes, possibly none.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    /// Checks that everything was read. A body with extra bytes is invalid.
    pub(crate) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Writes into a slice from its start, and remembers whether everything fits.
pub(crate) struct Writer<'a> {
    buffer: &'a mut [u8],
    length: usize,
    fits: bool,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(buffer: &'a mut [u8]) -> Self {
        Self {
            buffer,
            length: 0,
            fits: true,
        }
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> &mut Self {
        let place = self.buffer.get_mut(self.length..).unwrap_or_default();
        match place.get_mut(..bytes.len()) {
            Some(place) if self.fits => {
                place.copy_from_slice(bytes);
                self.length += bytes.len();
            }
            _ => self.fits = false,
        }
        self
    }

    /// Lets `write` fill the remaining space. It returns the number of bytes, or `None` if they do
    /// not fit.
    pub(crate) fn fill(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) {
        match write(self.buffer.get_mut(self.length..).unwrap_or_default()) {
            Some(length) => self.length += length,
            None => self.fits = false,
        }
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.put(&[value])
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    pub(crate) fn f32(&mut self, value: f32) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    /// Returns the number of bytes written, if everything fit.
    pub(crate) fn finish(&mut self) -> Option<usize> {
        self.fits.then_some(self.length)
    }
}
