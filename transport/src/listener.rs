//! The door itself: takes connections in the order in which they come, makes handshakes beside each other, and keeps
//! count of who is connections.
//!
//! A connection that says nothing costs a slot for a while and holds nobody up. When slots run out, whoever has not
//! been let through with a call yet makes room, first come, first gone: a flood of strangers only pushes itself out, and
//! whoever has a credential needs a moment to show it. Nobody can take more than half of the slots with one credential.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_stream::Stream;
use tracing::{debug, info, warn};

use crate::CredentialError;
use crate::auth::AuthService;
use crate::caller::Caller;
use crate::error_text::server_error_text;
use crate::limits::Limits;
use crate::rate_limit::RateLimiter;
use crate::stream::{ConnectionInfo, ConnectionSlot, ServerStream};
use crate::tls::{self, ServerTls, TlsFiles};
use crate::tokens::Tokens;

/// How often files are looked at and silent connections are counted.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Files that take longer to be read are complained about.
const SLOW_RELOAD: Duration = Duration::from_secs(5);
/// How long nothing is accepted after the system could not.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Why somebody was not let in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rejection {
    /// The handshake of TLS failed: no certificate, or one that does not count.
    Handshake,
    /// It status_text nothing in time.
    Silent,
    /// There were too many connections.
    Crowded,
    /// It showed no token.
    NoToken,
    /// Its token is not known, or not any more.
    UnknownToken,
    /// Its token is for something else.
    Role,
    /// It called too often.
    Rate,
}

impl Rejection {
    /// All of them.
    pub const ALL: [Rejection; 7] = [
        Rejection::Handshake,
        Rejection::Silent,
        Rejection::Crowded,
        Rejection::NoToken,
        Rejection::UnknownToken,
        Rejection::Role,
        Rejection::Rate,
    ];

    /// In a word.
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

/// What happens at the door.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEvent {
    /// A connection was accepted.
    Opened,
    /// It is gone.
    Closed,
    /// A connection or a call was refused.
    Refused(Rejection),
}

/// Told of everything that happens at the door.
pub type EventHandler = Arc<dyn Fn(ConnectionEvent) + Send + Sync>;

/// The listener of one coordinator.
pub struct Listener {
    tls: Option<ServerTls>,
    pub(crate) tokens: Option<Tokens>,
    limits: Limits,
    on_event: EventHandler,
    connections: Mutex<Connections>,
    pub(crate) rates: RateLimiter<String>,
    log_throttles: Mutex<HashMap<Rejection, LogThrottle>>,
}

/// Who is connections, by the order in which they came.
#[derive(Default)]
struct Connections {
    next: u64,
    slots: BTreeMap<u64, (ConnectionInfo, oneshot::Sender<()>)>,
    /// How many of them each credential has.
    callers: HashMap<Caller, usize>,
}

impl Connections {
    /// Takes a slot away. Whoever has it goes, unless it is gone already.
    fn remove(&mut self, number: u64) -> Option<(ConnectionInfo, oneshot::Sender<()>)> {
        let (info, close) = self.slots.remove(&number)?;
        if let Some(caller) = info.caller() {
            self.release_caller(&caller);
        }
        Some((info, close))
    }

    fn release_caller(&mut self, caller: &Caller) {
        if let Some(count) = self.callers.get_mut(caller) {
            *count -= 1;
            if *count == 0 {
                self.callers.remove(caller);
            }
        }
    }
}

/// When a refusal was last written to the log, and how many were not since.
struct LogThrottle {
    at: Instant,
    silent: u64,
}

impl Listener {
    /// Listener that ask for what they are told to.
    pub fn new(
        tls: Option<TlsFiles>,
        tokens: Option<&std::path::Path>,
        limits: Limits,
        on_event: EventHandler,
    ) -> Result<Arc<Listener>, CredentialError> {
        Ok(Arc::new(Listener {
            tls: tls.map(ServerTls::open).transpose()?,
            tokens: tokens.map(Tokens::open).transpose()?,
            rates: RateLimiter::new(limits.calls_per_second, limits.calls_per_second.saturating_mul(2)),
            limits,
            on_event,
            connections: Mutex::default(),
            log_throttles: Mutex::default(),
        }))
    }

