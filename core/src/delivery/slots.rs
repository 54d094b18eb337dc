//! Two model files in NOR flash, each in separate erase blocks: the current one, and the one before
//! it or the one that arrives.
//!
//! A slot holds a model only if its signature is the publisher's. A partly erased or written slot
//! therefore holds none, without any mark, and the other slot is never touched meanwhile.

use embedded_storage::nor_flash::NorFlash;

use super::{
    DeliveryError,
    file::{Accepted, FileDigest, HEADER_BYTES, Header, SIGNATURE_BYTES},
};
use crate::wire::message::FILE_CHUNK;

/// Bytes that are read at once. The parameters begin and end at multiples of a word in it.
const BLOCK: usize = 64;

const _: () = assert!(
    FILE_CHUNK.is_multiple_of(BLOCK) && HEADER_BYTES.is_multiple_of(BLOCK),
    "chunks and parameters begin at whole blocks"
);

const SLOTS: [u32; 2] = [0, 1];

/// Returns the bytes of flash for the file of a model with this number of parameters: two slots of
/// whole erase blocks of `erase_size` bytes. `u32::MAX` if no flash is that large.
pub const fn flash_bytes(parameters: usize, erase_size: usize) -> u32 {
    let bytes = (HEADER_BYTES + SIGNATURE_BYTES).saturating_add(parameters.saturating_mul(4));
    let Some(bytes) = bytes.checked_next_multiple_of(BLOCK) else {
        return u32::MAX;
    };
    match bytes.checked_next_multiple_of(erase_size) {
        Some(bytes) if bytes <= (u32::MAX / 2) as usize => 2 * bytes as u32,
        _ => u32::MAX,
    }
}

/// The models of a device, on flash that it owns.
pub struct ModelSlots<F> {
    flash: F,
    slot_bytes: u32,
    accepted: Accepted,
    /// The slot and the header of the current model.
    current: Option<(u32, Header)>,
    incoming: Option<Incoming>,
}

/// A file that arrives in the other slot.
#[derive(Clone, Copy)]
struct Incoming {
    version: u32,
    length: u32,
    written: u32,
}

