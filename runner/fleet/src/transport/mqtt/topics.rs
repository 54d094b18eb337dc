//! The address of an MQTT broker, and the topics of a fleet: the prefix with its default, and
//! limits on names.

use std::fmt;
use std::sync::Arc;

use super::super::tcp::Tcp;

/// Default prefix of the topics.
const PREFIX: &str = "smolfed";

/// Length limits.
const MAX_PREFIX: usize = 200;
const MAX_NAME: usize = 64;

/// A broker, and the prefix of a fleet's topics.
#[derive(Clone, Debug)]
pub(super) struct Topics {
    pub(super) tcp: Arc<Tcp>,
    prefix: String,
}

impl Topics {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (broker, prefix) = text.split_once('/').unwrap_or((text, PREFIX));
        let is_plain = |c: char| !c.is_control() && !matches!(c, '+' | '#' | ' ');
        let is_prefix = (1..=MAX_PREFIX).contains(&prefix.len())
            && prefix.chars().all(is_plain)
            && !prefix.starts_with('$')
            && prefix.split('/').all(|level| !level.is_empty());
        Some(Self {
            tcp: Arc::new(Tcp::parse(broker)?),
            prefix: is_prefix.then(|| prefix.to_owned())?,
        })
    }

    /// Returns the topic on which the coordinator announces itself.
    pub(super) fn call(&self) -> String {
        format!("{}/call", self.prefix)
    }

    pub(super) fn up(&self, name: &str) -> String {
        format!("{}/{name}/up", self.prefix)
    }

    pub(super) fn down(&self, name: &str) -> String {
        format!("{}/{name}/down", self.prefix)
    }

    /// Returns the topics of all devices' messages.
    pub(super) fn all_up(&self) -> String {
        self.up("+")
    }

    /// Returns `NAME` of `PREFIX/NAME/up`. Names longer than the ones that devices draw are
    /// ignored.
    pub(super) fn name_of<'t>(&self, topic: &'t [u8]) -> Option<&'t str> {
        let topic = std::str::from_utf8(topic).ok()?;
        let name = topic.strip_prefix(self.prefix.as_str())?;
        let name = name.strip_prefix('/')?.strip_suffix("/up");
        name.filter(|name| name.len() <= MAX_NAME)
    }
}

impl fmt::Display for Topics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tcp, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_topics_of_the_fleet_only() {
        let topics = Topics::parse("broker:1883/fleets/one").unwrap();
        let up = topics.up("0123");
        assert_eq!(up, "fleets/one/0123/up");
        assert_eq!(topics.name_of(up.as_bytes()), Some("0123"));
        let long = topics.up(&"0".repeat(MAX_NAME + 1));
        for topic in [
            "fleets/two/0123/up",
            "fleets/one/0123/down",
            "fleets/one/up",
            &long,
        ] {
            assert_eq!(topics.name_of(topic.as_bytes()), None, "{topic}");
        }
        assert_eq!(topics.name_of(&[0xff]), None);
    }
}
