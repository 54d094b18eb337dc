//! `[contrast.augment]`: the views of a sample, from the configuration and the kind of data.

use smolfed_core::contrast::Windows;
use smolfed_core::contrast::augment::{ChannelDrop, Jitter, Rotation, Scaling, TimeShift};

use super::images::{Erase, ImageShape, Shift, Turn};
use super::variations::Variations;
use crate::check::{ExperimentError, contradiction, out_of_range};
use crate::method::setup::Setup;
use crate::tables::contrast::AugmentConfig;
use smolfed_data::config::{SourceConfig, StoredSet};

/// Returns the configured variations or, without any, variations that suit the kind of data.
pub(super) fn variations(setup: &Setup<'_>) -> Result<Variations, ExperimentError> {
    let axes = axes(setup);
    let image = ImageShape::of_axes(&axes);
    let augment = match setup.contrast.augment == AugmentConfig::default() {
        true => suitable(setup, &axes),
        false => setup.contrast.augment.clone(),
    };
    let time = match *axes.as_slice() {
        [_, time] => time,
        [_, height, width] => height * width,
        _ => 1,
    };
    let rotation = share("contrast.augment.rotation", augment.rotation, 180.0)?;
    let turn = share("contrast.augment.turn", augment.turn, 180.0)?;
    fits_the_axes(&augment, &axes, image.is_some())?;
    let count = |count: Option<u32>| count.filter(|count| *count > 0);
    let variations = Variations {
        turn: image.zip(turn.map(|degrees| Turn(degrees.to_radians()))),
        shift: image.zip(count(augment.shift).map(Shift)),
        erase: image.zip(count(augment.erase).map(Erase)),
        windows: Windows {
            rotation: rotation.map(|degrees| Rotation {
                reach: degrees.to_radians(),
            }),
            time_shift: count(augment.time_shift).map(|reach| TimeShift { reach, time }),
            scaling: share("contrast.augment.scaling", augment.scaling, 1.0)?
                .map(|reach| Scaling { reach, time }),
            channel_drop: share("contrast.augment.channel_drop", augment.channel_drop, 1.0)?
                .map(|probability| ChannelDrop { probability, time }),
            jitter: share("contrast.augment.jitter", augment.jitter, 1e3)?.map(Jitter),
        },
    };
    if variations.is_none() {
        return Err(ExperimentError::Missing {
            key: "contrast.augment",
            purpose: "without any variation, all views of a sample are the same and there is \
                      nothing to learn",
        });
    }
    Ok(variations)
}

/// Returns the axes of a sample: from the data or, if they have none, from the input image of the
/// network. An image of one row is a window of sensors, channels × time.
fn axes(setup: &Setup<'_>) -> Vec<usize> {
    let axes = match setup.federation.axes() {
        axes if axes.is_empty() && setup.model.input.len() == 3 => setup
            .model
            .input
            .iter()
            .map(|axis| usize::from(*axis))
            .collect(),
        axes => axes,
    };
    match *axes {
        [channels, 1, time] => vec![channels, time],
        _ => axes,
    }
}

/// Returns a number from 0, which means none, to `max`.
fn share(key: &'static str, value: Option<f64>, max: f64) -> Result<Option<f32>, ExperimentError> {
    match value {
        None | Some(0.0) => Ok(None),
        Some(value) if value > 0.0 && value <= max => Ok(Some(value as f32)),
        Some(value) => Err(out_of_range(key, value, &format!("from 0 to {max}"))),
    }
}

/// Refuses variations of images and of windows for data of other axes.
fn fits_the_axes(
    augment: &AugmentConfig,
    axes: &[usize],
    is_image: bool,
) -> Result<(), ExperimentError> {
    const IMAGES: &str = "it is for images, height × width or channels × height × width";
    let is_window = axes.len() == 2;
    let has_three_axes = is_window && axes.first() == Some(&3);
    let angle = |degrees: Option<f64>| degrees.is_some_and(|degrees| degrees > 0.0);
    let count = |count: Option<u32>| count.is_some_and(|count| count > 0);
    for (key, is_given, fits, advice) in [
        (
            "contrast.augment.turn",
            angle(augment.turn),
            is_image,
            IMAGES,
        ),
        (
            "contrast.augment.shift",
            count(augment.shift),
            is_image,
            IMAGES,
        ),
        (
            "contrast.augment.erase",
            count(augment.erase),
            is_image,
            IMAGES,
        ),
        (
            "contrast.augment.time_shift",
            count(augment.time_shift),
            is_window,
            "it is for windows, channels × time",
        ),
        (
            "contrast.augment.rotation",
            angle(augment.rotation),
            has_three_axes,
            "it is for windows of three axes, 3 × time",
        ),
    ] {
        if is_given && !fits {
            return Err(contradiction(key, "data.axes", advice));
        }
    }
    Ok(())
}

/// Returns variations that suit the kind of data. Data with two axes may be images or windows, and
/// data with three axes are images.
fn suitable(setup: &Setup<'_>, axes: &[usize]) -> AugmentConfig {
    let is_grid = ImageShape::of_axes(axes).is_some();
    let is_image = match &setup.data.source {
        _ if axes.len() == 3 => is_grid,
        SourceConfig::Synthetic(_) => false,
        SourceConfig::Stored(stored) => is_grid && !matches!(stored.set, StoredSet::Table(_)),
    };
    match (is_image, is_grid) {
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
