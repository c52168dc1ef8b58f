//! Messages of bouts until they are acknowledged: each is sent once a connection, all of them again after a new one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agon_proto::Lease;
use agon_proto::v1::Submission;
use prost::Message;

/// What is not yet acknowledged.
#[derive(Default)]
pub(crate) struct Outbox {
    bouts: BTreeMap<Lease, Vec<Submission>>,
    /// What this connection has not yet sent: a bout and the number of the message.
    unsent: VecDeque<(Lease, usize)>,
    /// Bouts that are not wanted any more and whose slot may still be writing.
    unwanted: BTreeSet<Lease>,
    bytes: u64,
}

impl Outbox {
    /// Keeps the next message of a bout.
    pub(crate) fn push(&mut self, lease: Lease, message: Submission) {
        if self.unwanted.contains(&lease) {
            return;
        }
        self.bytes += message.encoded_len() as u64;
        let messages = self.bouts.entry(lease.clone()).or_default();
        self.unsent.push_back((lease, messages.len()));
        messages.push(message);
    }

    /// Whether there is something to send.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// The next message to send.
    pub(crate) fn next(&mut self) -> Option<Submission> {
        let (lease, index) = self.unsent.pop_front()?;
        let messages = self.bouts.get(&lease).expect("what is forgotten is not unsent");
        Some(messages[index].clone())
    }

    /// A new connection knows nothing: everything is unsent again.
    pub(crate) fn rewind(&mut self) {
        self.unsent.clear();
        for (lease, messages) in &self.bouts {
            self.unsent.extend((0..messages.len()).map(|index| (lease.clone(), index)));
        }
    }

    /// A bout is acknowledged or given up. False where it is not here.
    pub(crate) fn forget(&mut self, lease: &Lease) -> bool {
        let Some(messages) = self.bouts.remove(lease) else { return false };
        self.bytes -= messages.iter().map(|message| message.encoded_len() as u64).sum::<u64>();
        self.unsent.retain(|(other, _)| other != lease);
        true
    }

    /// A bout is given up while its slot may still write more of it.
    pub(crate) fn forget_ahead(&mut self, lease: Lease) {
        self.forget(&lease);
        self.unwanted.insert(lease);
    }

    /// The slot of a bout that was given up has stopped: nothing more will come.
    pub(crate) fn stopped(&mut self, lease: &Lease) {
        self.unwanted.remove(lease);
    }

    /// The bytes of everything that is kept.
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
    fn everything_is_sent_once_a_connection_until_it_is_acknowledged() {
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
        assert!(outbox.forget(&lease(1)) && !outbox.forget(&lease(1)));
        assert_eq!(outbox.bytes(), message(2, "b").encoded_len() as u64);
        assert_eq!(sent(&mut outbox), [message(2, "b")]);
        assert!(outbox.forget(&lease(2)));
        assert_eq!(outbox.bytes(), 0);
    }

    #[test]
    fn nothing_of_a_bout_that_was_given_up_is_kept() {
        let mut outbox = Outbox::default();
        outbox.push(lease(1), failure(&lease(1), "a"));
        outbox.forget_ahead(lease(1));
        outbox.push(lease(1), failure(&lease(1), "b"));
        assert_eq!((outbox.bytes(), outbox.has_unsent()), (0, false));
        outbox.stopped(&lease(1));
        outbox.push(lease(1), failure(&lease(1), "c"));
        assert!(outbox.has_unsent(), "the same lease again after a reconnect is a bout like any other");
    }
}
