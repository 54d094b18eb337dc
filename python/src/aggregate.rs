//! The integer path for coordinators in Python, such as Flower: a device clips and quantises its
//! update, and the server sums integers and releases the sum with exact noise.
//!
//! It uses the release path of the simulator (`smolfed::release`). The sum has no getter, and each
//! release is accounted for by an event that records the noise actually added.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use smolfed::entropy;
use smolfed::release::mechanism::sampler_of_std;
use smolfed::release::sampling::draw_cohort;
use smolfed::release::sum::ReleaseAt;
use smolfed::release::{
    Admitted, Channel, Encoding, Fault, Mechanism, PrivateSum, ReceivedUpdate, ReleaseSettings,
    Timing,
};
use smolfed_accounting::{
    Mechanism as EventMechanism, NoiseMultiplier, PrivacyEvent, Sampling, SamplingRate,
};
use smolfed_core::clip::clip_l2;
use smolfed_core::params::ClipNorm;
use smolfed_core::quantize::Grid;
use smolfed_core::stream::Root;

use crate::error::value_error;

/// Clips an update and rounds it toward zero to steps of the grid `clip_norm * 2**-grid_bits`.
#[pyfunction]
pub(crate) fn quantize<'py>(
    py: Python<'py>,
    update: PyReadonlyArray1<'py, f32>,
    clip_norm: f32,
    grid_bits: u32,
) -> PyResult<Bound<'py, PyArray1<i32>>> {
    let grid = grid(clip_norm, grid_bits)?;
    let mut update: Vec<f32> = update.as_array().iter().copied().collect();
    clip_l2(&mut update, grid.clip_norm().get()).map_err(value_error)?;
    let mut integers = vec![0; update.len()];
    grid.quantize_into(&update, &mut integers)
        .map_err(value_error)?;
    Ok(PyArray1::from_vec(py, integers))
}

fn grid(clip_norm: f32, grid_bits: u32) -> PyResult<Grid> {
    let clip_norm = ClipNorm::new(clip_norm);
    let clip_norm = clip_norm.map_err(|error| value_error(format!("`clip_norm`: {error}")))?;
    Grid::new(clip_norm, grid_bits).map_err(value_error)
}

/// The exact sums of a server's successive rounds.
#[pyclass(frozen, module = "smolfed._native")]
pub(crate) struct Aggregator {
    grid: Grid,
    release: ReleaseSettings,
    root: Root,
    length: usize,
    round: Mutex<Round>,
}

/// The round in progress. Its number names the stream of its noise, and is never reused.
struct Round {
    number: u32,
    sum: PrivateSum,
    devices: BTreeSet<u32>,
}

impl Round {
    fn new(number: u32, length: usize) -> Self {
        Self {
            number,
            sum: PrivateSum::zero(length),
            devices: BTreeSet::new(),
        }
    }
}

#[pymethods]
impl Aggregator {
    /// Creates sums of `length` integers. Without a seed, the noise is secret.
    #[new]
    fn new(
        length: usize,
        clip_norm: f32,
        grid_bits: u32,
        noise_multiplier: f64,
        seed: Option<u64>,
    ) -> PyResult<Self> {
        let grid = grid(clip_norm, grid_bits)?;
        let noise = NoiseMultiplier::new(noise_multiplier).map_err(value_error)?;
        let steps = noise.get() * f64::from(grid_bits).exp2();
        // The std of the sampler is never below the accounted one.
        let (sampler, steps) = match noise.get() > 0.0 {
            true => {
                let (sampler, steps) = sampler_of_std(steps).map_err(|error| {
                    value_error(format!("`noise_multiplier` is {noise_multiplier}: {error}"))
                })?;
                (Some(sampler), steps)
            }
            false => (None, 0.0),
        };
        // Only the noise of the caller's rounds is known here. The caller accounts for the sampling
        // of devices.
        let event = PrivacyEvent::new(
            EventMechanism::DiscreteGaussian {
                noise_multiplier: noise,
                grid_bits: grid_bits as u8,
            },
            Sampling::full(1).map_err(value_error)?,
            1,
        );
        let root = match seed {
            Some(seed) => Root::from_seed(seed),
            None => Root::from_secret(*entropy::secret().map_err(value_error)?),
        };
        Ok(Self {
            grid,
            release: ReleaseSettings {
                channel: Channel::Updates,
                encoding: Encoding::Clipped(grid),
                weight_cap: None,
                mechanism: Mechanism::independent(event, sampler),
                masking: None,
                timing: Timing::EachRound,
                noise_std: steps * grid.step(),
                is_simulation: false,
                fault: Fault::None,
            },
            root,
            length,
            round: Mutex::new(Round::new(0, length)),
        })
    }

    /// Draws the cohort of the round in progress, in ascending order: each of `devices`
    /// independently with probability `sampling_rate`, with the sampler of simulations and fleets.
    /// It depends only on root and round number, so a second call returns the same devices.
    fn draw(&self, devices: u32, sampling_rate: f64) -> PyResult<Vec<u32>> {
        let rate = SamplingRate::new(sampling_rate).map_err(value_error)?;
        let sampling = Sampling::poisson(devices, rate).map_err(value_error)?;
        Ok(draw_cohort(&sampling, &self.root, self.rounds()))
    }

    /// Adds the update of a device after checking that the sum of its squares is at most
    /// 4^grid_bits.
    fn add(&self, device: u32, integers: PyReadonlyArray1<'_, i32>) -> PyResult<()> {
        let integers: Vec<i64> = integers.as_array().iter().map(|q| i64::from(*q)).collect();
        if integers.len() != self.length {
            return Err(value_error(format!(
                "the update of device {device} has {} entries, but the model has {}",
                integers.len(),
                self.length
            )));
        }
        let received = ReceivedUpdate::check(&self.grid, integers, false, None, false);
        let received = received.map_err(|_| {
            value_error(format!(
                "the update of device {device} is not clipped: the sum of its squares is above \
                 4^{}",
                self.grid.bits()
            ))
        })?;
        let mut round = self.round.lock().unwrap_or_else(PoisonError::into_inner);
        // Adding the update twice would double the sensitivity.
        if !round.devices.insert(device) {
            return Err(value_error(format!(
                "device {device} sent a second update in round {}",
                round.number
            )));
        }
        round.sum.add_received(device, &received, &Admitted::All);
        Ok(())
    }

    /// Returns the sum with noise, divided by `denominator`, and starts the next round.
    fn release<'py>(
        &self,
        py: Python<'py>,
        denominator: f64,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        if !(denominator.is_finite() && denominator > 0.0) {
            return Err(value_error(format!(
                "the denominator is {denominator}: it must be finite and above 0"
            )));
        }
        let released = py.detach(|| {
            let mut round = self.round.lock().unwrap_or_else(PoisonError::into_inner);
            let next = Round::new(round.number + 1, self.length);
            let ended = std::mem::replace(&mut *round, next);
            let at = ReleaseAt {
                number: ended.number,
                // Only releases of single steps use it.
                learning_rate: 1.0,
                cohort_size: ended.devices.len(),
            };
            let released = ended.sum.release(&self.release, &self.root, &at);
            released.over(denominator)
        });
        Ok(PyArray1::from_vec(py, released))
    }

    /// Number of released rounds.
    #[getter]
    fn rounds(&self) -> u32 {
        let round = self.round.lock().unwrap_or_else(PoisonError::into_inner);
        round.number
    }
}
