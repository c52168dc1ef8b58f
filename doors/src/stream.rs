//! One connection: the bytes, over TLS or not, and what the door knows of it.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use crate::caller::Caller;
use crate::door::Doors;

/// What the door knows of a connection. It is in the extensions of every request that came over it.
#[derive(Clone)]
pub struct Visit(Arc<Known>);

struct Known {
    peer: SocketAddr,
    certificate: OnceLock<Caller>,
    /// Whether it has made a call, and whether one that was let through.
    called: AtomicBool,
    trusted: AtomicBool,
    calls: AtomicUsize,
    /// Since when it makes no call.
    quiet: Mutex<Instant>,
}

impl Visit {
    /// Somebody has connected.
    pub(crate) fn new(peer: SocketAddr) -> Visit {
        Visit(Arc::new(Known {
            peer,
            certificate: OnceLock::new(),
            called: AtomicBool::new(false),
            trusted: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            quiet: Mutex::new(Instant::now()),
        }))
    }

    /// Where it comes from.
    pub fn peer(&self) -> SocketAddr {
        self.0.peer
    }

    /// It showed a certificate.
    pub(crate) fn set_certificate(&self, caller: Caller) {
        let _ = self.0.certificate.set(caller);
    }

    /// Who it is by its certificate.
    pub(crate) fn certificate(&self) -> Option<&Caller> {
        self.0.certificate.get()
    }

    /// It makes a call, which lasts as long as what is returned.
    pub(crate) fn call(&self) -> OpenCall {
        self.0.called.store(true, Ordering::Relaxed);
        self.0.calls.fetch_add(1, Ordering::Relaxed);
        OpenCall(self.clone())
    }

    /// A call of it was let through.
    pub(crate) fn trust(&self) {
        self.0.trusted.store(true, Ordering::Relaxed);
    }

    /// Whether a call of it was ever let through.
    pub(crate) fn is_trusted(&self) -> bool {
        self.0.trusted.load(Ordering::Relaxed)
    }

    /// Whether it has ever made a call.
    pub(crate) fn has_called(&self) -> bool {
        self.0.called.load(Ordering::Relaxed)
    }

    /// How long it has made no call; nothing while it makes one.
    pub(crate) fn quiet(&self) -> Option<Duration> {
        let busy = self.0.calls.load(Ordering::Relaxed) > 0;
        (!busy).then(|| self.0.quiet.lock().unwrap_or_else(PoisonError::into_inner).elapsed())
    }
}

/// A call that is under way.
pub(crate) struct OpenCall(Visit);

impl Drop for OpenCall {
    fn drop(&mut self) {
        *self.0.0.quiet.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A place inside the door, which is free again when this is dropped.
pub(crate) struct Place {
    pub(crate) doors: Arc<Doors>,
    pub(crate) number: u64,
    pub(crate) visit: Visit,
    /// Ready when the connection must go.
    pub(crate) closing: oneshot::Receiver<()>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.doors.leave(self.number);
    }
}

enum Bytes {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

/// A connection that is served.
pub struct Guest {
    bytes: Bytes,
    place: Place,
}

impl Guest {
    /// Without TLS.
    pub(crate) fn plain(stream: TcpStream, place: Place) -> Guest {
        Guest { bytes: Bytes::Plain(stream), place }
    }

    /// With TLS.
    pub(crate) fn secure(stream: TlsStream<TcpStream>, place: Place) -> Guest {
        Guest { bytes: Bytes::Secure(Box::new(stream)), place }
    }
}

impl Connected for Guest {
    type ConnectInfo = Visit;

    fn connect_info(&self) -> Visit {
        self.place.visit.clone()
    }
}

impl AsyncRead for Guest {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // A server waits for bytes all the time: this is where it hears that it need not any more.
        if Pin::new(&mut self.place.closing).poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        match &mut self.bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Bytes::Secure(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Guest {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_write(cx, data),
            Bytes::Secure(stream) => Pin::new(stream).poll_write(cx, data),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Bytes::Secure(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Bytes::Secure(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, data),
            Bytes::Secure(stream) => Pin::new(stream).poll_write_vectored(cx, data),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.bytes {
            Bytes::Plain(stream) => stream.is_write_vectored(),
            Bytes::Secure(stream) => stream.is_write_vectored(),
        }
    }
}
