//! `/metrics` and `/healthz` of a helper. All figures are public: none depends on which devices
//! take part.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::registry::Registry;

use super::server::Server;
use super::service::Tally;
use crate::helper_link::message::HelperState;
use crate::lock::lock;
use crate::watch::metrics::{CONTENT_TYPE, by_reason, counter, encoded, gauge};

/// Returns the routes of a helper.
pub fn routes(server: Arc<Server>) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/metrics", get(prometheus))
        .with_state(server)
}

async fn prometheus(State(server): State<Arc<Server>>) -> Response {
    // An answer locks the service for seconds, so others must not wait on the event loop.
    let text = tokio::task::block_in_place(|| {
        let (state, tally) = {
            let service = lock(server.service());
            (service.state(), service.tally().clone())
        };
        text(&state, &tally, server.is_connected())
    });
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response()
}

/// Returns the figures in Prometheus's text format.
#[rustfmt::skip]
pub(crate) fn text(state: &HelperState, tally: &Tally, is_connected: bool) -> String {
    let connected = f64::from(u8::from(is_connected));
    let mut metrics = Registry::with_prefix("smolfed_helper");
    for (name, help, value) in [
        ("connected", "1 while a coordinator is connected", Some(connected)),
        ("devices", "Devices with mask keys", Some(state.devices.into())),
        ("rounds_left", "Rounds that can still be answered", Some(state.rounds_left.into())),
        ("last_round", "The last answered round", state.last.map(f64::from)),
    ] {
        gauge(&mut metrics, name, help, value);
    }
    for (name, help, value) in [
        ("answers", "Recorded answers", tally.answered),
        ("answers_repeated", "Repeated answers", tally.repeated),
        ("answers_unrecorded", "Answers neither recorded nor given", tally.failed),
    ] {
        counter(&mut metrics, name, help, value);
    }
    let refused = tally.refused.iter().map(|(reason, count)| (reason, *count));
    by_reason(&mut metrics, "refusals", "Refused questions", refused);
    encoded(&metrics)
}
