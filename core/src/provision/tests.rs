//! Records survive a round trip, and other bytes are not accepted.

use proptest::{collection::vec, prelude::*};
use std::{format, string::String, vec, vec::Vec};

use super::*;
use crate::features::{Cells, Steps};
use crate::samples::SampleSlice;

const NONE: Option<&SampleSlice<'_, u16>> = None;

fn identity(device: u32) -> Identity {
    Identity {
        device,
        root: Root::from_seed(11),
    }
}

fn policy() -> Policy {
    Policy {
        limits: Limits {
            budget: Budget(5),
            separation: Separation(342),
            max_jump: MaxJump(900),
        },
        min_noise_multiplier: NoiseMultiplier::from_units(3 << 31),
        min_matrix_noise_multiplier: NoiseMultiplier::from_units(5 << 30),
        max_epochs: 10,
        hides_number: false,
        helpers: 2,
    }
}

fn key() -> Key {
    Key::from_secret([3; 32])
}

fn page<S>(samples: Option<&S>) -> Vec<u8>
where
    S: Samples,
    S::Target: Target,
{
    let mut page = vec![0; 10_000];
    let length = write(&identity(7), &key(), &policy(), samples, &mut page).unwrap();
    page.truncate(length);
    page
}

/// A record with this change and a matching checksum.
fn changed(mut page: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    page[at..at + bytes.len()].copy_from_slice(bytes);
    let end = page.len() - CRC_BYTES;
    let crc = crc32(&page[KEY.end..end]).to_le_bytes();
    page[end..].copy_from_slice(&crc);
    page
}

fn refused(page: &[u8]) -> ProvisionError {
    Record::read(page).unwrap_err()
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        device in any::<u32>(), key in any::<[u8; 32]>(), root in any::<[u8; 32]>(),
        hides_number in any::<bool>(), helpers in 0..=MAX_HELPERS,
        [budget, separation, jump] in any::<[u32; 3]>(), least in any::<u64>(),
        epochs in any::<u32>(),
        rows in vec((vec(-1e6f32..1e6, 3), any::<u16>()), 0..20),
    ) {
        let features: Vec<f32> = rows.iter().flat_map(|(row, _)| row.clone()).collect();
        let targets: Vec<u16> = rows.iter().map(|(_, class)| *class).collect();
        let samples = SampleSlice::new(&features, &targets, 3).unwrap();
        let identity = Identity {
            device, root: Root::from_secret(root),
        };
        let limits = Limits {
            budget: Budget(budget), separation: Separation(separation), max_jump: MaxJump(jump),
        };
        let policy = Policy {
            limits,
            min_noise_multiplier: NoiseMultiplier::from_units(least),
            min_matrix_noise_multiplier: NoiseMultiplier::from_units(least ^ 7),
            max_epochs: epochs, hides_number, helpers,
        };
        let mut page = vec![0; record_bytes(3, rows.len()).unwrap() + 5];
        let first = Key::from_secret(key);
        let length = write(&identity, &first, &policy, Some(&samples), &mut page).unwrap();
        prop_assert_eq!(length, page.len() - 5);
        let record = Record::read(&page).unwrap();
        prop_assert_eq!(record.identity.device, device);
        prop_assert_eq!(record.key.as_ref().map(Key::secret), Some(&key));
        prop_assert_eq!(record.policy.hides_number, hides_number);
        prop_assert_eq!(record.policy.helpers, helpers);
        prop_assert_eq!(record.identity.root.secret(), &root);
        prop_assert_eq!(record.policy.limits, limits);
        prop_assert_eq!(record.policy.min_noise_multiplier.units(), least);
        prop_assert_eq!(record.policy.min_matrix_noise_multiplier.units(), least ^ 7);
        prop_assert_eq!(record.policy.max_epochs, epochs);
        prop_assert_eq!(record.samples.len(), rows.len());
        prop_assert_eq!(record.samples.features().collect::<Vec<_>>(), features);
        prop_assert_eq!(record.samples.targets::<u16>().collect::<Vec<_>>(), targets);
        prop_assert_eq!(record.samples.targets::<f32>().count(), 0);
    }

    #[test]
    fn a_damaged_record_is_refused(at in any::<prop::sample::Index>(), flip in 1u8..) {
        let samples = SampleSlice::new(&[1.0, 2.0], &[0u16, 1], 1).unwrap();
        let mut page = page(Some(&samples));
        let at = at.index(page.len());
        page[at] ^= flip;
        prop_assert!(Record::read(&page).is_err());
    }

    #[test]
    fn any_bytes_are_a_record_or_an_error(bytes in vec(any::<u8>(), 0..400)) {
        prop_assert!(Record::read(&bytes).is_err());
        // Including bytes that claim to be a record, with matching checksums.
        let mut page = vec![0; HEADER_BYTES + CRC_BYTES];
        page.extend(&bytes);
        let length = u32::try_from(page.len()).unwrap().to_le_bytes();
        page[..4].copy_from_slice(&MAGIC);
        page[4..8].copy_from_slice(&length);
        let fields = bytes.len().min(HEADER_BYTES - KEY.end);
        let page = changed(page, KEY.end, &bytes[..fields]);
        if let Ok(record) = Record::read(&page) {
            prop_assert!(record.samples.features().all(f32::is_finite));
        }
    }
}

