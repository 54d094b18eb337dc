//! Provisioning records: a device's identity, keys, policy and samples in a separate page of flash,
//! so that one firmware image serves every device.
//!
//! A record holds the identity of the device, its policy and, for tests, demonstrations and boards
//! with a fixed data set, its samples. `docs/provisioning.md` has the layout. The record is secret:
//! it holds the device's key and the root of its random streams, unless these are in a secure
//! element.
//!
//! [`write()`] makes a record, and [`Record::read`] reads one in place, without copying samples.
//! The page is not trusted: a blank, truncated or damaged page gives a specific error.

use core::{marker::PhantomData, ops::Range};

#[cfg(feature = "element")]
use crate::element::{Element, SecureElement};
#[cfg(feature = "delivery")]
use crate::wire::keys::ChainKey;
use crate::{
    bytes::{Reader, Writer},
    crc32::crc32,
    crypto::{KEY_BYTES, Key},
    identity::Identity,
    ledger::{Budget, Limits, MaxJump, Separation},
    mask::MAX_HELPERS,
    params::NoiseMultiplier,
    recipe::{MAX_RECIPE_BYTES, Recipe},
    samples::Samples,
    session::Policy,
    stream::Root,
};
#[cfg(feature = "questions")]
use crate::{question::Kinds, session::QuestionPolicy};

pub mod text;

#[cfg(test)]
mod tests;

/// First bytes of a record: format 5.
pub const MAGIC: [u8; 4] = *b"sfP5";

/// The bytes of a record that hold the device's first chain key. They are not needed once the
/// ledger exists. Overwriting them with zeros leaves a valid record without a key, so a later
/// reader of the record cannot decrypt earlier traffic. The first four bytes are overwritten first:
/// a record whose overwriting was interrupted by a power failure is also valid, without a key.
///
/// Offset and length are multiples of eight, so flash with writes of eight bytes takes the zeros
/// without an erase.
pub const KEY: Range<usize> = 8..48;

/// Bytes of a record before its samples.
pub const HEADER_BYTES: usize = 124;

/// The bytes of a record that hold the root of the device's streams.
#[cfg(feature = "element")]
const ROOT: Range<usize> = 52..84;

/// Offset of the flags.
#[cfg(any(feature = "delivery", feature = "element", feature = "questions"))]
const FLAGS: usize = 119;

/// Bytes between the key and the samples.
const FIELD_BYTES: usize = HEADER_BYTES - KEY.end;

/// Bytes of the checksum at the end.
const CRC_BYTES: usize = 4;

/// Flag: the device hides its number.
const HIDES_NUMBER: u8 = 1;

/// Flag: a secure element has the device's secrets, and key and root are replaced by values that
/// identify them. Firmware without an element, including firmware that does not know the flag,
/// refuses the record.
const HAS_ELEMENT: u8 = 2;

/// Flag: the device answers the questions listed in the [`QUESTION_BYTES`] before the samples.
/// Firmware without questions refuses the record.
#[cfg(feature = "questions")]
const HAS_QUESTIONS: u8 = 4;

/// Flag: the device only infers, and has no root. Firmware that trains refuses the record, whether
/// it knows the flag or not.
const INFERS: u8 = if cfg!(feature = "delivery") { 8 } else { 0 };

/// Flags of the lower half known to this build.
#[cfg(feature = "questions")]
const KNOWN_FLAGS: u8 = HIDES_NUMBER | HAS_ELEMENT | HAS_QUESTIONS | INFERS;
#[cfg(not(feature = "questions"))]
const KNOWN_FLAGS: u8 = HIDES_NUMBER | HAS_ELEMENT | INFERS;

/// Bytes of the question policy of a device, if it answers questions.
#[cfg(feature = "questions")]
pub const QUESTION_BYTES: usize = 16;

/// Position of the number of helpers: the upper half of the flags.
const HELPERS_SHIFT: u32 = 4;

/// Bytes of a feature value or a target.
const WORD_BYTES: usize = 4;

