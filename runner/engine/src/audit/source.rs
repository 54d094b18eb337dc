//! The source of an audit: a source of ordinary runs, with canaries in its cohorts.
//!
//! The source draws the cohorts and sums them up, and the canaries replace local training
//! ([`canaries`](super::canaries)). An audit changes two things. Canaries that must take part, or
//! must not, join or leave a cohort. An attacker who sees individual uploads gets the sums of
//! single devices.
//!
//! Canaries answer questions in this process, whatever the source is, with the code of simulated
//! devices. Their answers replace the answers from the samples.

use crate::attendance::Attendance;
use crate::audit::canaries::Canaries;
use crate::experiment::Experiment;
use crate::method::contract::{Assignment, Learner, Store};
use crate::question::answers::{self, collected};
use crate::question::{AskedQuestion, Inquiry};
use crate::source::{CohortSum, Draw, Source, SourceError, Step};
use smolfed_core::stream::Root;
use smolfed_release::PrivateSum;
use smolfed_release::sum::ReleaseAt;

/// Selects the questions to ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asks {
    /// None: an attack on updates alone.
    #[default]
    Nothing,
    /// The question with this index.
    One(u8),
    /// All questions.
    All,
}

impl Asks {
    /// Returns whether this question is asked.
    #[must_use]
    pub fn asks(self, asked: &AskedQuestion) -> bool {
        match self {
            Self::Nothing => false,
            Self::One(index) => asked.index == index,
            Self::All => true,
        }
    }
}

/// The devices of a source, some of which are canaries.
pub struct CanarySource<'a> {
    devices: &'a mut dyn Source,
    canaries: &'a Canaries,
    experiment: &'a Experiment,
    asks: Asks,
    /// The drawn cohort of the last round.
    pub drawn: Vec<u32>,
    /// The cohorts of the questions after it, with question indices.
    pub drawn_for: Vec<(u8, Vec<u32>)>,
    /// With visible uploads and an adaptive clip norm, the bit of each upload in the last round,
    /// with its noise, in units of one half.
    pub bits: Vec<f64>,
}

impl<'a> CanarySource<'a> {
    /// Creates the source before the first round.
    #[must_use]
    pub const fn new(
        devices: &'a mut dyn Source,
        canaries: &'a Canaries,
        experiment: &'a Experiment,
        asks: Asks,
    ) -> Self {
        Self {
            devices,
            canaries,
            experiment,
            asks,
            drawn: Vec::new(),
            drawn_for: Vec::new(),
            bits: Vec::new(),
        }
    }

    /// Returns the uploads of the canaries, one after the other.
    fn uploads(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError> {
        let length = self.canaries.coordinates;
        let one = Assignment {
            global: assignment.global.get(..length).unwrap_or_default(),
            ..*assignment
        };
        let at = ReleaseAt {
            number: assignment.number,
            learning_rate: assignment.training.learning_rate.get(),
            cohort_size: 1,
        };
        let mut all = PrivateSum::zero(0);
        self.bits.clear();
        for device in self.canaries.devices() {
            let is_there = cohort.binary_search(&device).is_ok();
            let devices: &[u32] = if is_there { &[device] } else { &[] };
            let upload = self.devices.sum(&one, learner, devices)?.sum;
            all.append(&upload);
            // The bit alone, which includes its noise.
            let mut bit = PrivateSum::zero(0);
            bit.absorb(&upload);
            let released = bit.release(assignment.release, assignment.root, &at);
            self.bits
                .extend(released.unclipped_excess().map(|x| 2.0 * x));
        }
        Ok(CohortSum {
            sum: all,
            outcomes: Vec::new(),
            left_out_messages: Vec::new(),
            asked: None,
        })
    }

    /// Returns the question of this cohort, or `None` for the cohort of a round.
    fn question(&self, attendance: &Attendance) -> Option<&'a AskedQuestion> {
        let mut all = self.experiment.questions.iter();
        all.find(|asked| std::ptr::eq(&raw const asked.attendance, attendance))
    }

    /// Returns the sum of the canaries' answers in a cohort. Each is a vector as long as an update.
    fn answer(&self, inquiry: &Inquiry<'_>, cohort: &[u32]) -> CohortSum {
        let asked = answers::asked(inquiry);
        let writer = || |device, vector: &mut [f32]| self.canaries.answer(device, vector);
        let length = self.canaries.coordinates;
        let (sum, outcomes) = collected(inquiry, asked.as_ref(), length, cohort, writer);
        CohortSum {
            sum,
            outcomes,
            left_out_messages: Vec::new(),
            asked,
        }
    }
}

impl Source for CanarySource<'_> {
    fn begin(&mut self, store: Option<&Store<'_>>) -> Result<(), SourceError> {
        self.devices.begin(store)
    }

    fn draw(
        &mut self,
        attendance: &Attendance,
        root: &Root,
        step: Step,
    ) -> Result<Option<Draw>, SourceError> {
        let question = self.question(attendance);
        if question.is_some_and(|asked| !self.asks.asks(asked)) {
            return Ok(None);
        }
        let Some(draw) = self.devices.draw(attendance, root, step)? else {
            return Ok(None);
        };
        match question {
            None => self.drawn.clone_from(&draw.cohort),
            Some(asked) => self.drawn_for.push((asked.index, draw.cohort.clone())),
        }
        let is_of_window = question.is_none() && attendance.windows().is_some();
        let cohort = self.canaries.cohort(draw.cohort, step.round);
        Ok(Some(Draw {
            // Canaries train from the window's model: separately attacked rounds keep no other
            // model in between.
            versions: match is_of_window {
                true => vec![step.round; cohort.len()],
                false => Vec::new(),
            },
            cohort,
            ..draw
        }))
    }

    fn sum(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError> {
        match self.canaries.sees_uploads {
            true => self.uploads(assignment, learner, cohort),
            false => self.devices.sum(assignment, learner, cohort),
        }
    }

    fn answers(&mut self, inquiry: &Inquiry<'_>, cohort: &[u32]) -> Result<CohortSum, SourceError> {
        if !self.canaries.sees_uploads {
            return Ok(self.answer(inquiry, cohort));
        }
        let mut all = PrivateSum::zero(0);
        for device in self.canaries.devices() {
            let is_there = cohort.binary_search(&device).is_ok();
            let devices: &[u32] = if is_there { &[device] } else { &[] };
            all.append(&self.answer(inquiry, devices).sum);
        }
        Ok(CohortSum {
            sum: all,
            outcomes: Vec::new(),
            left_out_messages: Vec::new(),
            asked: None,
        })
    }

    fn round_finished(&mut self, is_lost: bool) -> Result<(), SourceError> {
        self.devices.round_finished(is_lost)
    }
}
