//! What a worker holds: bouts that wait, that are played, and that are played and not yet acknowledged.
//!
//! Pure bookkeeping without threads, clocks and connections. A slot whose bout is not wanted any more stays taken until
//! its thread says that it has stopped.

use std::collections::{BTreeMap, VecDeque};

use agon_proto::{Bout, Lease};

/// Where a bout is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// It has no slot yet.
    Waiting,
    /// It is played in this slot.
    Playing(usize),
    /// It is played, or it failed, and is not yet acknowledged.
    Done,
}

/// The bouts of a worker.
pub(crate) struct Holdings {
    stages: BTreeMap<Lease, Stage>,
    waiting: VecDeque<Bout>,
    /// What each slot is busy with, wanted or not.
    slots: Vec<Option<Lease>>,
}

impl Holdings {
    /// Nothing is held.
    pub(crate) fn new(slots: usize) -> Holdings {
        Holdings { stages: BTreeMap::new(), waiting: VecDeque::new(), slots: vec![None; slots] }
    }

    /// Takes a bout on loan. False where the lease is held already.
    pub(crate) fn grant(&mut self, bout: Bout) -> bool {
        if self.stages.contains_key(&bout.lease) {
            return false;
        }
        self.stages.insert(bout.lease.clone(), Stage::Waiting);
        self.waiting.push_back(bout);
        true
    }

    /// The bout that waits longest goes to a free slot, where there are both.
    pub(crate) fn start(&mut self) -> Option<(usize, Bout)> {
        let slot = self.slots.iter().position(Option::is_none)?;
        let bout = self.waiting.pop_front()?;
        self.slots[slot] = Some(bout.lease.clone());
        self.stages.insert(bout.lease.clone(), Stage::Playing(slot));
        Some((slot, bout))
    }

    /// A slot is free again. Gives its lease, if the bout is still wanted; then it is done until acknowledged.
    pub(crate) fn stopped(&mut self, slot: usize) -> Option<Lease> {
        let lease = self.slots[slot].take()?;
        let stage = self.stages.get_mut(&lease)?;
        *stage = Stage::Done;
        Some(lease)
    }

    /// A bout is not held any more. Says where it was; a slot that plays it is to be interrupted.
    pub(crate) fn forget(&mut self, lease: &Lease) -> Option<Stage> {
        let stage = self.stages.remove(lease)?;
        if stage == Stage::Waiting {
            self.waiting.retain(|bout| bout.lease != *lease);
        }
        Some(stage)
    }

    /// Every bout that waits is held no more.
    pub(crate) fn take_waiting(&mut self) -> Vec<Lease> {
        let leases: Vec<Lease> = self.waiting.drain(..).map(|bout| bout.lease).collect();
        for lease in &leases {
            self.stages.remove(lease);
        }
        leases
    }

    /// Where a bout is, if it is held.
    pub(crate) fn stage(&self, lease: &Lease) -> Option<Stage> {
        self.stages.get(lease).copied()
    }

    /// Everything that is held, with its stage.
    pub(crate) fn stages(&self) -> impl Iterator<Item = (&Lease, Stage)> {
        self.stages.iter().map(|(lease, stage)| (lease, *stage))
    }

    /// The slots that are busy, wanted or not.
    pub(crate) fn busy(&self) -> impl Iterator<Item = usize> + '_ {
        self.slots.iter().enumerate().filter(|(_, lease)| lease.is_some()).map(|(slot, _)| slot)
    }

    /// Whether a slot has nothing to do.
    pub(crate) fn idle(&self) -> bool {
        self.slots.iter().any(Option::is_none)
    }

    /// How many bouts are to be played or are being played.
    pub(crate) fn to_play(&self) -> usize {
        self.waiting.len() + self.busy().count()
    }

    /// How many are done and not acknowledged.
    pub(crate) fn unacknowledged(&self) -> usize {
        self.stages.values().filter(|stage| **stage == Stage::Done).count()
    }
}

#[cfg(test)]
mod tests {
    use agon_arena::Opening;
    use agon_games::random::{below, seeded};

    use super::*;

    fn bout(number: u64) -> Bout {
        let lease = Lease { run: "run".to_string(), bout: number, epoch: 1, sequence: number };
        Bout { lease, players: vec![0, 1], opening: Opening::default(), values: Vec::new() }
    }

    #[test]
    fn a_bout_goes_through_its_stages_once() {
        let mut held = Holdings::new(1);
        assert!(held.grant(bout(1)) && held.grant(bout(2)) && !held.grant(bout(1)));
        assert_eq!(held.start(), Some((0, bout(1))));
        assert_eq!(held.start(), None, "the slot is taken");
        assert_eq!((held.to_play(), held.unacknowledged()), (2, 0));
        assert_eq!(held.stopped(0), Some(bout(1).lease));
        assert_eq!((held.to_play(), held.unacknowledged()), (1, 1));
        assert_eq!(held.forget(&bout(1).lease), Some(Stage::Done));
        assert_eq!(held.forget(&bout(1).lease), None);
        assert_eq!(held.take_waiting(), [bout(2).lease]);
        assert_eq!(held.stages().count(), 0);
    }

    #[test]
    fn a_slot_whose_bout_is_not_wanted_stays_taken_until_it_stops() {
        let mut held = Holdings::new(1);
        held.grant(bout(1));
        held.start();
        assert_eq!(held.forget(&bout(1).lease), Some(Stage::Playing(0)));
        held.grant(bout(2));
        assert_eq!(held.start(), None);
        assert_eq!(held.stopped(0), None);
        assert_eq!(held.start(), Some((0, bout(2))));
    }

    /// Whatever happens in whatever order, no bout is in two places and none is lost.
    #[test]
    fn nothing_is_lost_or_doubled() {
        let mut random = seeded(7);
        let mut held = Holdings::new(3);
        let (mut granted, mut gone) = (0, 0);
        for _ in 0..20_000 {
            match below(&mut random, 5) {
                0 => {
                    held.grant(bout(granted));
                    granted += 1;
                }
                1 => drop(held.start()),
                2 => drop(held.stopped(below(&mut random, 3))),
                3 => {
                    let lease = held.stages().map(|(lease, _)| lease.clone()).next();
                    gone += u64::from(lease.is_some_and(|lease| held.forget(&lease).is_some()));
                }
                _ if below(&mut random, 50) == 0 => gone += held.take_waiting().len() as u64,
                _ => {}
            }
            let count = |wanted: fn(Stage) -> bool| held.stages().filter(|(_, stage)| wanted(*stage)).count();
            assert_eq!(count(|stage| stage == Stage::Waiting), held.waiting.len());
            assert!(count(|stage| matches!(stage, Stage::Playing(_))) <= held.busy().count());
            assert_eq!(held.stages().count() as u64, granted - gone);
        }
    }
}
