//! `/events`: the figures as server-sent events, once per second if they have changed.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{Stream, unfold};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::figures_cache::FiguresCache;
use crate::monitor::Access;
use crate::monitor::answers::Answers;

/// Interval between figures.
const INTERVAL: Duration = Duration::from_secs(1);

/// A stream to one page.
struct ToPage {
    cache: Arc<FiguresCache>,
    access: Access,
    ticks: Interval,
    /// Whether the curve was sent.
    has_history: bool,
    /// The last sent answers.
    sent_answers: Answers,
    /// The last sent figures.
    sent: String,
    _permit: OwnedSemaphorePermit,
}

/// Streams the curve so far, then answers and figures.
pub(super) fn stream(
    cache: Arc<FiguresCache>,
    access: Access,
    permit: OwnedSemaphorePermit,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let page = ToPage {
        cache,
        access,
        ticks,
        has_history: false,
        sent_answers: Answers::default(),
        sent: String::new(),
        _permit: permit,
    };
    let events = unfold(page, async |mut page| {
        let event = page.next().await;
        Some((Ok(event), page))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(10)))
}

impl ToPage {
    async fn next(&mut self) -> Event {
        if !self.has_history {
            self.has_history = true;
            return event(
                "history",
                &to_json(&self.cache.service().monitor().history()),
            );
        }
        loop {
            // They are long, and change only after some rounds.
            let answers = self.cache.service().monitor().answers(self.access);
            if answers != self.sent_answers {
                let event = event("answers", &to_json(&answers));
                self.sent_answers = answers;
                return event;
            }
            self.ticks.tick().await;
            let figures = self.cache.figures(self.access);
            let text = to_json(&figures);
            if text != self.sent {
                let event = event("figures", &text);
                self.sent = text;
                return event;
            }
        }
    }
}

fn event(kind: &str, json: &str) -> Event {
    Event::default().event(kind).data(json)
}

/// Serializes without errors: only numbers and sentences.
fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
