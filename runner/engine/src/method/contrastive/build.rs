//! Learning without labels (`fedsc`, `fedavg-sc`, `central-sc`), configured before the run: the
//! defaults and limits of `[contrast]`.

use smolfed_core::contrast::correlation::sensitivity_in_steps;
use smolfed_core::contrast::{ContrastRequest, Part, Projection};
use smolfed_core::model::Parametric;
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::params::ClipNorm;
use smolfed_core::quantize::{self, Grid};
use smolfed_core::wire::message::{ModelShape, Request};

use smolfed_accounting::event::{Adjacency, ROUNDING_STD, TrustModel};
use smolfed_simd::Network;

use super::augmentation;
use super::learner::Contrastive;
use super::privacy::{of_device, of_matrices};
use super::settings::{ContrastSettings, Senders, Sharing};
use crate::check::{ExperimentError, in_range, number, out_of_range};
use crate::method::contract::{Method, MethodProperties, SecondMessage};
use crate::method::setup::Setup;
use crate::method::supervised::{max_devices, refuse_keys_of_averaging};
use crate::task::Task;
use smolfed_release::Messages;
use smolfed_release::plan::{SideReleases, sampler};
use smolfed_release::schedule::Schedule;

/// Default H.
const WIDTH: u32 = 16;
/// Maximum H. Eigenvectors of larger matrices take longer than a round.
const MAX_WIDTH: u32 = 256;
/// Maximum number of views of a sample.
const MAX_VIEWS: u32 = 64;
const NEIGHBOURS: u32 = 5;
const LABELS: u32 = 10;
/// Default μ over H if matrices have no noise. It clips only representations four times longer than
/// usual, and none in training.
const LOOSE: f64 = 16.0;

/// One of the three methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Fedsc,
    FedavgSc,
    CentralSc,
}

/// Builds `fedsc`.
pub(in crate::method) fn fedsc(setup: &Setup<'_>) -> Result<Box<dyn Method>, ExperimentError> {
    Ok(Box::new(contrastive(setup, Kind::Fedsc)?))
}

/// Builds `fedavg-sc`.
pub(in crate::method) fn fedavg_sc(setup: &Setup<'_>) -> Result<Box<dyn Method>, ExperimentError> {
    Ok(Box::new(contrastive(setup, Kind::FedavgSc)?))
}

/// Builds `central-sc`.
pub(in crate::method) fn central_sc(setup: &Setup<'_>) -> Result<Box<dyn Method>, ExperimentError> {
    Ok(Box::new(contrastive(setup, Kind::CentralSc)?))
}

pub(super) fn contrastive(setup: &Setup<'_>, kind: Kind) -> Result<Contrastive, ExperimentError> {
    let width = in_range("contrast.width", setup.contrast.width, WIDTH, MAX_WIDTH)? as usize;
    let (axes, features) = (setup.federation.axes(), setup.federation.feature_count());
    let task = Task::encoder(setup.model, &axes, features, width)?;
    refuse_keys_of_averaging(setup)?;
    let max_devices = max_devices(setup)?;
    let mut settings = settings(setup, &task)?;
    if kind == Kind::Fedsc {
        let bound = bound(setup, &mut settings, width)?;
        settings.sharing = Some(sharing(setup, bound, width, settings.pairs)?);
    }
    Ok(Contrastive {
        properties: MethodProperties {
            notes: notes(setup, kind),
            has_one_participant: kind == Kind::CentralSc,
            ..properties(task, &settings)
        },
        rounds: setup.rounds,
        max_devices,
        settings,
    })
}

/// Returns the properties that are the same in all rounds.
fn properties(task: Task, settings: &ContrastSettings) -> MethodProperties {
    let parameters = settings.network.parameter_count();
    MethodProperties {
        shared_count: parameters,
        shares_a_model: false,
        uses_labels: false,
        recipe: Some(settings.variations.recipe()),
        model_shape: ModelShape::of_encoder(&settings.network),
        is_for_real_devices: true,
        request: Some(Request::Contrast(ContrastRequest {
            part: Part::Training { has_others: false },
            pairs: settings.pairs as u32,
            norm_bound: settings.norm_bound,
            entries: parameters as u32,
            max_samples: 0,
        })),
        ..MethodProperties::new(task)
    }
}

