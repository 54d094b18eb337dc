//! Sockets in the file system: `unix:PATH`, with the replacement of a stale socket of an earlier
//! process.

use std::fmt;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::net::{UnixListener, UnixStream};

use super::endpoint::{Accepted, Connecting, Endpoint, Listener, Properties, Scheme, Transport};
use super::options::Options;

pub(super) const SCHEME: Scheme = Scheme {
    name: "unix",
    syntax: "unix:PATH",
    parse: |text| Some(Arc::new(Unix(text.into()))),
    properties: Properties::STREAM,
};

#[derive(Debug)]
struct Unix(PathBuf);

impl fmt::Display for Unix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.display())
    }
}

impl Endpoint for Unix {
    fn leaves_this_machine(&self) -> bool {
        false
    }

    fn connect<'a>(&'a self, _: &'a Options) -> Connecting<'a> {
        Box::pin(async {
            let stream = UnixStream::connect(&self.0).await?;
            Ok(Box::new(stream) as Box<dyn Transport>)
        })
    }

    /// Listens. Replaces a stale socket of an earlier process.
    fn listen(&self, _: &Options) -> io::Result<Box<dyn Listener>> {
        let path = &self.0;
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && is_stale(path) => {
                std::fs::remove_file(path)?;
                UnixListener::bind(path)?
            }
            other => other?,
        };
        Ok(Box::new(Socket {
            listener,
            path: path.clone(),
        }))
    }
}

/// A listening socket, whose file is removed on drop.
struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Listener for Socket {
    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        let (stream, _) = ready!(self.listener.poll_accept(context))?;
        Poll::Ready(Ok(Accepted::open(stream, None)))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if is_socket(&self.path) {
            // A failure is harmless: the next process replaces a stale socket.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Returns whether the file is a socket without a listener. Other files are never removed.
fn is_stale(path: &Path) -> bool {
    let refused = |error: io::Error| error.kind() == ErrorKind::ConnectionRefused;
    is_socket(path) && std::os::unix::net::UnixStream::connect(path).is_err_and(refused)
}

fn is_socket(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_no_other_file_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let (endpoint, options) = (Unix(path.clone()), Options::default());
        std::fs::write(&path, "keys").unwrap();
        assert!(endpoint.listen(&options).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"keys");
        std::fs::remove_file(&path).unwrap();

        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "stale");
        let listener = endpoint.listen(&options).unwrap();
        assert!(endpoint.listen(&options).is_err(), "in use");
        // Another file that has replaced it stays as well.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "keys").unwrap();
        drop(listener);
        assert_eq!(std::fs::read(&path).unwrap(), b"keys");
    }
}