#[test]
fn a_cut_record_is_refused_at_every_length() {
    let samples = SampleSlice::new(&[1.0, 2.0], &[0.5f32, 1.0], 1).unwrap();
    let page = page(Some(&samples));
    for length in 0..page.len() {
        let expected = if length < 4 {
            ProvisionError::Blank
        } else {
            ProvisionError::Length
        };
        assert_eq!(refused(&page[..length]), expected, "{length}");
    }
}

#[test]
fn pages_that_were_never_written_are_blank() {
    assert_eq!(refused(&[0xff; 512]), ProvisionError::Blank);
    assert_eq!(refused(&[0; 512]), ProvisionError::Blank);
    assert_eq!(refused(&[]), ProvisionError::Blank);
}

#[test]
fn lengths_that_lie_are_refused() {
    let page = page(NONE);
    assert_eq!(page.len(), HEADER_BYTES + CRC_BYTES);
    let length = |length: u32| changed(page.clone(), 4, &length.to_le_bytes());
    for lie in [0, 3, 4, 127, 129, u32::MAX] {
        let error = refused(&length(lie));
        let named = matches!(error, ProvisionError::Length | ProvisionError::Checksum);
        assert!(named, "{lie}: {error}");
    }
    // One sample too many, and products that do not fit 32 bits.
    for (features, count) in [(0, 1u32), (1, 1), (u16::MAX, u32::MAX), (16_384, 65_536)] {
        let [low, high] = features.to_le_bytes();
        let [a, b, c, d] = count.to_le_bytes();
        let page = changed(page.clone(), 116, &[low, high, 2, 0, a, b, c, d]);
        assert_eq!(refused(&page), ProvisionError::Length, "{features} {count}");
    }
    // Samples after a header without samples: an unknown recipe.
    let samples = SampleSlice::new(&[1.0], &[0u16], 1).unwrap();
    let page = changed(self::page(Some(&samples)), 120, &[0; 4]);
    let record = Record::read(&page).unwrap();
    assert!(record.samples.is_empty() && !record.samples.recipe().is_empty());
    assert_eq!(Recipe::read(record.samples.recipe()), None);
}

#[test]
fn samples_that_cannot_be_are_refused() {
    let samples = SampleSlice::new(&[1.0], &[7u16], 1).unwrap();
    let page = page(Some(&samples));
    let change = |at, bytes: &[u8]| refused(&changed(page.clone(), at, bytes));
    let infinite = f32::INFINITY.to_le_bytes();
    assert_eq!(change(HEADER_BYTES, &infinite), ProvisionError::Samples);
    assert_eq!(change(130, &[1]), ProvisionError::Samples, "class 65,543");
    assert_eq!(change(118, &[3]), ProvisionError::Samples, "kind 3");
    assert_eq!(change(118, &[0]), ProvisionError::Samples, "kind none");
    assert_eq!(change(119, &[2]), ProvisionError::Element);
    assert_eq!(change(119, &[0x90]), ProvisionError::Policy, "nine helpers");
    let value = changed(page.clone(), 128, &f32::NAN.to_le_bytes());
    assert_eq!(
        refused(&changed(value, 118, &[1])),
        ProvisionError::Samples,
        "a value that is none"
    );
}

