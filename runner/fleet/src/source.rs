//! Real devices among simulated ones: the coordinator as a source of the round loop.
//!
//! The devices named in the keys file are real: their data stay on them, and their updates are
//! checked as far as possible. All others are simulated. The sum is exact in either case.

mod answers;
pub mod invitation;
mod messages;
mod missing;
pub mod open;
pub mod over_selection;
pub mod terms;
pub mod tuning;
mod window;

use std::collections::BTreeMap;

use rayon::prelude::*;
use smolfed_core::stream::Root;
use smolfed_core::wire::message::{Invitation, PackedInvitation, Request};

use crate::coordinator::Coordinator;
use crate::exchange::{ExchangeOutcome, Offer};
use crate::peer::Terms;
use crate::quorum::{Places, Quorum};
use crate::short_model::Recent;
use crate::windows::WindowRule;
use messages::RealMessages;
use open::Open;
use smolfed_data::federation::Federation;
use smolfed_engine::arithmetic::words;
use smolfed_engine::attendance::Attendance;
use smolfed_engine::experiment::Experiment;
use smolfed_engine::method::contract::{Assignment, Learner};
use smolfed_engine::question::Inquiry;
use smolfed_engine::run_files::records::RecordFile;
use smolfed_engine::source::contract::{CohortSum, Draw, Source, SourceError, Step};
use smolfed_engine::source::participation::{AnswerRecord, Participation, last_rounds};
use smolfed_engine::source::simulated::{train_cohort, train_here};
use smolfed_release::admission::REASON;
use smolfed_release::masked::{Asked, Attendee};
use smolfed_release::{Admitted, Outcome, PrivateSum, ReceivedUpdate, Timing};

/// Real devices among simulated ones.
#[derive(Debug)]
pub struct Fleet<'a> {
    fleet: Coordinator,
    federation: &'a Federation,
    terms: Terms,
    first_number: u32,
    /// Rounds below this one were paid for by an earlier process, whatever their outcome.
    paid: u32,
    participation: RecordFile<Participation>,
    /// Whether this process continues a run, and has not had a round yet.
    is_resumed: bool,
    /// Number of updates that end a round, if not the whole cohort's.
    quorum: Option<Quorum>,
    /// Request to devices in this run, besides local training of the shared model.
    request: Option<Request>,
    /// The last round number in which each device answered.
    last_rounds: BTreeMap<u32, u32>,
    /// The round whose sum is not released yet.
    pending: Option<Participation>,
    /// Record of the devices that answered questions, if kept.
    answers: Option<RecordFile<AnswerRecord>>,
    /// The answers whose sum is not released yet.
    pending_answers: Option<AnswerRecord>,
    /// The windows, if rounds are windows of time.
    open: Option<Open>,
    /// Recent models in 16 bits, which devices may still have.
    recent: Recent,
    /// Whether devices release updates. Otherwise they are invited to no round, because nothing
    /// would cover their updates: they only answer questions.
    has_updates: bool,
}

impl<'a> Fleet<'a> {
    /// Returns a running fleet for a run whose first round has the number `first_number`, and whose
    /// first `paid` rounds were paid for.
    #[must_use]
    pub const fn new(
        fleet: Coordinator,
        federation: &'a Federation,
        terms: Terms,
        first_number: u32,
        paid: u32,
        participation: RecordFile<Participation>,
    ) -> Self {
        Self {
            fleet,
            federation,
            terms,
            first_number,
            paid,
            participation,
            is_resumed: false,
            quorum: None,
            request: None,
            last_rounds: BTreeMap::new(),
            pending: None,
            answers: None,
            pending_answers: None,
            open: None,
            recent: Recent::new(None),
            has_updates: true,
        }
    }

    /// Sets windows of time as rounds, after rounds with this record.
    #[must_use]
    pub fn with_windows(self, rule: Option<WindowRule>, rounds: &[Participation]) -> Self {
        Self {
            open: rule.map(|rule| Open::after(rule, rounds, self.first_number)),
            ..self
        }
    }

    /// Sets the method and the grid of this experiment, after rounds with this record.
    #[must_use]
    pub fn of_experiment(self, experiment: &Experiment, rounds: &[Participation]) -> Self {
        Self {
            request: experiment.method().properties().request,
            last_rounds: last_rounds(rounds),
            recent: Recent::new(experiment.model_grid()),
            has_updates: experiment.method().properties().timing != Timing::Never,
            ..self
        }
    }

    /// Sets the number of updates that end a round. [`terms::check_quorum`] decides whether the
    /// accounting allows it.
    #[must_use]
    pub fn with_quorum(self, quorum: Option<Quorum>) -> Self {
        Self { quorum, ..self }
    }

    /// Sets the record of devices that answer questions, if there are any.
    #[must_use]
    pub fn with_answers(self, answers: Option<RecordFile<AnswerRecord>>) -> Self {
        Self { answers, ..self }
    }