impl<F: NorFlash> ModelSlots<F> {
    /// Opens the slots on this flash, which may be blank, and verifies their files.
    ///
    /// # Errors
    /// [`DeliveryError::Room`] if words of more than 64 bytes do not fit the format, and
    /// [`DeliveryError::Flash`] if the flash cannot be read. An unreadable slot may hold the
    /// current model, so it does not count as empty.
    pub fn open(flash: F, accepted: Accepted) -> Result<Self, DeliveryError> {
        if !BLOCK.is_multiple_of(F::READ_SIZE) || !BLOCK.is_multiple_of(F::WRITE_SIZE) {
            return Err(DeliveryError::Room);
        }
        let half = flash.capacity() / 2;
        let slot_bytes = half - half.checked_rem(F::ERASE_SIZE).unwrap_or(half);
        let mut slots = Self {
            flash,
            slot_bytes: u32::try_from(slot_bytes).map_err(|_| DeliveryError::Room)?,
            accepted,
            current: None,
            incoming: None,
        };
        for slot in SLOTS {
            match slots.verify(slot) {
                Ok(header) if header.version > slots.version() => {
                    slots.current = Some((slot, header));
                }
                Err(DeliveryError::Flash) if slot_bytes > 0 => return Err(DeliveryError::Flash),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(slots)
    }

    /// Returns the files that the device accepts.
    pub const fn accepted(&self) -> &Accepted {
        &self.accepted
    }

    /// Returns the version of the current model, or 0 without one.
    pub const fn version(&self) -> u32 {
        match &self.current {
            Some((_, header)) => header.version,
            None => 0,
        }
    }

    /// Returns the flash, which must not be changed.
    pub const fn flash(&mut self) -> &mut F {
        &mut self.flash
    }

    /// Returns the flash.
    pub fn into_flash(self) -> F {
        self.flash
    }

    /// Copies the parameters of the current model, and returns its version. `None` without a model.
    ///
    /// # Errors
    /// [`DeliveryError::Length`] if `parameters` has another length, and [`DeliveryError::Flash`].
    pub fn load(&mut self, parameters: &mut [f32]) -> Result<Option<u32>, DeliveryError> {
        let Some((slot, header)) = self.current else {
            return Ok(None);
        };
        if parameters.len() != header.shape.parameters() {
            return Err(DeliveryError::Length);
        }
        let mut offset = HEADER_BYTES as u32;
        for part in parameters.chunks_mut(BLOCK / header.encoding.bytes()) {
            let mut block = [0; BLOCK];
            self.read(slot, offset, &mut block)?;
            header.encoding.decode(&block, part);
            offset += BLOCK as u32;
        }
        Ok(Some(header.version))
    }

    /// Installs a whole file that came by any means, and returns its version.
    ///
    /// # Errors
    /// [`DeliveryError`]. The current model is unchanged.
    pub fn install(&mut self, file: &[u8]) -> Result<u32, DeliveryError> {
        let header = file.first_chunk().and_then(Header::read);
        let header = header.ok_or(DeliveryError::Format)?;
        self.accepted.check(&header)?;
        let length = u32::try_from(file.len()).map_err(|_| DeliveryError::Room)?;
        if header.file_bytes() != Some(length) {
            return Err(DeliveryError::Length);
        }
        // Before the other slot is erased.
        if !self.accepted.publisher.has_signed_file(file) {
            return Err(DeliveryError::Signature);
        }
        self.begin(header.version, length)?;
        for chunk in file.chunks(FILE_CHUNK) {
            self.write(chunk)?;
        }
        self.finish()
    }

    /// Begins a file of this version and length, and gives up an earlier one that is incomplete.
    /// Erases the slot without the current model, which takes milliseconds for each block.
    ///
    /// # Errors
    /// [`DeliveryError::Old`], [`DeliveryError::Length`], [`DeliveryError::Room`] and
    /// [`DeliveryError::Flash`].
    pub fn begin(&mut self, version: u32, length: u32) -> Result<(), DeliveryError> {
        self.incoming = None;
        if version <= self.version() {
            return Err(DeliveryError::Old);
        }
        let parameters = self.accepted.shape.parameters();
        let others = HEADER_BYTES + SIGNATURE_BYTES;
        let fits = |bytes: usize| parameters.checked_mul(bytes) == Some(length as usize - others);
        if (length as usize) < others || !(fits(2) || fits(4)) {
            return Err(DeliveryError::Length);
        }
        let end = length
            .checked_next_multiple_of(BLOCK as u32)
            .and_then(|end| end.checked_next_multiple_of(F::ERASE_SIZE as u32));
        let end = end.filter(|end| *end <= self.slot_bytes);
        let from = self.at(self.other_slot(), 0);
        let to = from + end.ok_or(DeliveryError::Room)?;
        self.flash
            .erase(from, to)
            .map_err(|_| DeliveryError::Flash)?;
        self.incoming = Some(Incoming {
            version,
            length,
            written: 0,
        });
        Ok(())
    }

    /// Returns the version of the incoming file, the number of bytes that it has, and its length.
    pub fn incoming(&self) -> Option<(u32, u32, u32)> {
        let incoming = self.incoming?;
        Some((incoming.version, incoming.written, incoming.length))
    }

    /// Writes the next bytes of the incoming file: a multiple of 64, except at its end.
    ///
    /// # Errors
    /// [`DeliveryError::Length`] for other bytes than the next chunk, and
    /// [`DeliveryError::Flash`]. The file must then begin anew.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), DeliveryError> {
        let incoming = self.incoming.take().ok_or(DeliveryError::Length)?;
        let left = (incoming.length - incoming.written) as usize;
        let is_next = match bytes.len() {
            0 => false,
            length if length == left => length <= FILE_CHUNK,
            length => length < left && length.is_multiple_of(BLOCK) && length <= FILE_CHUNK,
        };
        if !is_next {
            return Err(DeliveryError::Length);
        }
        let mut block = [0xff; FILE_CHUNK];
        for (to, byte) in block.iter_mut().zip(bytes) {
            *to = *byte;
        }
        let padded = bytes.len().next_multiple_of(BLOCK);
        let block = block.get(..padded).unwrap_or_default();
        let at = self.at(self.other_slot(), incoming.written);
        self.flash
            .write(at, block)
            .map_err(|_| DeliveryError::Flash)?;
        self.incoming = Some(Incoming {
            // At most the length.
            written: incoming.written + bytes.len() as u32,
            ..incoming
        });
        Ok(())
    }

    /// Verifies the complete file, which becomes the current model, and returns its version.
    ///
    /// # Errors
    /// [`DeliveryError`]. The current model is unchanged, and the file is given up.
    pub fn finish(&mut self) -> Result<u32, DeliveryError> {
        let incoming = self.incoming.take().ok_or(DeliveryError::Length)?;
        if incoming.written != incoming.length {
            return Err(DeliveryError::Length);
        }
        let slot = self.other_slot();
        let header = self.verify(slot)?;
        if header.version != incoming.version || header.version <= self.version() {
            return Err(DeliveryError::Old);
        }
        self.current = Some((slot, header));
        Ok(header.version)
    }

    /// Returns the header of a slot with an acceptable file.
    #[inline(never)]
    fn verify(&mut self, slot: u32) -> Result<Header, DeliveryError> {
        let mut bytes = [0; HEADER_BYTES];
        if (self.slot_bytes as usize) < HEADER_BYTES {
            return Err(DeliveryError::Room);
        }
        self.read(slot, 0, &mut bytes)?;
        let header = Header::read(&bytes).ok_or(DeliveryError::Format)?;
        self.accepted.check(&header)?;
        // Whole blocks are read.
        let fits = |end: &u32| {
            let end = end.checked_next_multiple_of(BLOCK as u32);
            end.is_some_and(|end| end <= self.slot_bytes)
        };
        let end = header
            .file_bytes()
            .filter(fits)
            .ok_or(DeliveryError::Room)?;
        let mut digest = FileDigest::default();
        digest.update(&bytes);
        let signature = end - SIGNATURE_BYTES as u32;
        let mut offset = HEADER_BYTES as u32;
        while offset < signature {
            let mut block = [0; BLOCK];
            self.read(slot, offset, &mut block)?;
            let count = (signature - offset).min(BLOCK as u32);
            let content = block.get(..count as usize).unwrap_or_default();
            if !header.has_numbers(content) {
                return Err(DeliveryError::Format);
            }
            digest.update(content);
            offset += count;
        }
        let signature = self.signature(slot, signature)?;
        match self.accepted.publisher.has_signed(digest, &signature) {
            true => Ok(header),
            false => Err(DeliveryError::Signature),
        }
    }

    /// Reads the signature at this offset, which need not be a multiple of the read size.
    fn signature(
        &mut self,
        slot: u32,
        offset: u32,
    ) -> Result<[u8; SIGNATURE_BYTES], DeliveryError> {
        let mut blocks = [0; 2 * BLOCK];
        let start = offset - offset % BLOCK as u32;
        let count = match offset == start {
            true => BLOCK,
            false => 2 * BLOCK,
        };
        self.read(slot, start, blocks.get_mut(..count).unwrap_or_default())?;
        let signature = blocks.get((offset - start) as usize..);
        let signature = signature.and_then(<[u8]>::first_chunk);
        signature.copied().ok_or(DeliveryError::Length)
    }

    fn read(&mut self, slot: u32, offset: u32, bytes: &mut [u8]) -> Result<(), DeliveryError> {
        let at = self.at(slot, offset);
        self.flash.read(at, bytes).map_err(|_| DeliveryError::Flash)
    }
}

impl<F> ModelSlots<F> {
    /// Returns the address of an offset in a slot. Both slots lie within the flash.
    const fn at(&self, slot: u32, offset: u32) -> u32 {
        slot * self.slot_bytes + offset
    }

    /// Returns the slot without the current model.
    const fn other_slot(&self) -> u32 {
        match self.current {
            Some((slot, _)) => 1 - slot,
            None => 0,
        }
    }
}

impl<F> core::fmt::Debug for ModelSlots<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let version = self.current.map(|(_, header)| header.version);
        write!(f, "ModelSlots(version {version:?})")
    }
}
