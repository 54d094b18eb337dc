//! Transports: `serial:PATH[@BAUD]`, `tcp:HOST:PORT`, `tls:HOST:PORT`, `mqtt:HOST:PORT[/PREFIX]`,
//! `udp:HOST:PORT[/SIZE]`, `unix:PATH`.
//!
//! A transport is a file of this folder that implements [`Endpoint`], and an entry in `SCHEMES`.

#[cfg(feature = "tls")]
mod credentials;
mod endpoint;
mod files;
#[cfg(feature = "mqtt")]
mod login;
mod memory;
#[cfg(feature = "mqtt")]
mod mqtt;
mod options;
#[cfg(feature = "serial")]
mod serial;
mod tcp;
#[cfg(feature = "tls")]
mod tls;
mod udp;
mod unix;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use endpoint::{MQTT, SERIAL, Scheme, TLS};
use options::Needs;
use smolfed_data::missing_feature::MissingFeature;

pub use endpoint::{Accepted, Connecting, Endpoint, Listener, Transport};
pub use files::{OptionsError, TransportFiles};
pub(crate) use memory::pipe;
pub use options::Options;

/// All transports of this program.
const SCHEMES: &[Scheme] = &[
    #[cfg(feature = "serial")]
    serial::SCHEME,
    tcp::SCHEME,
    #[cfg(feature = "tls")]
    tls::SCHEME,
    #[cfg(feature = "mqtt")]
    mqtt::SCHEME,
    udp::SCHEME,
    unix::SCHEME,
];

/// Schemes that need a feature, with a description. Each scheme has the name of its feature.
const OPTIONAL: [(&str, &str); 3] = [
    (SERIAL, "serial lines"),
    (TLS, "TLS"),
    (MQTT, "MQTT brokers"),
];

/// Error for an unusable address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It is malformed.
    #[error("`{0}` is not an address: expected one of {forms}", forms = forms())]
    Malformed(String),
    /// This program was compiled without its transport.
    #[error("`{address}`: {missing}")]
    Missing {
        /// The address.
        address: String,
        /// The feature.
        missing: MissingFeature,
    },
}

fn forms() -> String {
    let forms: Vec<&str> = SCHEMES.iter().map(|scheme| scheme.syntax).collect();
    forms.join(", ")
}

/// Address of a device, or for devices to connect to.
#[derive(Clone, Debug)]
pub struct Address {
    scheme: &'static Scheme,
    endpoint: Arc<dyn Endpoint>,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let parse = || {
            let (name, rest) = text.split_once(':')?;
            let scheme = SCHEMES.iter().find(|scheme| scheme.name == name)?;
            let endpoint = (!rest.is_empty()).then(|| (scheme.parse)(rest))??;
            Some(Self { scheme, endpoint })
        };
        parse().ok_or_else(|| AddressError::of(text))
    }
}

impl AddressError {
    /// Returns why `text` is not an address of this program.
    fn of(text: &str) -> Self {
        let name = text.split_once(':').map(|(name, _)| name);
        let is_compiled = |name| SCHEMES.iter().any(|scheme| scheme.name == name);
        let optional = OPTIONAL.iter().find(|(scheme, _)| Some(*scheme) == name);
        match optional.filter(|(scheme, _)| !is_compiled(*scheme)) {
            None => Self::Malformed(text.to_owned()),
            Some((feature, part)) => Self::Missing {
                address: text.to_owned(),
                missing: MissingFeature { part, feature },
            },
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.scheme.name, self.endpoint)
    }
}

impl Address {
    /// Returns whether messages to this address may cross a network.
    #[must_use]
    pub fn leaves_this_machine(&self) -> bool {
        self.endpoint.leaves_this_machine()
    }

    /// Returns the kind of the address: the part before the first colon.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        self.scheme.name
    }

    /// Returns whether both sides meet at a broker, where coordinators listen and devices connect.
    #[must_use]
    pub fn has_broker(&self) -> bool {
        self.scheme.properties.has_broker
    }

    /// Returns whether connections lose nothing and carry any bytes, as helpers require.
    #[must_use]
    pub fn is_reliable(&self) -> bool {
        self.scheme.properties.is_reliable
    }

    /// Connects, within a runtime of tokio.
    ///
    /// # Errors
    /// The errors of the operating system, and of the transport's handshake.
    pub fn connect<'a>(&'a self, options: &'a Options) -> Connecting<'a> {
        self.endpoint.connect(options)
    }

    /// Describes why a connection to this address could not be made, or broke.
    #[must_use]
    pub fn why(&self, error: &std::io::Error) -> String {
        use std::io::ErrorKind::{ConnectionRefused, NotFound};
        let is_absent = matches!(error.kind(), NotFound | ConnectionRefused);
        let is_socket = self.scheme.name != SERIAL;
        match is_absent && is_socket && error.raw_os_error().is_some() {
            true => "nobody listens there yet".to_owned(),
            false => error.to_string(),
        }
    }

    /// Listens for connections, within a runtime of tokio.
    ///
    /// # Errors
    /// The errors of the operating system, and
    /// [`ErrorKind::Unsupported`](std::io::ErrorKind::Unsupported) for a serial line.
    pub fn listen(&self, options: &Options) -> std::io::Result<Box<dyn Listener>> {
        self.endpoint.listen(options)
    }
}

