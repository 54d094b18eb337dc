//! A connection to an MQTT broker, one per process and stream: time limits, keep-alive, limits on
//! packets and queues, and the will. A broken connection is not repaired, and nothing of it is
//! kept.

use std::io::{self, ErrorKind};
use std::time::Duration;

use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{
    ConnectReturnCode, LastWill, Packet, PubAckReason, SubscribeReasonCode,
};
use rumqttc::v5::{AsyncClient, ConnectionError, Event, EventLoop, MqttOptions};
use tokio::time::timeout;

use super::super::tcp::Tcp;
use super::stream::{MAX_MESSAGE, Message};
use crate::transport::login::Login;

/// Time limit for connecting and subscribing.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Silence after which the broker is pinged. The broker publishes the will after one and a half
/// times as long.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Maximum bytes of a packet: a message, its topic and MQTT's overhead. The broker drops larger
/// packets, which are not of this protocol.
const MAX_PACKET: u32 = MAX_MESSAGE as u32 + 1024;

/// Queued messages.
const CAPACITY: usize = 64;

/// Settings for connecting to a broker.
pub(super) struct Broker<'a> {
    pub(super) tcp: &'a Tcp,
    pub(super) login: Option<&'a Login>,
    /// Client identifier. Another client with the same one would end this one's connection.
    pub(super) name: &'a str,
    /// Maximum number of unacknowledged messages. Memory is reserved for each.
    pub(super) in_flight: u16,
    /// Topic on which the broker publishes an empty message when this side is gone, and whether it
    /// is retained.
    pub(super) will: (&'a str, bool),
}

/// A connection to a broker, driven by [`Self::next`].
pub(super) struct Link {
    client: AsyncClient,
    events: EventLoop,
    /// Messages that arrived while this side subscribed.
    early: Vec<Incoming>,
}

/// A message from the broker.
pub(super) struct Incoming {
    pub(super) topic: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

/// Publishes messages while the link is driven.
pub(super) struct Publisher(AsyncClient);

impl Broker<'_> {
    /// Connects, and subscribes to `topics`.
    pub(super) async fn connect(&self, topics: &[&str]) -> io::Result<Link> {
        let opened = timeout(TIMEOUT, self.open(topics)).await;
        opened.map_err(|_| io::Error::new(ErrorKind::TimedOut, "the broker does not answer"))?
    }

    async fn open(&self, topics: &[&str]) -> io::Result<Link> {
        let (client, events) = AsyncClient::new(self.options(), CAPACITY);
        let mut link = Link {
            client,
            events,
            early: Vec::new(),
        };
        for topic in topics {
            let subscribed = link.client.subscribe(*topic, QoS::AtLeastOnce).await;
            subscribed.map_err(|_| io::Error::from(ErrorKind::BrokenPipe))?;
        }
        let mut missing = topics.len();
        while missing > 0 {
            match link.events.poll().await.map_err(sentence)? {
                Event::Incoming(Packet::SubAck(answer)) => {
                    let is_allowed = |code: &SubscribeReasonCode| {
                        matches!(code, SubscribeReasonCode::Success(_))
                    };
                    if !answer.return_codes.iter().all(is_allowed) {
                        let topics = topics.join(" and ");
                        return Err(denied(format!("subscribe to {topics}")));
                    }
                    missing -= 1;
                }
                Event::Incoming(Packet::Publish(publish)) => link.early.push(Incoming {
                    topic: publish.topic.to_vec(),
                    payload: publish.payload.to_vec(),
                }),
                _ => {}
            }
        }
        // The first one is popped first.
        link.early.reverse();
        Ok(link)
    }

    fn options(&self) -> MqttOptions {
        let text = self.tcp.to_string();
        let (host, port) = text.rsplit_once(':').unwrap_or((&text, ""));
        // The port was parsed with the address.
        let port = port.parse().unwrap_or(1883);
        let mut options = MqttOptions::new(self.name, host, port);
        let (will, is_retained) = self.will;
        options
            .set_keep_alive(KEEP_ALIVE)
            .set_clean_start(true)
            .set_max_packet_size(Some(MAX_PACKET))
            .set_outgoing_inflight_upper_limit(self.in_flight)
            .set_last_will(LastWill::new(
                will,
                Vec::new(),
                QoS::AtLeastOnce,
                is_retained,
                None,
            ));
        if let Some(login) = self.login {
            options.set_credentials(login.user.as_str(), login.password.as_str());
        }
        options
    }
}

impl Link {
    /// Returns the next message. Meanwhile sends published messages.
    ///
    /// # Errors
    /// The connection to the broker has ended.
    pub(super) async fn next(&mut self) -> io::Result<Incoming> {
        if let Some(early) = self.early.pop() {
            return Ok(early);
        }
        loop {
            match self.events.poll().await.map_err(sentence)? {
                Event::Incoming(Packet::Publish(publish)) => {
                    return Ok(Incoming {
                        topic: publish.topic.to_vec(),
                        payload: publish.payload.to_vec(),
                    });
                }
                Event::Incoming(Packet::PubAck(answer))
                    if answer.reason == PubAckReason::NotAuthorized =>
                {
                    return Err(denied("publish there".to_owned()));
                }
                Event::Incoming(Packet::Disconnect(why)) => {
                    let sentence =
                        format!("the broker ended the connection: {:?}", why.reason_code);
                    return Err(io::Error::new(ErrorKind::ConnectionAborted, sentence));
                }
                _ => {}
            }
        }
    }

    pub(super) fn publisher(&self) -> Publisher {
        Publisher(self.client.clone())
    }
}

impl Publisher {
    /// Queues a message. Waits while the queue is full.
    pub(super) async fn publish(&self, message: Message) -> io::Result<()> {
        self.send(message, false).await
    }

    /// Queues a message that the broker keeps for later subscribers.
    pub(super) async fn retain(&self, message: Message) -> io::Result<()> {
        self.send(message, true).await
    }

    async fn send(&self, message: Message, is_retained: bool) -> io::Result<()> {
        let Message { topic, payload } = message;
        let sent = self
            .0
            .publish(topic, QoS::AtLeastOnce, is_retained, payload);
        sent.await.map_err(|_| ErrorKind::BrokenPipe.into())
    }
}

/// Returns a unique name: 64 random bits.
pub(super) fn name() -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(hex::encode(bytes))
}

fn denied(what: String) -> io::Error {
    let sentence = format!("the broker does not allow this client to {what}: see its access list");
    io::Error::new(ErrorKind::PermissionDenied, sentence)
}

/// Describes why there is no connection to the broker.
fn sentence(error: ConnectionError) -> io::Error {
    match error {
        ConnectionError::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
            io::Error::new(error.kind(), "no broker listens there: connection refused")
        }
        ConnectionError::Io(error) => error,
        ConnectionError::Timeout(_) => {
            io::Error::new(ErrorKind::TimedOut, "the broker does not answer")
        }
        ConnectionError::ConnectionRefused(
            ConnectReturnCode::BadUserNamePassword | ConnectReturnCode::NotAuthorized,
        ) => io::Error::new(
            ErrorKind::PermissionDenied,
            "the broker refuses the login: `--mqtt-login FILE` has the user name and the password",
        ),
        ConnectionError::ConnectionRefused(code) => io::Error::new(
            ErrorKind::ConnectionRefused,
            format!("the broker refuses the connection: {code:?}"),
        ),
        other => io::Error::new(
            ErrorKind::InvalidData,
            format!("the connection to the broker broke: {other}"),
        ),
    }
}