fn gradients() -> Recipe {
    let cells = Cells::new(8, 8, 2).unwrap();
    Recipe::Gradients { cells, planes: 1 }
}

/// A page with space for a recipe.
fn page_with_room<S>(samples: Option<&S>) -> Vec<u8>
where
    S: Samples,
    S::Target: Target,
{
    let mut page = page(samples);
    page.resize(page.len() + MAX_RECIPE_BYTES, 0xff);
    page
}

#[test]
fn a_record_names_a_recipe_behind_its_samples() {
    let samples = SampleSlice::new(&[1.0, 255.0], &[3u16, 4], 1).unwrap();
    for recipe in [
        gradients(),
        Recipe::steps(Steps::new(3).unwrap(), &[None]).unwrap(),
    ] {
        let mut page = page_with_room(Some(&samples));
        let length = name_recipe(&mut page, &recipe).unwrap();
        let record = Record::read(&page[..length]).unwrap();
        assert_eq!(Recipe::read(record.samples.recipe()), Some(recipe));
        assert_eq!(record.samples.features().collect::<Vec<_>>(), [1.0, 255.0]);
        assert_eq!(record.samples.targets::<u16>().collect::<Vec<_>>(), [3, 4]);
        assert_eq!(record.policy.helpers, policy().helpers);
    }
    assert!(
        Record::read(&page(Some(&samples)))
            .unwrap()
            .samples
            .recipe()
            .is_empty()
    );
}

#[test]
fn a_recipe_that_cannot_be_named_is_refused() {
    let mut page = page_with_room(NONE);
    let length = name_recipe(&mut page, &gradients()).unwrap();
    assert_eq!(
        name_recipe(&mut page, &gradients()),
        Err(ProvisionError::Length)
    );
    page.truncate(length);
    assert_eq!(
        Recipe::read(Record::read(&page).unwrap().samples.recipe()),
        Some(gradients())
    );
    let whole = self::page(NONE);
    for spare in 0..8 {
        let mut short = whole.clone();
        short.resize(whole.len() + spare, 0xff);
        let before = short.clone();
        let refused = name_recipe(&mut short, &gradients());
        assert_eq!(refused, Err(ProvisionError::Room));
        assert_eq!(short, before);
    }
    let mut blank = [0xff; 300];
    assert_eq!(
        name_recipe(&mut blank, &gradients()),
        Err(ProvisionError::Blank)
    );
}

#[cfg(feature = "element")]
#[test]
fn a_record_for_an_element_keeps_its_recipe() {
    let mut page = page_with_room(NONE);
    let length = name_recipe(&mut page, &gradients()).unwrap();
    page.truncate(length);
    leave_to_element(&mut page).unwrap();
    assert_eq!(page[FLAGS] & 0b1111, HAS_ELEMENT);
    assert_eq!(refused(&page), ProvisionError::Element);
    page[FLAGS] &= !HAS_ELEMENT;
    let flags = page[FLAGS];
    let page = changed(page, FLAGS, &[flags]);
    assert_eq!(
        Recipe::read(Record::read(&page).unwrap().samples.recipe()),
        Some(gradients())
    );
}

#[test]
fn a_record_that_cannot_be_written_is_refused() {
    let mut page = [0xff; 200];
    let mut make = |samples: &SampleSlice<'_, f32>| {
        let result = write(&identity(1), &key(), &policy(), Some(samples), &mut page);
        assert_eq!(Record::read(&page).unwrap_err(), ProvisionError::Blank);
        result
    };
    let slice = |features, targets| SampleSlice::new(features, targets, 1).unwrap();
    let error = Err(ProvisionError::Samples);
    assert_eq!(make(&slice(&[f32::NAN], &[0.0])), error);
    assert_eq!(make(&slice(&[0.0], &[f32::NAN])), error);
    let none = Some(&slice(&[], &[]));
    let nine = Policy {
        helpers: 9,
        ..policy()
    };
    let mut page = [0xff; 200];
    let result = write(&identity(1), &key(), &nine, none, &mut page);
    assert_eq!(result, Err(ProvisionError::Policy));
    let many = slice(&[0.0; 13], &[0.0; 13]);
    assert_eq!(make(&many), Err(ProvisionError::Room));
    let wide = SampleSlice::new(&[0.0; 65_536], &[0.0f32], 65_536).unwrap();
    let mut page = vec![0; 300_000];
    let result = write(&identity(1), &key(), &policy(), Some(&wide), &mut page);
    assert_eq!(result, Err(ProvisionError::Room));
}

