//! The device's side of the delivery (download) of a model file: bytes in, bytes out, as in a
//! [`session`](crate::session).
//!
//! The firmware owns the loop: it writes [`Receiver::outgoing`] to the line, passes received bytes
//! to [`Receiver::receive`], and calls [`Receiver::timeout`] when the line was silent for a while.
//! It predicts with the parameters of [`Receiver::load`], and loads again when
//! [`Receiver::version`] rises.
//!
//! The device has no ledger, so its chain key never changes: whoever learns it later can decrypt
//! recorded deliveries. They hold the published model and its version, and no data of the device.

use embedded_io::{Read, ReadReady, Write};
use embedded_storage::nor_flash::NorFlash;
use rand_core::Rng;

use super::{DeliveryError, ModelSlots, file::Accepted};
use crate::{
    recipe::MAX_RECIPE_BYTES,
    session::{
        Phase, REPETITIONS,
        exchange::{Endpoint, exchange},
        line::Line,
    },
    wire::{
        Direction, VERSION,
        frame::{Frame, Sealed},
        greeting::{Greeting, Hello, Name, Versions, Welcome},
        keys::{Chain as _, ChainKey, Nonce},
        link::{DeviceEnd, Link, read},
        message::{Delivery, FILE_CHUNK, Installed, MAX_WINDOW, Message, WhyRefused},
        refusal::{Refusal, Refusals},
    },
};

/// A device that only infers, in contact with a coordinator.
pub struct Receiver<F, R> {
    line: Line,
    device: u32,
    chain: ChainKey,
    nonces: R,
    nonce: Nonce,
    link: Option<Link<DeviceEnd>>,
    phase: Phase,
    repetitions: u8,
    window: u8,
    /// End of the requested bytes.
    requested: u32,
    slots: ModelSlots<F>,
    /// The last file that was refused, and why. It is not fetched again.
    refused: Option<(u32, DeliveryError)>,
    refusals: Refusals,
}

/// The next message to send.
enum Answer {
    Nothing,
    /// Begins a new session.
    Hello,
    HelloAgain,
    Installed,
    Want,
}

impl<F: NorFlash, R: Rng> Receiver<F, R> {
    /// Creates a receiver that has not sent anything yet.
    ///
    /// `device` and `chain` are the number and the key of the provisioning record. `nonces` yields
    /// 16 bytes per session that never repeat: from hardware entropy, or from a counter that
    /// survives restarts and erased models. The key never changes, so repeated nonces let recorded
    /// sessions be replayed to the device, and it would encrypt under a repeated key. It accepts no
    /// version below its own even then.
    pub const fn new(device: u32, chain: ChainKey, nonces: R, slots: ModelSlots<F>) -> Self {
        Self {
            line: Line::new(),
            device,
            chain,
            nonces,
            nonce: [0; 16],
            link: None,
            phase: Phase::Silent,
            repetitions: 0,
            window: 1,
            requested: 0,
            slots,
            refused: None,
            refusals: Refusals::new(),
        }
    }

    /// Sets how many chunks the device requests at once: 1 to [`MAX_WINDOW`]. The default is 1. A
    /// serial line with room for one frame loses more.
    pub fn set_window(&mut self, chunks: u8) {
        self.window = chunks.clamp(1, MAX_WINDOW);
    }

    /// Returns the phase.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the number of the device.
    pub const fn device(&self) -> u32 {
        self.device
    }

    /// Returns the version of the current model, or 0 without one.
    pub const fn version(&self) -> u32 {
        self.slots.version()
    }

    /// Copies the parameters of the current model: [`ModelSlots::load`].
    ///
    /// # Errors
    /// As there.
    pub fn load(&mut self, parameters: &mut [f32]) -> Result<Option<u32>, DeliveryError> {
        self.slots.load(parameters)
    }

    /// Returns the models, to install a file that came by other means.
    pub const fn slots(&mut self) -> &mut ModelSlots<F> {
        &mut self.slots
    }

    /// Returns the version of the last refused file, and the reason.
    pub const fn refused(&self) -> Option<(u32, DeliveryError)> {
        self.refused
    }

    /// Returns the number of skipped frames, by reason.
    pub const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Returns the number of the last authentic frame of this session, or 0 before the first.
    pub fn received(&self) -> u32 {
        self.link.as_ref().map_or(0, Link::received)
    }

    /// Returns the bytes for the line: a whole frame, or none.
    pub fn outgoing(&self) -> &[u8] {
        self.line.outgoing()
    }

    /// Confirms that the bytes of [`Self::outgoing`] are on the line.
    pub const fn sent(&mut self) {
        self.line.sent();
    }

