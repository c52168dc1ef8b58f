//! One connection: the bytes, over TLS or not, and what the door knows of it.

use std::future::{Future, poll_fn};
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
use crate::listener::Listener;

/// What the door knows of a connection. It is in the extensions of every request that came over it.
#[derive(Clone)]
pub struct ConnectionInfo(Arc<Inner>);

struct Inner {
    peer: SocketAddr,
    number: u64,
    certificate: OnceLock<Caller>,
    /// Whether a call of it was let through, how many of those are under way, and since when there is none.
    called: AtomicBool,
    calls: AtomicUsize,
    idle_since: Mutex<Instant>,
    /// By whose credential its last call was let through.
    caller: Mutex<Option<Caller>>,
}

impl ConnectionInfo {
    /// Somebody has connected, and has the slot of this number.
    pub(crate) fn new(peer: SocketAddr, number: u64) -> ConnectionInfo {
        ConnectionInfo(Arc::new(Inner {
            peer,
            number,
            certificate: OnceLock::new(),
            called: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            idle_since: Mutex::new(Instant::now()),
            caller: Mutex::default(),
        }))
    }

    /// Where it comes from.
    pub fn peer(&self) -> SocketAddr {
        self.0.peer
    }

    /// The number of its slot.
    pub(crate) fn number(&self) -> u64 {
        self.0.number
    }

    /// It showed a certificate.
    pub(crate) fn set_certificate(&self, caller: Caller) {
        let _ = self.0.certificate.set(caller);
    }

    /// Who it is by its certificate.
    pub(crate) fn certificate(&self) -> Option<&Caller> {
        self.0.certificate.get()
    }

    /// A call of it is let through, which lasts as long as what is returned.
    pub(crate) fn call(&self) -> OpenCall {
        self.0.called.store(true, Ordering::Relaxed);
        self.0.calls.fetch_add(1, Ordering::Relaxed);
        OpenCall(self.clone())
    }

    /// Whose credential it showed last.
    pub(crate) fn caller(&self) -> Option<Caller> {
        self.0.caller.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// It showed the credential of this caller. Returns the one before.
    pub(crate) fn set_caller(&self, caller: &Caller) -> Option<Caller> {
        self.0.caller.lock().unwrap_or_else(PoisonError::into_inner).replace(caller.clone())
    }

    /// Whether it has shown a credential that still counts.
    pub(crate) fn is_authorized(&self) -> bool {
        self.0.caller.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(Caller::is_valid)
    }

    /// Whether a call of it was ever let through.
    pub(crate) fn has_called(&self) -> bool {
        self.0.called.load(Ordering::Relaxed)
    }

    /// How long it has made no call; nothing while it makes one.
    pub(crate) fn idle_time(&self) -> Option<Duration> {
        let busy = self.0.calls.load(Ordering::Relaxed) > 0;
        (!busy).then(|| self.0.idle_since.lock().unwrap_or_else(PoisonError::into_inner).elapsed())
    }
}

/// A call that is under way.
pub(crate) struct OpenCall(ConnectionInfo);

impl Drop for OpenCall {
    fn drop(&mut self) {
        *self.0.0.idle_since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A slot connections the door, which is free again when this is dropped.
pub(crate) struct ConnectionSlot {
    pub(crate) listener: Arc<Listener>,
    pub(crate) number: u64,
    pub(crate) info: ConnectionInfo,
    /// Ready when the connection must go; nothing once it was.
    pub(crate) closing: Option<oneshot::Receiver<()>>,
}

impl ConnectionSlot {
    /// Whether the connection must go. Whoever is told no is woken when it must.
    pub(crate) fn is_closing(&mut self, cx: &mut Context<'_>) -> bool {
        if self.closing.as_mut().is_some_and(|closing| Pin::new(closing).poll(cx).is_ready()) {
            self.closing = None;
        }
        self.closing.is_none()
    }

    /// Waits until the connection must go.
    pub(crate) async fn closed(&mut self) {
        poll_fn(|cx| if self.is_closing(cx) { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.listener.release(self.number);
    }
}

enum Bytes {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

/// A connection that is served.
pub struct ServerStream {
    bytes: Bytes,
    slot: ConnectionSlot,
}

impl ServerStream {
    /// Without TLS.
    pub(crate) fn plain(stream: TcpStream, slot: ConnectionSlot) -> ServerStream {
        ServerStream { bytes: Bytes::Plain(stream), slot }
    }

    /// With TLS.
    pub(crate) fn secure(stream: TlsStream<TcpStream>, slot: ConnectionSlot) -> ServerStream {
        ServerStream { bytes: Bytes::Secure(Box::new(stream)), slot }
    }
}

impl Connected for ServerStream {
    type ConnectInfo = ConnectionInfo;

    fn connect_info(&self) -> ConnectionInfo {
        self.slot.info.clone()
    }
}

impl ServerStream {
    /// The bytes, unless the connection must go. Whatever a server waits for, it hears of that: one whose writing is stuck
    /// does not read.
    fn bytes(&mut self, cx: &mut Context<'_>) -> io::Result<&mut Bytes> {
        if self.slot.is_closing(cx) { Err(io::ErrorKind::TimedOut.into()) } else { Ok(&mut self.bytes) }
    }
}

impl AsyncRead for ServerStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.bytes(cx)? {
            Bytes::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Bytes::Secure(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        match self.bytes(cx)? {
            Bytes::Plain(stream) => Pin::new(stream).poll_write(cx, data),
            Bytes::Secure(stream) => Pin::new(stream).poll_write(cx, data),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.bytes(cx)? {
            Bytes::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Bytes::Secure(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.bytes(cx)? {
            Bytes::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Bytes::Secure(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.bytes(cx)? {
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
