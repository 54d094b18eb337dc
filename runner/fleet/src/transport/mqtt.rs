//! MQTT 5: `mqtt:HOST:PORT[/PREFIX]`, through a broker.
//!
//! The protocol needs one stream of bytes per device. Here a stream is a pair of topics under a
//! name that the connecting side draws at random for each connection, so that topics reveal nothing
//! about devices:
//!
//! | topic | from | payload |
//! | --- | --- | --- |
//! | `PREFIX/call` | the coordinator, retained | a random name, or empty when it is gone |
//! | `PREFIX/NAME/up` | a device | frames, or empty (also the will) at the end of its connection |
//! | `PREFIX/NAME/down` | the coordinator | frames, or empty at the end of the connection |
//!
//! A message has whole frames, so a lost or repeated one costs frames and not the position in the
//! stream. Quality of service 1 repeats messages, which the protocol refuses as replays. Nothing
//! outlasts a connection to the broker (clean start): when it breaks, all its streams end, and are
//! opened again. The protocol's sessions continue, as over any other transport.
//!
//! A client with permission to publish under the prefix can end streams, and open as many as the
//! coordinator has places for, like any client that reaches a port. The broker sees sizes, times
//! and names. It can neither read nor change models and updates.

mod broker;
mod inbox;
mod listener;
mod stream;
mod topics;

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::endpoint::{Connecting, Endpoint, Listener, MQTT, Properties, Scheme, Transport};
use super::options::Options;
use broker::{Broker, Incoming, Link};
use inbox::Inbox;
use stream::{Message, Stream};
use topics::Topics;

/// Time to wait for the call of a coordinator, after subscribing to it.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Queued messages of one device for the broker, and unacknowledged ones.
const QUEUE: usize = 8;
const IN_FLIGHT: u16 = 16;

pub(super) const SCHEME: Scheme = Scheme {
    name: MQTT,
    syntax: "mqtt:HOST:PORT[/PREFIX]",
    parse: |text| Some(Arc::new(Mqtt(Topics::parse(text)?))),
    properties: Properties {
        has_broker: true,
        ..Properties::LOSSY
    },
};

/// A fleet at a broker.
#[derive(Debug)]
struct Mqtt(Topics);

impl Mqtt {
    /// Opens a stream to the calling coordinator.
    async fn open(&self, options: &Options) -> io::Result<Box<dyn Transport>> {
        let name = broker::name()?;
        let topics = &self.0;
        let (up, down, call) = (topics.up(&name), topics.down(&name), topics.call());
        let broker = Broker {
            tcp: &topics.tcp,
            login: options.login.as_deref(),
            name: &name,
            in_flight: IN_FLIGHT,
            will: (&up, false),
        };
        let mut link = broker.connect(&[&down, &call]).await?;
        let coordinator = timeout(CALL_TIMEOUT, called(&mut link, &call)).await;
        let coordinator = coordinator.map_err(|_| {
            let sentence = format!("no coordinator listens there: nothing is retained at {call}");
            io::Error::new(ErrorKind::ConnectionRefused, sentence)
        })??;
        let (sender, messages) = mpsc::channel(QUEUE);
        let inbox = Arc::new(Inbox::default());
        let stream = Stream::new(Arc::clone(&inbox), sender, up);
        tokio::spawn(async move {
            carry(&mut link, &inbox, messages, &down, &call, &coordinator).await;
            inbox.close();
        });
        Ok(Box::new(stream))
    }
}

/// Waits until a coordinator calls.
async fn called(link: &mut Link, call: &str) -> io::Result<Vec<u8>> {
    loop {
        match link.next().await? {
            Incoming { topic, payload } if topic == call.as_bytes() && !payload.is_empty() => {
                return Ok(payload);
            }
            _ => {}
        }
    }
}

/// Carries bytes between a stream and the broker, until the stream is dropped, either side ends it,
/// or the coordinator is gone.
async fn carry(
    link: &mut Link,
    inbox: &Inbox,
    mut messages: mpsc::Receiver<Message>,
    down: &str,
    call: &str,
    coordinator: &[u8],
) {
    let publisher = link.publisher();
    let send = async {
        while let Some(message) = messages.recv().await {
            if publisher.publish(message).await.is_err() {
                return;
            }
        }
    };
    let receive = async {
        while let Ok(Incoming { topic, payload }) = link.next().await {
            let is_over = match topic.as_slice() {
                topic if topic == down.as_bytes() => payload.is_empty(),
                topic if topic == call.as_bytes() => payload != coordinator,
                _ => continue,
            };
            if is_over {
                return;
            }
            if topic == down.as_bytes() {
                // A message without room is lost, and repeated by the protocol.
                inbox.push(&payload);
            }
        }
    };
    // Without a farewell, the broker publishes the will, which ends the stream at the other side.
    tokio::select! {
        () = send => {}
        () = receive => {}
    }
}

impl fmt::Display for Mqtt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Endpoint for Mqtt {
    fn leaves_this_machine(&self) -> bool {
        self.0.tcp.leaves_this_machine()
    }

    fn connect<'a>(&'a self, options: &'a Options) -> Connecting<'a> {
        Box::pin(self.open(options))
    }

    fn listen(&self, options: &Options) -> io::Result<Box<dyn Listener>> {
        Ok(Box::new(listener::Calling::start(&self.0, options)?))
    }
}