    /// What the listener ask for, for the log.
    pub fn describe(&self) -> String {
        let tokens = self.tokens.as_ref().map(|tokens| format!("one of {} tokens", tokens.count()));
        let certificate = self.tls.as_ref().filter(|tls| tls.asks_for_certificates());
        let asked: Vec<String> =
            certificate.map(|_| "a certificate".to_string()).into_iter().chain(tokens).collect();
        let over = if self.tls.is_some() { "TLS" } else { "no TLS" };
        let asked = if asked.is_empty() { "nothing".to_string() } else { asked.join(" and ") };
        format!("{over}, and whoever comes is asked for {asked}")
    }

    /// Puts a guard before a service.
    pub fn authenticate<S>(self: &Arc<Listener>, service: S) -> AuthService<S> {
        AuthService::new(Arc::clone(self), service)
    }

    /// Opens the listener: the connections that are let in, until this is dropped.
    pub fn incoming(self: &Arc<Listener>, tcp: TcpListener) -> Incoming {
        let (out, accepted) = mpsc::unbounded_channel();
        let accepting = tokio::spawn(Arc::clone(self).accept(tcp, out));
        let reading = tokio::spawn(Arc::clone(self).reload_loop());
        let sending = tokio::spawn(Arc::clone(self).close_idle_loop());
        Incoming { accepted, tasks: [accepting, reading, sending] }
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn accept(self: Arc<Listener>, listener: TcpListener, out: mpsc::UnboundedSender<ServerStream>) {
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Mostly too many open files: some are closed in a while.
                    self.refuse(Rejection::Crowded, None, &error.to_string());
                    sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                }
            };
            let Some(slot) = self.admit(peer) else { continue };
            // Messages are small and somebody waits for each.
            let _ = stream.set_nodelay(true);
            match &self.tls {
                None => drop(out.send(ServerStream::plain(stream, slot))),
                Some(tls) => drop(tokio::spawn(handshake(tls.current(), stream, slot, out.clone()))),
            }
        }
    }

    /// Finds a slot for a connection, if need be that of another.
    fn admit(self: &Arc<Listener>, peer: SocketAddr) -> Option<ConnectionSlot> {
        let mut connections = self.connections();
        if connections.slots.len() >= self.limits.connections {
            let stranger = connections.slots.iter().find(|(_, (info, _))| !info.is_authorized());
            let number = stranger.map(|(number, _)| *number);
            let Some((info, close)) = number.and_then(|number| connections.remove(number)) else {
                drop(connections);
                self.refuse(Rejection::Crowded, Some(peer), "every slot is taken by somebody who was let in");
                return None;
            };
            let _ = close.send(());
            (self.on_event)(ConnectionEvent::Closed);
            self.refuse(
                Rejection::Crowded,
                Some(info.peer()),
                "it makes room for the next: it has shown no credential that counts",
            );
        }
        let number = connections.next;
        connections.next += 1;
        let (close, closing) = oneshot::channel();
        let info = ConnectionInfo::new(peer, number);
        connections.slots.insert(number, (info.clone(), close));
        drop(connections);
        (self.on_event)(ConnectionEvent::Opened);
        Some(ConnectionSlot { listener: Arc::clone(self), number, info, closing: Some(closing) })
    }

    /// Somebody connections shows a credential that counts. Whether it may stay: nobody has more than half of the slots.
    pub(crate) fn authorize(&self, info: &ConnectionInfo, caller: &Caller) -> bool {
        if info.caller().is_some_and(|known| known.is_same_credential(caller)) {
            return true;
        }
        let mut connections = self.connections();
        if !connections.slots.contains_key(&info.number()) {
            return false;
        }
        let own = usize::from(info.caller().is_some_and(|known| known == *caller));
        let others = connections.callers.get(caller).map_or(0, |count| count - own);
        if caller.is_authenticated() && others >= self.limits.connections.div_ceil(2) {
            return false;
        }
        *connections.callers.entry(caller.clone()).or_default() += 1;
        if let Some(before) = info.set_caller(caller) {
            connections.release_caller(&before);
        }
        true
    }

    /// A connection is gone.
    pub(crate) fn release(&self, number: u64) {
        if self.connections().remove(number).is_some() {
            (self.on_event)(ConnectionEvent::Closed);
        }
    }

    /// Reads files that have changed. They may lie on a disk that takes its time: nobody else waits for it.
    async fn reload_loop(self: Arc<Listener>) {
        loop {
            sleep(POLL_INTERVAL).await;
            let listener = Arc::clone(&self);
            let mut reading = tokio::task::spawn_blocking(move || listener.refresh());
            if timeout(SLOW_RELOAD, &mut reading).await.is_err() {
                warn!(
                    "certificates and tokens are not read within {SLOW_RELOAD:?}; until they are, those from before count"
                );
                let _ = reading.await;
            }
        }
    }

    async fn close_idle_loop(self: Arc<Listener>) {
        loop {
            sleep(POLL_INTERVAL).await;
            self.close_idle();
        }
    }

    fn refresh(&self) {
        let told = |what: &str, read: Result<bool, CredentialError>| match read {
            Ok(true) => info!("{what} have changed and were read again"),
            Ok(false) => {}
            Err(error) => warn!("{what} have changed and cannot be read; those from before stay: {error}"),
        };
        if let Some(tls) = &self.tls {
            told("certificates", tls.refresh());
        }
        if let Some(tokens) = &self.tokens {
            told("tokens", tokens.refresh());
        }
    }

    fn close_idle(&self) {
        let mut connections = self.connections();
        let is_silent = |info: &ConnectionInfo| {
            let deadline = if info.has_called() { self.limits.idle } else { self.limits.first_call };
            info.idle_time().is_some_and(|quiet| quiet >= deadline)
        };
        let numbers: Vec<u64> = connections
            .slots
            .iter()
            .filter(|(_, (info, _))| is_silent(info))
            .map(|(number, _)| *number)
            .collect();
        let silent: Vec<_> = numbers.into_iter().filter_map(|number| connections.remove(number)).collect();
        drop(connections);
        for (info, close) in silent {
            let _ = close.send(());
            (self.on_event)(ConnectionEvent::Closed);
            if info.has_called() {
                debug!(peer = %info.peer(), "a connection without calls is closed");
            } else {
                self.refuse(Rejection::Silent, Some(info.peer()), "it made no call in time");
            }
        }
    }

    /// Somebody is not let in. A flood of them does not flood the log.
    pub(crate) fn refuse(&self, refusal: Rejection, peer: Option<SocketAddr>, reason: &str) {
        (self.on_event)(ConnectionEvent::Refused(refusal));
        let mut log_throttles = self.log_throttles.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match log_throttles.get_mut(&refusal) {
            Some(throttle) if throttle.at.elapsed() < POLL_INTERVAL => {
                throttle.silent += 1;
                return;
            }
            known => known.map_or(0, |throttle| throttle.silent),
        };
        log_throttles.insert(refusal, LogThrottle { at: Instant::now(), silent: 0 });
        drop(log_throttles);
        let peer = peer.map(|peer| peer.to_string()).unwrap_or_default();
        warn!(peer, why = refusal.name(), others = before, "not let in: {reason}");
    }
}

