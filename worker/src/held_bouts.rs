//! The bouts that a worker holds: waiting, being played, or played and not yet acknowledged.
//!
//! Pure bookkeeping without threads, clocks and connections. A slot whose bout was abandoned stays busy until its thread
//! reports that it has stopped.

use std::collections::{BTreeMap, VecDeque};

use agon_proto::{Lease, LeasedBout};

/// The stage of a held bout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Waiting for a slot.
    Waiting,
    /// Being played in this slot.
    Playing(usize),
    /// Played or failed, and not yet acknowledged.
    Done,
}

/// The held bouts and the state of the slots.
pub(crate) struct HeldBouts {
    stages: BTreeMap<Lease, Stage>,
    waiting: VecDeque<LeasedBout>,
    /// The bout of each busy slot, abandoned or not.
    slots: Vec<Option<Lease>>,
}

impl HeldBouts {
    /// Starts without bouts.
    pub(crate) fn new(slots: usize) -> HeldBouts {
        HeldBouts { stages: BTreeMap::new(), waiting: VecDeque::new(), slots: vec![None; slots] }
    }

    /// Adds a leased bout. Returns false if the lease is already held.
    pub(crate) fn add(&mut self, bout: LeasedBout) -> bool {
        if self.stages.contains_key(&bout.lease) {
            return false;
        }
        self.stages.insert(bout.lease.clone(), Stage::Waiting);
        self.waiting.push_back(bout);
        true
    }

    /// Assigns the bout that has waited longest to a free slot, if there are both.
    pub(crate) fn start(&mut self) -> Option<(usize, LeasedBout)> {
        let slot = self.slots.iter().position(Option::is_none)?;
        let bout = self.waiting.pop_front()?;
        self.slots[slot] = Some(bout.lease.clone());
        self.stages.insert(bout.lease.clone(), Stage::Playing(slot));
        Some((slot, bout))
    }

    /// Frees a slot. Returns its lease, now done, unless the bout was abandoned.
    pub(crate) fn stop(&mut self, slot: usize) -> Option<Lease> {
        let lease = self.slots[slot].take()?;
        let stage = self.stages.get_mut(&lease)?;
        *stage = Stage::Done;
        Some(lease)
    }

    /// Removes a bout and returns its stage. The caller interrupts a slot that plays it.
    pub(crate) fn remove(&mut self, lease: &Lease) -> Option<Stage> {
        let stage = self.stages.remove(lease)?;
        if stage == Stage::Waiting {
            self.waiting.retain(|bout| bout.lease != *lease);
        }
        Some(stage)
    }

    /// Removes all waiting bouts.
    pub(crate) fn take_waiting(&mut self) -> Vec<Lease> {
        let leases: Vec<Lease> = self.waiting.drain(..).map(|bout| bout.lease).collect();
        for lease in &leases {
            self.stages.remove(lease);
        }
        leases
    }

    /// Returns the stage of a bout, if it is held.
    pub(crate) fn stage(&self, lease: &Lease) -> Option<Stage> {
        self.stages.get(lease).copied()
    }

    /// Returns all held bouts with their stages.
    pub(crate) fn stages(&self) -> impl Iterator<Item = (&Lease, Stage)> {
        self.stages.iter().map(|(lease, stage)| (lease, *stage))
    }

    /// Returns the busy slots, including those with abandoned bouts.
    pub(crate) fn busy_slots(&self) -> impl Iterator<Item = usize> + '_ {
        self.slots.iter().enumerate().filter(|(_, lease)| lease.is_some()).map(|(slot, _)| slot)
    }

    /// Returns whether a slot is free.
    pub(crate) fn has_free_slot(&self) -> bool {
        self.slots.iter().any(Option::is_none)
    }

    /// Returns the number of waiting bouts and busy slots.
    pub(crate) fn pending(&self) -> usize {
        self.waiting.len() + self.busy_slots().count()
    }

    /// Returns the number of done bouts that are not acknowledged.
    pub(crate) fn unacknowledged(&self) -> usize {
        self.stages.values().filter(|stage| **stage == Stage::Done).count()
    }
}

#[cfg(test)]
mod tests {
    use agon_arena::Opening;
    use agon_games::random::{below, seeded};

    use super::*;

    fn bout(number: u64) -> LeasedBout {
        let lease = Lease { run: "run".to_string(), bout: number, epoch: 1, sequence: number };
        LeasedBout::new(lease, vec![0, 1], Opening::default(), Vec::new())
    }

    #[test]
    fn bout_passes_each_stage_once() {
        let mut held = HeldBouts::new(1);
        assert!(held.add(bout(1)) && held.add(bout(2)) && !held.add(bout(1)));
        assert_eq!(held.start(), Some((0, bout(1))));
        assert_eq!(held.start(), None, "the slot is busy");
        assert_eq!((held.pending(), held.unacknowledged()), (2, 0));
        assert_eq!(held.stop(0), Some(bout(1).lease));
        assert_eq!((held.pending(), held.unacknowledged()), (1, 1));
        assert_eq!(held.remove(&bout(1).lease), Some(Stage::Done));
        assert_eq!(held.remove(&bout(1).lease), None);
        assert_eq!(held.take_waiting(), [bout(2).lease]);
        assert_eq!(held.stages().count(), 0);
    }

    #[test]
    fn slot_with_abandoned_bout_stays_busy_until_it_stops() {
        let mut held = HeldBouts::new(1);
        held.add(bout(1));
        held.start();
        assert_eq!(held.remove(&bout(1).lease), Some(Stage::Playing(0)));
        held.add(bout(2));
        assert_eq!(held.start(), None);
        assert_eq!(held.stop(0), None);
        assert_eq!(held.start(), Some((0, bout(2))));
    }

    #[test]
    fn random_operations_neither_lose_nor_duplicate_bouts() {
        let mut random = seeded(7);
        let mut held = HeldBouts::new(3);
        let (mut added, mut removed) = (0, 0);
        for _ in 0..20_000 {
            match below(&mut random, 5) {
                0 => {
                    held.add(bout(added));
                    added += 1;
                }
                1 => drop(held.start()),
                2 => drop(held.stop(below(&mut random, 3))),
                3 => {
                    let lease = held.stages().map(|(lease, _)| lease.clone()).next();
                    removed += u64::from(lease.is_some_and(|lease| held.remove(&lease).is_some()));
                }
                _ if below(&mut random, 50) == 0 => removed += held.take_waiting().len() as u64,
                _ => {}
            }
            let count = |wanted: fn(Stage) -> bool| held.stages().filter(|(_, stage)| wanted(*stage)).count();
            assert_eq!(count(|stage| stage == Stage::Waiting), held.waiting.len());
            assert!(count(|stage| matches!(stage, Stage::Playing(_))) <= held.busy_slots().count());
            assert_eq!(held.stages().count() as u64, added - removed);
        }
    }
}
