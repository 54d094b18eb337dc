//! A device that computes features declares its recipe, and the coordinator compares.

use smolfed_core::features::Cells;
use smolfed_core::recipe::{MAX_RECIPE_BYTES, Recipe};
use smolfed_core::session::Phase;
use smolfed_core::wire::message::{Message, WhyRefused};

use super::harness::{Harness, board, terms, turn};
use super::scripted::{ScriptedDevice, hello, ready};
use crate::ledgers::KnownLedgers;
use crate::peer::Terms;

fn gradients(cell: usize) -> Recipe {
    let cells = Cells::new(8, 8, cell).unwrap();
    Recipe::Gradients { cells, planes: 1 }
}

/// Returns the phase of a device with a recipe, and its state, after the answer of an experiment
/// with another recipe.
fn answered(device: Option<Recipe>, experiment: Option<Recipe>) -> (Phase, String) {
    let recipe = experiment;
    let mut harness = Harness::under(
        Terms {
            recipe,
            ..terms(None)
        },
        KnownLedgers::default(),
    );
    let bytes = Box::leak(Box::new([0; MAX_RECIPE_BYTES]));
    let mut board = board(1);
    if let Some(recipe) = &device {
        board.set_recipe(recipe.write(bytes));
    }
    for _ in 0..5 {
        turn(&mut board, &mut harness, &mut |bytes| bytes);
    }
    (board.phase(), harness.peer(1).state())
}

#[test]
fn a_device_with_other_features_is_refused_and_both_recipes_are_named() {
    let refused = Phase::Refused(WhyRefused::RECIPE);
    let (phase, state) = answered(Some(gradients(4)), Some(gradients(3)));
    assert_eq!(phase, refused);
    assert_eq!(
        state,
        "refused: the experiment has another recipe of features (device: gradients of 8 × 8 pixels \
         in cells of 4 × 4; experiment: gradients of 8 × 8 pixels in cells of 3 × 3)"
    );
    let (phase, state) = answered(Some(gradients(4)), None);
    assert_eq!(phase, refused);
    assert!(
        state.ends_with("cells of 4 × 4; experiment: none)"),
        "{state}"
    );
    let pool = |cells| Recipe::Pool { cells, planes: 1 };
    let pool = pool(Cells::new(8, 8, 4).unwrap());
    assert_eq!(answered(Some(pool), Some(gradients(4))).0, refused);
}

/// A device whose samples were already features declares nothing.
#[test]
fn a_device_with_the_same_features_or_with_none_takes_part() {
    for device in [Some(gradients(4)), None] {
        let (phase, state) = answered(device, Some(gradients(4)));
        assert_eq!((phase, state.as_str()), (Phase::Idle, "ready"));
    }
    assert_eq!(answered(None, None).0, Phase::Idle);
}

#[test]
fn a_recipe_of_another_version_is_refused() {
    let recipe = Some(gradients(4));
    let mut harness = Harness::under(
        Terms {
            recipe,
            ..terms(None)
        },
        KnownLedgers::default(),
    );
    let answer = harness.receive(&hello(1, 1, [1; 16]));
    let mut device = ScriptedDevice::welcomed(1, [1; 16], &answer);
    let mut ready = ready();
    ready.recipe = &[99, 1, 2];
    assert_eq!(device.send(&mut harness, 0, &Message::Ready(ready)), [26]);
    let state = harness.peer(1).state();
    assert!(state.contains("(device: of another version; "), "{state}");
}
