//! The door itself: takes connections in the order in which they come, makes handshakes beside each other, and keeps
//! count of who is inside.
//!
//! A connection that says nothing costs a place for a while and holds nobody up. When places run out, whoever has not
//! been let through with a call yet makes room, first come, first gone: a flood of strangers only pushes itself out, and
//! whoever has a credential needs a moment to show it. Nobody can take more than half of the places with one credential.

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

use crate::DoorError;
use crate::caller::Caller;
use crate::guard::Guard;
use crate::limits::Limits;
use crate::rate::Rates;
use crate::sentences::for_server;
use crate::stream::{Guest, Place, Visit};
use crate::tls::{self, ServerTls, TlsFiles};
use crate::tokens::Tokens;

/// How often files are looked at and silent connections are counted.
const ROUND: Duration = Duration::from_secs(1);
/// How long the last words to somebody who is not let in may take to arrive; in tests, for ever.
const LAST_WORDS: Duration = Duration::from_secs(if cfg!(test) { 3600 } else { 2 });
/// Files that take longer to be read are complained about.
const LONG: Duration = Duration::from_secs(5);
/// How long nothing is accepted after the system could not.
const PAUSE: Duration = Duration::from_millis(100);

/// Why somebody was not let in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// The handshake of TLS failed: no certificate, or one that does not count.
    Handshake,
    /// It said nothing in time.
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

impl Refusal {
    /// All of them.
    pub const ALL: [Refusal; 7] = [
        Refusal::Handshake,
        Refusal::Silent,
        Refusal::Crowded,
        Refusal::NoToken,
        Refusal::UnknownToken,
        Refusal::Role,
        Refusal::Rate,
    ];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Refusal::Handshake => "handshake",
            Refusal::Silent => "silent",
            Refusal::Crowded => "crowded",
            Refusal::NoToken => "no-token",
            Refusal::UnknownToken => "unknown-token",
            Refusal::Role => "role",
            Refusal::Rate => "rate",
        }
    }
}

/// What happens at the door.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DoorEvent {
    /// A connection was accepted.
    Opened,
    /// It is gone.
    Closed,
    /// A connection or a call was refused.
    Refused(Refusal),
}

/// Told of everything that happens at the door.
pub type Watch = Arc<dyn Fn(DoorEvent) + Send + Sync>;

/// The doors of one coordinator.
pub struct Doors {
    tls: Option<ServerTls>,
    pub(crate) tokens: Option<Tokens>,
    limits: Limits,
    watch: Watch,
    started: Instant,
    inside: Mutex<Inside>,
    pub(crate) rates: Mutex<Rates<String>>,
    complaints: Mutex<HashMap<Refusal, Complaint>>,
}

/// Who is inside, by the order in which they came.
#[derive(Default)]
struct Inside {
    next: u64,
    places: BTreeMap<u64, (Visit, oneshot::Sender<()>)>,
    /// How many of them each credential has.
    callers: HashMap<Caller, usize>,
}

impl Inside {
    /// Takes a place away. Whoever has it goes, unless it is gone already.
    fn free(&mut self, number: u64) -> Option<(Visit, oneshot::Sender<()>)> {
        let (visit, close) = self.places.remove(&number)?;
        if let Some(caller) = visit.caller() {
            self.discount(&caller);
        }
        Some((visit, close))
    }

    fn discount(&mut self, caller: &Caller) {
        if let Some(count) = self.callers.get_mut(caller) {
            *count -= 1;
            if *count == 0 {
                self.callers.remove(caller);
            }
        }
    }
}

/// When a refusal was last written to the log, and how many were not since.
struct Complaint {
    at: Instant,
    silent: u64,
}

impl Doors {
    /// Doors that ask for what they are told to.
    pub fn new(
        tls: Option<TlsFiles>,
        tokens: Option<&std::path::Path>,
        limits: Limits,
        watch: Watch,
    ) -> Result<Arc<Doors>, DoorError> {
        Ok(Arc::new(Doors {
            tls: tls.map(ServerTls::open).transpose()?,
            tokens: tokens.map(Tokens::open).transpose()?,
            rates: Mutex::new(Rates::new(limits.calls_per_second)),
            limits,
            watch,
            started: Instant::now(),
            inside: Mutex::default(),
            complaints: Mutex::default(),
        }))
    }

    /// What the doors ask for, for the log.
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
    pub fn guard<S>(self: &Arc<Doors>, service: S) -> Guard<S> {
        Guard::new(Arc::clone(self), service)
    }