/// Reason why bytes are not a record, or a record cannot be made or used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ProvisionError {
    /// The bytes do not begin with [`MAGIC`]: the device is not provisioned.
    Blank,
    /// The bytes end before the record does, or its length contradicts its contents.
    Length,
    /// The checksum does not match.
    Checksum,
    /// A kind of target that does not exist, a value that is not finite, or a class above 65,535.
    Samples,
    /// The targets of the samples do not fit the model.
    Target,
    /// The page is not aligned to four bytes, or the processor is big-endian: rows of `f32` cannot
    /// be used in place.
    Unaligned,
    /// The buffer is too small, or there are more samples than a record can count.
    Room,
    /// The policy has flags unknown to this version, or more than [`MAX_HELPERS`] helpers.
    Policy,
    /// The record keeps the device's secrets in a secure element, and this client has no element,
    /// or one that has other secrets or does not answer. Or the client has an element and the
    /// record does not use it.
    Element,
    /// The record is for a device that only infers, and this client trains, or the other way round.
    #[cfg(feature = "delivery")]
    Role,
}

impl core::fmt::Display for ProvisionError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Blank => "no provisioning record: the device was not provisioned",
            Self::Length => "the provisioning record is cut, or its length is wrong",
            Self::Checksum => "the provisioning record is damaged",
            Self::Samples => "the provisioning record has invalid samples",
            Self::Target => "the provisioning record's samples are for another kind of model",
            Self::Unaligned => "the provisioning record is not aligned to four bytes",
            Self::Room => "the provisioning record does not fit",
            Self::Policy => "this version does not know the provisioning record's policy",
            Self::Element => {
                "the provisioning record is for a device with a secure element, but this one has \
                 none or another one, or the reverse"
            }
            #[cfg(feature = "delivery")]
            Self::Role => {
                "the provisioning record is for a device that only infers, and this one trains, or \
                 the other way round"
            }
        })
    }
}

impl core::error::Error for ProvisionError {}

/// Kind of the targets of a record's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TargetKind {
    /// There are no samples.
    None = 0,
    /// Values, for linear regression.
    Value = 1,
    /// Classes, for logistic and softmax regression.
    Class = 2,
}

/// A target encoded as a word of a record: `f32`, or a class as `u16`.
pub trait Target: Copy {
    /// Kind of the targets.
    const KIND: TargetKind;

    /// Decodes a word, if it is a valid target.
    fn from_word(word: u32) -> Option<Self>;

    /// Encodes the target as a word.
    fn to_word(self) -> u32;
}

impl Target for f32 {
    const KIND: TargetKind = TargetKind::Value;

    fn from_word(word: u32) -> Option<Self> {
        Some(Self::from_bits(word)).filter(|value| value.is_finite())
    }

    fn to_word(self) -> u32 {
        self.to_bits()
    }
}

impl Target for u16 {
    const KIND: TargetKind = TargetKind::Class;

    fn from_word(word: u32) -> Option<Self> {
        Self::try_from(word).ok()
    }

    fn to_word(self) -> u32 {
        self.into()
    }
}

/// A parsed record.
#[derive(Clone, Debug)]
pub struct Record<'a, S = Root> {
    /// Identity of the device.
    pub identity: Identity<S>,
    /// First key shared with the coordinator, for the ledger. `None` once it is overwritten
    /// ([`KEY`]).
    pub key: Option<Key>,
    /// Policy of the device.
    pub policy: Policy,
    /// Questions that the device answers.
    #[cfg(feature = "questions")]
    pub questions: QuestionPolicy,
    /// Samples of the device, possibly none.
    pub samples: Stored<'a>,
}

impl<'a> Record<'a> {
    /// Reads the record at the start of `page`, and ignores everything after it.
    ///
    /// # Errors
    /// [`ProvisionError::Blank`], [`ProvisionError::Length`], [`ProvisionError::Checksum`],
    /// [`ProvisionError::Policy`], [`ProvisionError::Element`] and [`ProvisionError::Samples`].
    #[inline(never)]
    pub fn read(page: &'a [u8]) -> Result<Self, ProvisionError> {
        Self::parse(page, 0, |root| Ok(Root::from_secret(*root)))
    }
}

#[cfg(feature = "element")]
impl<'a, E: SecureElement> Record<'a, Element<E>> {
    /// Reads the record of a device with its secrets in this element. Its replacement for a key
    /// starts the device's ledger like a key.
    ///
    /// # Errors
    /// As [`Record::read`], and [`ProvisionError::Element`] also if the element does not answer, or
    /// its root is not the provisioned one.
    pub fn read_with(page: &'a [u8], element: E) -> Result<Self, ProvisionError> {
        Self::parse(page, HAS_ELEMENT, |root| {
            let (check, _) = root.split_at(16);
            let check = check.first_chunk().ok_or(ProvisionError::Element)?;
            Element::new(element, check).map_err(|_| ProvisionError::Element)
        })
    }
}

