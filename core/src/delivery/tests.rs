//! Model files, slots and the receiver, under power cuts, damage and forgery.

use std::{vec, vec::Vec};

use ed25519_dalek::{Signer, SigningKey};
use proptest::prelude::*;

use super::{
    file::{HEADER_BYTES, SIGNATURE_BYTES},
    slots::flash_bytes,
    *,
};
use crate::{
    features::Cells,
    harness::Ram,
    model::ModelKind,
    recipe::Recipe,
    session::Phase,
    wire::message::{ModelGrid, ModelShape},
};

mod talk;
mod vectors;

/// Features, outputs and parameters of the model.
const FEATURES: u16 = 20;
const OUTPUTS: u16 = 3;
const PARAMETERS: usize = 63;

const FLASH: usize = flash_bytes(PARAMETERS, 64) as usize;

type Flash = Ram<Vec<u8>>;

fn blank() -> Flash {
    Ram::new(vec![0xff; FLASH])
}

fn publisher(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn shape(features: u16) -> ModelShape {
    ModelShape {
        kind: ModelKind::Softmax,
        features,
        outputs: OUTPUTS,
        network: None,
        integer: None,
    }
}

fn accepted() -> Accepted {
    Accepted {
        publisher: PublisherKey::new(publisher(1).verifying_key().as_bytes()).unwrap(),
        shape: shape(FEATURES),
        recipe: None,
    }
}

fn grid() -> ModelGrid {
    ModelGrid::new(10).unwrap()
}

/// Parameters on the grid, which differ by version.
fn parameters(version: u32) -> Vec<f32> {
    let steps = |i: usize| i16::try_from(i).unwrap() - 7 * i16::try_from(version).unwrap();
    (0..PARAMETERS).map(|i| grid().value(steps(i))).collect()
}

/// Parts of a file, which tests change one by one.
struct Made {
    header: Header,
    seed: u8,
    /// The last parameter, if it is another one.
    last: Option<f32>,
}

fn made(version: u32) -> Made {
    Made {
        header: Header {
            version,
            shape: shape(FEATURES),
            recipe: None,
            encoding: Encoding::Words,
        },
        seed: 1,
        last: None,
    }
}

impl Made {
    fn short(mut self) -> Self {
        self.header.encoding = Encoding::Short(grid());
        self
    }

    fn file(&self) -> Vec<u8> {
        let mut file = self.header.write().to_vec();
        let mut values = parameters(self.header.version);
        if let (Some(value), Some(last)) = (self.last, values.last_mut()) {
            *last = value;
        }
        for value in values {
            match self.header.encoding {
                Encoding::Words => file.extend(value.to_le_bytes()),
                Encoding::Short(grid) => file.extend(grid.steps(value).to_le_bytes()),
            }
        }
        let mut digest = FileDigest::default();
        digest.update(&file);
        let signature = publisher(self.seed).sign(&digest.signed_bytes());
        file.extend(signature.to_bytes());
        file
    }
}

/// Returns the version and the parameters that a device predicts with.
fn loaded(slots: &mut ModelSlots<Flash>) -> Option<(u32, Vec<f32>)> {
    let mut values = vec![0.0; PARAMETERS];
    let version = slots.load(&mut values).unwrap()?;
    Some((version, values))
}

fn open(flash: Flash) -> ModelSlots<Flash> {
    ModelSlots::open(flash, accepted()).unwrap()
}

#[test]
fn a_device_uses_the_newest_file_also_after_a_restart() {
    let mut slots = open(blank());
    assert_eq!((loaded(&mut slots), slots.version()), (None, 0));
    for version in 1..6 {
        let file = match version % 2 {
            0 => made(version).file(),
            _ => made(version).short().file(),
        };
        assert_eq!(slots.install(&file), Ok(version));
        assert_eq!(loaded(&mut slots), Some((version, parameters(version))));
        slots = open(slots.into_flash());
        assert_eq!(loaded(&mut slots), Some((version, parameters(version))));
    }
}

#[test]
fn a_power_cut_at_any_byte_leaves_the_last_good_model_or_the_new_one() {
    for (is_backward, old) in [(false, 0), (false, 2), (true, 1), (true, 2)] {
        let mut slots = open(blank());
        for version in 1..=old {
            slots.install(&made(version).file()).unwrap();
        }
        let (before, file) = (slots.into_flash(), made(old + 1).file());
        let mut is_complete = false;
        for power in 0.. {
            let mut flash = before.clone();
            (flash.power, flash.is_backward) = (power, is_backward);
            let mut slots = open(flash);
            is_complete = slots.install(&file).is_ok();
            let expected = |version| (version > 0).then(|| (version, parameters(version)));
            let version = old + u32::from(is_complete);
            // Before and after the restart.
            assert_eq!(loaded(&mut slots), expected(version), "power {power}");
            let mut flash = slots.into_flash();
            flash.power = usize::MAX;
            let mut slots = open(flash);
            // A file may be complete although the last write reported an error.
            let held = loaded(&mut slots);
            assert!(held == expected(version) || held == expected(old + 1));
            if held == expected(old) {
                assert_eq!(slots.install(&file), Ok(old + 1));
            }
            assert_eq!(loaded(&mut slots), expected(old + 1));
            if is_complete {
                break;
            }
        }
        assert!(is_complete);
    }
}

#[test]
fn other_files_are_refused_by_name_and_the_model_stays() {
    let recipe = Recipe::Gradients {
        cells: Cells::new(28, 28, 4).unwrap(),
        planes: 1,
    };
    let other = |change: &dyn Fn(&mut Made)| {
        let mut made = made(3);
        change(&mut made);
        made.file()
    };
    let words = made(3).file();
    let mut later = words.clone();
    later[4] = 4;
    let mut magic = words.clone();
    magic[3] = b'2';
    let mut padded = words.clone();
    padded[HEADER_BYTES - 1] = 1;
    let cases = [
        (
            other(&|made| made.header.shape = shape(FEATURES + 1)),
            DeliveryError::Shape,
        ),
        (
            other(&|made| made.header.recipe = Some(recipe)),
            DeliveryError::Recipe,
        ),
        (other(&|made| made.seed = 2), DeliveryError::Signature),
        (
            other(&|made| made.last = Some(f32::NAN)),
            DeliveryError::Format,
        ),
        (other(&|made| made.header.version = 2), DeliveryError::Old),
        (other(&|made| made.header.version = 1), DeliveryError::Old),
        // A version above the signed one.
        (later, DeliveryError::Signature),
        (magic, DeliveryError::Format),
        (padded, DeliveryError::Format),
        (words[..words.len() - 1].to_vec(), DeliveryError::Length),
        (words[..HEADER_BYTES].to_vec(), DeliveryError::Length),
        (words[..HEADER_BYTES - 1].to_vec(), DeliveryError::Format),
        ([&words[..], &[0; 4]].concat(), DeliveryError::Length),
        (Vec::new(), DeliveryError::Format),
    ];
    for (file, expected) in cases {
        let mut slots = open(blank());
        slots.install(&made(2).file()).unwrap();
        assert_eq!(slots.install(&file), Err(expected), "{expected}");
        assert_eq!(loaded(&mut slots), Some((2, parameters(2))));
        let mut slots = open(slots.into_flash());
        assert_eq!(loaded(&mut slots), Some((2, parameters(2))));
    }
}

#[test]
fn flash_that_is_too_small_is_refused_by_name() {
    let mut slots = open(Ram::new(vec![0xff; FLASH - 128]));
    assert_eq!(slots.install(&made(1).file()), Err(DeliveryError::Room));
    // In 16 bits it fits.
    assert_eq!(slots.install(&made(1).short().file()), Ok(1));
    let mut slots = open(Ram::new(Vec::new()));
    assert_eq!(slots.install(&made(1).file()), Err(DeliveryError::Room));
    assert_eq!(loaded(&mut slots), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_changed_bit_is_accepted(
        at in any::<prop::sample::Index>(), bit in 0_u8..8, is_short in any::<bool>(),
    ) {
        let file = if is_short { made(1).short() } else { made(1) };
        let mut file = file.file();
        let at = at.index(file.len());
        file[at] ^= 1 << bit;
        let mut slots = open(blank());
        prop_assert!(slots.install(&file).is_err());
        prop_assert_eq!(loaded(&mut slots), None);
        // And in flash, by a fault of the flash.
        let mut slots = open(blank());
        file[at] ^= 1 << bit;
        slots.install(&file).unwrap();
        let mut flash = slots.into_flash();
        flash.bytes[at] ^= 1 << bit;
        prop_assert_eq!(loaded(&mut open(flash)), None);
    }

    #[test]
    fn any_header_is_read_in_one_form(bytes in prop::collection::vec(any::<u8>(), HEADER_BYTES)) {
        let mut bytes: [u8; HEADER_BYTES] = bytes.try_into().unwrap();
        bytes[..4].copy_from_slice(b"SFM1");
        if let Some(header) = Header::read(&bytes) {
            prop_assert_eq!(header.write(), bytes);
        }
    }
}

#[test]
fn lengths_are_those_of_the_table() {
    let words = made(1).header;
    assert_eq!(words.file_bytes(), Some(128 + 4 * 63 + 64));
    assert_eq!(made(1).short().header.file_bytes(), Some(128 + 2 * 63 + 64));
    assert_eq!(SIGNATURE_BYTES, 64);
}
