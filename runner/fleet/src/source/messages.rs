//! Messages of real devices besides their updates (correlation matrices), in a separate part of the
//! round, and their checks.

use std::collections::BTreeMap;

use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::params::Penalty;
use smolfed_core::wire::message::{Invitation, Request};

use crate::coordinator::Coordinator;
use crate::exchange::{Absence, ExchangeOutcome, Offer};
use crate::keys::KeysError;
use smolfed_engine::method::contract::Assignment;
use smolfed_engine::method::remote::{MessageOutcome, MessageRequest, RemoteDevices, RoundContext};
use smolfed_engine::method::state::StateError;
use smolfed_engine::ranks::Alone;
use smolfed_engine::source::contract::SourceError;
use smolfed_engine::source::participation::Participation;
use smolfed_release::Message;

/// Real devices that send messages in a round, and the record of the missing ones.
pub(super) struct RealMessages<'a> {
    fleet: &'a mut Coordinator,
    invitation: &'a Invitation,
    assignment: &'a Assignment<'a>,
    record: &'a mut Participation,
    /// The error that kept all devices from being asked.
    failure: Option<KeysError>,
}

impl<'a> RealMessages<'a> {
    /// Returns the messages of a round with this training invitation.
    pub(super) const fn new(
        fleet: &'a mut Coordinator,
        invitation: &'a Invitation,
        assignment: &'a Assignment<'a>,
        record: &'a mut Participation,
    ) -> Self {
        Self {
            fleet,
            invitation,
            assignment,
            record,
            failure: None,
        }
    }

    /// Lets a method exchange messages with all devices, including the real ones.
    pub(super) fn exchange<T>(
        mut self,
        exchange: impl FnOnce(&mut RoundContext<'_>) -> Result<T, StateError>,
    ) -> Result<T, SourceError> {
        let result = exchange(&mut RoundContext {
            ranks: &Alone,
            remote: &mut self,
        });
        match self.failure {
            Some(failure) => Err(failure.into()),
            None => Ok(result?),
        }
    }

    /// Converts an outcome. Records devices without a valid message.
    fn outcome(
        &mut self,
        request: &MessageRequest<'_>,
        device: u32,
        outcome: ExchangeOutcome,
    ) -> MessageOutcome {
        let absence = match outcome {
            ExchangeOutcome::Message(integers) => match checked(request, integers) {
                Some(sent) => return sent,
                None => Absence::OutOfBound,
            },
            ExchangeOutcome::Missing(absence) => absence,
            // No update was asked for.
            ExchangeOutcome::Answered(_) => Absence::OutOfBound,
        };
        self.record
            .without_matrix
            .insert(device, absence.to_string());
        match absence {
            Absence::NotConnected
            | Absence::Silent
            | Absence::CameLate
            | Absence::Declined(_)
            | Absence::Quarantined => MessageOutcome::Absent,
            // The message of a device whose key was meanwhile revoked may have arrived.
            _ => {
                self.record.lost_matrices.push(device);
                MessageOutcome::Lost
            }
        }
    }
}

/// Checks that a message is possible for its number of samples, which comes after it.
fn checked(request: &MessageRequest<'_>, mut integers: Vec<i64>) -> Option<MessageOutcome> {
    let samples = u32::try_from(integers.pop()?).ok()?;
    let message = Message::received(integers);
    let can_be = samples >= request.min_samples
        && samples <= request.contrast.max_samples
        && request.messages.is_plausible(&message, samples);
    can_be.then_some(MessageOutcome::Sent { samples, message })
}

impl RemoteDevices for RealMessages<'_> {
    fn has(&self, device: u32) -> bool {
        self.fleet.has(device)
    }

    fn messages(
        &mut self,
        request: &MessageRequest<'_>,
        devices: &[u32],
    ) -> BTreeMap<u32, MessageOutcome> {
        let tails = devices
            .iter()
            .map(|device| (*device, request.tail.clone()))
            .collect();
        let invitation = Invitation {
            grid: request.messages.grid,
            noise: request.messages.noise.as_ref().map(DiscreteGaussian::sigma),
            bit: None,
            masks: None,
            proximal: Penalty::NONE,
            gradient_smoothing: None,
            request: Some(Request::Contrast(request.contrast)),
            ..*self.invitation
        };
        let model = self.assignment.global.to_vec();
        let offer = Offer {
            tails,
            ..Offer::new(self.assignment.number, invitation, model)
        };
        match self.fleet.round(offer, devices, || ()) {
            Ok((outcomes, ())) => outcomes
                .into_iter()
                .map(|(device, outcome)| (device, self.outcome(request, device, outcome)))
                .collect(),
            Err(failure) => {
                self.failure = Some(failure);
                BTreeMap::new()
            }
        }
    }
}