#[cfg(feature = "element")]
impl<'a> Record<'a, ()> {
    /// Reads everything but the device's secrets, from a record with or without an element.
    ///
    /// # Errors
    /// As [`Record::read`], except [`ProvisionError::Element`].
    pub fn read_public(page: &'a [u8]) -> Result<Self, ProvisionError> {
        match Self::parse(page, HAS_ELEMENT, |_| Ok(())) {
            Err(ProvisionError::Element) => Self::parse(page, 0, |_| Ok(())),
            read => read,
        }
    }
}

/// A device that only infers.
#[cfg(feature = "delivery")]
#[derive(Clone, Debug)]
pub struct Recipient {
    /// Number of the device.
    pub device: u32,
    /// The key that it shares with the coordinator.
    pub chain: ChainKey,
}

#[cfg(feature = "delivery")]
impl Recipient {
    /// Reads the record of a device that only infers.
    ///
    /// # Errors
    /// As [`Record::read`], and [`ProvisionError::Role`] for the record of a device that trains.
    #[inline(never)]
    pub fn read(page: &[u8]) -> Result<Self, ProvisionError> {
        let record = Record::parse(page, INFERS, |_| Ok(()))?;
        Ok(Self {
            device: record.identity.device,
            chain: ChainKey::new(record.key.ok_or(ProvisionError::Role)?),
        })
    }
}

impl<'a, S> Record<'a, S> {
    /// Reads a record with or without the flags of an element and of a device that only infers.
    /// `secrets` derives its secrets from the root.
    #[inline(always)]
    fn parse(
        page: &'a [u8],
        expected: u8,
        secrets: impl FnOnce(&[u8; 32]) -> Result<S, ProvisionError>,
    ) -> Result<Self, ProvisionError> {
        let mut reader = Reader(page);
        if reader.array() != Some(MAGIC) {
            return Err(ProvisionError::Blank);
        }
        let length = reader.u32().ok_or(ProvisionError::Length)?;
        let length = usize::try_from(length).map_err(|_| ProvisionError::Length)?;
        let (record, crc) = page
            .get(..length)
            .and_then(<[u8]>::split_last_chunk::<CRC_BYTES>)
            .ok_or(ProvisionError::Length)?;
        let (start, rest) = record
            .split_at_checked(KEY.end)
            .ok_or(ProvisionError::Length)?;
        if crc32(rest) != u32::from_le_bytes(*crc) {
            return Err(ProvisionError::Checksum);
        }
        let key = key(start.get(KEY).unwrap_or_default()).ok_or(ProvisionError::Checksum)?;
        let (fields, samples) = rest
            .split_first_chunk::<FIELD_BYTES>()
            .ok_or(ProvisionError::Length)?;
        let (words, _) = fields.as_chunks();
        let &[
            device,
            ref root @ ..,
            budget,
            noise_low,
            noise_high,
            max_epochs,
            max_jump,
            separation,
            matrix_low,
            matrix_high,
            [f0, f1, kind, flags],
            count,
        ] = words
        else {
            return Err(ProvisionError::Length);
        };
        let root = root.as_flattened().first_chunk();
        let root = root.ok_or(ProvisionError::Length)?;
        let helpers = helpers(flags, expected)?;
        #[cfg(feature = "questions")]
        let (questions, samples) = questions(flags, samples)?;
        let (feature_count, count) = (u16::from_le_bytes([f0, f1]), u32::from_le_bytes(count));
        let samples = Stored::read(feature_count, kind, count, samples)?;
        // All checks are done, so secrets are copied once, into types that overwrite them.
        Ok(Self {
            identity: Identity {
                device: u32::from_le_bytes(device),
                root: secrets(root)?,
            },
            key: key.map(|key| Key::from_secret(*key)),
            policy: Policy {
                limits: Limits {
                    budget: Budget(u32::from_le_bytes(budget)),
                    separation: Separation(u32::from_le_bytes(separation)),
                    max_jump: MaxJump(u32::from_le_bytes(max_jump)),
                },
                min_noise_multiplier: multiplier(noise_low, noise_high),
                min_matrix_noise_multiplier: multiplier(matrix_low, matrix_high),
                max_epochs: u32::from_le_bytes(max_epochs),
                hides_number: flags & HIDES_NUMBER != 0,
                helpers,
            },
            #[cfg(feature = "questions")]
            questions,
            samples,
        })
    }
}

