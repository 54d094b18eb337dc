//! The invitation to train, from the settings of an experiment: epochs, learning rate, clipping,
//! grid, noise and masks.

use smolfed_core::bit::BitRequest;
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::train::LocalTraining;
use smolfed_core::wire::message::{Invitation, ModelShape, Request};
use smolfed_release::ReleaseSettings;

/// Returns the invitation to train a model of this shape. `None` without a clip norm, which
/// [`terms`](super::terms::terms) refuses.
#[must_use]
pub fn training(
    shape: ModelShape,
    training: &LocalTraining,
    release: &ReleaseSettings,
    request: Option<Request>,
) -> Option<Invitation> {
    Some(Invitation {
        shape,
        epochs: training.epochs,
        batch_size: training.batch_size,
        learning_rate: training.learning_rate,
        weight_decay: training.weight_decay,
        proximal: training.proximal,
        clipping: training.clipping,
        gradient_smoothing: training
            .gradient_smoothing
            .map(|smoothing| smoothing.factor()),
        grid: release.encoding.grid()?,
        noise: release.device_noise().map(DiscreteGaussian::sigma),
        bit: release.mechanism.bit.map(|bit| {
            let noise = bit.noise().filter(|_| release.mechanism.is_local());
            BitRequest {
                noise: noise.map(DiscreteGaussian::sigma),
            }
        }),
        masks: match &release.masking {
            Some(masking) => Some(masking.of_devices()?),
            None => None,
        },
        request,
    })
}
