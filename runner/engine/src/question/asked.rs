//! A question in a run: its schedule, the devices and samples to ask, and the cost and release of
//! an answer.

use smolfed_core::fixed_point::FeatureFormat;
use smolfed_core::question::{Dimensions, MomentScales, PresenceScales, Question};
use smolfed_core::stream::Root;
use smolfed_core::train::LocalTraining;

use super::answer::Answer;
use super::ratio::{Noise, Sums, deviates};
use super::{confusion, count, evaluate, moments, presence, shares};
use crate::attendance::Attendance;
use crate::tables::question::{AskedSamples, QuestionKind};
use crate::task::Task;
use smolfed_release::plan::SideReleases;
use smolfed_release::{ReleaseSettings, Released};

/// A question of an experiment.
#[derive(Clone, Debug)]
pub struct AskedQuestion {
    /// Index of the question in the experiment, from 0.
    pub index: u8,
    /// Its name.
    pub name: String,
    /// The question to devices.
    pub question: Question,
    /// Sizes of the devices' samples.
    pub dimensions: Dimensions,
    /// The choice of a device's samples.
    pub samples: AskedSamples,
    /// The devices to ask.
    pub attendance: Attendance,
    /// The schedule, and the cost of one answer.
    pub side: SideReleases,
    /// Release of the answers.
    pub release: ReleaseSettings,
    /// Confidence of the intervals.
    pub confidence: f64,
    /// Size of an error of 1 in the target's own unit.
    pub target_unit: f64,
}

/// A question to the devices of one cohort.
#[derive(Clone, Copy)]
pub struct Inquiry<'a> {
    /// The question.
    pub asked: &'a AskedQuestion,
    /// The model.
    pub task: &'a Task,
    /// Its parameters, which are public.
    pub model: &'a [f32],
    /// Format of features on devices that calculate in integers.
    pub format: Option<FeatureFormat>,
    /// Settings of local training, which every invitation to real devices contains.
    pub training: LocalTraining,
    /// The root of all random streams.
    pub root: &'a Root,
    /// The round before the question, from 0.
    pub round: u32,
    /// The number that names its random streams. No round has this number.
    pub number: u32,
}

impl AskedQuestion {
    /// Returns the kind of the question.
    #[must_use]
    pub fn kind(&self) -> QuestionKind {
        QuestionKind::from(&self.question)
    }

    /// Returns the number of entries in a device's vector.
    #[must_use]
    pub fn length(&self) -> usize {
        self.question.length(&self.dimensions)
    }

    /// Returns the standard error of the first estimate from noise alone, if the whole cohort
    /// answers: for a share or a mean from 0 to 1 at one half, for a feature's mean in its own
    /// unit, for a count.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        let cohort = self.attendance.expected_size();
        let std = self.release.noise_std_of_sum(1.0, cohort.round() as usize);
        match &self.question {
            Question::Count => std,
            Question::Evaluate { .. } | Question::Confusion | Question::Histogram(_) => {
                std / cohort
            }
            Question::Presence(bins) => {
                let scales = PresenceScales::new(bins.count(&self.dimensions));
                std / cohort / f64::from(scales.bit)
            }
            Question::Moments(features) => {
                let (lower, upper) = features.bounds();
                let half = (f64::from(upper) - f64::from(lower)) / 2.0;
                half * std / cohort / f64::from(MomentScales::new(features.count()).moment)
            }
        }
    }

    /// Computes the answer from the released sum, as post-processing.
    #[must_use]
    pub fn answer(&self, released: &Released) -> Answer {
        let population = self.side.event.sampling.device_count();
        let noise = Noise {
            std: released.noise_std(),
            population: f64::from(population),
        };
        self.answer_of(&released.values(), noise)
    }

    /// Computes the answer from entries with this noise.
    #[must_use]
    pub fn answer_of(&self, values: &[f64], noise: Noise) -> Answer {
        let sums = &Sums { values, noise };
        let of = &self.dimensions;
        let k = deviates(self.confidence);
        let (answered, estimates) = match &self.question {
            Question::Evaluate { bound } => {
                evaluate::estimates(*bound, of, self.target_unit, sums, k)
            }
            Question::Confusion => confusion::estimates(of, sums, k),
            Question::Histogram(bins) => shares::estimates(bins, of, sums, k),
            Question::Moments(features) => {
                let each = deviates((1.0 + self.confidence) / 2.0);
                moments::estimates(features, sums, [k, each])
            }
            Question::Presence(bins) => presence::estimates(bins, of, sums, k),
            Question::Count => count::estimates(sums, k),
        };
        Answer {
            question: self.index,
            kind: self.kind(),
            name: self.name.clone(),
            confidence: self.confidence,
            answered,
            estimates,
        }
    }
}

impl std::fmt::Debug for Inquiry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Inquiry {} of {:?}", self.number, self.asked.name)
    }
}