/// Reads the question policy, and returns the bytes after it.
#[cfg(feature = "questions")]
#[inline(always)]
fn questions(flags: u8, bytes: &[u8]) -> Result<(QuestionPolicy, &[u8]), ProvisionError> {
    if flags & HAS_QUESTIONS == 0 {
        return Ok((QuestionPolicy::NONE, bytes));
    }
    let (questions, samples) = bytes
        .split_first_chunk::<QUESTION_BYTES>()
        .ok_or(ProvisionError::Length)?;
    let mut reader = Reader(questions);
    let fields = (reader.u32(), reader.u32(), reader.u64());
    let (Some(kinds), Some(max_answers), Some(units)) = fields else {
        return Err(ProvisionError::Length);
    };
    let kinds = u8::try_from(kinds).ok().and_then(Kinds::from_bits);
    let policy = QuestionPolicy {
        kinds: kinds.ok_or(ProvisionError::Policy)?,
        max_answers,
        min_noise_multiplier: NoiseMultiplier::from_units(units),
    };
    Ok((policy, samples))
}

/// Decodes a noise multiplier from two words.
#[inline(always)]
fn multiplier(low: [u8; 4], high: [u8; 4]) -> NoiseMultiplier {
    let (low, high) = (u32::from_le_bytes(low), u32::from_le_bytes(high));
    NoiseMultiplier::from_units(u64::from(low) | u64::from(high) << 32)
}

/// Returns the number of helpers in the flags, for a device with or without an element, or one that
/// only infers.
#[inline(always)]
const fn helpers(flags: u8, expected: u8) -> Result<u8, ProvisionError> {
    let helpers = flags >> HELPERS_SHIFT;
    if flags & 0b1111 & !KNOWN_FLAGS != 0 || helpers > MAX_HELPERS {
        return Err(ProvisionError::Policy);
    }
    #[cfg(feature = "delivery")]
    if (flags ^ expected) & INFERS != 0 {
        return Err(ProvisionError::Role);
    }
    if (flags ^ expected) & HAS_ELEMENT != 0 {
        Err(ProvisionError::Element)
    } else {
        Ok(helpers)
    }
}

/// Returns the key of a record, which has a separate checksum, or no key once its overwriting has
/// begun. `None` for anything else.
fn key(bytes: &[u8]) -> Option<Option<&[u8; KEY_BYTES]>> {
    let (key, rest) = bytes.split_first_chunk::<KEY_BYTES>()?;
    let mut reader = Reader(rest);
    let (crc, filling) = (reader.u32()?, reader.u32()?);
    match *key {
        _ if crc == crc32(key) && filling == 0 => Some(Some(key)),
        [0, 0, 0, 0, ..] => Some(None),
        _ => None,
    }
}

/// The samples of a record, in place.
#[derive(Clone, Copy)]
pub struct Stored<'a> {
    kind: TargetKind,
    feature_count: usize,
    features: &'a [u8],
    targets: &'a [u8],
    recipe: &'a [u8],
}

impl<'a> Stored<'a> {
    fn read(
        feature_count: u16,
        kind: u8,
        count: u32,
        bytes: &'a [u8],
    ) -> Result<Self, ProvisionError> {
        let length = |words: u32| {
            let words = usize::try_from(words).ok()?;
            words.checked_mul(WORD_BYTES)
        };
        let (features, rest) = u32::from(feature_count)
            .checked_mul(count)
            .and_then(length)
            .and_then(|middle| bytes.split_at_checked(middle))
            .ok_or(ProvisionError::Length)?;
        let (targets, recipe) = length(count)
            .and_then(|middle| rest.split_at_checked(middle))
            .ok_or(ProvisionError::Length)?;
        let kind = match kind {
            0 if count == 0 => TargetKind::None,
            1 => TargetKind::Value,
            2 => TargetKind::Class,
            _ => return Err(ProvisionError::Samples),
        };
        let mut target_words = words(targets);
        let fits = match kind {
            TargetKind::None => true,
            TargetKind::Value => target_words.all(|word| f32::from_word(word).is_some()),
            TargetKind::Class => target_words.all(|word| u16::from_word(word).is_some()),
        };
        if !(fits && words(features).all(|word| f32::from_bits(word).is_finite())) {
            return Err(ProvisionError::Samples);
        }
        Ok(Self {
            kind,
            feature_count: feature_count.into(),
            features,
            targets,
            recipe,
        })
    }