    /// Sets the number of rounds by an earlier process.
    #[must_use]
    pub fn resumed_after(self, rounds: u32) -> Self {
        Self {
            is_resumed: rounds > 0,
            ..self
        }
    }

    /// Returns the coordinator.
    #[must_use]
    pub const fn fleet(&self) -> &Coordinator {
        &self.fleet
    }

    fn record(&mut self, record: &Participation) -> Result<(), SourceError> {
        self.participation.append(record)?;
        self.participation.sync()?;
        Ok(())
    }

    /// Returns the invitation of a round. `None` without a clip norm, which [`terms::terms`]
    /// refuses.
    fn invitation(&self, assignment: &Assignment<'_>) -> Option<Invitation> {
        let Assignment {
            training, release, ..
        } = assignment;
        invitation::training(self.terms.shape, training, release, self.request)
    }
}

impl Source for Fleet<'_> {
    /// Waits for devices, unless an earlier process paid for the round, which will be burned.
    fn ready(&mut self, round: u32) -> Result<bool, SourceError> {
        // Windows follow the clock, once a first device has connected.
        let goes_on = self.open.as_ref().is_some_and(Open::have_begun);
        if round < self.paid || goes_on {
            return Ok(false);
        }
        let paced = self.fleet.wait_for_interval();
        let waited = self.fleet.wait_for_devices();
        let waited = waited.map_err(|error| SourceError::Fleet(error.into()))?;
        Ok(paced || waited)
    }

    fn offer(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &dyn Learner,
    ) -> Result<(), SourceError> {
        self.offer_version(assignment, learner)
    }

    fn draw(
        &mut self,
        attendance: &Attendance,
        root: &Root,
        step: Step,
    ) -> Result<Option<Draw>, SourceError> {
        let round = step.round;
        let number = self.first_number.saturating_add(step.number);
        if round < self.paid {
            if let Some(open) = &mut self.open {
                open.windows.burned(number);
            }
            self.record(&Participation {
                round,
                number,
                burned: true,
                ..Participation::default()
            })?;
            return Ok(None);
        }
        if attendance.windows().is_some() {
            return self.draw_window(attendance, root, step);
        }
        self.fleet.round_begins();
        // This process has nothing to forget.
        Ok(Some(Draw::of(
            number,
            attendance.arrivals(root, round, number),
        )))
    }

    fn sum(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError> {
        let federation = self.federation;
        if self.open.is_some() {
            return Ok(self.sum_of_version(assignment, learner, cohort));
        }
        let invitation = self.invitation(assignment);
        let Some(invitation) = invitation.filter(|_| self.has_updates) else {
            return self.without_updates(assignment, learner, cohort);
        };
        let mut record = Participation {
            round: assignment.round,
            number: assignment.number,
            // With independent noise, nothing was lost.
            history_lost: self.is_resumed && *assignment.admitted != Admitted::All,
            cohort: cohort.to_vec(),
            ..Participation::default()
        };
        let before = RealMessages::new(&mut self.fleet, &invitation, assignment, &mut record);
        let mut left_out_messages =
            before.exchange(|context| learner.before(assignment, cohort, context))?;
        let is_real = |device: &u32| self.fleet.has(*device);
        let simulated: Vec<u32> = cohort.iter().copied().filter(|x| !is_real(x)).collect();
        // No device is asked too early, since it would decline.
        let is_asked = |device: &u32| assignment.admitted.has(*device);
        let asked: Vec<u32> = cohort.iter().copied().filter(is_asked).collect();
        let offer = Offer {
            places: self.quorum.map(|quorum| {
                let simulated = u32::try_from(simulated.len()).unwrap_or(u32::MAX);
                Places::new(
                    quorum
                        .updates_needed(cohort.len())
                        .saturating_sub(simulated),
                )
            }),
            ..self.offer_of(assignment, learner, invitation, &asked)
        };
        let asked_for = assignment.release.masking.map(|_| {
            let model = offer.model.iter().take(invitation.shape.parameters());
            Asked {
                invitation: PackedInvitation::from(&invitation)
                    .tagged()
                    .bytes()
                    .as_slice()
                    .to_vec(),
                model: model.copied().collect(),
            }
        });
        let (answers, (mut sum, outcomes)) = self.fleet.round(offer, &asked, || {
            train_here(assignment, learner, federation, &simulated)
        })?;
        let after = RealMessages::new(&mut self.fleet, &invitation, assignment, &mut record);
        left_out_messages
            .extend(after.exchange(|context| learner.after(assignment, cohort, context))?);
        let of_real = self.add(assignment, answers, &mut sum, &mut record);
        let mut outcomes = outcomes.into_iter();
        let of_device = |device| of_real.get(device).cloned().or_else(|| outcomes.next());
        let outcomes = cohort.iter().filter_map(of_device).collect();
        missing::report(
            &format!("round {}", record.round),
            record.round,
            reasons(&record),
        );
        self.pending = Some(record);
        self.is_resumed = false;
        Ok(CohortSum {
            sum,
            outcomes,
            left_out_messages,
            asked: asked_for,
        })
    }

    fn answers(&mut self, inquiry: &Inquiry<'_>, cohort: &[u32]) -> Result<CohortSum, SourceError> {
        self.ask(inquiry, cohort)
    }

    /// Records the participants. A failed round has none, so that no device continues from its
    /// personal model of that round.
    fn round_finished(&mut self, is_lost: bool) -> Result<(), SourceError> {
        self.answered(is_lost)?;
        let Some(record) = self.pending.take() else {
            return Ok(());
        };
        if is_lost {
            return self.record(&Participation {
                round: record.round,
                number: record.number,
                burned: true,
                ..Participation::default()
            });
        }
        for device in &record.answered {
            self.last_rounds.insert(*device, record.number);
        }
        self.record(&record)
    }
}

