//! The listener: accepts connections in order of arrival, performs handshakes concurrently and reloads credentials.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_stream::Stream;
use tracing::{info, warn};

use crate::auth::AuthService;
use crate::connections::{ConnectionSlot, Connections};
use crate::error_text::server_error_text;
use crate::limits::Limits;
use crate::rate_limit::RateLimiter;
use crate::stream::ServerStream;
use crate::tls::{self, ServerTls, TlsFiles};
use crate::tokens::Tokens;
use crate::{CredentialError, lock};

/// How often files are checked for changes and idle connections are closed.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The minimum time between two log lines for the same kind of rejection.
const LOG_INTERVAL: Duration = Duration::from_secs(1);
/// How long a reload may take before it is reported.
const SLOW_RELOAD: Duration = Duration::from_secs(5);
/// The pause after a failed `accept`.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The reason why a connection or a call was rejected.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rejection {
    /// The TLS handshake failed.
    Handshake,
    /// No call arrived in time.
    Silent,
    /// There were too many connections.
    Crowded,
    /// No token was presented.
    NoToken,
    /// The token is unknown or revoked.
    UnknownToken,
    /// The token has another role.
    Role,
    /// The caller exceeded its rate limit.
    Rate,
}

impl Rejection {
    /// All reasons.
    pub const ALL: [Rejection; 7] = [
        Rejection::Handshake,
        Rejection::Silent,
        Rejection::Crowded,
        Rejection::NoToken,
        Rejection::UnknownToken,
        Rejection::Role,
        Rejection::Rate,
    ];

    /// Returns the name used in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Rejection::Handshake => "handshake",
            Rejection::Silent => "silent",
            Rejection::Crowded => "crowded",
            Rejection::NoToken => "no-token",
            Rejection::UnknownToken => "unknown-token",
            Rejection::Role => "role",
            Rejection::Rate => "rate",
        }
    }
}

/// An event of the listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEvent {
    /// A connection was accepted.
    Opened,
    /// A connection was closed.
    Closed,
    /// A connection or a call was rejected.
    Rejected(Rejection),
}

/// The callback for connection events.
pub type EventHandler = Arc<dyn Fn(ConnectionEvent) + Send + Sync>;

/// The listener of one coordinator.
pub struct Listener {
    tls: Option<ServerTls>,
    pub(crate) tokens: Option<Tokens>,
    pub(crate) limits: Limits,
    pub(crate) on_event: EventHandler,
    pub(crate) connections: Mutex<Connections>,
    pub(crate) call_rates: RateLimiter<String>,
    log_throttles: Mutex<HashMap<Rejection, LogThrottle>>,
}

/// The time of the last log line for a kind of rejection, and the number of rejections since.
struct LogThrottle {
    logged: Instant,
    suppressed: u64,
}

impl Listener {
    /// Creates a listener with optional TLS and an optional token file.
    pub fn new(
        tls: Option<TlsFiles>,
        tokens: Option<&Path>,
        limits: Limits,
        on_event: EventHandler,
    ) -> Result<Arc<Listener>, CredentialError> {
        Ok(Arc::new(Listener {
            tls: tls.map(ServerTls::open).transpose()?,
            tokens: tokens.map(Tokens::open).transpose()?,
            call_rates: RateLimiter::new(limits.calls_per_second, limits.calls_per_second.saturating_mul(2)),
            limits,
            on_event,
            connections: Mutex::default(),
            log_throttles: Mutex::default(),
        }))
    }

    /// Returns the authentication methods, for the log.
    pub fn describe(&self) -> String {
        let tls = match &self.tls {
            None => "no TLS",
            Some(tls) if tls.requires_client_certificates() => "mutual TLS",
            Some(_) => "TLS",
        };
        match &self.tokens {
            None => format!("{tls}, no tokens"),
            Some(tokens) => format!("{tls}, {} tokens", tokens.count()),
        }
    }

    /// Wraps a service so that it receives only authenticated calls.
    pub fn authenticate<S>(self: &Arc<Listener>, service: S) -> AuthService<S> {
        AuthService::new(Arc::clone(self), service)
    }

    /// Starts accepting connections; stops when the result is dropped.
    pub fn incoming(self: &Arc<Listener>, tcp: TcpListener) -> Incoming {
        let (out, accepted) = mpsc::unbounded_channel();
        let tasks = [
            tokio::spawn(Arc::clone(self).accept_loop(tcp, out)),
            tokio::spawn(Arc::clone(self).reload_loop()),
            tokio::spawn(Arc::clone(self).close_idle_loop()),
        ];
        Incoming { accepted, tasks }
    }

