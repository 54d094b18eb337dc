//! The attacker's view of the rounds of a run, and of the questions between them.

use smolfed_core::params::ClipNorm;
use smolfed_core::stream::Root;

use super::{Course, Observation, SeenAnswer, Target, TargetError};
use crate::audit::source::CanarySource;
use crate::experiment::Experiment;
use crate::question::AskedQuestion;
use crate::round::{TrainingLoop, TrainingState};
use crate::source::Source;
use smolfed_release::{Released, Timing};

impl Target<'_> {
    /// Runs the rounds.
    pub(super) fn rounds_with(
        &self,
        source: &mut CanarySource<'_>,
        experiment: &Experiment,
        course: &Course<'_>,
        see: &mut dyn FnMut(&Observation<'_>),
    ) -> Result<(), TargetError> {
        let root = experiment.root()?;
        let state = TrainingState::new(experiment);
        let (federation, own_root) = (self.federation, root.clone());
        let mut training = TrainingLoop::new(experiment, federation, own_root, &state, None, None)?;
        source.begin(None)?;
        let all: Vec<u32>;
        let rounds = match course.rounds {
            Some(rounds) => rounds,
            None => {
                all = (0..self.rounds()).collect();
                &all
            }
        };
        for &round in rounds {
            training.skip_to(round);
            source.drawn_for.clear();
            let seen = match course.has_updates {
                true => self.updates_seen(&mut training, source, &root)?,
                false => {
                    training.ask(source)?;
                    Some(Updates::default())
                }
            };
            let Some(Updates { values, bits }) = seen else {
                continue;
            };
            see(&Observation {
                round,
                values,
                bits,
                drawn: &source.drawn,
                answers: &self.answers_seen(&training, source, &root, round),
            });
        }
        Ok(())
    }

    /// Runs one round and the questions after it. Returns `None` if the round is lost.
    fn updates_seen(
        &self,
        training: &mut TrainingLoop<'_>,
        source: &mut CanarySource<'_>,
        root: &Root,
    ) -> Result<Option<Updates>, TargetError> {
        let (experiment, round) = (training.experiment(), training.round());
        let adaptive = training.clip_norm();
        let fixed = || Some(experiment.release.encoding.grid()?.clip_norm());
        let clip_norm = adaptive.or_else(fixed).map_or(1.0, ClipNorm::get);
        // Each step releases a gradient, which moves the model by the learning rate.
        let moved = match experiment.release.timing {
            Timing::EachStep(_) => f64::from(experiment.training_in(round).learning_rate.get()),
            Timing::EachRound | Timing::Never => 1.0,
        };
        let unit = self.denominator / (f64::from(clip_norm) * moved * self.releases());
        let Some(released) = training.step(source)?.released else {
            return Ok(None);
        };
        let (release, number) = (&experiment.release, experiment.number_of(round));
        let view = self.view;
        let released = view.of_release(released, experiment, release, root, number);
        let average = experiment.server.average(&released);
        Ok(Some(Updates {
            values: average.iter().map(|x| f64::from(*x) * unit).collect(),
            bits: match self.is_local() {
                true => source.bits.clone(),
                false => released
                    .unclipped_excess()
                    .map(|x| 2.0 * x)
                    .into_iter()
                    .collect(),
            },
        }))
    }

    /// Returns the released answers after a round.
    fn answers_seen(
        &self,
        training: &TrainingLoop<'_>,
        source: &CanarySource<'_>,
        root: &Root,
        round: u32,
    ) -> Vec<SeenAnswer> {
        let experiment = training.experiment();
        let seen = |(number, asked): (u32, &AskedQuestion)| {
            let of_it = |(index, _): &&(u8, Released)| *index == asked.index;
            let (_, released) = training.answers().iter().find(of_it)?;
            let (view, release) = (self.view, &asked.release);
            let released = released.clone();
            let released = view.of_release(released, experiment, release, root, number);
            let mut drawn = source.drawn_for.iter();
            let drawn = drawn.rfind(|(index, _)| *index == asked.index);
            Some(SeenAnswer {
                question: asked.index,
                values: released.values(),
                drawn: drawn.map(|(_, drawn)| drawn.clone()).unwrap_or_default(),
            })
        };
        experiment.questions_after(round).filter_map(seen).collect()
    }
}

/// The attacker's view of the updates of a round.
#[derive(Default)]
struct Updates {
    values: Vec<f64>,
    bits: Vec<f64>,
}