    /// Returns the encoded [`Recipe`] of the features to compute from the samples. Empty if they
    /// are already features.
    pub const fn recipe(&self) -> &'a [u8] {
        self.recipe
    }

    /// Returns the kind of the targets.
    pub const fn kind(&self) -> TargetKind {
        self.kind
    }

    /// Returns the number of features of a sample.
    pub const fn feature_count(&self) -> usize {
        self.feature_count
    }

    /// Returns the number of samples.
    pub const fn len(&self) -> usize {
        self.targets.len() / WORD_BYTES
    }

    /// Returns whether there are no samples.
    pub const fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Returns all feature values, row by row, for copying. The record needs no alignment.
    pub fn features(&self) -> impl Iterator<Item = f32> + use<'a> {
        words(self.features).map(f32::from_bits)
    }

    /// Returns all targets in order, or none if they are of another kind.
    pub fn targets<T: Target>(&self) -> impl Iterator<Item = T> + use<'a, T> {
        let targets = if self.kind == T::KIND {
            self.targets
        } else {
            &[]
        };
        words(targets).filter_map(T::from_word)
    }

    /// Returns the samples for training, without a copy.
    ///
    /// # Errors
    /// [`ProvisionError::Target`] if the targets are of another kind, [`ProvisionError::Unaligned`]
    /// unless the record is aligned to four bytes on a little-endian processor.
    pub fn in_place<T: Target>(&self) -> Result<StoredSamples<'a, T>, ProvisionError> {
        if self.kind != T::KIND {
            return Err(ProvisionError::Target);
        }
        let features = bytemuck::try_cast_slice(self.features)
            .ok()
            .filter(|_| cfg!(target_endian = "little"))
            .ok_or(ProvisionError::Unaligned)?;
        Ok(StoredSamples {
            features,
            targets: self.targets,
            feature_count: self.feature_count,
            target: PhantomData,
        })
    }
}

impl core::fmt::Debug for Stored<'_> {
    /// Shape only: device data never reach a log.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Stored({} x {})", self.len(), self.feature_count)
    }
}

/// The samples of a record, in the form for training.
#[derive(Clone, Copy)]
pub struct StoredSamples<'a, T> {
    features: &'a [f32],
    targets: &'a [u8],
    feature_count: usize,
    target: PhantomData<T>,
}

impl<T: Target + Default> Samples for StoredSamples<'_, T> {
    type Target = T;

    fn len(&self) -> usize {
        self.targets.len() / WORD_BYTES
    }

    #[inline(always)]
    fn features(&self, index: usize) -> &[f32] {
        let start = index * self.feature_count;
        self.features
            .get(start..start + self.feature_count)
            .unwrap_or_default()
    }

    #[inline(always)]
    fn target(&self, index: usize) -> T {
        self.targets
            .as_chunks()
            .0
            .get(index)
            .and_then(|word| T::from_word(u32::from_le_bytes(*word)))
            .unwrap_or_default()
    }
}

impl<T> core::fmt::Debug for StoredSamples<'_, T> {
    /// Shape only: device data never reach a log.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let count = self.targets.len() / WORD_BYTES;
        write!(f, "StoredSamples({count} x {})", self.feature_count)
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> + use<'_> {
    bytes.as_chunks().0.iter().copied().map(u32::from_le_bytes)
}

/// Returns the bytes of a record with `count` samples of `feature_count` features, or `None` if it
/// would be too long.
pub const fn record_bytes(feature_count: usize, count: usize) -> Option<usize> {
    let Some(words) = feature_count.checked_add(1) else {
        return None;
    };
    let Some(words) = words.checked_mul(count) else {
        return None;
    };
    let Some(bytes) = words.checked_mul(WORD_BYTES) else {
        return None;
    };
    bytes.checked_add(HEADER_BYTES + CRC_BYTES)
}