    async fn accept_loop(self: Arc<Listener>, tcp: TcpListener, out: mpsc::UnboundedSender<ServerStream>) {
        loop {
            let (stream, peer) = match tcp.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Usually too many open files: retry after connections have closed.
                    self.reject(Rejection::Crowded, None, &error.to_string());
                    sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                }
            };
            let Some(slot) = self.admit(peer) else { continue };
            // Messages are small and latency matters.
            let _ = stream.set_nodelay(true);
            match &self.tls {
                None => drop(out.send(ServerStream::new(stream, slot))),
                Some(tls) => drop(tokio::spawn(handshake(tls.current(), stream, slot, out.clone()))),
            }
        }
    }

    /// Reloads changed files. They may be on a slow disk, so that no other task waits for them.
    async fn reload_loop(self: Arc<Listener>) {
        loop {
            sleep(POLL_INTERVAL).await;
            let listener = Arc::clone(&self);
            let mut reload = tokio::task::spawn_blocking(move || listener.reload());
            if timeout(SLOW_RELOAD, &mut reload).await.is_err() {
                warn!(timeout = ?SLOW_RELOAD, "credential reload is slow; the previous credentials stay in use");
                let _ = reload.await;
            }
        }
    }

    async fn close_idle_loop(self: Arc<Listener>) {
        loop {
            sleep(POLL_INTERVAL).await;
            self.close_idle();
        }
    }

    fn reload(&self) {
        let certificates = self.tls.as_ref().map(|tls| ("certificates", tls.refresh()));
        let tokens = self.tokens.as_ref().map(|tokens| ("tokens", tokens.refresh()));
        for (files, result) in certificates.into_iter().chain(tokens) {
            match result {
                Ok(true) => info!(files, "credentials reloaded"),
                Ok(false) => {}
                Err(error) => {
                    warn!(files, %error, "credential reload failed; the previous credentials stay in use");
                }
            }
        }
    }

    /// Reports a rejection, and logs it at most once per interval and kind.
    pub(crate) fn reject(&self, rejection: Rejection, peer: Option<SocketAddr>, reason: &str) {
        (self.on_event)(ConnectionEvent::Rejected(rejection));
        let mut throttles = lock(&self.log_throttles);
        let suppressed = match throttles.get_mut(&rejection) {
            Some(throttle) if throttle.logged.elapsed() < LOG_INTERVAL => {
                throttle.suppressed += 1;
                return;
            }
            known => known.map_or(0, |throttle| throttle.suppressed),
        };
        throttles.insert(rejection, LogThrottle { logged: Instant::now(), suppressed: 0 });
        drop(throttles);
        let peer = peer.map(|peer| peer.to_string()).unwrap_or_default();
        warn!(peer, why = rejection.name(), suppressed, "connection rejected: {reason}");
    }
}

async fn handshake(
    config: Arc<ServerConfig>,
    stream: TcpStream,
    mut slot: ConnectionSlot,
    out: mpsc::UnboundedSender<ServerStream>,
) {
    let accepted = tokio::select! {
        () = slot.closed() => return,
        accepted = TlsAcceptor::from(config).accept(stream).into_fallible() => accepted,
    };
    match accepted {
        Ok(stream) => {
            let certificates = stream.get_ref().1.peer_certificates();
            if let Some(certificate) = certificates.and_then(|chain| chain.first()) {
                slot.info.set_certificate(tls::caller(certificate));
            }
            let _ = out.send(ServerStream::new(stream, slot));
        }
        Err((error, mut stream)) => {
            slot.listener.reject(Rejection::Handshake, Some(slot.info.peer()), &server_error_text(&error));
            let close_timeout = slot.listener.limits.close_timeout;
            // Closing a socket with unread bytes resets it, and the client would not receive the TLS alert.
            let mut rest = [0; 512];
            let drain = async {
                let _ = stream.shutdown().await;
                while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
            };
            tokio::select! {
                () = slot.closed() => {}
                _ = timeout(close_timeout, drain) => {}
            }
        }
    }
}

/// The stream of accepted connections.
pub struct Incoming {
    accepted: mpsc::UnboundedReceiver<ServerStream>,
    tasks: [JoinHandle<()>; 3],
}

impl Stream for Incoming {
    type Item = std::io::Result<ServerStream>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.accepted.poll_recv(cx).map(|stream| stream.map(Ok))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use tokio_stream::StreamExt as _;

    use super::*;
    use crate::authority::{Authority, Validity};
    use crate::connections::tests::{listener, ports};

    /// A connection that is drained after a failed handshake can be evicted.
    #[tokio::test]
    async fn evicts_a_draining_connection() {
        let folder = tempfile::tempdir().unwrap();
        let (authority, _) = Authority::create().unwrap();
        let pair =
            authority.issue_server(&["localhost".to_string()], Validity::lasting(SLOW_RELOAD * 100)).unwrap();
        pair.write(folder.path(), "c").unwrap();
        let [certificate, key] = ["c.pem", "c.key"].map(|name| folder.path().join(name));
        let tls = TlsFiles { certificate, key, client_authority: None };
        let (sender, mut events) = mpsc::unbounded_channel();
        let on_event: EventHandler = Arc::new(move |event| {
            let _ = sender.send(event);
        });
        let limits = Limits { connections: 1, close_timeout: SLOW_RELOAD * 720, ..Limits::default() };
        let listener = Listener::new(Some(tls), None, limits, on_event).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();
        let _incoming = listener.incoming(tcp);
        let mut invalid = TcpStream::connect(address).await.unwrap();
        invalid.write_all(b"hello there, this is not TLS\r\n").await.unwrap();
        while events.recv().await.unwrap() != ConnectionEvent::Rejected(Rejection::Handshake) {}
        let _next = TcpStream::connect(address).await.unwrap();
        while events.recv().await.unwrap() != ConnectionEvent::Rejected(Rejection::Crowded) {}
        // Writes fail once the other end is closed.
        timeout(SLOW_RELOAD * 12, async {
            while invalid.write_all(b"more").await.is_ok() {
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await
        .expect("the connection is closed");
    }

    #[tokio::test]
    async fn accepts_connections_in_order_of_arrival() {
        let (listener, _) = listener(Limits::default());
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();
        let mut clients = Vec::new();
        for _ in 0..100 {
            clients.push(TcpStream::connect(address).await.unwrap());
        }
        let expected: Vec<u16> = clients.iter().map(|client| client.local_addr().unwrap().port()).collect();
        let _streams: Vec<_> = listener.incoming(tcp).take(clients.len()).collect().await;
        assert_eq!(ports(&listener), expected);
    }
}