    /// Takes bytes from the line, up to the end of a frame, and returns how many it took. If it
    /// took fewer than given, write the outgoing bytes and pass the rest to the next call.
    pub fn receive(&mut self, bytes: &[u8]) -> usize {
        for (index, byte) in bytes.iter().enumerate() {
            // Only a zero ends a frame.
            if let Some(raw) = self.line.receive(*byte) {
                let talk = &mut Talk {
                    device: self.device,
                    chain: &self.chain,
                    nonce: &self.nonce,
                    link: &mut self.link,
                    phase: &mut self.phase,
                    repetitions: &mut self.repetitions,
                    requested: self.requested,
                    slots: &mut self.slots,
                    refused: &mut self.refused,
                };
                let answer = raw.and_then(|raw| talk.frame(raw));
                let answer = answer.unwrap_or_else(|refusal| {
                    self.refusals.count(refusal);
                    Answer::Nothing
                });
                self.send(&answer);
                return index + 1;
            }
        }
        bytes.len()
    }

    /// Writes outgoing frames and reads the available bytes, without waiting for more. Returns
    /// whether it wrote anything: time-outs start from then.
    ///
    /// # Errors
    /// Returns the errors of the stream. A partly written frame is written again.
    pub fn exchange<T>(&mut self, stream: &mut T) -> Result<bool, T::Error>
    where
        T: Read + ReadReady + Write,
    {
        exchange(self, stream)
    }

    /// Handles a silent line: repeats the message that waits for an answer, or begins a new
    /// session, which continues the incoming file.
    pub fn timeout(&mut self) {
        if self.line.waits() {
            return;
        }
        let answer = match self.phase {
            // A receiver neither trains nor sends.
            Phase::Idle | Phase::Refused(_) | Phase::Training | Phase::Sending => return,
            Phase::Silent => Answer::Hello,
            Phase::Greeting => Answer::HelloAgain,
            Phase::Ready | Phase::Receiving if self.repetitions >= REPETITIONS => Answer::Hello,
            Phase::Ready => Answer::Installed,
            Phase::Receiving => Answer::Want,
        };
        self.repetitions = self.repetitions.saturating_add(1);
        self.send(&answer);
    }

    /// Begins a new session, which continues the incoming file: on a new connection.
    pub fn reconnect(&mut self) {
        self.send(&Answer::Hello);
    }

    /// Asks again for the offered version, on a line where the coordinator cannot call.
    pub fn ask(&mut self) {
        // A frame that waits may be on its way to the line.
        if !self.outgoing().is_empty() {
            return;
        }
        if matches!(self.phase, Phase::Idle | Phase::Ready) {
            self.repetitions = 0;
            self.phase = Phase::Ready;
            self.send(&Answer::Installed);
        } else if matches!(self.phase, Phase::Refused(_)) {
            self.send(&Answer::Hello);
        }
    }

    fn send(&mut self, answer: &Answer) {
        let round = self.slots.incoming().map_or(0, |(version, ..)| version);
        let mut recipe = [0; MAX_RECIPE_BYTES];
        let message = match answer {
            Answer::Nothing => return,
            Answer::Hello => {
                self.nonces.fill_bytes(&mut self.nonce);
                (self.link, self.phase, self.repetitions) = (None, Phase::Greeting, 0);
                return self.greet();
            }
            Answer::HelloAgain => return self.greet(),
            Answer::Installed => {
                let Accepted {
                    shape, recipe: own, ..
                } = self.slots.accepted();
                Delivery::Installed(Installed {
                    version: self.slots.version(),
                    shape: *shape,
                    recipe: own.as_ref().map_or(&[], |own| own.write(&mut recipe)),
                })
            }
            Answer::Want => {
                let Some((_, offset, length)) = self.slots.incoming() else {
                    return;
                };
                let bytes = u32::from(self.window) * FILE_CHUNK as u32;
                self.requested = offset.saturating_add(bytes).min(length);
                Delivery::WantFile {
                    offset,
                    count: self.window,
                }
            }
        };
        if let Some(link) = &mut self.link {
            let frame = self.line.send();
            link.compose(round, &Message::Delivery(message), frame);
            link.finish(frame);
        }
    }

    fn greet(&mut self) {
        let (key, name) = (self.chain.greeting(), Name::Number(self.device));
        let hello = Hello::new(&key, name, self.nonce, Versions::OURS);
        hello.encode(self.line.send());
    }
}

impl<F: NorFlash, R: Rng> Endpoint for Receiver<F, R> {
    fn outgoing(&self) -> &[u8] {
        self.line.outgoing()
    }

    fn sent(&mut self) {
        self.line.sent();
    }

    fn receive(&mut self, bytes: &[u8]) -> usize {
        Self::receive(self, bytes)
    }

    fn is_busy(&self) -> bool {
        false
    }
}

/// A receiver without its line, which holds the frame.
struct Talk<'a, F> {
    device: u32,
    chain: &'a ChainKey,
    nonce: &'a Nonce,
    link: &'a mut Option<Link<DeviceEnd>>,
    phase: &'a mut Phase,
    repetitions: &'a mut u8,
    requested: u32,
    slots: &'a mut ModelSlots<F>,
    refused: &'a mut Option<(u32, DeliveryError)>,
}