#[test]
fn samples_are_used_where_they_lie() {
    let features = [1.0, 2.0, 3.0, 4.0];
    let samples = SampleSlice::new(&features, &[1.5f32, -2.0], 2).unwrap();
    let page = page(Some(&samples));
    // Words, for a known alignment.
    let mut words = vec![0u32; page.len() / 4 + 1];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    bytes[..page.len()].copy_from_slice(&page);
    let stored = Record::read(bytes).unwrap().samples;
    let samples = stored.in_place::<f32>().unwrap();
    assert_eq!(samples.len(), 2);
    assert_eq!(samples.features(1), [3.0, 4.0]);
    assert_eq!(samples.target(1), -2.0);
    assert!(samples.features(2).is_empty(), "outside: no panic");
    assert_eq!(samples.target(2), 0.0);
    assert_eq!(
        format!("{stored:?}{samples:?}"),
        "Stored(2 x 2)StoredSamples(2 x 2)"
    );
    let error = stored.in_place::<u16>().unwrap_err();
    assert_eq!(error, ProvisionError::Target);
    bytes.copy_within(..page.len(), 1);
    let stored = Record::read(&bytes[1..]).unwrap().samples;
    let error = stored.in_place::<f32>().unwrap_err();
    assert_eq!(error, ProvisionError::Unaligned);
    assert!(stored.features().eq(features));
}

/// The bytes of the layout in `docs/provisioning.md`.
#[test]
fn a_record_is_as_it_is_written_down() {
    let samples = SampleSlice::new(&[1.0], &[2u16], 1).unwrap();
    let page = page(Some(&samples));
    let mut expected = b"sfP5".to_vec();
    expected.extend(136u32.to_le_bytes());
    expected.extend([3; 32]);
    expected.extend(crc32(&[3; 32]).to_le_bytes());
    expected.extend([0; 4]);
    expected.extend(7u32.to_le_bytes());
    expected.extend(11u64.to_le_bytes());
    expected.extend(b"smolfed simulation seed ");
    expected.extend(5u32.to_le_bytes());
    expected.extend((3u64 << 31).to_le_bytes());
    expected.extend(10u32.to_le_bytes());
    expected.extend(900u32.to_le_bytes());
    expected.extend(342u32.to_le_bytes());
    expected.extend((5u64 << 30).to_le_bytes());
    // One feature, classes, and two helpers.
    expected.extend([1, 0, 2, 0x20]);
    expected.extend(1u32.to_le_bytes());
    expected.extend(1f32.to_le_bytes());
    expected.extend(2u32.to_le_bytes());
    assert_eq!(page[..132], expected);
    assert_eq!(page[132..], crc32(&expected[48..]).to_le_bytes());
    assert_eq!(page.len(), 136);
}

/// Zeros overwrite the key without an erase, and the rest stays.
#[test]
fn a_record_outlives_its_key() {
    let mut page = page(NONE);
    assert!(Record::read(&page).unwrap().key.is_some());
    page[KEY].fill(0);
    assert!(!page.windows(4).any(|bytes| bytes == [3; 4]));
    let record = Record::read(&page).unwrap();
    assert!(record.key.is_none());
    assert_eq!(record.identity.device, 7);
    assert_eq!(record.policy.limits, policy().limits);
    // The power fails during overwriting, word by word.
    for cut in (KEY.start + 4..KEY.end).step_by(4) {
        let mut torn = self::page(NONE);
        torn[KEY.start..cut].fill(0);
        assert!(Record::read(&torn).unwrap().key.is_none(), "{cut}");
    }
    // Everything else is damage, such as a typing error in a record.
    for at in KEY {
        let mut damaged = self::page(NONE);
        damaged[at] ^= 1;
        assert_eq!(refused(&damaged), ProvisionError::Checksum, "{at}");
    }
}

