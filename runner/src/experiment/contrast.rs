//! Learning without labels, settled before the run.

use smolfed_core::contrast::Projection;
use smolfed_core::contrast::augment::{ChannelDrop, Jitter, Rotation, Scaling, TimeShift};
use smolfed_core::contrast::correlation::sensitivity_in_steps;
use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::params::ClipNorm;
use smolfed_core::quantize::{self, Grid};

use smolfed_simd::Network;

use super::privacy_plan::{PrivacyPlan, sampler};
use super::{ExperimentError, Origin, at_least_one, number, out_of_range, weighting};
use crate::config::{AugmentConfig, Config, Method};
use crate::contrast::images::{Erase, ImageShape, Shift, Turn};
use crate::contrast::{ContrastPlan, Sharing, Variations};
use crate::data::config::{SourceConfig, StoredSet};
use crate::data::federation::Federation;
use crate::privacy::event::{PrivacyEvent, ROUNDING_STD};
use crate::task::Task;

/// H where none is given.
const WIDTH: u32 = 16;
/// Most H: eigenvectors of larger matrices take longer than a round.
const MOST_WIDTH: u32 = 256;
/// Most views of a sample.
const MOST_VIEWS: u32 = 64;
const NEIGHBOURS: u32 = 5;
const LABELS: u32 = 10;
/// μ over H where matrices have no noise and no bound is given: only representations four times longer than
/// usual are clipped, and none in training.
const LOOSE: f64 = 16.0;

/// H.
pub(super) fn width(config: &Config) -> Result<u32, ExperimentError> {
    in_range("contrast.width", config.contrast.width, WIDTH, MOST_WIDTH)
}

/// What the method does without labels, and what its matrices cost; `None` for methods with labels.
pub(super) fn plan(
    config: &Config,
    task: &Task,
    federation: &Federation,
    spent: &[PrivacyEvent],
    origin: &Origin,
) -> Result<Option<(ContrastPlan, Option<PrivacyPlan>)>, ExperimentError> {
    if !config.method.is_contrastive() {
        return Ok(None);
    }
    let contrast = &config.contrast;
    let width = width(config)? as usize;
    let features = task.feature_count();
    let network = match task {
        Task::Encoder(encoder) => Network::Hidden(*encoder),
        _ if width > features => {
            let expected = format!(
                "at most {features}, as a linear encoder has no more directions than features; or give \
                 `model.hidden`"
            );
            return Err(out_of_range("contrast.width", width as f64, &expected));
        }
        _ => Network::Linear(Projection::new(features, width)),
    };
    let views = in_range("contrast.views", contrast.views, 2, MOST_VIEWS)?;
    if !views.is_multiple_of(2) {
        let expected = "an even number, as each view is paired with another one of its sample";
        return Err(out_of_range("contrast.views", f64::from(views), expected));
    }
    let is_central = config.method == Method::CentralSc;
    if is_central && config.privacy.asks_for_noise() {
        return Err(ExperimentError::Contradiction {
            first: "method",
            second: "privacy",
            advice: "\"central-sc\" has all samples in one place, which noise on an update does not \
                     protect; leave the noise out",
        });
    }
    let mut plan = ContrastPlan {
        network,
        variations: variations(&contrast.augment, config, federation)?,
        pairs: views as usize / 2,
        norm_bound: None,
        is_central,
        sharing: None,
        neighbours: in_range("contrast.neighbours", contrast.neighbours, NEIGHBOURS, 1000)?
            as usize,
        labels: in_range("contrast.labels", contrast.labels, LABELS, u32::MAX)? as usize,
    };
    let bound = |value| number("contrast.norm_bound", value, ClipNorm::new);
    let given = contrast.norm_bound.map(bound).transpose()?;
    plan.norm_bound = given.map(ClipNorm::get);
    if config.method != Method::Fedsc {
        return Ok(Some((plan, None)));
    }
    let is_noisy = contrast.privacy.asks_for_noise();
    let bound = match (given, is_noisy) {
        (Some(bound), _) => bound,
        (None, true) => bound(width as f64 / 2.0)?,
        (None, false) => bound(LOOSE * width as f64)?,
    };
    if is_noisy {
        plan.norm_bound = Some(bound.get());
    }
    let bits = match is_noisy {
        true => quantize::DEFAULT_BITS,
        false => *quantize::BITS.end(),
    };
    let mut sharing = sharing(config, federation, super::grid(bound, bits)?)?;
    let releases = sharing.max_releases;
    let privacy = PrivacyPlan::of_matrices(config, federation, releases, bound, spent, origin)?;
    let sensitivity = sensitivity_in_steps(bits, width, plan.pairs);
    (sharing.noise, sharing.noise_std) = noise(privacy.multiplier().get(), sensitivity)?;
    plan.sharing = Some(sharing);
    Ok(Some((plan, Some(privacy))))
}