/// Returns the settings common to all three methods.
fn settings(setup: &Setup<'_>, task: &Task) -> Result<ContrastSettings, ExperimentError> {
    let contrast = setup.contrast;
    let (features, width) = (task.feature_count(), task.output_count());
    let network = match task {
        Task::Encoder(encoder) => Network::Hidden(*encoder),
        Task::Sequential(network) => Network::Layers(*network),
        _ if width > features => {
            let expected = format!(
                "at most {features}, as a linear encoder has no more directions than features; or \
                 give `model.hidden` or `model.layers`"
            );
            return Err(out_of_range("contrast.width", width as f64, &expected));
        }
        _ => Network::Linear(Projection::new(features, width)),
    };
    let views = in_range("contrast.views", contrast.views, 2, MAX_VIEWS)?;
    if !views.is_multiple_of(2) {
        let expected = "an even number, as each view is paired with another one of its sample";
        return Err(out_of_range("contrast.views", f64::from(views), expected));
    }
    let variations = augmentation::variations(setup)?;
    let neighbours = in_range("contrast.neighbours", contrast.neighbours, NEIGHBOURS, 1000)?;
    let labels = in_range("contrast.labels", contrast.labels, LABELS, u32::MAX)?;
    Ok(ContrastSettings {
        network,
        variations,
        pairs: views as usize / 2,
        norm_bound: given_bound(setup)?.map(ClipNorm::get),
        sharing: None,
        neighbours: neighbours as usize,
        labels: labels as usize,
    })
}

/// Returns μ if the file gives it.
fn given_bound(setup: &Setup<'_>) -> Result<Option<ClipNorm>, ExperimentError> {
    let bound = |value| number("contrast.norm_bound", value, ClipNorm::new);
    setup.contrast.norm_bound.map(bound).transpose()
}

/// Returns μ of the matrices. If they get noise, training clips representations to it as well.
fn bound(
    setup: &Setup<'_>,
    settings: &mut ContrastSettings,
    width: usize,
) -> Result<ClipNorm, ExperimentError> {
    let is_noisy = setup.contrast.privacy.asks_for_noise();
    let width = width as f64;
    let default = if is_noisy { width / 2.0 } else { LOOSE * width };
    let bound = match given_bound(setup)? {
        Some(bound) => bound,
        None => number("contrast.norm_bound", default, ClipNorm::new)?,
    };
    if is_noisy {
        settings.norm_bound = Some(bound.get());
    }
    Ok(bound)
}

/// Returns the sharing of matrices of a width, with this number of pairs of views.
fn sharing(
    setup: &Setup<'_>,
    bound: ClipNorm,
    width: usize,
    pairs: usize,
) -> Result<Sharing, ExperimentError> {
    let contrast = setup.contrast;
    let bits = match contrast.privacy.asks_for_noise() {
        true => quantize::DEFAULT_BITS,
        false => *quantize::BITS.end(),
    };
    let grid = Grid::new(bound, bits).map_err(|reason| ExperimentError::Range {
        key: "contrast.norm_bound",
        value: bound.get().to_string(),
        expected: format!("one with a grid ({reason})"),
    })?;
    let from = contrast.share_from.unwrap_or(0);
    if from >= setup.rounds {
        let expected = format!(
            "below the {} rounds, so that matrices are shared; without them, the method is \
             \"fedavg-sc\"",
            setup.rounds
        );
        return Err(out_of_range(
            "contrast.share_from",
            f64::from(from),
            &expected,
        ));
    }
    let every = in_range("contrast.share_every", contrast.share_every, 1, u32::MAX)?;
    let schedule = Schedule { from, every };
    let all = schedule.count(setup.rounds);
    let key = "contrast.max_releases";
    let max_releases = in_range(key, contrast.max_releases, all, u32::MAX)?.min(all);
    let max_samples = setup.federation.sample_counts().max().unwrap_or(0);
    let privacy = of_matrices(setup, max_releases, bound)?;
    let sensitivity = sensitivity_in_steps(grid.bits(), width, pairs);
    let (noise, noise_std) = noise(privacy.multiplier().get(), sensitivity)?;
    Ok(Sharing {
        alpha: contrast.alpha.unwrap_or_default(),
        senders: match counts_on_secret_cohort(setup) {
            true => Senders::Drawn(setup.sampling),
            false => Senders::Cohort,
        },
        exchange: contrast.exchange.unwrap_or_default(),
        message: SecondMessage {
            release: Messages {
                grid,
                noise,
                noise_std,
            },
            max_samples,
            of_device: SideReleases {
                event: of_device(setup, &privacy, max_samples)?,
                schedule,
                max_releases,
            },
            of_unit: privacy,
        },
    })
}