/// Encodes a record as text, bit by bit.
fn as_text(page: &[u8]) -> String {
    let bits: Vec<u8> = page
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1))
        .collect();
    let digit = |bits: &[u8]| {
        let value = (0..5).fold(0, |value, bit| value << 1 | bits.get(bit).unwrap_or(&0));
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[usize::from(value)])
    };
    let digits: String = bits.chunks(5).map(digit).collect();
    format!("SMOLFED:7:{digits}")
}

#[test]
fn a_record_is_read_from_text_as_it_is_typed() {
    let record = page(NONE);
    let text = as_text(&record);
    assert_eq!(text.len(), 215);
    let typed = text.to_lowercase();
    let (start, rest) = typed.split_at(60);
    for text in [text.clone(), format!("  {start}\r\n {rest}\n")] {
        let mut page = vec![0xff; 200];
        let length = text::read(text.as_bytes(), &mut page).unwrap();
        assert_eq!(page[..length], record);
    }
    let samples = SampleSlice::new(&[1.0, 2.0, 3.0], &[0u16, 1, 2], 1).unwrap();
    let record = self::page(Some(&samples));
    let mut page = vec![0; record.len()];
    let length = text::read(as_text(&record).as_bytes(), &mut page).unwrap();
    assert_eq!(page[..length], record);
}

#[test]
fn other_texts_are_refused_with_a_reason() {
    use text::TextError;
    let whole = as_text(&page(NONE));
    let mut page = vec![0; 128];
    let mut read = |text: &str| text::read(text.as_bytes(), &mut page).unwrap_err();
    for (text, expected) in [
        (String::new(), TextError::Prefix),
        ("SMOLFED:".into(), TextError::Prefix),
        (whole.replace(":7:", "7:"), TextError::Prefix),
        (whole.replace(":7:", ":4294967296:"), TextError::Prefix),
        (whole.replace(":7:", ":8:"), TextError::Number),
        (whole.replace(":7:", ":7:1"), TextError::Character),
        (format!("{whole}AA"), TextError::Room),
        (format!("{whole}="), TextError::Character),
        (whole.replace(":7:", ":7:A"), TextError::Cut),
    ] {
        assert_eq!(read(&text), expected, "{text}");
    }
    for length in 0..whole.len() {
        read(&whole[..length]);
    }
    let mut changed = whole.into_bytes();
    changed[100] = if changed[100] == b'A' { b'B' } else { b'A' };
    let error = text::read(&changed, &mut page).unwrap_err();
    assert_eq!(error, TextError::Record(ProvisionError::Checksum));
    assert_eq!(text::read(&changed, &mut [0; 127]), Err(TextError::Room));
}

#[cfg(feature = "element")]
#[test]
fn the_record_of_an_element_has_no_secret_and_is_refused_without_one() {
    use crate::element::{check, named, tests::Rooted};

    let samples = SampleSlice::new(&[1.0, 2.0], &[0u16, 1], 1).unwrap();
    let usual = page(Some(&samples));
    let root = *identity(7).root.secret();
    let element = || Rooted(root);
    // From a page that continues after the record.
    let mut left = [usual.clone(), vec![0xff; 9]].concat();
    let first = leave_to_element(&mut left).unwrap();
    assert_eq!(first.secret(), named(0, &check(&key())).secret());
    let has = |page: &[u8], secret: &[u8]| page.windows(8).any(|bytes| bytes == &secret[..8]);
    for secret in [key().secret(), &root] {
        assert!(has(&usual, secret) && !has(&left, secret));
    }
    assert_eq!(refused(&left), ProvisionError::Element);
    let record = Record::read_with(&left, element()).unwrap();
    assert_eq!(record.identity.device, 7);
    assert_eq!(record.key.unwrap().secret(), first.secret());
    assert_eq!(record.policy.limits, policy().limits);
    assert_eq!(record.policy.helpers, 2);
    assert_eq!(record.samples.len(), 2);
    // The name of the key is overwritten like a key.
    let mut forgotten = left.clone();
    forgotten[KEY].fill(0);
    assert!(
        Record::read_with(&forgotten, element())
            .unwrap()
            .key
            .is_none()
    );
    // Another element, and a record without an element.
    for (page, element) in [(&left, Rooted([8; 32])), (&usual, element())] {
        let error = Record::read_with(page, element).unwrap_err();
        assert_eq!(error, ProvisionError::Element);
    }
    assert_eq!(
        leave_to_element(&mut left).err(),
        Some(ProvisionError::Element)
    );
    let mut used = usual;
    used[KEY].fill(0);
    assert_eq!(
        leave_to_element(&mut used).err(),
        Some(ProvisionError::Element)
    );
    assert_eq!(leave_to_element(&mut []).err(), Some(ProvisionError::Blank));
}

