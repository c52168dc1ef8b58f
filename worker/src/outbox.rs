//! Submission messages that are not yet acknowledged. Each is sent once per connection, and again after a reconnect.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agon_proto::Lease;
use agon_proto::v1::Submission;
use prost::Message;

/// The messages of all unacknowledged bouts.
#[derive(Default)]
pub(crate) struct Outbox {
    bouts: BTreeMap<Lease, Vec<Submission>>,
    /// The messages not yet sent on this connection: the bout and the index of the message.
    unsent: VecDeque<(Lease, usize)>,
    /// Abandoned bouts whose slot may still write messages.
    abandoned: BTreeSet<Lease>,
    bytes: u64,
}

impl Outbox {
    /// Adds the next message of a bout; ignored if the bout was abandoned.
    pub(crate) fn push(&mut self, lease: Lease, message: Submission) {
        if self.abandoned.contains(&lease) {
            return;
        }
        self.bytes += message.encoded_len() as u64;
        let messages = self.bouts.entry(lease.clone()).or_default();
        self.unsent.push_back((lease, messages.len()));
        messages.push(message);
    }

    /// Returns whether a message is unsent.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Takes the next message to send.
    pub(crate) fn next(&mut self) -> Option<Submission> {
        let (lease, index) = self.unsent.pop_front()?;
        let messages = self.bouts.get(&lease).expect("removing a bout removes its unsent messages");
        Some(messages[index].clone())
    }

    /// Marks all messages as unsent, for a new connection.
    pub(crate) fn rewind(&mut self) {
        self.unsent.clear();
        for (lease, messages) in &self.bouts {
            self.unsent.extend((0..messages.len()).map(|index| (lease.clone(), index)));
        }
    }

    /// Removes an acknowledged or abandoned bout, and returns whether it was present.
    pub(crate) fn remove(&mut self, lease: &Lease) -> bool {
        let Some(messages) = self.bouts.remove(lease) else { return false };
        self.bytes -= messages.iter().map(|message| message.encoded_len() as u64).sum::<u64>();
        self.unsent.retain(|(other, _)| other != lease);
        true
    }

    /// Removes a bout, and ignores the messages that its slot may still write.
    pub(crate) fn abandon(&mut self, lease: Lease) {
        self.remove(&lease);
        self.abandoned.insert(lease);
    }

    /// Marks the slot of an abandoned bout as stopped.
    pub(crate) fn slot_stopped(&mut self, lease: &Lease) {
        self.abandoned.remove(lease);
    }

    /// Returns the size of all messages.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use agon_proto::write::failure;

    use super::*;

    fn lease(bout: u64) -> Lease {
        Lease { run: "run".to_string(), bout, epoch: 1, sequence: bout }
    }

    fn sent(outbox: &mut Outbox) -> Vec<Submission> {
        std::iter::from_fn(|| outbox.next()).collect()
    }

    #[test]
    fn sends_each_message_once_per_connection_until_acknowledged() {
        let mut outbox = Outbox::default();
        let message = |bout, text| failure(&lease(bout), text);
        for (bout, text) in [(1, "a"), (2, "b"), (1, "c")] {
            outbox.push(lease(bout), message(bout, text));
        }
        assert_eq!(sent(&mut outbox), [message(1, "a"), message(2, "b"), message(1, "c")]);
        assert!(!outbox.has_unsent());
        outbox.rewind();
        assert_eq!(sent(&mut outbox), [message(1, "a"), message(1, "c"), message(2, "b")]);
        outbox.rewind();
        assert!(outbox.remove(&lease(1)) && !outbox.remove(&lease(1)));
        assert_eq!(outbox.bytes(), message(2, "b").encoded_len() as u64);
        assert_eq!(sent(&mut outbox), [message(2, "b")]);
        assert!(outbox.remove(&lease(2)));
        assert_eq!(outbox.bytes(), 0);
    }

    #[test]
    fn ignores_messages_of_abandoned_bouts_until_the_slot_stops() {
        let mut outbox = Outbox::default();
        outbox.push(lease(1), failure(&lease(1), "a"));
        outbox.abandon(lease(1));
        outbox.push(lease(1), failure(&lease(1), "b"));
        assert_eq!((outbox.bytes(), outbox.has_unsent()), (0, false));
        outbox.slot_stopped(&lease(1));
        outbox.push(lease(1), failure(&lease(1), "c"));
        assert!(outbox.has_unsent(), "after a reconnect the same lease is a normal bout");
    }
}