async fn handshake(
    config: Arc<ServerConfig>,
    stream: TcpStream,
    mut slot: ConnectionSlot,
    out: mpsc::UnboundedSender<ServerStream>,
) {
    let shaken = TlsAcceptor::from(config).accept(stream).into_fallible();
    let shaken = tokio::select! {
        () = slot.closed() => return,
        shaken = shaken => shaken,
    };
    match shaken {
        Ok(stream) => {
            let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
            if let Some(certificate) = shown {
                slot.info.set_certificate(tls::caller(certificate));
            }
            let _ = out.send(ServerStream::secure(stream, slot));
        }
        Err((error, mut stream)) => {
            slot.listener.refuse(Rejection::Handshake, Some(slot.info.peer()), &server_error_text(&error));
            let close_timeout = slot.listener.limits.close_timeout;
            // What it still sends is read: a connection that is closed over unread bytes takes our last words along.
            let mut rest = [0; 512];
            let read_out = async {
                let _ = stream.shutdown().await;
                while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
            };
            tokio::select! {
                () = slot.closed() => {}
                _ = timeout(close_timeout, read_out) => {}
            }
        }
    }
}

/// The connections that are let in.
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
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio_stream::StreamExt as _;

    use super::*;
    use crate::authority::{Authority, Validity};

    fn listener(limits: Limits) -> (Arc<Listener>, Arc<AtomicU64>) {
        let crowded = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&crowded);
        let on_event: EventHandler = Arc::new(move |event| {
            counted.fetch_add(
                u64::from(event == ConnectionEvent::Refused(Rejection::Crowded)),
                Ordering::Relaxed,
            );
        });
        (Listener::new(None, None, limits, on_event).unwrap(), crowded)
    }

    fn ports(listener: &Listener) -> Vec<u16> {
        listener.connections().slots.values().map(|(info, _)| info.peer().port()).collect()
    }

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn has_gone(slot: &mut ConnectionSlot) -> bool {
        slot.is_closing(&mut Context::from_waker(std::task::Waker::noop()))
    }

    #[test]
    fn strangers_make_room_in_the_order_in_which_they_came_and_who_is_let_in_stays() {
        let (listener, crowded) = listener(Limits { connections: 3, ..Limits::default() });
        let anybody = Caller::anonymous();
        let mut slots: Vec<ConnectionSlot> = [1, 2, 3].map(|port| listener.admit(peer(port)).unwrap()).into();
        assert!(listener.authorize(&slots[0].info, &anybody));
        slots.push(listener.admit(peer(4)).unwrap());
        assert_eq!(ports(&listener), [1, 3, 4]);
        assert!(has_gone(&mut slots[1]) && !has_gone(&mut slots[2]));
        assert!(!listener.authorize(&slots[1].info, &anybody), "it is too late for it");
        slots.push(listener.admit(peer(5)).unwrap());
        assert_eq!(ports(&listener), [1, 4, 5]);
        for slot in &slots[3..] {
            assert!(listener.authorize(&slot.info, &anybody));
        }
        assert!(listener.admit(peer(6)).is_none(), "nobody makes room who was let in");
        assert_eq!(crowded.load(Ordering::Relaxed), 3);
        drop(slots.remove(1));
        assert_eq!(ports(&listener), [1, 4, 5], "a slot that was taken is not given up twice");
        slots.clear();
        assert!(ports(&listener).is_empty());
    }

    #[test]
    fn a_credential_has_half_of_the_places_and_none_when_it_counts_no_more() {
        let (listener, _) = listener(Limits { connections: 4, ..Limits::default() });
        let (greedy, other) = (Caller::token("greedy"), Caller::token("other"));
        let mut slots: Vec<ConnectionSlot> = [1, 2, 3].map(|port| listener.admit(peer(port)).unwrap()).into();
        let trusted = slots.iter().filter(|slot| listener.authorize(&slot.info, &greedy)).count();
        assert_eq!(trusted, 2);
        assert!(listener.authorize(&slots[0].info, &greedy), "whoever is in may call again");
        assert!(listener.authorize(&slots[2].info, &other), "there is room for others");
        assert!(listener.authorize(&slots[0].info, &other) && listener.authorize(&slots[0].info, &greedy));
        let again = Caller::token("greedy");
        assert!(listener.authorize(&slots[0].info, &again), "the same name is the same caller");
        slots.push(listener.admit(peer(4)).unwrap());
        assert!(!listener.authorize(&slots[3].info, &greedy));
        drop(slots.remove(1));
        assert!(listener.authorize(&slots[2].info, &greedy), "a slot that is left is free");

        // What was revoked keeps nobody out.
        slots.push(listener.admit(peer(5)).unwrap());
        assert!(listener.authorize(&slots[3].info, &other));
        assert!(listener.admit(peer(6)).is_none());
        again.revoke();
        slots.push(listener.admit(peer(7)).unwrap());
        assert_eq!(ports(&listener), [3, 4, 5, 7]);
        slots.clear();
        assert!(listener.connections().callers.is_empty());
    }

    #[test]
    fn who_says_nothing_is_sent_away_and_who_calls_is_not() {
        let limits = Limits { first_call: Duration::ZERO, ..Limits::default() };
        let (listener, _) = listener(limits);
        let [mut silent, mut busy, mut idle] = [1, 2, 3].map(|port| listener.admit(peer(port)).unwrap());
        let call = busy.info.call();
        drop(idle.info.call());
        listener.close_idle();
        assert!(has_gone(&mut silent));
        assert!(!has_gone(&mut busy) && !has_gone(&mut idle));
        assert_eq!(ports(&listener), [2, 3], "its slot is free at once");
        drop(call);
        listener.close_idle();
        assert!(!has_gone(&mut busy), "it has called, and may be quiet for a while");
    }

    /// Who fails to shake hands is told why, for as long as nobody needs its slot.
    #[tokio::test]
    async fn last_words_make_room_too() {
        let folder = tempfile::tempdir().unwrap();
        let (authority, _) = Authority::create().unwrap();
        let pair =
            authority.coordinator(&["localhost".to_string()], Validity::of(SLOW_RELOAD * 100)).unwrap();
        pair.write(folder.path(), "c").unwrap();
        let [certificate, key] = ["c.pem", "c.key"].map(|name| folder.path().join(name));
        let tls = TlsFiles { certificate, key, client_authority: None };
        let (tell, mut told) = mpsc::unbounded_channel();
        let on_event: EventHandler = Arc::new(move |event| {
            let _ = tell.send(event);
        });
        let limits = Limits { connections: 1, close_timeout: SLOW_RELOAD * 720, ..Limits::default() };
        let listener = Listener::new(Some(tls), None, limits, on_event).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();
        let _incoming = listener.incoming(tcp);
        let mut garbled = TcpStream::connect(address).await.unwrap();
        garbled.write_all(b"hello there, this is no TLS\r\n").await.unwrap();
        while told.recv().await.unwrap() != ConnectionEvent::Refused(Rejection::Handshake) {}
        let _next = TcpStream::connect(address).await.unwrap();
        while told.recv().await.unwrap() != ConnectionEvent::Refused(Rejection::Crowded) {}
        // Once nobody reads there, what is sent there comes back as an error.
        timeout(SLOW_RELOAD * 12, async {
            while garbled.write_all(b"more").await.is_ok() {
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await
        .expect("its connection is closed");
    }

    /// However many come at once, they come in one after the other.
    #[tokio::test]
    async fn a_storm_is_served_in_its_order() {
        let (listener, _) = listener(Limits::default());
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();
        let mut callers = Vec::new();
        for _ in 0..100 {
            callers.push(TcpStream::connect(address).await.unwrap());
        }
        let came: Vec<u16> = callers.iter().map(|caller| caller.local_addr().unwrap().port()).collect();
        let _guests: Vec<_> = listener.incoming(tcp).take(callers.len()).collect().await;
        assert_eq!(ports(&listener), came);
    }
}
