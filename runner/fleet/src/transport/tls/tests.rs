//! Certificates and an authority created for the tests.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::super::{Address, Options, TransportFiles, accept, read_options};
use super::*;

/// A folder with an authority, and its certificates.
struct Place {
    dir: TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Place {
    fn new() -> Self {
        Self::of("an authority")
    }

    /// Creates an authority of this name.
    fn of(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(params, key).unwrap();
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join("ca.pem"), authority.pem()).unwrap();
        Self { dir, authority }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes `NAME.pem` and `NAME.key` for `host`, with a change.
    fn issue(&self, name: &str, host: &str, change: impl FnOnce(&mut CertificateParams)) {
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        std::fs::write(self.path(&format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    fn certificate(&self, name: &str) -> TransportFiles {
        TransportFiles {
            tls_certificate: Some(self.path(&format!("{name}.pem"))),
            tls_key: Some(self.path(&format!("{name}.key"))),
            ..TransportFiles::default()
        }
    }

    /// Returns the options of a side that listens with a certificate.
    fn listening(&self, name: &str) -> Options {
        let listen = ["tls:127.0.0.1:0".parse().unwrap()];
        read_options(&self.certificate(name), &[], &listen).unwrap()
    }
}

/// Returns the options of a side that connects.
fn connecting(authority: &Path) -> Options {
    let files = TransportFiles {
        tls_ca: Some(authority.to_owned()),
        ..TransportFiles::default()
    };
    read_options(&files, &["tls:localhost:1".parse().unwrap()], &[]).unwrap()
}

/// Returns a free port of this machine.
async fn free() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    socket.local_addr().unwrap().port()
}

fn address(text: &str) -> Address {
    text.parse().unwrap()
}

/// Listens with the certificate `name`, and returns the byte of each connection to it.
async fn listen(options: &Options) -> u16 {
    let port = free().await;
    let mut listener = address(&format!("tls:127.0.0.1:{port}"))
        .listen(options)
        .unwrap();
    tokio::spawn(async move {
        while let Ok(accepted) = accept(&mut *listener).await {
            tokio::spawn(async move {
                let mut transport = accepted.opening.await?;
                let byte = transport.read_u8().await?;
                transport.write_u8(byte).await?;
                transport.flush().await
            });
        }
    });
    port
}

/// Sends a byte to a host and port, and receives it back.
async fn echo(to: &str, options: &Options) -> io::Result<()> {
    let mut transport = address(&format!("tls:{to}")).connect(options).await?;
    transport.write_u8(7).await?;
    transport.flush().await?;
    assert_eq!(transport.read_u8().await?, 7);
    Ok(())
}

async fn refusal(to: &str, options: &Options) -> String {
    echo(to, options).await.unwrap_err().to_string()
}

#[tokio::test]
async fn bytes_go_both_ways_though_other_handshakes_stall() {
    let place = Place::new();
    place.issue("good", "localhost", |_| {});
    let port = listen(&place.listening("good")).await;
    // Two silent connections come first.
    let _first = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let _second = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let options = connecting(&place.path("ca.pem"));
    let to = format!("localhost:{port}");
    let echoed = echo(&to, &options);
    tokio::time::timeout(HANDSHAKE_TIMEOUT, echoed)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn certificates_that_do_not_fit_are_refused_with_the_reason() {
    let place = Place::new();
    let trusted = connecting(&place.path("ca.pem"));

    for other in [Place::new(), Place::of("another authority")] {
        other.issue("foreign", "localhost", |_| {});
        let port = listen(&other.listening("foreign")).await;
        let why = refusal(&format!("localhost:{port}"), &trusted).await;
        let expected = "its certificate is signed by no authority in ";
        assert!(
            why.starts_with(expected) && why.ends_with("ca.pem"),
            "{why}"
        );
    }

    place.issue("good", "coordinator.example", |_| {});
    let port = listen(&place.listening("good")).await;
    let why = refusal(&format!("localhost:{port}"), &trusted).await;
    assert_eq!(
        why,
        "its certificate is for coordinator.example, and not for localhost"
    );
    let why = refusal(&format!("127.0.0.1:{port}"), &trusted).await;
    assert_eq!(
        why,
        "its certificate is for coordinator.example, and not for 127.0.0.1"
    );

    place.issue("old", "localhost", |params| {
        params.not_after = date_time_ymd(2020, 2, 29);
    });
    let port = listen(&place.listening("old")).await;
    let why = refusal(&format!("localhost:{port}"), &trusted).await;
    assert_eq!(why, "its certificate has expired, on 2020-02-29");

    place.issue("early", "localhost", |params| {
        params.not_before = date_time_ymd(2090, 1, 1);
    });
    let port = listen(&place.listening("early")).await;
    let why = refusal(&format!("localhost:{port}"), &trusted).await;
    assert!(
        why.starts_with("its certificate is valid from 2090-01-01 on"),
        "{why}"
    );

    place.issue("authority", "localhost", |params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    });
    let port = listen(&place.listening("authority")).await;
    let why = refusal(&format!("localhost:{port}"), &trusted).await;
    assert!(why.contains("basicConstraints=CA:FALSE"), "{why}");
}

/// Without CA:TRUE a certificate can be its own authority, as in docs/fleet.md.
#[tokio::test]
async fn a_certificate_can_be_its_own_authority() {
    let place = Place::new();
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::ExplicitNoCa;
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    std::fs::write(place.path("own.pem"), certificate.pem()).unwrap();
    std::fs::write(place.path("own.key"), key.serialize_pem()).unwrap();
    let port = listen(&place.listening("own")).await;
    let options = connecting(&place.path("own.pem"));
    echo(&format!("localhost:{port}"), &options).await.unwrap();
    let why = refusal(&format!("127.0.0.1:{port}"), &options).await;
    assert!(why.contains("and not for 127.0.0.1"), "{why}");
}

#[tokio::test]
async fn tls_and_tcp_that_meet_say_so() {
    let place = Place::new();
    place.issue("good", "localhost", |_| {});
    let options = place.listening("good");
    let port = free().await;
    let mut listener = address(&format!("tls:127.0.0.1:{port}"))
        .listen(&options)
        .unwrap();
    let mut plain = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    // A Hello.
    plain.write_all(&[0, 2, 1, 1, 5, 9, 0]).await.unwrap();
    let accepted = accept(&mut *listener).await.unwrap();
    let error = accepted.opening.await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    let why = error.to_string();
    assert!(why.contains("`--connect tls:HOST:PORT`"), "{why}");

    // A coordinator without TLS calls at once.
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = socket.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = socket.accept().await.unwrap();
        let _ = stream.write_all(&[0, 2, 1, 1, 5, 0x61, 0x2e, 3, 0]).await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let trusted = connecting(&place.path("ca.pem"));
    let why = refusal(&format!("localhost:{port}"), &trusted).await;
    assert!(why.starts_with("it does not speak TLS"), "{why}");
}

#[tokio::test]
async fn a_renewed_certificate_is_used_from_the_next_connection_on() {
    let place = Place::new();
    place.issue("site", "old.example", |_| {});
    let options = place.listening("site");
    let port = listen(&options).await;
    let to = format!("localhost:{port}");
    let trusted = connecting(&place.path("ca.pem"));
    assert!(refusal(&to, &trusted).await.contains("old.example"));

    place.issue("site", "localhost", |_| {});
    assert!(refusal(&to, &trusted).await.contains("old.example"));
    // Only half of it is replaced: the earlier certificate stays.
    let key = std::fs::read(place.path("site.key")).unwrap();
    place.issue("other", "localhost", |_| {});
    std::fs::copy(place.path("other.key"), place.path("site.key")).unwrap();
    let error = options.reload().unwrap_err().to_string();
    assert!(
        error.contains("does not belong to the certificate"),
        "{error}"
    );
    assert!(refusal(&to, &trusted).await.contains("old.example"));
    std::fs::write(place.path("site.key"), key).unwrap();
    assert!(options.reload().unwrap());
    echo(&to, &trusted).await.unwrap();
    assert!(!Options::default().reload().unwrap());
}

#[test]
fn files_that_are_wrong_are_named_with_what_would_be_right() {
    let place = Place::new();
    place.issue("good", "localhost", |_| {});
    place.issue("other", "localhost", |_| {});
    let good = std::fs::read_to_string(place.path("good.pem")).unwrap();
    let key = std::fs::read_to_string(place.path("good.key")).unwrap();
    let encrypted = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    for (name, text) in [
        ("empty", ""),
        ("cut.pem", good.get(..good.len() / 2).unwrap()),
        (
            "text.pem",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ),
        ("encrypted", &encrypted),
    ] {
        std::fs::write(place.path(name), text).unwrap();
    }
    let listen = ["tls:127.0.0.1:0".parse().unwrap()];
    for (certificate, key, expected) in [
        ("missing", "good.key", "`--tls-certificate "),
        ("empty", "good.key", "`-----BEGIN CERTIFICATE-----`"),
        ("good.key", "good.key", "`-----BEGIN CERTIFICATE-----`"),
        ("cut.pem", "good.key", "it is damaged"),
        ("text.pem", "good.key", "the first certificate is damaged"),
        ("good.pem", "missing", "`--tls-key "),
        ("good.pem", "good.pem", "`-----BEGIN PRIVATE KEY-----`"),
        ("good.pem", "encrypted", "`openssl pkey`"),
        (
            "good.pem",
            "other.key",
            "it does not belong to the certificate ",
        ),
    ] {
        let files = TransportFiles {
            tls_certificate: Some(place.path(certificate)),
            tls_key: Some(place.path(key)),
            ..TransportFiles::default()
        };
        let error = read_options(&files, &[], &listen).unwrap_err().to_string();
        assert!(error.contains(expected), "{certificate} {key}: {error}");
    }
    let dial = [address("tls:localhost:1")];
    for (ca, expected) in [
        ("missing", "cannot read it"),
        ("good.key", "`-----BEGIN CERTIFICATE-----`"),
        ("text.pem", "a certificate in it is damaged"),
    ] {
        let files = TransportFiles {
            tls_ca: Some(place.path(ca)),
            ..TransportFiles::default()
        };
        let error = read_options(&files, &dial, &[]).unwrap_err().to_string();
        assert!(
            error.contains("`--tls-ca ") && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn files_and_addresses_must_fit() {
    let place = Place::new();
    place.issue("good", "localhost", |_| {});
    let (tcp, tls) = (address("tcp:localhost:1"), address("tls:localhost:1"));
    let files = TransportFiles::default();
    let error = read_options(&files, &[], std::slice::from_ref(&tls)).unwrap_err();
    assert!(
        error.to_string().contains("give `--tls-certificate FILE`"),
        "{error}"
    );
    let files = place.certificate("good");
    let error = read_options(&files, &[tls], std::slice::from_ref(&tcp)).unwrap_err();
    assert!(
        error.to_string().contains("no `--listen tls:HOST:PORT`"),
        "{error}"
    );
    let files = TransportFiles {
        tls_ca: Some(place.path("ca.pem")),
        ..TransportFiles::default()
    };
    let error = read_options(&files, &[tcp], &[]).unwrap_err();
    assert!(error.to_string().contains("`--tls-ca`"), "{error}");
}
