//! Releases of devices besides their updates that belong to the claim about updates: bits of
//! adaptive clipping, moments, answers and scores. A new channel needs one file and one line here.

pub mod answers;
pub mod bit;
pub mod moments;
pub mod score;

use super::channel::Channel;
use super::target::Target;

/// Returns the channels that belong to the claim about updates.
#[must_use]
pub fn of_updates<'a>(target: &'a Target<'a>) -> Vec<Box<dyn Channel + 'a>> {
    let mut channels: Vec<Box<dyn Channel + 'a>> = Vec::new();
    channels.extend(bit::Bit::from_target(target).map(|channel| Box::new(channel) as _));
    channels.extend(moments::Moments::from_target(target).map(|channel| Box::new(channel) as _));
    channels.extend(answers::Answers::from_target(target).map(|channel| Box::new(channel) as _));
    channels.extend(score::Score::from_target(target).map(|channel| Box::new(channel) as _));
    channels
}