fn sharing(
    config: &Config,
    federation: &Federation,
    grid: Grid,
) -> Result<Sharing, ExperimentError> {
    let contrast = &config.contrast;
    let from = contrast.share_from.unwrap_or(0);
    if from >= config.rounds {
        let expected = format!(
            "below the {} rounds, so that matrices are shared; without them, the method is \"fedavg-sc\"",
            config.rounds
        );
        return Err(out_of_range(
            "contrast.share_from",
            f64::from(from),
            &expected,
        ));
    }
    let every = in_range("contrast.share_every", contrast.share_every, 1, u32::MAX)?;
    let mut sharing = Sharing {
        alpha: contrast.alpha.unwrap_or_default(),
        from,
        every,
        exchange: contrast.exchange.unwrap_or_default(),
        max_releases: 0,
        most_samples: weighting::most_samples(federation),
        grid,
        noise: None,
        noise_std: 0.0,
    };
    let all = sharing.count(config.rounds);
    sharing.max_releases = in_range(
        "contrast.max_releases",
        contrast.max_releases,
        all,
        u32::MAX,
    )?
    .min(all);
    Ok(sharing)
}

/// The sampler of a device's noise and its std in steps, for a multiplier z relative to μ.
///
/// A real-valued Gaussian of std `z/√2` sensitivities is what the accountants see, √2·μ being the sensitivity
/// under replace-one. In steps, the sensitivity is a little more than √2·2^b, by rounding; and the discrete
/// Gaussian of std s is a rounding of a real-valued one of std √(s² − 3²)
/// ([`Mechanism::continuous_multiplier`](crate::privacy::event::Mechanism::continuous_multiplier)).
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

fn in_range(
    key: &'static str,
    value: Option<u32>,
    default: u32,
    most: u32,
) -> Result<u32, ExperimentError> {
    let value = value.unwrap_or(default);
    at_least_one(key, value)?;
    if value > most {
        return Err(out_of_range(
            key,
            f64::from(value),
            &format!("at most {most}"),
        ));
    }
    Ok(value)
}