/// Returns whether the noise on updates relies on a cohort that only the server knows.
fn counts_on_secret_cohort(setup: &Setup<'_>) -> bool {
    let rate = setup.sampling.sampling_rate();
    let is_drawn = rate.is_some_and(|rate| rate < 1.0);
    is_drawn && !setup.keys.noise.is_none() && setup.keys.trust == TrustModel::Central
}

/// Returns the sampler of a device's noise and its std in steps, for a multiplier z relative to μ.
///
/// The accountants assume a real-valued Gaussian of std `z/√2` sensitivities, where √2·μ is the
/// sensitivity under replace-one. In steps, the sensitivity is slightly more than √2·2^b, because
/// of rounding. The discrete Gaussian of std s is a rounding of a real-valued one of std √(s² − 3²)
/// ([`continuous_multiplier`](smolfed_accounting::Mechanism::continuous_multiplier)).
fn noise(
    multiplier: f64,
    sensitivity: f64,
) -> Result<(Option<DiscreteGaussian>, f64), ExperimentError> {
    if multiplier <= 0.0 {
        return Ok((None, 0.0));
    }
    let continuous = multiplier * sensitivity * std::f64::consts::FRAC_1_SQRT_2;
    let std = (continuous * continuous + ROUNDING_STD * ROUNDING_STD).sqrt();
    let (sampler, std) = sampler("contrast.privacy.noise_multiplier", multiplier, std)?;
    Ok((Some(sampler), std))
}

/// Returns the notes of the encoder's statement.
fn notes(setup: &Setup<'_>, kind: Kind) -> Vec<String> {
    let is_protected = !setup.keys.noise.is_none();
    let mut notes = Vec::new();
    match kind {
        Kind::CentralSc => notes.push(
            "All samples were in one place: nothing was federated, and nothing protects them.",
        ),
        Kind::Fedsc | Kind::FedavgSc if !is_protected => notes.push(
            "The encoder is not protected: devices send their updates without noise, as in the \
             paper. The number of samples of a device is public.",
        ),
        Kind::Fedsc => {
            notes.push(
                "This statement is about the encoder. A device's correlation matrices steer the \
                 updates of all others: their information about a whole device is counted here, \
                 with their noise. Their information about one example has its own statement.",
            );
            if setup.sampling.adjacency() == Adjacency::AddRemove {
                notes.push(
                    "The set of devices that send matrices is not hidden: epsilon bounds how well \
                     a device's updates and matrices can be distinguished from zeros.",
                );
            }
            if counts_on_secret_cohort(setup) {
                notes.push(
                    "The devices that send a matrix in a round are drawn independently of those \
                     whose updates are summed: matrices do not reveal the cohorts, which amplify \
                     the privacy of updates only, and every matrix counts in full.",
                );
            }
        }
        Kind::FedavgSc => {}
    }
    if kind == Kind::FedavgSc && setup.contrast.privacy.asks_for_noise() {
        notes.push(
            "Devices send no correlation matrices: `contrast.privacy` has nothing to protect.",
        );
    }
    notes.into_iter().map(str::to_owned).collect()
}