/// Reads the files that connections to the addresses `dial` and at the addresses `listen` need.
///
/// # Errors
/// [`OptionsError`]: a file is invalid, missing, or not needed by any address.
pub fn read_options(
    files: &TransportFiles,
    dial: &[Address],
    listen: &[Address],
) -> Result<Options, OptionsError> {
    let has_certificate = |address: &&Address| address.scheme.properties.has_certificate;
    let needs = Needs {
        certificate: listen.iter().find(has_certificate).map(Address::to_string),
        authorities: dial.iter().any(|address| has_certificate(&address)),
        login: dial.iter().chain(listen).any(Address::has_broker),
    };
    Options::read(files, &needs)
}

/// Returns the next connection of a listener.
///
/// # Errors
/// The errors of the operating system.
pub async fn accept(listener: &mut dyn Listener) -> std::io::Result<Accepted> {
    std::future::poll_fn(|context| listener.poll_accept(context)).await
}

#[cfg(test)]
#[cfg(all(feature = "mqtt", feature = "serial", feature = "tls"))]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_printed() {
        for text in [
            "serial:/dev/ttyACM0@9600",
            "tcp:[::1]:7000",
            "tls:board.local:7443",
            "tls:[::1]:7443",
            "mqtt:broker.local:1883/fleets/greenhouse",
            "udp:radio.local:1700/51",
            "unix:/run/x",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        let serial: Address = "serial:/dev/ttyACM0".parse().unwrap();
        assert_eq!(serial.to_string(), "serial:/dev/ttyACM0@115200");
        let mqtt: Address = "mqtt:broker:1883".parse().unwrap();
        assert_eq!(mqtt.to_string(), "mqtt:broker:1883/smolfed");
    }

    #[test]
    fn a_socket_without_a_listener_has_a_name() {
        let why = |address: &str, code| {
            let address: Address = address.parse().unwrap();
            address.why(&std::io::Error::from_raw_os_error(code))
        };
        // No such file.
        for address in ["unix:/run/x", "tcp:localhost:1"] {
            assert_eq!(why(address, 2), "nobody listens there yet");
        }
        assert!(why("serial:/dev/x", 2).contains("No such file"));
        assert!(why("unix:/run/x", 13).contains("Permission denied"));
    }

    #[test]
    fn addresses_of_this_machine_are_recognised() {
        for (text, leaves) in [
            ("tcp:127.0.0.1:1", false),
            ("tcp:[::1]:1", false),
            ("tcp:localhost:1", false),
            ("tcp:0.0.0.0:1", true),
            ("tcp:board.local:1", true),
            ("tls:127.0.0.1:1", false),
            ("tls:board.local:1", true),
            ("serial:/dev/ttyACM0", false),
            ("unix:/run/x", false),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.leaves_this_machine(), leaves, "{text}");
        }
    }

    #[test]
    fn helpers_need_addresses_that_lose_nothing() {
        for (text, is_reliable) in [
            ("tcp:h:1", true),
            ("tls:h:1", true),
            ("unix:/run/x", true),
            ("udp:h:1", false),
            ("mqtt:h:1", false),
            ("serial:/dev/x", false),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.is_reliable(), is_reliable, "{text}");
        }
    }

    #[test]
    fn malformed_addresses_are_refused() {
        for text in [
            "",
            "tcp",
            "tcp:",
            "tcp:host",
            "tcp:host:",
            "tcp::1",
            "tcp:host:70000",
            "tls:host",
            "tls:no name:1",
            "mqtt:host",
            "mqtt://host:1",
            "mqtt:host:1/",
            "mqtt:host:1/a//b",
            "mqtt:host:1/+",
            "mqtt:host:1/a#",
            "mqtt:host:1/$SYS",
            "unix:",
            "udp:host",
            "udp:host:1/17",
            "sctp:host:1",
            "serial:@9600",
            "serial:/dev/x@",
            "serial:/dev/x@0",
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            let expected = "expected one of serial:PATH[@BAUD], tcp:HOST:PORT, tls:HOST:PORT, \
                            mqtt:HOST:PORT[/PREFIX], udp:HOST:PORT[/SIZE], unix:PATH";
            assert!(error.contains(expected), "{error}");
        }
    }
}
