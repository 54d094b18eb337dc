//! The server's step on the release: averaging, denoising, and the step itself. All of it is
//! post-processing and costs no privacy.

pub mod adaptive;
pub mod keys;
pub(crate) mod model;
pub mod own;

use smolfed_core::params::LearningRate;
use smolfed_core::wire::message::ModelGrid;

use crate::denoise::{Auto, Denoiser, ExpertSet};
pub use own::{OwnStep, StepView};
use smolfed_release::{Released, SimulatedSum};

/// Settings of the server's step: `w ← w + η_g · denoise(sum / denominator)`.
#[derive(Clone, Debug)]
pub struct ServerStep {
    /// η_g.
    pub learning_rate: LearningRate,
    /// Treatment of the noisy average.
    pub treatment: Treatment,
    /// Divisor of the sum, or `None` for the number of drawn devices.
    pub fixed_denominator: Option<f64>,
    /// Grid of the model for everyone except the server, or `None` for all bits.
    pub grid: Option<ModelGrid>,
}

/// Treatment of the noisy average before it changes the model.
#[derive(Clone, Debug)]
pub enum Treatment {
    /// Each average separately.
    Denoise(Denoiser),
    /// The mixture of these experts with `denoiser = "auto"`, if there is noise.
    Mix(ExpertSet),
    /// The custom step of a program that uses the library, which also changes the model.
    Own(OwnStep),
}

impl ServerStep {
    /// Returns the denominator of a round, or `None` if it is the realised size and the cohort is
    /// empty.
    #[must_use]
    pub fn denominator(&self, cohort_size: usize) -> Option<f64> {
        let realised = (cohort_size > 0).then_some(cohort_size as f64);
        self.fixed_denominator.or(realised)
    }

    /// Returns the noisy average before denoising.
    #[must_use]
    pub fn average(&self, released: &Released) -> Vec<f32> {
        match self.denominator(released.cohort_size()) {
            Some(denominator) => released.over(denominator),
            None => vec![0.0; released.length()],
        }
    }

    /// Returns the average of simulated devices without noise, for a report's diagnostics.
    #[must_use]
    pub fn simulated_average(&self, sum: &SimulatedSum, cohort_size: usize) -> Vec<f32> {
        match self.denominator(cohort_size) {
            Some(denominator) => sum.over(denominator),
            None => vec![0.0; sum.length()],
        }
    }

    /// Denoises an average in place and adds it to the global model, or lets `auto` do so.
    pub fn apply(
        &self,
        global: &mut [f32],
        average: &mut [f32],
        released: &Released,
        tensors: &[usize],
        auto: Option<&mut Auto>,
    ) {
        let denominator = self.denominator(released.cohort_size()).unwrap_or(1.0);
        let noise_std = released.noise_std() / denominator;
        let learning_rate = self.learning_rate.get();
        match (&self.treatment, auto) {
            (Treatment::Own(own), _) => {
                own.apply(StepView {
                    global,
                    average,
                    noise_std,
                    learning_rate,
                });
                return;
            }
            (Treatment::Mix(_), Some(auto)) => {
                auto.step(global, average, noise_std, learning_rate);
                return;
            }
            (Treatment::Denoise(denoiser), _) => denoiser.apply(average, tensors, noise_std),
            // Without noise, there is nothing to judge the experts by.
            (Treatment::Mix(_), None) => {}
        }
        for (parameter, change) in global.iter_mut().zip(average.iter()) {
            *parameter += learning_rate * change;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(fixed_denominator: Option<f64>) -> ServerStep {
        ServerStep {
            learning_rate: LearningRate::new(0.5).unwrap(),
            treatment: Treatment::Denoise(Denoiser::default()),
            fixed_denominator,
            grid: None,
        }
    }

    fn sum(integers: &[i64], cohort_size: usize) -> Released {
        Released::for_test(integers, 0.25, cohort_size)
    }

    #[test]
    fn the_average_divides_by_the_expected_size_whoever_came() {
        assert_eq!(step(Some(4.0)).average(&sum(&[16, -32], 3)), [1.0, -2.0]);
        assert_eq!(step(None).average(&sum(&[16, -32], 2)), [2.0, -4.0]);
    }

    #[test]
    fn an_empty_cohort_changes_nothing_with_the_realised_denominator() {
        let empty = sum(&[16, -32], 0);
        assert_eq!(step(None).denominator(0), None);
        assert_eq!(step(None).average(&empty), [0.0, 0.0]);
    }

    #[test]
    fn a_step_of_ones_own_takes_the_place_of_all_else() {
        let (mut global, mut average) = ([1.0, 1.0], [2.0, -4.0]);
        let released = sum(&[0, 0], 1);
        let own = OwnStep::new(|step| {
            assert!(step.learning_rate < 0.6 && step.noise_std < 1e-9);
            for (parameter, change) in step.global.iter_mut().zip(step.average) {
                *parameter -= *change;
            }
        });
        let step = ServerStep {
            treatment: Treatment::Own(own),
            ..step(Some(1.0))
        };
        step.apply(&mut global, &mut average, &released, &[1, 1], None);
        assert_eq!(global, [-1.0, 5.0]);
    }

    #[test]
    fn the_step_is_scaled_by_the_servers_learning_rate() {
        let (mut global, mut average) = ([1.0, 1.0], [2.0, -4.0]);
        let tensors = [1, 1];
        let released = sum(&[0, 0], 1);
        step(Some(1.0)).apply(&mut global, &mut average, &released, &tensors, None);
        assert_eq!(global, [2.0, -1.0]);
    }
}