impl<F: NorFlash> Talk<'_, F> {
    fn frame(&mut self, raw: &mut [u8]) -> Result<Answer, Refusal> {
        match Frame::parse(raw)? {
            Frame::Greeting { kind, body } => {
                match (
                    Greeting::parse(kind, body, Direction::ToDevice)?,
                    *self.phase,
                ) {
                    // Anybody may call, but a call does not disturb a file.
                    (Greeting::Call, Phase::Silent | Phase::Idle | Phase::Refused(_)) => {
                        Ok(Answer::Hello)
                    }
                    (Greeting::Welcome(welcome), Phase::Greeting) => self.welcome(&welcome),
                    _ => Err(Refusal::Unexpected),
                }
            }
            Frame::Sealed(mut frame) => {
                let link = self.link.as_mut().ok_or(Refusal::Unexpected)?;
                link.admit(&mut frame)?;
                self.message(&frame)
            }
        }
    }

    fn welcome(&mut self, welcome: &Welcome) -> Result<Answer, Refusal> {
        let session = self.chain.session(self.device, self.nonce, &welcome.nonce);
        if !welcome.is_authentic(&session) {
            return Err(Refusal::Tag);
        }
        *self.repetitions = 0;
        match welcome.offer {
            Ok(VERSION) => {
                *self.link = Some(Link::new(session.cipher()));
                *self.phase = Phase::Ready;
                Ok(Answer::Installed)
            }
            Ok(_) => Err(Refusal::Version),
            Err(_) => {
                *self.phase = Phase::Refused(WhyRefused::Version);
                Ok(Answer::Nothing)
            }
        }
    }

    fn message(&mut self, frame: &Sealed<'_>) -> Result<Answer, Refusal> {
        let (version, message) = read::<DeviceEnd>(frame)?;
        match message {
            Message::Refused(refused) if *self.phase == Phase::Ready => {
                *self.phase = Phase::Refused(refused.reason);
                *self.link = None;
                Ok(Answer::Nothing)
            }
            Message::Wait => {
                *self.phase = Phase::Idle;
                Ok(Answer::Nothing)
            }
            Message::Delivery(Delivery::Offered(length)) => Ok(self.offered(version, length)),
            Message::Delivery(Delivery::FileChunk { offset, bytes }) => {
                self.chunk(version, offset, bytes)
            }
            _ => Err(Refusal::Unexpected),
        }
    }

    /// Begins or continues the offered file, unless the device has it or has refused it.
    fn offered(&mut self, version: u32, length: u32) -> Answer {
        let is_incoming = |(incoming, _, expected)| (incoming, expected) == (version, length);
        *self.phase = Phase::Idle;
        if self.refused.is_some_and(|(refused, _)| refused == version) {
            return Answer::Nothing;
        }
        if !self.slots.incoming().is_some_and(is_incoming)
            && let Err(error) = self.slots.begin(version, length)
        {
            self.refuse(version, error);
            return Answer::Nothing;
        }
        (*self.phase, *self.repetitions) = (Phase::Receiving, 0);
        Answer::Want
    }

    fn chunk(&mut self, version: u32, offset: u32, bytes: &[u8]) -> Result<Answer, Refusal> {
        let incoming = self.slots.incoming();
        let (incoming, written, length) = incoming.ok_or(Refusal::Unexpected)?;
        if incoming != version {
            return Err(Refusal::Round);
        }
        if *self.phase != Phase::Receiving || offset != written {
            return Err(Refusal::Unexpected);
        }
        if let Err(error) = self.slots.write(bytes) {
            self.refuse(version, error);
            return Err(Refusal::Body);
        }
        *self.repetitions = 0;
        let written = written + bytes.len() as u32;
        if written == length {
            return Ok(self.complete(version));
        }
        Ok(match written >= self.requested {
            true => Answer::Want,
            false => Answer::Nothing,
        })
    }

    /// Verifies the file, and names the version that the device now has. Of a refused file it says
    /// nothing: it would be offered again.
    fn complete(&mut self, version: u32) -> Answer {
        if let Err(error) = self.slots.finish() {
            self.refuse(version, error);
            return Answer::Nothing;
        }
        *self.refused = None;
        *self.phase = Phase::Ready;
        Answer::Installed
    }

    /// Remembers a file that the device does not use. A failure of the flash may pass, so such a
    /// file is fetched again in the next session.
    fn refuse(&mut self, version: u32, error: DeliveryError) {
        *self.phase = Phase::Idle;
        if !matches!(error, DeliveryError::Old | DeliveryError::Flash) {
            *self.refused = Some((version, error));
        }
    }
}

impl<F, R> core::fmt::Debug for Receiver<F, R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Receiver({:?}, {:?})", self.phase, self.slots)
    }
}
