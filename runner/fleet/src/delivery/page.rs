//! The figures of the service as a page, as JSON and for Prometheus. They count devices, and name
//! none.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::figures::{Snapshot, VersionFigures};
use super::service::DeliveryService;
use crate::watch::guarded;
use crate::watch::metrics::{CONTENT_TYPE, counter, encoded, gauge};

/// The page around its table. It loads itself again every five seconds.
const PAGE: &str = include_str!("page.html");

/// Returns the routes of a service.
pub(super) fn routes(service: Arc<DeliveryService>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/healthz", get(async || "ok\n"))
        .route("/models.json", get(json))
        .route("/metrics", get(prometheus))
        .with_state(service)
}

async fn page(State(service): State<Arc<DeliveryService>>) -> Response {
    guarded(&html(&service.snapshot()))
}

async fn json(State(service): State<Arc<DeliveryService>>) -> Response {
    let text = serde_json::to_string(&service.snapshot()).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

async fn prometheus(State(service): State<Arc<DeliveryService>>) -> Response {
    let text = text(&service.snapshot());
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response()
}

/// Returns the page.
pub(super) fn html(snapshot: &Snapshot) -> String {
    let mut rows = String::new();
    for figures in &snapshot.versions {
        let VersionFigures {
            version,
            percent,
            devices,
        } = figures;
        let share = match percent {
            0.0 => "earlier".to_owned(),
            percent => format!("{percent} %"),
        };
        let cells = [
            version.number.to_string(),
            share,
            devices.to_string(),
            version.answer_words().join("; "),
            version.privacy_words(),
            version.source_words(),
            version.published.clone(),
        ];
        let cells = cells.map(|cell| format!("<td>{}</td>", escaped(&cell)));
        // Writing to a string does not fail.
        let _ = writeln!(rows, "<tr>{}</tr>", cells.concat());
    }
    let summary = format!(
        "{} of {} devices have been in contact, {} are connected, and {} have no model.",
        snapshot.seen, snapshot.devices, snapshot.connected, snapshot.without_model
    );
    PAGE.replace("{{summary}}", &summary)
        .replace("{{rows}}", &rows)
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            c => safe.push(c),
        }
    }
    safe
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Numbered {
    version: u32,
}

/// Returns the figures in Prometheus's text format.
#[rustfmt::skip]
pub(super) fn text(snapshot: &Snapshot) -> String {
    let mut metrics = Registry::with_prefix("smolfed_delivery");
    for (name, help, value) in [
        ("devices", "Devices with keys", snapshot.devices),
        ("devices_seen", "Devices that have been in contact", snapshot.seen),
        ("devices_connected", "Devices with a session", snapshot.connected),
        ("devices_without_model", "Devices that named no model", snapshot.without_model),
    ] {
        gauge(&mut metrics, name, help, Some(value as f64));
    }
    let holders = Family::<Numbered, Gauge>::default();
    let shares = Family::<Numbered, Gauge<f64, std::sync::atomic::AtomicU64>>::default();
    for figures in &snapshot.versions {
        let number = Numbered { version: figures.version.number };
        holders.get_or_create(&number).set(i64::try_from(figures.devices).unwrap_or(i64::MAX));
        shares.get_or_create(&number).set(figures.percent / 100.0);
    }
    metrics.register("version_devices", "Devices that have named this version last", holders);
    metrics.register("version_share", "Share of the devices that get this version", shares);
    for (name, help, value) in [
        ("files", "Versions that devices have installed and confirmed", snapshot.files),
        ("file_bytes", "Bytes of model files that were sent", snapshot.bytes),
        ("devices_refused", "Refusals for another model or other features", snapshot.refused),
        ("frames_refused", "Skipped frames", snapshot.refusals),
    ] {
        counter(&mut metrics, name, help, value);
    }
    encoded(&metrics)
}