/// Writes a record with the device's first chain key to the start of `page`, and returns its
/// length. Without samples the device uses its own data, for example from a sensor.
///
/// # Errors
/// [`ProvisionError::Room`] if `page` is shorter than [`record_bytes`] or there are too many
/// samples, [`ProvisionError::Samples`] if a value is not finite, [`ProvisionError::Length`] if the
/// samples have different numbers of features, [`ProvisionError::Policy`] if there are more than
/// [`MAX_HELPERS`] helpers. `page` is then unchanged or not a record.
pub fn write<S>(
    identity: &Identity,
    key: &Key,
    policy: &Policy,
    samples: Option<&S>,
    page: &mut [u8],
) -> Result<usize, ProvisionError>
where
    S: Samples,
    S::Target: Target,
{
    let count = samples.map_or(0, Samples::len);
    let feature_count = samples.map_or(0, |samples| match count {
        0 => 0,
        _ => samples.features(0).len(),
    });
    let length = record_bytes(feature_count, count).ok_or(ProvisionError::Room)?;
    let room = |_| ProvisionError::Room;
    let kind = samples.map_or(TargetKind::None, |_| <S::Target as Target>::KIND);
    let mut writer = Writer::new(page.get_mut(..length).ok_or(ProvisionError::Room)?);
    // The magic is written last: an unfinished page is not a record.
    writer
        .put(&[0; MAGIC.len()])
        .u32(u32::try_from(length).map_err(room)?)
        .put(key.secret())
        .u32(crc32(key.secret()))
        .u32(0)
        .u32(identity.device)
        .put(identity.root.secret())
        .u32(policy.limits.budget.0)
        .u64(policy.min_noise_multiplier.units())
        .u32(policy.max_epochs)
        .u32(policy.limits.max_jump.0)
        .u32(policy.limits.separation.0)
        .u64(policy.min_matrix_noise_multiplier.units())
        .u16(u16::try_from(feature_count).map_err(room)?)
        .u8(kind as u8)
        .u8(flags(policy).ok_or(ProvisionError::Policy)?)
        .u32(u32::try_from(count).map_err(room)?);
    if let Some(samples) = samples {
        for index in 0..count {
            let row = samples.features(index);
            if row.len() != feature_count {
                return Err(ProvisionError::Length);
            }
            for value in row {
                if !value.is_finite() {
                    return Err(ProvisionError::Samples);
                }
                writer.f32(*value);
            }
        }
        for index in 0..count {
            let word = samples.target(index).to_word();
            if <S::Target as Target>::from_word(word).is_none() {
                return Err(ProvisionError::Samples);
            }
            writer.u32(word);
        }
    }
    let written = writer.finish().ok_or(ProvisionError::Room)?;
    seal(page, written).ok_or(ProvisionError::Room)
}

/// Sets the recipe of the features that the device computes from its raw samples. Returns the
/// length of the record, which grows by up to [`MAX_RECIPE_BYTES`]. For a secure element, call this
/// before `leave_to_element`.
///
/// # Errors
/// Those of [`Record::read`]. [`ProvisionError::Room`] if `page` is too short,
/// [`ProvisionError::Length`] if the record already has a recipe.
pub fn name_recipe(page: &mut [u8], recipe: &Recipe) -> Result<usize, ProvisionError> {
    if !Record::read(page)?.samples.recipe.is_empty() {
        return Err(ProvisionError::Length);
    }
    let end = end_of(page).ok_or(ProvisionError::Length)?;
    let mut bytes = [0; MAX_RECIPE_BYTES];
    let recipe = recipe.write(&mut bytes);
    // Writes nothing unless everything fits.
    let length = end + recipe.len() + CRC_BYTES;
    let place = page.get_mut(end..length).ok_or(ProvisionError::Room)?;
    Writer::new(place).put(recipe);
    let room = |_| ProvisionError::Room;
    Writer::new(page.get_mut(MAGIC.len()..).unwrap_or_default())
        .u32(u32::try_from(length).map_err(room)?);
    seal(page, length - CRC_BYTES).ok_or(ProvisionError::Room)
}