#[cfg(feature = "questions")]
#[test]
fn a_record_says_which_questions_are_answered() {
    let samples = SampleSlice::new(&[1.0, 2.0], &[0u16, 1], 1).unwrap();
    let plain = page(Some(&samples));
    assert_eq!(
        Record::read(&plain).unwrap().questions,
        QuestionPolicy::NONE
    );
    let questions = QuestionPolicy {
        kinds: Kinds::EVALUATE.with(Kinds::COUNT),
        max_answers: 100,
        min_noise_multiplier: NoiseMultiplier::from_units(3 << 31),
    };
    let mut page = plain.clone();
    let short = allow_questions(&mut page, &questions);
    assert_eq!(
        (short, &page),
        (Err(ProvisionError::Room), &plain),
        "no room"
    );
    page.resize(plain.len() + 16 + MAX_RECIPE_BYTES, 0);
    let length = allow_questions(&mut page, &questions).unwrap();
    assert_eq!(length, plain.len() + 16);
    assert_eq!(
        allow_questions(&mut page, &questions),
        Err(ProvisionError::Policy),
        "twice"
    );
    // A recipe comes after the samples, as without questions.
    let length = name_recipe(&mut page, &gradients()).unwrap();
    page.truncate(length);
    let record = Record::read(&page).unwrap();
    assert_eq!(record.questions, questions);
    let stored = &record.samples;
    assert_eq!(stored.features().collect::<Vec<_>>(), [1.0, 2.0]);
    assert_eq!(stored.targets::<u16>().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(Recipe::read(stored.recipe()), Some(gradients()));
    // An unknown kind.
    let page = changed(page, 124, &[1 << 6]);
    assert_eq!(refused(&page), ProvisionError::Policy);
}

/// Firmware that trains cannot use the record of a device that only infers, and vice versa.
#[cfg(feature = "delivery")]
#[test]
fn a_record_has_one_role() {
    let mut record = vec![0; HEADER_BYTES + CRC_BYTES];
    let length = write_recipient(9, &key(), &mut record).unwrap();
    assert_eq!(length, record.len());
    let recipient = Recipient::read(&record).unwrap();
    assert_eq!(recipient.device, 9);
    assert_eq!(recipient.chain.secret(), key().secret());
    assert_eq!(refused(&record), ProvisionError::Role);
    assert_eq!(
        Recipient::read(&page(NONE)).unwrap_err(),
        ProvisionError::Role
    );
    for at in 0..record.len() {
        let mut damaged = record.clone();
        damaged[at] ^= 1;
        assert!(Recipient::read(&damaged).is_err(), "byte {at}");
    }
    let short = &mut record[..HEADER_BYTES];
    assert_eq!(write_recipient(9, &key(), short), Err(ProvisionError::Room));
}

/// A build without `delivery` does not know the role.
#[cfg(not(feature = "delivery"))]
#[test]
fn a_record_of_a_device_that_only_infers_is_refused() {
    let flags = page(NONE)[119] | 8;
    assert_eq!(
        refused(&changed(page(NONE), 119, &[flags])),
        ProvisionError::Policy
    );
}
