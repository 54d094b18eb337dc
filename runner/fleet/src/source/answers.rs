//! Questions to real devices, with the answers of simulated ones.

use std::collections::BTreeMap;

use smolfed_core::wire::message::{Invitation, PackedInvitation, Request};

use super::{Fleet, invitation};
use crate::exchange::{ExchangeOutcome, Offer};
use smolfed_engine::arithmetic::words;
use smolfed_engine::question::Inquiry;
use smolfed_engine::question::answers::answer_here;
use smolfed_engine::source::contract::{CohortSum, SourceError};
use smolfed_engine::source::participation::AnswerRecord;
use smolfed_engine::source::simulated::answer_cohort;
use smolfed_release::masked::Asked;
use smolfed_release::{Admitted, Outcome, PrivateSum};

impl Fleet<'_> {
    /// Asks the devices of a cohort a question. Each has the time of a round to answer.
    pub(super) fn ask(
        &mut self,
        inquiry: &Inquiry<'_>,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError> {
        let federation = self.federation;
        let Some(invitation) = self.question(inquiry) else {
            return Ok(answer_cohort(inquiry, federation, cohort));
        };
        let mut record = AnswerRecord {
            round: inquiry.round,
            number: inquiry.number,
            question: inquiry.asked.index,
            cohort: cohort.to_vec(),
            ..AnswerRecord::default()
        };
        let is_real = |device: &u32| self.fleet.has(*device);
        let simulated: Vec<u32> = cohort.iter().copied().filter(|x| !is_real(x)).collect();
        let mut model = inquiry.model.to_vec();
        let short = self.recent.offer(inquiry.number, &model);
        if invitation.shape.integer.is_some() {
            words(&mut model);
        }
        let covered = model.clone();
        let offer = Offer {
            short,
            ..Offer::new(inquiry.number, invitation, model)
        };
        let asked = inquiry.asked.release.masking.map(|_| Asked {
            invitation: PackedInvitation::from(&invitation)
                .tagged()
                .bytes()
                .as_slice()
                .to_vec(),
            model: covered,
        });
        let (answers, (mut sum, outcomes)) = self.fleet.round(offer, cohort, || {
            // Nothing masks these local answers.
            answer_here(inquiry, None, federation, &simulated)
        })?;
        let of_real = self.add_answers(inquiry, answers, &mut sum, &mut record);
        let mut outcomes = outcomes.into_iter();
        let of_device = |device| of_real.get(device).cloned().or_else(|| outcomes.next());
        let outcomes = cohort.iter().filter_map(of_device).collect();
        let what = format!("\"{}\" after round {}", inquiry.asked.name, inquiry.round);
        let missing = record.missing.iter();
        let missing = missing.map(|(device, reason)| (*device, reason.clone()));
        super::missing::report(&what, inquiry.round, missing);
        self.pending_answers = Some(record);
        Ok(CohortSum {
            sum,
            outcomes,
            left_out_messages: Vec::new(),
            asked,
        })
    }

    /// Records the answering devices, once the sum of the answers was released or lost.
    pub(super) fn answered(&mut self, is_lost: bool) -> Result<(), SourceError> {
        let (Some(record), Some(file)) = (self.pending_answers.take(), &mut self.answers) else {
            return Ok(());
        };
        file.append(&AnswerRecord {
            burned: is_lost,
            ..record
        })?;
        Ok(file.sync()?)
    }

    /// Returns the invitation to answer a question. `None` if it cannot be sent. It describes local
    /// training as in a round, which devices ignore, but of one epoch, because devices decline more
    /// epochs than their limit.
    fn question(&self, inquiry: &Inquiry<'_>) -> Option<Invitation> {
        let (training, release) = (&inquiry.training, &inquiry.asked.release);
        let request = Some(Request::Question(inquiry.asked.question));
        let invitation = invitation::training(self.terms.shape, training, release, request)?;
        Some(Invitation {
            epochs: 1,
            gradient_smoothing: None,
            bit: None,
            ..invitation
        })
    }

    /// Adds the answers of real devices and records their senders. Returns each device's outcome.
    fn add_answers(
        &self,
        inquiry: &Inquiry<'_>,
        mut answers: BTreeMap<u32, ExchangeOutcome>,
        sum: &mut PrivateSum,
        record: &mut AnswerRecord,
    ) -> BTreeMap<u32, Outcome> {
        let is_masked = inquiry.asked.release.masking.is_some();
        let mut outcomes = BTreeMap::new();
        for device in &record.cohort {
            let outcome = match answers.remove(device) {
                None => continue,
                Some(ExchangeOutcome::Answered(answer)) => {
                    self.add_one(is_masked, &Admitted::All, *device, &answer, sum);
                    record.answered.push(*device);
                    Outcome::Answered
                }
                // No other message was asked for.
                Some(ExchangeOutcome::Message(_)) => Outcome::Missing,
                Some(ExchangeOutcome::Missing(absence)) => {
                    record.missing.insert(*device, absence.to_string());
                    Outcome::Missing
                }
            };
            outcomes.insert(*device, outcome);
        }
        outcomes
    }
}
