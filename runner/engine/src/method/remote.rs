//! Devices outside this process, for methods whose devices send messages besides their updates.

use std::collections::BTreeMap;

use smolfed_core::contrast::ContrastRequest;

use crate::ranks::Communicator;
use smolfed_release::{Message, Messages};

/// The participants of a round besides the devices that train here.
pub struct RoundContext<'a> {
    /// The processes that simulate devices together.
    pub ranks: &'a dyn Communicator,
    /// Devices that none of these processes simulates.
    pub remote: &'a mut dyn RemoteDevices,
}

/// Devices that are not simulated.
pub trait RemoteDevices {
    /// Returns whether it has the device.
    fn has(&self, device: u32) -> bool;

    /// Requests a message from each of these devices, all of which it has. Returns the outcomes.
    fn messages(
        &mut self,
        request: &MessageRequest<'_>,
        devices: &[u32],
    ) -> BTreeMap<u32, MessageOutcome>;
}

/// A request for messages.
#[derive(Clone, Debug)]
pub struct MessageRequest<'a> {
    /// The contents of the message.
    pub contrast: ContrastRequest,
    /// Its grid and its noise.
    pub messages: &'a Messages,
    /// Minimum number of samples of a sender.
    pub min_samples: u32,
    /// The data after the model.
    pub tail: Vec<f32>,
}

/// Outcome of a request to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageOutcome {
    /// The message arrived.
    Sent {
        /// Number of samples that the device reports.
        samples: u32,
        /// The message, which this number of samples can produce.
        message: Message,
    },
    /// The device may have sent a part of it.
    Lost,
    /// The device has not started it.
    Absent,
}

/// No such devices.
#[derive(Clone, Copy, Debug)]
pub struct NoRemoteDevices;

impl RemoteDevices for NoRemoteDevices {
    fn has(&self, _: u32) -> bool {
        false
    }

    fn messages(&mut self, _: &MessageRequest<'_>, _: &[u32]) -> BTreeMap<u32, MessageOutcome> {
        BTreeMap::new()
    }
}