impl Fleet<'_> {
    /// Runs a round in which devices send nothing, and in which no real device takes part.
    fn without_updates(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &mut dyn Learner,
        cohort: &[u32],
    ) -> Result<CohortSum, SourceError> {
        self.pending = Some(Participation {
            round: assignment.round,
            number: assignment.number,
            ..Participation::default()
        });
        self.is_resumed = false;
        Ok(train_cohort(assignment, learner, self.federation, cohort)?)
    }

    /// Returns the offer to real devices for training, without a quorum.
    fn offer_of(
        &mut self,
        assignment: &Assignment<'_>,
        learner: &dyn Learner,
        invitation: Invitation,
        asked: &[u32],
    ) -> Offer {
        let has_tails = invitation.contrast().is_some();
        let is_real = |device: &&u32| has_tails && self.fleet.has(**device);
        let tail = |device: &u32| (*device, learner.tail_for_device(assignment, *device));
        let mut model = learner.model_for_devices(assignment.global);
        let tails = asked.par_iter().filter(is_real).map(tail).collect();
        let short = match has_tails {
            true => None,
            false => self.recent.offer(assignment.number, &model),
        };
        if invitation.shape.integer.is_some() {
            words(&mut model);
        }
        Offer {
            short,
            tails,
            last_rounds: match self.request {
                Some(Request::Personal(_)) => self.last_rounds.clone(),
                _ => BTreeMap::new(),
            },
            ..Offer::new(assignment.number, invitation, model)
        }
    }

    /// Adds the updates of real devices and records their senders. Returns each device's outcome.
    fn add(
        &self,
        assignment: &Assignment<'_>,
        mut answers: BTreeMap<u32, ExchangeOutcome>,
        sum: &mut PrivateSum,
        record: &mut Participation,
    ) -> BTreeMap<u32, Outcome> {
        let mut outcomes = BTreeMap::new();
        for device in record.cohort.clone() {
            let outcome = match answers.remove(&device) {
                None if self.fleet.has(device) => {
                    let reason = REASON.to_owned();
                    record.missing.insert(device, reason.clone());
                    Outcome::LeftOut { reason }
                }
                None => continue,
                Some(ExchangeOutcome::Answered(update)) => {
                    let is_masked = assignment.release.masking.is_some();
                    self.add_one(is_masked, assignment.admitted, device, &update, sum);
                    record.answered.push(device);
                    Outcome::Answered
                }
                // No other message was asked for.
                Some(ExchangeOutcome::Message(_)) => Outcome::Missing,
                Some(ExchangeOutcome::Missing(absence)) => {
                    record.missing.insert(device, absence.to_string());
                    Outcome::Missing
                }
            };
            outcomes.insert(device, outcome);
        }
        outcomes
    }
}

impl Fleet<'_> {
    /// Adds the update of a device, in clear or masked.
    fn add_one(
        &self,
        is_masked: bool,
        admitted: &Admitted,
        device: u32,
        update: &ReceivedUpdate,
        sum: &mut PrivateSum,
    ) {
        if !is_masked {
            sum.add_received(device, update, admitted);
            return;
        }
        let attendee = Attendee {
            device,
            // The ledger of the session. Another one is refused.
            ledger: self.fleet.ledger_of(device).unwrap_or_default(),
            tags: update.tags().to_vec(),
        };
        sum.add_masked(attendee, update, admitted);
    }
}

/// Returns the missing devices of a round, and the reasons.
fn reasons(record: &Participation) -> impl Iterator<Item = (u32, String)> {
    let of_matrix = record.without_matrix.iter();
    let of_matrix = of_matrix.map(|(device, reason)| (*device, format!("no matrix: {reason}")));
    let of_update = record.missing.iter();
    of_matrix.chain(of_update.map(|(device, reason)| (*device, reason.clone())))
}
