//! Devices that do not train in this process, seen from a method whose devices send messages beside
//! their updates.

use std::collections::BTreeMap;

use smolfed_core::contrast::ContrastRequest;

use crate::ranks::Communicator;
use smolfed_release::{Message, Messages};

/// What takes part in a round beside the devices that train here.
pub struct RoundContext<'a> {
    /// The processes that simulate devices together.
    pub ranks: &'a dyn Communicator,
    /// Devices that none of them simulates.
    pub remote: &'a mut dyn RemoteDevices,
}

/// Devices that are not simulated.
pub trait RemoteDevices {
    /// Whether the device is one of them.
    fn has(&self, device: u32) -> bool;

    /// Has these devices, which it has, send a message each; what became of it.
    fn messages(
        &mut self,
        request: &MessageRequest<'_>,
        devices: &[u32],
    ) -> BTreeMap<u32, MessageOutcome>;
}

/// What devices are asked for.
#[derive(Clone, Debug)]
pub struct MessageRequest<'a> {
    /// What the message is made of.
    pub contrast: ContrastRequest,
    /// Its grid and its noise.
    pub messages: &'a Messages,
    /// The fewest samples of a device that sends one.
    pub min_samples: u32,
    /// What comes behind the model.
    pub tail: Vec<f32>,
}

/// What became of a device's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageOutcome {
    /// It came.
    Sent {
        /// Samples of the device, as it says.
        samples: u32,
        /// The message, which so many samples can have given.
        message: Message,
    },
    /// The device may have sent a part of it.
    Lost,
    /// The device has not begun it.
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
