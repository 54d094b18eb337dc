//! Filtering of requests by host, and the headers of every answer.
//!
//! A page of another site must not read these answers in an operator's browser: no header allows
//! other origins, and the requested `Host` must be the listening address, so that a name pointed
//! here by an attacker (DNS rebinding) is refused.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{StatusCode, Uri, uri::Authority};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// The accepted hosts.
#[derive(Debug)]
pub struct Hosts {
    port: u16,
    /// The listening address.
    ip: IpAddr,
    names: Vec<String>,
}

impl Hosts {
    /// Returns the hosts of an address, and additional names.
    #[must_use]
    pub const fn new(address: SocketAddr, names: Vec<String>) -> Self {
        Self {
            port: address.port(),
            ip: address.ip(),
            names,
        }
    }

    /// Returns whether the request is for the listening address or an allowed name.
    fn is_host(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return false;
        };
        let authority = host.to_str().ok().map(str::parse::<Authority>);
        let Some(Ok(host)) = authority else {
            return false;
        };
        // A host in the request line overrides the header (RFC 9112, section 3.2.2).
        self.allows(&host) && uri.authority().is_none_or(|asked| self.allows(asked))
    }

    fn allows(&self, authority: &Authority) -> bool {
        let name = authority.host();
        if self
            .names
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(name))
        {
            return true;
        }
        if authority.port_u16().unwrap_or(80) != self.port {
            return false;
        }
        if name.eq_ignore_ascii_case("localhost") {
            return self.ip.is_loopback();
        }
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let Ok(ip) = name.parse::<IpAddr>() else {
            return false;
        };
        // Listening on all addresses: no name can be rebound to a number.
        ip == self.ip || self.ip.is_unspecified()
    }
}

/// Returns an answer that consists of a sentence.
#[must_use]
pub fn refusal(status: StatusCode, sentence: &'static str) -> Response {
    (status, format!("{sentence}\n")).into_response()
}

/// Refuses requests for other hosts, and adds the headers of every answer.
pub async fn guard(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    let mut response = match hosts.is_host(request.headers(), request.uri()) {
        true => next.run(request).await,
        false => {
            tracing::warn!(
                reason = "http host",
                "a request for another host was refused"
            );
            refusal(
                StatusCode::MISDIRECTED_REQUEST,
                "the page is served under its own address only; `--http-name` allows another name",
            )
        }
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(policy);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(address: &str, names: &[&str]) -> Hosts {
        let names = names.iter().map(|name| (*name).to_owned());
        Hosts::new(address.parse().unwrap(), names.collect())
    }

    fn asked(hosts: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
        }
        headers
    }

    fn is_served(hosts: &Hosts, headers: &HeaderMap) -> bool {
        hosts.is_host(headers, &Uri::from_static("/metrics"))
    }

    #[test]
    fn a_request_line_may_name_no_other_host() {
        let (hosts, headers) = (hosts("127.0.0.1:8080", &[]), asked(&["127.0.0.1:8080"]));
        for (uri, is_served) in [
            ("http://127.0.0.1:8080/metrics", true),
            ("http://evil.example:8080/metrics", false),
        ] {
            let uri = Uri::from_static(uri);
            assert_eq!(hosts.is_host(&headers, &uri), is_served, "{uri}");
        }
    }

    #[test]
    fn only_the_address_itself_is_served() {
        let loopback = hosts("127.0.0.1:8080", &["fleet.example.org"]);
        for host in [
            "127.0.0.1:8080",
            "localhost:8080",
            "LOCALHOST:8080",
            "fleet.example.org",
        ] {
            assert!(is_served(&loopback, &asked(&[host])), "{host}");
        }
        for host in [
            "evil.example:8080",
            "127.0.0.1",
            "127.0.0.1:8081",
            "127.0.0.1:8080.evil.example",
            "localhost.evil.example:8080",
            "10.0.0.1:8080",
            "[::1]:8080",
            "",
            "\"",
        ] {
            assert!(!is_served(&loopback, &asked(&[host])), "{host}");
        }
        assert!(!is_served(&loopback, &asked(&[])));
        let two = ["127.0.0.1:8080", "evil.example:8080"];
        assert!(!is_served(&loopback, &asked(&two)));

        let everywhere = hosts("0.0.0.0:80", &[]);
        assert!(is_served(&everywhere, &asked(&["192.168.1.7"])));
        assert!(is_served(&everywhere, &asked(&["192.168.1.7:80"])));
        assert!(!is_served(&everywhere, &asked(&["evil.example"])));
        assert!(!is_served(&everywhere, &asked(&["localhost"])));
        let six = hosts("[::1]:8080", &[]);
        assert!(is_served(&six, &asked(&["[::1]:8080"])));
    }
}
