//! The coordinator's side over MQTT: one connection to the broker, which reconnects when it breaks,
//! and a stream for each active name, with limits on queues.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::super::endpoint::{Accepted, Listener};
use super::super::options::Options;
use super::broker::{Broker, Incoming, Link, Publisher, name};
use super::inbox::Inbox;
use super::stream::{Message, Stream};
use super::topics::Topics;
use crate::backoff::BackOff;
use crate::transport::login::Login;

/// Maximum number of streams not accepted yet. Messages that would open more are lost.
const BACKLOG: usize = 1024;

/// Queued messages of all streams for the broker.
const QUEUE: usize = 1024;

/// Maximum number of unacknowledged messages. Brokers may allow fewer.
const IN_FLIGHT: u16 = 1024;

/// Number of opened names after which ended ones are forgotten.
const SWEEP_AFTER: usize = 1024;

/// A calling coordinator, which accepts the streams of devices.
pub(super) struct Calling {
    accepted: mpsc::Receiver<Accepted>,
    task: AbortHandle,
}

impl Calling {
    /// Connects to the broker, and again whenever that connection breaks.
    pub(super) fn start(topics: &Topics, options: &Options) -> io::Result<Self> {
        let (opened, accepted) = mpsc::channel(BACKLOG);
        let side = Side {
            topics: topics.clone(),
            login: options.login.clone(),
            name: name()?,
            opened,
        };
        let task = tokio::spawn(side.run()).abort_handle();
        Ok(Self { accepted, task })
    }
}

impl Listener for Calling {
    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        let accepted = ready!(self.accepted.poll_recv(context));
        Poll::Ready(accepted.ok_or_else(|| io::ErrorKind::BrokenPipe.into()))
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        // Without a farewell, so that the will withdraws the call.
        self.task.abort();
    }
}

/// The coordinator's side of the broker.
struct Side {
    topics: Topics,
    login: Option<Arc<Login>>,
    /// The same for all connections of this process. The broker ends the earlier one, and publishes
    /// its will, before it answers the next one, which then calls. Under another name the will
    /// could come later and withdraw the new call.
    name: String,
    opened: mpsc::Sender<Accepted>,
}

impl Side {
    async fn run(self) {
        let (mut back_off, mut is_reported) = (BackOff::new(), false);
        let address = format!("mqtt:{}", self.topics);
        while !self.opened.is_closed() {
            let (call, streams) = (self.topics.call(), self.topics.all_up());
            let broker = Broker {
                tcp: &self.topics.tcp,
                login: self.login.as_deref(),
                name: &self.name,
                in_flight: IN_FLIGHT,
                will: (&call, true),
            };
            let error = match broker.connect(&[&call, &streams]).await {
                Ok(mut link) => {
                    tracing::info!(reason = "connected", %address, "{address}: connected");
                    (back_off, is_reported) = (BackOff::new(), false);
                    self.call(&mut link).await
                }
                Err(error) => error,
            };
            if !is_reported {
                tracing::warn!(reason = "not connected", %address, "{address}: {error}; retrying");
                is_reported = true;
            }
            sleep(back_off.next_pause()).await;
        }
    }

    /// Calls, and serves streams until the connection to the broker breaks, which ends them all.
    async fn call(&self, link: &mut Link) -> io::Error {
        let own = match name() {
            Ok(own) => own,
            Err(error) => return error,
        };
        let publisher = link.publisher();
        let (sender, messages) = mpsc::channel(QUEUE);
        let again = tokio::sync::Notify::new();
        again.notify_one();
        let mut streams = Streams::new(&self.topics, &self.opened, sender);
        let send = forward(&publisher, messages);
        let call = async {
            loop {
                again.notified().await;
                let (topic, payload) = (self.topics.call(), own.clone().into_bytes());
                if let Err(error) = publisher.retain(Message { topic, payload }).await {
                    return error;
                }
            }
        };
        let receive = async {
            loop {
                match link.next().await {
                    Ok(message) if message.topic == self.topics.call().as_bytes() => {
                        self.heard(&message.payload, own.as_bytes(), &again);
                    }
                    Ok(message) => streams.receive(&message),
                    Err(error) => return error,
                }
            }
        };
        let error = tokio::select! {
            error = receive => error,
            error = send => error,
            error = call => error,
        };
        streams.close();
        error
    }

    /// Handles a call: a withdrawal of ours, or another coordinator's.
    fn heard(&self, call: &[u8], own: &[u8], again: &tokio::sync::Notify) {
        if call.is_empty() {
            // The will of an earlier process, which the broker has just given up.
            again.notify_one();
        } else if call != own {
            tracing::warn!(
                reason = "another call",
                "mqtt:{}: another coordinator uses this address: each fleet needs its own prefix, \
                 as in mqtt:HOST:PORT/PREFIX",
                self.topics
            );
        }
    }
}

/// Publishes the messages of streams.
async fn forward(publisher: &Publisher, mut messages: mpsc::Receiver<Message>) -> io::Error {
    while let Some(message) = messages.recv().await {
        if let Err(error) = publisher.publish(message).await {
            return error;
        }
    }
    io::ErrorKind::BrokenPipe.into()
}

/// The streams of a connection to the broker, by name.
struct Streams<'a> {
    topics: &'a Topics,
    opened: &'a mpsc::Sender<Accepted>,
    sender: mpsc::Sender<Message>,
    /// The stream itself belongs to its task, and ends with it.
    known: HashMap<String, Weak<Inbox>>,
    sweep_at: usize,
}

impl<'a> Streams<'a> {
    fn new(
        topics: &'a Topics,
        opened: &'a mpsc::Sender<Accepted>,
        sender: mpsc::Sender<Message>,
    ) -> Self {
        Self {
            topics,
            opened,
            sender,
            known: HashMap::new(),
            sweep_at: SWEEP_AFTER,
        }
    }

    /// Passes a message to its stream, and opens the stream if necessary.
    fn receive(&mut self, message: &Incoming) {
        let Some(name) = self.topics.name_of(&message.topic) else {
            return;
        };
        let inbox = self.known.get(name).and_then(Weak::upgrade);
        let inbox = inbox.filter(|inbox| !inbox.is_closed());
        match (inbox, message.payload.as_slice()) {
            (Some(inbox), []) => {
                inbox.close();
                self.known.remove(name);
            }
            // A message without room is lost, and repeated by the protocol.
            (Some(inbox), bytes) => inbox.push(bytes),
            (None, []) => {}
            (None, bytes) => {
                let name = name.to_owned();
                self.open(name, bytes);
            }
        }
    }

    fn open(&mut self, name: String, bytes: &[u8]) {
        // Forget the names of ended streams.
        if self.known.len() >= self.sweep_at {
            self.known.retain(|_, inbox| inbox.strong_count() > 0);
            self.sweep_at = SWEEP_AFTER.max(2 * self.known.len());
        }
        let Ok(place) = self.opened.try_reserve() else {
            return;
        };
        let inbox = Arc::new(Inbox::default());
        inbox.push(bytes);
        let topic = self.topics.down(&name);
        let stream = Stream::new(Arc::clone(&inbox), self.sender.clone(), topic);
        self.known.insert(name, Arc::downgrade(&inbox));
        // Brokers do not reveal the addresses of clients.
        place.send(Accepted::open(stream, None));
    }

    /// Ends all streams.
    fn close(&mut self) {
        for (_, inbox) in self.known.drain() {
            if let Some(inbox) = inbox.upgrade() {
                inbox.close();
            }
        }
    }
}
