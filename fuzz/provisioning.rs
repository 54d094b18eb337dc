//! Parts of flash that a device reads at the start: its provisioning record, and the recipe in it.

use smolfed_core::crc32::crc32;
use smolfed_core::provision::{
    self, KEY, MAGIC, ProvisionError, Record, Stored, StoredSamples, Target, TargetKind, text,
};
use smolfed_core::recipe::{MAX_RECIPE_BYTES, Recipe};
use smolfed_core::session::QuestionPolicy;

/// Bytes of a checksum, and of a length.
const WORD: usize = 4;

/// Bytes of the first key in [`KEY`], before its checksum.
const KEY_BYTES: usize = 32;

/// Tests a provisioning record unchanged, with matching checksums, and as text.
///
/// An accepted record must be consistent, be rewritten unchanged, and be the same record once its
/// key is overwritten.
pub fn record(bytes: &[u8]) {
    accept(bytes);
    if let Some(mut page) = sealed(bytes) {
        accept(&page);
        page[KEY].fill(0);
        let has_key = Record::read(&page).map(|record| record.key.is_some());
        assert_ne!(has_key, Ok(true), "it was overwritten");
    }
    let mut page = vec![0; bytes.len()];
    if let Ok(length) = text::read(bytes, &mut page) {
        accept(&page[..length]);
    }
}

/// Tests a recipe. An accepted recipe must be rewritten unchanged.
pub fn recipe(bytes: &[u8]) {
    let Some(recipe) = Recipe::read(bytes) else {
        return;
    };
    assert_eq!(recipe.write(&mut [0; MAX_RECIPE_BYTES]), bytes, "{recipe}");
}

/// Returns the bytes as a record with correct magic, length and checksums.
fn sealed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut page = bytes.to_vec();
    let end = page.len().checked_sub(WORD)?;
    let rest = end.checked_sub(KEY.end)?;
    page[..WORD].copy_from_slice(&MAGIC);
    let length = u32::try_from(page.len()).ok()?;
    page[WORD..2 * WORD].copy_from_slice(&length.to_le_bytes());
    let crc = crc32(&page[KEY][..KEY_BYTES]).to_le_bytes();
    page[KEY][KEY_BYTES..].copy_from_slice(&[crc, [0; WORD]].concat());
    let crc = crc32(&page[KEY.end..][..rest]).to_le_bytes();
    page[end..].copy_from_slice(&crc);
    Some(page)
}

fn accept(page: &[u8]) {
    let Ok(record) = Record::read(page) else {
        return;
    };
    let samples = record.samples;
    let values = samples.len() * samples.feature_count();
    assert_eq!(samples.features().count(), values);
    assert!(samples.features().all(f32::is_finite));
    recipe(samples.recipe());
    let (classes, numbers) = (samples.targets::<u16>(), samples.targets::<f32>());
    let expected = match samples.kind() {
        TargetKind::None => [0, 0],
        TargetKind::Value => [0, samples.len()],
        TargetKind::Class => [samples.len(), 0],
    };
    assert_eq!([classes.count(), numbers.count()], expected);
    match samples.kind() {
        TargetKind::None => written(page, &record, None::<&StoredSamples<'_, u16>>),
        TargetKind::Value => with_samples::<f32>(page, &record, &samples),
        TargetKind::Class => with_samples::<u16>(page, &record, &samples),
    }
}

fn with_samples<T: Target + Default>(page: &[u8], record: &Record<'_>, samples: &Stored<'_>) {
    match samples.in_place::<T>() {
        Ok(rows) => written(page, record, Some(&rows)),
        Err(error) => assert_eq!(error, ProvisionError::Unaligned),
    }
}

/// Rewrites a record. This is impossible without its key, and differs for a record with a recipe of
/// another version, with a number of features but no sample, or with invalid questions.
fn written<T: Target + Default>(
    page: &[u8],
    record: &Record<'_>,
    samples: Option<&StoredSamples<'_, T>>,
) {
    let stored = record.samples;
    let (Some(key), true) = (
        &record.key,
        !stored.is_empty() || stored.feature_count() == 0,
    ) else {
        return;
    };
    let mut again = vec![0; page.len()];
    let (identity, policy) = (&record.identity, &record.policy);
    let length = provision::write(identity, key, policy, samples, &mut again);
    let mut length = length.expect("what was read can be written");
    if !stored.recipe().is_empty() {
        let Some(recipe) = Recipe::read(stored.recipe()) else {
            return;
        };
        length = provision::name_recipe(&mut again, &recipe).expect("it has room");
    }
    match (record.questions, page.get(119)) {
        (QuestionPolicy::NONE, Some(flags)) if flags & 4 != 0 => return,
        (QuestionPolicy::NONE, _) => {}
        (questions, _) => {
            let allowed = provision::allow_questions(&mut again, &questions);
            length = allowed.expect("it has room");
        }
    }
    assert_eq!(again[..length], page[..length]);
}