/// The variations that the file asks for or, where it asks for none, those that suit the kind of data.
fn variations(
    given: &AugmentConfig,
    config: &Config,
    federation: &Federation,
) -> Result<Variations, ExperimentError> {
    let axes = federation.axes();
    let image = ImageShape::of_axes(&axes);
    let augment = match *given == AugmentConfig::default() {
        true => suitable(config, image),
        false => given.clone(),
    };
    let share = |key: &'static str, value: Option<f64>, most: f64| match value {
        None | Some(0.0) => Ok(None),
        Some(value) if value > 0.0 && value <= most => Ok(Some(value as f32)),
        Some(value) => Err(out_of_range(key, value, &format!("from 0 to {most}"))),
    };
    let needs = |first, is_given: bool, has: bool, advice| match is_given && !has {
        true => Err(ExperimentError::Contradiction {
            first,
            second: "data.axes",
            advice,
        }),
        false => Ok(()),
    };
    let time = match axes.as_slice() {
        &[_, time] => time,
        _ => 1,
    };
    let rotation = share("contrast.augment.rotation", augment.rotation, 180.0)?;
    let turn = share("contrast.augment.turn", augment.turn, 180.0)?;
    let counts = |count: Option<u32>| count.filter(|count| *count > 0);
    let (shift, erase) = (counts(augment.shift), counts(augment.erase));
    let time_shift = counts(augment.time_shift);
    for (key, is_given) in [
        ("contrast.augment.turn", turn.is_some()),
        ("contrast.augment.shift", shift.is_some()),
        ("contrast.augment.erase", erase.is_some()),
    ] {
        needs(
            key,
            is_given,
            image.is_some(),
            "it is for images, height × width",
        )?;
    }
    let is_window = axes.len() == 2;
    let advice = "it is for windows, channels × time";
    needs(
        "contrast.augment.time_shift",
        time_shift.is_some(),
        is_window,
        advice,
    )?;
    let has_three_axes = is_window && axes.first() == Some(&3);
    let advice = "it is for windows of three axes, 3 × time";
    needs(
        "contrast.augment.rotation",
        rotation.is_some(),
        has_three_axes,
        advice,
    )?;
    let variations = Variations {
        turn: image.zip(turn.map(|degrees| Turn(degrees.to_radians()))),
        shift: image.zip(shift.map(Shift)),
        erase: image.zip(erase.map(Erase)),
        rotation: rotation.map(|degrees| Rotation {
            reach: degrees.to_radians(),
        }),
        time_shift: time_shift.map(|reach| TimeShift { reach, time }),
        scaling: share("contrast.augment.scaling", augment.scaling, 1.0)?
            .map(|reach| Scaling { reach, time }),
        channel_drop: share("contrast.augment.channel_drop", augment.channel_drop, 1.0)?
            .map(|probability| ChannelDrop { probability, time }),
        jitter: share("contrast.augment.jitter", augment.jitter, 1e3)?.map(Jitter),
    };
    if variations.is_none() {
        return Err(ExperimentError::Missing {
            key: "contrast.augment",
            purpose: "without any variation, all views of a sample are the same and there is nothing to learn",
        });
    }
    Ok(variations)
}

/// Variations that suit the kind of data.
fn suitable(config: &Config, image: Option<ImageShape>) -> AugmentConfig {
    let is_image = match &config.data.source {
        SourceConfig::Synthetic(_) => false,
        SourceConfig::Stored(stored) => !matches!(stored.set, StoredSet::Csv(_)),
    };
    match (is_image && image.is_some(), image.is_some()) {
        (true, _) => AugmentConfig {
            jitter: Some(0.2),
            shift: Some(1),
            turn: Some(10.0),
            ..AugmentConfig::default()
        },
        (false, true) => AugmentConfig {
            jitter: Some(0.1),
            scaling: Some(0.2),
            time_shift: Some(4),
            ..AugmentConfig::default()
        },
        (false, false) => AugmentConfig {
            jitter: Some(0.2),
            channel_drop: Some(0.2),
            ..AugmentConfig::default()
        },
    }
}

/// What the encoder's statement must say.
pub(super) fn notes(config: &Config) -> Vec<String> {
    let is_protected = config.privacy.asks_for_noise();
    let mut notes = Vec::new();
    match config.method {
        Method::CentralSc => notes.push(
            "All samples were in one place: nothing of this is federated, and nothing protects them.",
        ),
        Method::Fedsc | Method::FedavgSc if !is_protected => notes.push(
            "The encoder is not protected: devices send their updates without noise, as in the paper. How many \
             samples a device has is public.",
        ),
        Method::Fedsc => notes.push(
            "This is about the encoder. A device's correlation matrices steer the updates of all others: what they tell of \
             a whole device is counted here, with the noise that they have. What they tell of one example has a \
             statement of its own.",
        ),
        _ => {}
    }
    if config.method == Method::FedavgSc && config.contrast.privacy.asks_for_noise() {
        notes.push(
            "Devices send no correlation matrices: `contrast.privacy` has nothing to protect.",
        );
    }
    notes.into_iter().map(str::to_owned).collect()
}