/// Provisions a device to answer questions. Without this it answers none. Returns the length of the
/// record, which grows by 16 bytes. For a secure element, call this before `leave_to_element`.
///
/// # Errors
/// Those of [`Record::read`]. [`ProvisionError::Room`] if `page` is too short,
/// [`ProvisionError::Policy`] if the record already has questions.
#[cfg(feature = "questions")]
pub fn allow_questions(page: &mut [u8], policy: &QuestionPolicy) -> Result<usize, ProvisionError> {
    if Record::read(page)?.questions != QuestionPolicy::NONE {
        return Err(ProvisionError::Policy);
    }
    let end = end_of(page).ok_or(ProvisionError::Length)?;
    // Writes nothing unless everything fits.
    let length = end + QUESTION_BYTES + CRC_BYTES;
    let place = page.get_mut(..length).ok_or(ProvisionError::Room)?;
    place.copy_within(HEADER_BYTES..end, HEADER_BYTES + QUESTION_BYTES);
    Writer::new(place.get_mut(HEADER_BYTES..).unwrap_or_default())
        .u32(policy.kinds.bits().into())
        .u32(policy.max_answers)
        .u64(policy.min_noise_multiplier.units());
    if let Some(flags) = place.get_mut(FLAGS) {
        *flags |= HAS_QUESTIONS;
    }
    let room = |_| ProvisionError::Room;
    Writer::new(place.get_mut(MAGIC.len()..).unwrap_or_default())
        .u32(u32::try_from(length).map_err(room)?);
    seal(page, length - CRC_BYTES).ok_or(ProvisionError::Room)
}

/// Writes the record of a device that only infers to the start of `page`, and returns its length.
/// It has a number and a key, and no root.
///
/// # Errors
/// [`ProvisionError::Room`] if `page` is shorter than [`record_bytes`] for no samples.
#[cfg(feature = "delivery")]
pub fn write_recipient(device: u32, key: &Key, page: &mut [u8]) -> Result<usize, ProvisionError> {
    let length = HEADER_BYTES + CRC_BYTES;
    let page = page.get_mut(..length).ok_or(ProvisionError::Room)?;
    page.fill(0);
    Writer::new(page)
        .put(&[0; MAGIC.len()])
        .u32(length as u32)
        .put(key.secret())
        .u32(crc32(key.secret()))
        .u32(0)
        .u32(device);
    if let Some(flags) = page.get_mut(FLAGS) {
        *flags = INFERS;
    }
    seal(page, HEADER_BYTES).ok_or(ProvisionError::Room)
}

/// Returns the offset of a record's checksum.
fn end_of(page: &[u8]) -> Option<usize> {
    let length = Reader(page.get(MAGIC.len()..)?).u32()?;
    (length as usize).checked_sub(CRC_BYTES)
}

/// Converts a record for a device with its secrets in a secure element. Key and root are replaced
/// by values that identify them ([`element`](crate::element)), and firmware without an element
/// refuses the record. Returns the replacement of the key, which starts the device's ledger.
///
/// # Errors
/// Those of [`Record::read`], and [`ProvisionError::Element`] if the key is overwritten.
#[cfg(feature = "element")]
pub fn leave_to_element(page: &mut [u8]) -> Result<Key, ProvisionError> {
    let record = Record::read(page)?;
    let key = record.key.as_ref().ok_or(ProvisionError::Element)?;
    let first = crate::element::named(0, &crate::element::check(key));
    let root = crate::element::check(&Key::from_secret(*record.identity.root.secret()));
    let end = end_of(page);
    let mut writer = Writer::new(page.get_mut(KEY).unwrap_or_default());
    writer.put(first.secret()).u32(crc32(first.secret())).u32(0);
    let mut writer = Writer::new(page.get_mut(ROOT).unwrap_or_default());
    writer.put(&root).put(&[0; 16]);
    if let Some(flags) = page.get_mut(FLAGS) {
        *flags |= HAS_ELEMENT;
    }
    let sealed = end.and_then(|end| seal(page, end));
    sealed.map(|_| first).ok_or(ProvisionError::Length)
}

/// Returns the flags of a record, or `None` if there are more helpers than a federation can have.
fn flags(policy: &Policy) -> Option<u8> {
    let number = if policy.hides_number { HIDES_NUMBER } else { 0 };
    (policy.helpers <= MAX_HELPERS).then_some(policy.helpers << HELPERS_SHIFT | number)
}

/// Writes magic and checksum around the contents, and returns the total length.
fn seal(page: &mut [u8], written: usize) -> Option<usize> {
    page.get_mut(..MAGIC.len())?.copy_from_slice(&MAGIC);
    // The key has a separate checksum.
    let crc = crc32(page.get(KEY.end..written)?);
    let end = written + CRC_BYTES;
    page.get_mut(written..end)?
        .copy_from_slice(&crc.to_le_bytes());
    Some(end)
}
