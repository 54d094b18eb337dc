//! `--http`: the live page, its events, metrics and health, over HTTP/1.1.
//!
//! | path | content | access |
//! | --- | --- | --- |
//! | `/` | the page, without figures | anyone |
//! | `/healthz` | whether the event loop answers, and the round progresses | anyone |
//! | `/metrics` | figures for Prometheus | anyone, but participation only with the token |
//! | `/events` | the same as server-sent events | as `/metrics` |
//! | `/devices` | devices by number | with the token |
//!
//! [`hosts`](super::hosts) decides which requests are answered at all.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::middleware;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::events;
use super::figures_cache::FiguresCache;
use super::hosts::{Hosts, guard, refusal};
use super::limited_listener::LimitedListener;
use super::metrics;
use super::settings::{HttpError, HttpSettings};
use super::token::Token;
use crate::monitor::Access;
use crate::service::Service;
use crate::status::Table;

/// The page. Its only style sheet and script have a nonce in each answer.
const PAGE: &str = include_str!("page.html");
const NONCE: &str = "{{nonce}}";

/// The bound server, before it serves the page.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    settings: HttpSettings,
}

/// Shared state of requests.
#[derive(Debug)]
struct Shared {
    cache: Arc<FiguresCache>,
    token: Option<Token>,
    streams: Arc<tokio::sync::Semaphore>,
}

/// Maximum number of simultaneous event streams.
const MAX_STREAMS: usize = 16;

impl HttpServer {
    /// Binds the address.
    ///
    /// # Errors
    /// [`HttpError`].
    pub fn bind(settings: HttpSettings) -> Result<Self, HttpError> {
        let address = settings.address;
        let is_open = settings.token.is_none() && !settings.is_public;
        if !address.ip().is_loopback() && is_open {
            return Err(HttpError::Open(address));
        }
        let bind = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        match bind() {
            Ok((address, listener)) => Ok(Self {
                listener,
                address,
                settings,
            }),
            Err(source) => Err(HttpError::Listen { address, source }),
        }
    }

    /// Returns the address on which it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves the figures of a coordinator, until its event loop ends.
    pub async fn serve(mut self, service: Arc<Service>) {
        let shared = Arc::new(Shared {
            cache: Arc::new(FiguresCache::new(service)),
            token: self.settings.token.take(),
            streams: Arc::new(tokio::sync::Semaphore::new(MAX_STREAMS)),
        });
        self.serve_routes(router(shared)).await;
    }

    /// Serves these routes, until the event loop ends.
    pub async fn serve_routes(self, routes: Router) {
        let hosts = Arc::new(Hosts::new(self.address, self.settings.names));
        let routes = routes
            .fallback(async || refusal(StatusCode::NOT_FOUND, "there is nothing here"))
            .layer(middleware::from_fn_with_state(hosts, guard));
        let listener = match tokio::net::TcpListener::from_std(self.listener) {
            Ok(listener) => LimitedListener::new(listener),
            Err(error) => {
                tracing::error!(reason = "http", "the live page cannot be served: {error}");
                return;
            }
        };
        let never_ends = axum::serve(listener, routes).await;
        if let Err(error) = never_ends {
            tracing::error!(
                reason = "http",
                "the live page is no longer served: {error}"
            );
        }
    }
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/healthz", get(health))
        .route("/metrics", get(prometheus))
        .route("/events", get(stream))
        .route("/devices", get(devices))
        .with_state(shared)
}

impl Shared {
    /// Returns the access of the client.
    ///
    /// # Errors
    /// The reason why the request is not authorised.
    fn access(&self, headers: &HeaderMap) -> Result<Access, &'static str> {
        let Some(given) = headers.get(header::AUTHORIZATION) else {
            return Ok(Access::Public);
        };
        let token = match given.as_bytes().split_at_checked(7) {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => token,
            _ => return Err("expected `Authorization: Bearer TOKEN`"),
        };
        match &self.token {
            Some(right) if right.is(token) => Ok(Access::Operator),
            Some(_) => {
                tracing::warn!(reason = "http token", "a request had a wrong token");
                Err("the token is wrong")
            }
            None => Err("this coordinator has no token: start it with `--http-token-file FILE`"),
        }
    }
}

fn unauthorized(sentence: &'static str) -> Response {
    let mut response = refusal(StatusCode::UNAUTHORIZED, sentence);
    let scheme = HeaderValue::from_static("Bearer");
    let headers = response.headers_mut();
    headers.insert(header::WWW_AUTHENTICATE, scheme);
    response
}

async fn health(State(shared): State<Arc<Shared>>) -> Response {
    let monitor = shared.cache.service().monitor();
    health_of(monitor.is_stuck(Instant::now()))
}

fn health_of(is_stuck: bool) -> Response {
    match is_stuck {
        false => "ok\n".into_response(),
        true => refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            "the round in progress is stuck: it has not looked at its devices for a minute",
        ),
    }
}

async fn page() -> Response {
    guarded(PAGE)
}

/// Returns a page whose only style sheet and script have a nonce.
pub(crate) fn guarded(page: &str) -> Response {
    let mut random = [0; 18];
    if getrandom::fill(&mut random).is_err() {
        return refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the system has no randomness",
        );
    }
    let nonce = STANDARD.encode(random);
    // The icon of the page is an empty data URI. Without it browsers request one.
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    let page = Html(page.replace(NONCE, &nonce));
    ([(header::CONTENT_SECURITY_POLICY, policy)], page).into_response()
}

async fn prometheus(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let access = match shared.access(&headers) {
        Ok(access) => access,
        Err(reason) => return unauthorized(reason),
    };
    let figures = shared.cache.figures(access);
    let content = [(header::CONTENT_TYPE, metrics::CONTENT_TYPE)];
    (content, metrics::text(&figures)).into_response()
}

async fn stream(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let access = match shared.access(&headers) {
        Ok(access) => access,
        Err(reason) => return unauthorized(reason),
    };
    match Arc::clone(&shared.streams).try_acquire_owned() {
        Ok(permit) => events::stream(Arc::clone(&shared.cache), access, permit).into_response(),
        Err(_) => refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many pages are open: close one",
        ),
    }
}

async fn devices(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    match shared.access(&headers) {
        Ok(Access::Operator) => {
            let text =
                serde_json::to_string(&Table::new(shared.cache.service())).unwrap_or_default();
            ([(header::CONTENT_TYPE, "application/json")], text).into_response()
        }
        Ok(Access::Public) => unauthorized("devices are shown with the token only"),
        Err(reason) => unauthorized(reason),
    }
}

#[cfg(test)]
mod tests;