    /// Opens the doors: the connections that are let in, until this is dropped.
    pub fn open(self: &Arc<Doors>, listener: TcpListener) -> Incoming {
        let (out, guests) = mpsc::unbounded_channel();
        let accepting = tokio::spawn(Arc::clone(self).accept(listener, out));
        let reading = tokio::spawn(Arc::clone(self).read_again());
        let sending = tokio::spawn(Arc::clone(self).send_away_the_silent());
        Incoming { guests, tasks: [accepting, reading, sending] }
    }

    /// Since the doors were made.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn accept(self: Arc<Doors>, listener: TcpListener, out: mpsc::UnboundedSender<Guest>) {
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Mostly too many open files: some are closed in a while.
                    self.refuse(Refusal::Crowded, None, &error.to_string());
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let Some(place) = self.enter(peer) else { continue };
            // Messages are small and somebody waits for each.
            let _ = stream.set_nodelay(true);
            match &self.tls {
                None => drop(out.send(Guest::plain(stream, place))),
                Some(tls) => drop(tokio::spawn(shake_hands(tls.current(), stream, place, out.clone()))),
            }
        }
    }

    /// Finds a place for a connection, if need be that of another.
    fn enter(self: &Arc<Doors>, peer: SocketAddr) -> Option<Place> {
        let mut inside = self.inside();
        if inside.places.len() >= self.limits.connections {
            let stranger = inside.places.iter().find(|(_, (visit, _))| !visit.is_trusted());
            let number = stranger.map(|(number, _)| *number);
            let Some((visit, close)) = number.and_then(|number| inside.free(number)) else {
                drop(inside);
                self.refuse(Refusal::Crowded, Some(peer), "every place is taken by somebody who was let in");
                return None;
            };
            let _ = close.send(());
            (self.watch)(DoorEvent::Closed);
            self.refuse(
                Refusal::Crowded,
                Some(visit.peer()),
                "it makes room for the next: it has shown no credential that counts",
            );
        }
        let number = inside.next;
        inside.next += 1;
        let (close, closing) = oneshot::channel();
        let visit = Visit::new(peer, number);
        inside.places.insert(number, (visit.clone(), close));
        drop(inside);
        (self.watch)(DoorEvent::Opened);
        Some(Place { doors: Arc::clone(self), number, visit, closing: Some(closing) })
    }

    /// Somebody inside shows a credential that counts. Whether it may stay: nobody has more than half of the places.
    pub(crate) fn trust(&self, visit: &Visit, caller: &Caller) -> bool {
        if visit.caller().is_some_and(|known| known.is(caller)) {
            return true;
        }
        let mut inside = self.inside();
        if !inside.places.contains_key(&visit.number()) {
            return false;
        }
        let own = usize::from(visit.caller().is_some_and(|known| known == *caller));
        let others = inside.callers.get(caller).map_or(0, |count| count - own);
        if caller.is_known() && others >= self.limits.connections.div_ceil(2) {
            return false;
        }
        *inside.callers.entry(caller.clone()).or_default() += 1;
        if let Some(before) = visit.set_caller(caller) {
            inside.discount(&before);
        }
        true
    }

    /// A connection is gone.
    pub(crate) fn leave(&self, number: u64) {
        if self.inside().free(number).is_some() {
            (self.watch)(DoorEvent::Closed);
        }
    }

    /// Reads files that have changed. They may lie on a disk that takes its time: nobody else waits for it.
    async fn read_again(self: Arc<Doors>) {
        loop {
            sleep(ROUND).await;
            let doors = Arc::clone(&self);
            let mut reading = tokio::task::spawn_blocking(move || doors.refresh());
            if timeout(LONG, &mut reading).await.is_err() {
                warn!(
                    "certificates and tokens are not read within {LONG:?}; until they are, those from before count"
                );
                let _ = reading.await;
            }
        }
    }

    async fn send_away_the_silent(self: Arc<Doors>) {
        loop {
            sleep(ROUND).await;
            self.send_away();
        }
    }

    fn refresh(&self) {
        let told = |what: &str, read: Result<bool, DoorError>| match read {
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

    fn send_away(&self) {
        let mut inside = self.inside();
        let is_silent = |visit: &Visit| {
            let patience = if visit.has_called() { self.limits.idle } else { self.limits.first_call };
            visit.quiet().is_some_and(|quiet| quiet >= patience)
        };
        let numbers: Vec<u64> = inside
            .places
            .iter()
            .filter(|(_, (visit, _))| is_silent(visit))
            .map(|(number, _)| *number)
            .collect();
        let silent: Vec<_> = numbers.into_iter().filter_map(|number| inside.free(number)).collect();
        drop(inside);
        for (visit, close) in silent {
            let _ = close.send(());
            (self.watch)(DoorEvent::Closed);
            if visit.has_called() {
                debug!(peer = %visit.peer(), "a connection without calls is closed");
            } else {
                self.refuse(Refusal::Silent, Some(visit.peer()), "it made no call in time");
            }
        }
    }

    /// Somebody is not let in. A flood of them does not flood the log.
    pub(crate) fn refuse(&self, refusal: Refusal, peer: Option<SocketAddr>, reason: &str) {
        (self.watch)(DoorEvent::Refused(refusal));
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match complaints.get_mut(&refusal) {
            Some(complaint) if complaint.at.elapsed() < ROUND => {
                complaint.silent += 1;
                return;
            }
            known => known.map_or(0, |complaint| complaint.silent),
        };
        complaints.insert(refusal, Complaint { at: Instant::now(), silent: 0 });
        drop(complaints);
        let peer = peer.map(|peer| peer.to_string()).unwrap_or_default();
        warn!(peer, why = refusal.name(), others = before, "not let in: {reason}");
    }
}

async fn shake_hands(
    config: Arc<ServerConfig>,
    stream: TcpStream,
    mut place: Place,
    out: mpsc::UnboundedSender<Guest>,
) {
    let shaken = TlsAcceptor::from(config).accept(stream).into_fallible();
    let shaken = tokio::select! {
        () = place.until_it_must_go() => return,
        shaken = shaken => shaken,
    };
    match shaken {
        Ok(stream) => {
            let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
            if let Some(certificate) = shown {
                place.visit.set_certificate(tls::caller(certificate));
            }
            let _ = out.send(Guest::secure(stream, place));
        }
        Err((error, mut stream)) => {
            place.doors.refuse(Refusal::Handshake, Some(place.visit.peer()), &for_server(&error));
            // What it still sends is read: a connection that is closed over unread bytes takes our last words along.
            let mut rest = [0; 512];
            let read_out = async {
                let _ = stream.shutdown().await;
                while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
            };
            tokio::select! {
                () = place.until_it_must_go() => {}
                _ = timeout(LAST_WORDS, read_out) => {}
            }
        }
    }
}

/// The connections that are let in.
pub struct Incoming {
    guests: mpsc::UnboundedReceiver<Guest>,
    tasks: [JoinHandle<()>; 3],
}

impl Stream for Incoming {
    type Item = std::io::Result<Guest>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.guests.poll_recv(cx).map(|guest| guest.map(Ok))
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

    fn doors(limits: Limits) -> (Arc<Doors>, Arc<AtomicU64>) {
        let crowded = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&crowded);
        let watch: Watch = Arc::new(move |event| {
            counted.fetch_add(u64::from(event == DoorEvent::Refused(Refusal::Crowded)), Ordering::Relaxed);
        });
        (Doors::new(None, None, limits, watch).unwrap(), crowded)
    }

    fn visits(doors: &Doors) -> Vec<u16> {
        doors.inside().places.values().map(|(visit, _)| visit.peer().port()).collect()
    }

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn has_gone(place: &mut Place) -> bool {
        place.must_go(&mut Context::from_waker(std::task::Waker::noop()))
    }

    #[test]
    fn strangers_make_room_in_the_order_in_which_they_came_and_who_is_let_in_stays() {
        let (doors, crowded) = doors(Limits { connections: 3, ..Limits::default() });
        let anybody = Caller::anybody();
        let mut places: Vec<Place> = [1, 2, 3].map(|port| doors.enter(peer(port)).unwrap()).into();
        assert!(doors.trust(&places[0].visit, &anybody));
        places.push(doors.enter(peer(4)).unwrap());
        assert_eq!(visits(&doors), [1, 3, 4]);
        assert!(has_gone(&mut places[1]) && !has_gone(&mut places[2]));
        assert!(!doors.trust(&places[1].visit, &anybody), "it is too late for it");
        places.push(doors.enter(peer(5)).unwrap());
        assert_eq!(visits(&doors), [1, 4, 5]);
        for place in &places[3..] {
            assert!(doors.trust(&place.visit, &anybody));
        }
        assert!(doors.enter(peer(6)).is_none(), "nobody makes room who was let in");
        assert_eq!(crowded.load(Ordering::Relaxed), 3);
        drop(places.remove(1));
        assert_eq!(visits(&doors), [1, 4, 5], "a place that was taken is not given up twice");
        places.clear();
        assert!(visits(&doors).is_empty());
    }

    #[test]
    fn a_credential_has_half_of_the_places_and_none_when_it_counts_no_more() {
        let (doors, _) = doors(Limits { connections: 4, ..Limits::default() });
        let (greedy, other) = (Caller::token("greedy"), Caller::token("other"));
        let mut places: Vec<Place> = [1, 2, 3].map(|port| doors.enter(peer(port)).unwrap()).into();
        let trusted = places.iter().filter(|place| doors.trust(&place.visit, &greedy)).count();
        assert_eq!(trusted, 2);
        assert!(doors.trust(&places[0].visit, &greedy), "whoever is in may call again");
        assert!(doors.trust(&places[2].visit, &other), "there is room for others");
        assert!(doors.trust(&places[0].visit, &other) && doors.trust(&places[0].visit, &greedy));
        let again = Caller::token("greedy");
        assert!(doors.trust(&places[0].visit, &again), "the same name is the same caller");
        places.push(doors.enter(peer(4)).unwrap());
        assert!(!doors.trust(&places[3].visit, &greedy));
        drop(places.remove(1));
        assert!(doors.trust(&places[2].visit, &greedy), "a place that is left is free");

        // What was revoked keeps nobody out.
        places.push(doors.enter(peer(5)).unwrap());
        assert!(doors.trust(&places[3].visit, &other));
        assert!(doors.enter(peer(6)).is_none());
        again.revoke();
        places.push(doors.enter(peer(7)).unwrap());
        assert_eq!(visits(&doors), [3, 4, 5, 7]);
        places.clear();
        assert!(doors.inside().callers.is_empty());
    }

    #[test]
    fn who_says_nothing_is_sent_away_and_who_calls_is_not() {
        let limits = Limits { first_call: Duration::ZERO, ..Limits::default() };
        let (doors, _) = doors(limits);
        let [mut silent, mut busy, mut idle] = [1, 2, 3].map(|port| doors.enter(peer(port)).unwrap());
        let call = busy.visit.call();
        drop(idle.visit.call());
        doors.send_away();
        assert!(has_gone(&mut silent));
        assert!(!has_gone(&mut busy) && !has_gone(&mut idle));
        assert_eq!(visits(&doors), [2, 3], "its place is free at once");
        drop(call);
        doors.send_away();
        assert!(!has_gone(&mut busy), "it has called, and may be quiet for a while");
    }

    /// Who fails to shake hands is told why, for as long as nobody needs its place.
    #[tokio::test]
    async fn last_words_make_room_too() {
        let folder = tempfile::tempdir().unwrap();
        let (authority, _) = Authority::create().unwrap();
        let pair = authority.coordinator(&["localhost".to_string()], Validity::of(LONG * 100)).unwrap();
        pair.write(folder.path(), "c").unwrap();
        let [certificate, key] = ["c.pem", "c.key"].map(|name| folder.path().join(name));
        let tls = TlsFiles { certificate, key, client_authority: None };
        let (tell, mut told) = mpsc::unbounded_channel();
        let watch: Watch = Arc::new(move |event| {
            let _ = tell.send(event);
        });
        let limits = Limits { connections: 1, ..Limits::default() };
        let doors = Doors::new(Some(tls), None, limits, watch).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let _incoming = doors.open(listener);
        let mut garbled = TcpStream::connect(address).await.unwrap();
        garbled.write_all(b"hello there, this is no TLS\r\n").await.unwrap();
        while told.recv().await.unwrap() != DoorEvent::Refused(Refusal::Handshake) {}
        let _next = TcpStream::connect(address).await.unwrap();
        while told.recv().await.unwrap() != DoorEvent::Refused(Refusal::Crowded) {}
        // Once nobody reads there, what is sent there comes back as an error.
        timeout(LONG * 12, async {
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
        let (doors, _) = doors(Limits::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut callers = Vec::new();
        for _ in 0..100 {
            callers.push(TcpStream::connect(address).await.unwrap());
        }
        let came: Vec<u16> = callers.iter().map(|caller| caller.local_addr().unwrap().port()).collect();
        let _guests: Vec<_> = doors.open(listener).take(callers.len()).collect().await;
        assert_eq!(visits(&doors), came);
    }
}
