//! The table of open connections: admission, authorization and eviction.
//!
//! At the connection limit the oldest connection without an authorized call is evicted, so that a flood of
//! unauthenticated connections displaces only itself. One credential may hold at most half of the slots.

use std::collections::{BTreeMap, HashMap};
use std::future::{Future as _, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tracing::debug;

use crate::caller::Caller;
use crate::listener::{ConnectionEvent, Listener, Rejection};
use crate::lock;

/// The state of a connection, in the extensions of each of its requests.
#[derive(Clone)]
pub struct ConnectionInfo(Arc<Inner>);

struct Inner {
    peer: SocketAddr,
    /// The number of its slot.
    number: u64,
    certificate: OnceLock<Caller>,
    /// Whether it ever made an authorized call.
    called: AtomicBool,
    open_calls: AtomicUsize,
    idle_since: Mutex<Instant>,
    /// The caller of its last authorized call.
    caller: Mutex<Option<Caller>>,
}

impl ConnectionInfo {
    fn new(peer: SocketAddr, number: u64) -> ConnectionInfo {
        ConnectionInfo(Arc::new(Inner {
            peer,
            number,
            certificate: OnceLock::new(),
            called: AtomicBool::new(false),
            open_calls: AtomicUsize::new(0),
            idle_since: Mutex::new(Instant::now()),
            caller: Mutex::default(),
        }))
    }

    /// Returns the remote address.
    pub fn peer(&self) -> SocketAddr {
        self.0.peer
    }

    pub(crate) fn set_certificate(&self, caller: Caller) {
        let _ = self.0.certificate.set(caller);
    }

    /// Returns the caller by its client certificate.
    pub(crate) fn certificate(&self) -> Option<&Caller> {
        self.0.certificate.get()
    }

    /// Registers an authorized call until the result is dropped.
    pub(crate) fn begin_call(&self) -> OpenCall {
        self.0.called.store(true, Ordering::Relaxed);
        self.0.open_calls.fetch_add(1, Ordering::Relaxed);
        OpenCall(self.clone())
    }

    fn caller(&self) -> Option<Caller> {
        lock(&self.0.caller).clone()
    }

    fn is_authorized(&self) -> bool {
        lock(&self.0.caller).as_ref().is_some_and(Caller::is_valid)
    }

    fn has_called(&self) -> bool {
        self.0.called.load(Ordering::Relaxed)
    }

    /// Returns the time since the last call, or `None` during a call.
    fn idle_time(&self) -> Option<Duration> {
        let busy = self.0.open_calls.load(Ordering::Relaxed) > 0;
        (!busy).then(|| lock(&self.0.idle_since).elapsed())
    }
}

/// A call in progress.
pub(crate) struct OpenCall(ConnectionInfo);

impl Drop for OpenCall {
    fn drop(&mut self) {
        *lock(&self.0.0.idle_since) = Instant::now();
        self.0.0.open_calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The slot of a connection, released on drop.
pub(crate) struct ConnectionSlot {
    pub(crate) listener: Arc<Listener>,
    pub(crate) info: ConnectionInfo,
    /// Completes when the connection must close; `None` afterwards.
    closing: Option<oneshot::Receiver<()>>,
}

impl ConnectionSlot {
    /// Returns whether the connection must close; otherwise the task is woken when it must.
    pub(crate) fn is_closing(&mut self, cx: &mut Context<'_>) -> bool {
        if self.closing.as_mut().is_some_and(|closing| Pin::new(closing).poll(cx).is_ready()) {
            self.closing = None;
        }
        self.closing.is_none()
    }

    /// Waits until the connection must close.
    pub(crate) async fn closed(&mut self) {
        poll_fn(|cx| if self.is_closing(cx) { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.listener.release(&self.info);
    }
}

/// All open connections, in order of arrival.
#[derive(Default)]
pub(crate) struct Connections {
    next: u64,
    slots: BTreeMap<u64, (ConnectionInfo, oneshot::Sender<()>)>,
    /// The number of connections per caller.
    callers: HashMap<Caller, usize>,
}

impl Connections {
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

impl Listener {
    /// Allocates a slot, evicting an unauthorized connection if necessary.
    pub(crate) fn admit(self: &Arc<Listener>, peer: SocketAddr) -> Option<ConnectionSlot> {
        let mut connections = lock(&self.connections);
        if connections.slots.len() >= self.limits.connections {
            let victim = connections.slots.iter().find(|(_, (info, _))| !info.is_authorized());
            let number = victim.map(|(number, _)| *number);
            let Some((info, close)) = number.and_then(|number| connections.remove(number)) else {
                drop(connections);
                self.reject(Rejection::Crowded, Some(peer), "all connection slots are in use");
                return None;
            };
            let _ = close.send(());
            (self.on_event)(ConnectionEvent::Closed);
            self.reject(Rejection::Crowded, Some(info.peer()), "evicted while unauthenticated");
        }
        let number = connections.next;
        connections.next += 1;
        let (close, closing) = oneshot::channel();
        let info = ConnectionInfo::new(peer, number);
        connections.slots.insert(number, (info.clone(), close));
        drop(connections);
        (self.on_event)(ConnectionEvent::Opened);
        Some(ConnectionSlot { listener: Arc::clone(self), info, closing: Some(closing) })
    }

    /// Assigns a connection to an authorized caller. Returns whether the caller stays within half of the slots.
    pub(crate) fn authorize(&self, info: &ConnectionInfo, caller: &Caller) -> bool {
        if info.caller().is_some_and(|known| known.is_same_credential(caller)) {
            return true;
        }
        let mut connections = lock(&self.connections);
        if !connections.slots.contains_key(&info.0.number) {
            return false;
        }
        let own = usize::from(info.caller().is_some_and(|known| known == *caller));
        let others = connections.callers.get(caller).map_or(0, |count| count - own);
        if caller.is_authenticated() && others >= self.limits.connections.div_ceil(2) {
            return false;
        }
        *connections.callers.entry(caller.clone()).or_default() += 1;
        let previous = lock(&info.0.caller).replace(caller.clone());
        if let Some(previous) = previous {
            connections.release_caller(&previous);
        }
        true
    }

    fn release(&self, info: &ConnectionInfo) {
        if lock(&self.connections).remove(info.0.number).is_some() {
            (self.on_event)(ConnectionEvent::Closed);
        }
    }

    /// Closes connections that exceed their idle or first-call timeout.
    pub(crate) fn close_idle(&self) {
        let mut connections = lock(&self.connections);
        let is_expired = |info: &ConnectionInfo| {
            let deadline = if info.has_called() { self.limits.idle } else { self.limits.first_call };
            info.idle_time().is_some_and(|idle| idle >= deadline)
        };
        let expired: Vec<u64> = connections
            .slots
            .iter()
            .filter(|(_, (info, _))| is_expired(info))
            .map(|(number, _)| *number)
            .collect();
        let closed: Vec<_> = expired.into_iter().filter_map(|number| connections.remove(number)).collect();
        drop(connections);
        for (info, close) in closed {
            let _ = close.send(());
            (self.on_event)(ConnectionEvent::Closed);
            if info.has_called() {
                debug!(peer = %info.peer(), "idle connection closed");
            } else {
                self.reject(Rejection::Silent, Some(info.peer()), "no call before the deadline");
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
pub(crate) mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::limits::Limits;
    use crate::listener::EventHandler;

    pub(crate) fn listener(limits: Limits) -> (Arc<Listener>, Arc<AtomicU64>) {
        let crowded = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&crowded);
        let on_event: EventHandler = Arc::new(move |event| {
            counted.fetch_add(
                u64::from(event == ConnectionEvent::Rejected(Rejection::Crowded)),
                Ordering::Relaxed,
            );
        });
        (Listener::new(None, None, limits, on_event).unwrap(), crowded)
    }

    pub(crate) fn ports(listener: &Listener) -> Vec<u16> {
        lock(&listener.connections).slots.values().map(|(info, _)| info.peer().port()).collect()
    }

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn is_closed(slot: &mut ConnectionSlot) -> bool {
        slot.is_closing(&mut Context::from_waker(std::task::Waker::noop()))
    }

    #[test]
    fn evicts_the_oldest_unauthorized_connection() {
        let (listener, crowded) = listener(Limits { connections: 3, ..Limits::default() });
        let anonymous = Caller::anonymous();
        let mut slots: Vec<ConnectionSlot> = [1, 2, 3].map(|port| listener.admit(peer(port)).unwrap()).into();
        assert!(listener.authorize(&slots[0].info, &anonymous));
        slots.push(listener.admit(peer(4)).unwrap());
        assert_eq!(ports(&listener), [1, 3, 4]);
        assert!(is_closed(&mut slots[1]) && !is_closed(&mut slots[2]));
        assert!(!listener.authorize(&slots[1].info, &anonymous), "it was evicted");
        slots.push(listener.admit(peer(5)).unwrap());
        assert_eq!(ports(&listener), [1, 4, 5]);
        for slot in &slots[3..] {
            assert!(listener.authorize(&slot.info, &anonymous));
        }
        assert!(listener.admit(peer(6)).is_none(), "authorized connections are never evicted");
        assert_eq!(crowded.load(Ordering::Relaxed), 3);
        drop(slots.remove(1));
        assert_eq!(ports(&listener), [1, 4, 5], "an evicted slot is not released twice");
        slots.clear();
        assert!(ports(&listener).is_empty());
    }

    #[test]
    fn limits_a_credential_to_half_of_the_slots() {
        let (listener, _) = listener(Limits { connections: 4, ..Limits::default() });
        let (greedy, other) = (Caller::token("greedy"), Caller::token("other"));
        let mut slots: Vec<ConnectionSlot> = [1, 2, 3].map(|port| listener.admit(peer(port)).unwrap()).into();
        let authorized = slots.iter().filter(|slot| listener.authorize(&slot.info, &greedy)).count();
        assert_eq!(authorized, 2);
        assert!(listener.authorize(&slots[0].info, &greedy), "an authorized connection may call again");
        assert!(listener.authorize(&slots[2].info, &other), "another credential has its own half");
        assert!(listener.authorize(&slots[0].info, &other) && listener.authorize(&slots[0].info, &greedy));
        let again = Caller::token("greedy");
        assert!(listener.authorize(&slots[0].info, &again), "callers are compared by name");
        slots.push(listener.admit(peer(4)).unwrap());
        assert!(!listener.authorize(&slots[3].info, &greedy));
        drop(slots.remove(1));
        assert!(listener.authorize(&slots[2].info, &greedy), "a released slot is free");

        // Connections of a revoked credential can be evicted.
        slots.push(listener.admit(peer(5)).unwrap());
        assert!(listener.authorize(&slots[3].info, &other));
        assert!(listener.admit(peer(6)).is_none());
        again.revoke();
        slots.push(listener.admit(peer(7)).unwrap());
        assert_eq!(ports(&listener), [3, 4, 5, 7]);
        slots.clear();
        assert!(lock(&listener.connections).callers.is_empty());
    }

    #[test]
    fn closes_connections_without_calls() {
        let limits = Limits { first_call: Duration::ZERO, ..Limits::default() };
        let (listener, _) = listener(limits);
        let [mut silent, mut busy, mut idle] = [1, 2, 3].map(|port| listener.admit(peer(port)).unwrap());
        let call = busy.info.begin_call();
        drop(idle.info.begin_call());
        listener.close_idle();
        assert!(is_closed(&mut silent));
        assert!(!is_closed(&mut busy) && !is_closed(&mut idle));
        assert_eq!(ports(&listener), [2, 3], "the slot is free at once");
        drop(call);
        listener.close_idle();
        assert!(!is_closed(&mut busy), "after its first call the idle timeout applies");
    }
}
