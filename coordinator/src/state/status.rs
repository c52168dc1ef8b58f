//! What operators and monitors see.

use agon_arena::Spec;
use agon_arena::spec::{Format, Plan};
use agon_proto::v1;

use super::{Coordinator, Run, State, Worker, reference};
use crate::metrics::Levels;
use agon_schedule::RunState;

impl Coordinator {
    /// How a run is doing; `intervals` are worth their time at its end only.
    pub(crate) fn status(&self, id: &str, intervals: bool) -> Option<v1::RunStatus> {
        let guard = self.lock();
        let state = &*guard;
        let run = state.runs.get(id)?;
        let workers = state.workers.values().filter(|worker| worker.out.is_some()).count() as u32;
        // Of a run that ended early the ledger knows only that nothing more is wanted.
        let done = if run.state.is_open() {
            run.ledger.done()
        } else {
            run.standings.tally().bouts + run.voided.len() as u64
        };
        let seconds = run.since.elapsed().as_secs_f64().max(1e-3);
        let rate = (done - run.done_before.min(done)) as f64 / seconds;
        let games = run.standings.tally().games;
        let running = run.state == RunState::Running;
        let left = (run.ledger.total() - done) as f64 / rate;
        let waiting = match state.write_faults.values().next().or(run.export_fault.as_ref()) {
            // What cannot be exported is manifest of a run that has ended, too: it is not over.
            Some(reason) if running || run.export_fault.is_some() => reason.clone(),
            _ if !running || done == run.ledger.total() => String::new(),
            _ if self.now() < self.opens => {
                "workers may present what they hold from before; nothing is granted anew yet".to_string()
            }
            _ if workers == 0 => "no worker is connected".to_string(),
            _ if state.connected().all(|(name, _)| state.quarantine.contains_key(name)) => {
                "every connected worker is in quarantine: `agon workers` says why".to_string()
            }
            _ if run.spec.is_timed() && state.connected().all(|(_, worker)| worker.throttled) => {
                "every connected worker is throttled by its system, and the run is by the clock".to_string()
            }
            _ => String::new(),
        };
        let (standings, ended) = (run.standings.clone(), !run.state.is_open());
        let mut status = v1::RunStatus {
            run: id.to_string(),
            name: run.spec.name.clone(),
            game: run.spec.game.to_string(),
            state: wire_state(run.state) as i32,
            pause_reason: self.pause_reason(run) as i32,
            existed: false,
            bouts: run.ledger.total(),
            committed: done,
            failed: run.standings.tally().failed,
            leased: state.leases.count_of_run(id),
            games,
            exported: run.exported,
            bouts_per_second: rate,
            games_per_second: (games - run.games_before.min(games)) as f64 / seconds,
            seconds_left: (running && left.is_finite()).then_some(left),
            standings: Vec::new(),
            sprt: run.standings.sprt(),
            data: self.data.clone(),
            waiting,
            workers,
            abandoned: run.abandoned,
            priority: run.priority,
            voided: run.voided.len() as u64,
            checked: run.checked,
            disputed: run.disputed,
            tune: run.tune_status(),
            probe: matches!(run.spec.plan, Plan::Probe(_)),
            hypotheses: hypotheses(&run.spec),
        };
        // Rating many players takes a while, and nobody should wait for it.
        drop(guard);
        status.standings = standings.table(intervals && ended);
        Some(status)
    }

    /// Returns why a run is paused.
    fn pause_reason(&self, run: &Run) -> v1::PauseReason {
        if run.state != RunState::Paused {
            v1::PauseReason::Unspecified
        } else if run.signature != self.signature {
            v1::PauseReason::BuildChanged
        } else {
            v1::PauseReason::Operator
        }
    }

    /// What there is of everything now.
    pub(crate) fn levels(&self) -> Levels {
        let state = self.lock();
        let count =
            |wanted: fn(&Worker) -> bool| state.connected().filter(|(_, worker)| wanted(worker)).count();
        let runs = RunState::ALL
            .map(|(kind, name)| (name, state.runs.values().filter(|run| run.state == kind).count() as i64));
        let running = state.runs.values().filter(|run| run.state == RunState::Running);
        let pending: u64 = running.map(|run| run.ledger.total() - run.ledger.done()).sum();
        Levels {
            sessions: state.connected().count() as i64,
            slots: state.connected().map(|(_, worker)| i64::from(worker.slots)).sum(),
            quarantined: state.quarantine.len() as i64,
            throttled: count(|worker| worker.throttled) as i64,
            leases: state.leases.count() as i64,
            pending: i64::try_from(pending).unwrap_or(i64::MAX),
            checks: state.checks.waiting() as i64,
            waiting: !state.write_faults.is_empty()
                || state.runs.values().any(|run| run.export_fault.is_some()),
            runs: runs.to_vec(),
        }
    }

    /// Every worker that has been here.
    pub(crate) fn workers(&self) -> Vec<v1::WorkerStatus> {
        let guard = self.lock();
        let state = &*guard;
        state.workers.iter().map(|(name, worker)| state.worker_status(name, worker)).collect()
    }

    /// One worker, if it has been here.
    pub(crate) fn worker(&self, name: &str) -> Option<v1::WorkerStatus> {
        let state = self.lock();
        state.workers.get(name).map(|worker| state.worker_status(name, worker))
    }
}

impl State {
    fn worker_status(&self, name: &str, worker: &Worker) -> v1::WorkerStatus {
        let held: Vec<_> = self.leases.of_worker(name).collect();
        v1::WorkerStatus {
            worker: name.to_string(),
            build: worker.build.clone(),
            slots: worker.slots,
            speed: worker.speed,
            connected: worker.out.is_some(),
            leases: held.len() as u32,
            committed: worker.reputation.bouts,
            refused: worker.refused,
            flag: self.quarantine.get(name).cloned().unwrap_or_default(),
            progress: held
                .iter()
                .filter(|(_, lease)| lease.progress.started)
                .map(|(key, lease)| v1::Progress {
                    lease: Some(reference(key, lease.token)),
                    started: true,
                    game: lease.progress.game,
                    ply: lease.progress.ply,
                    pulse: lease.progress.pulse,
                })
                .collect(),
            seconds_since_heartbeat: worker.heard.elapsed().as_secs_f64(),
            throttled: worker.throttled,
            confirmed: self.checks.confirmed(name),
            crashes: worker.reputation.crashes,
            forfeits: worker.reputation.forfeits,
            mean_overshoot_us: worker.reputation.mean_overshoot_us(),
        }
    }
}

/// What the test of a spec asks, where it is one.
fn hypotheses(spec: &Spec) -> Option<v1::Hypotheses> {
    let (Plan::Tournament(Format::Sprt(test)), [one, other, ..]) = (&spec.plan, &spec.players[..]) else {
        return None;
    };
    let [low, high] = test.bounds;
    Some(v1::Hypotheses {
        player: one.name.clone(),
        against: other.name.clone(),
        low,
        high,
        normalised: test.normalised,
    })
}

fn wire_state(state: RunState) -> v1::RunState {
    match state {
        RunState::Running => v1::RunState::Running,
        RunState::Paused => v1::RunState::Paused,
        RunState::Done => v1::RunState::Done,
        RunState::Decided => v1::RunState::Decided,
        RunState::Cancelled => v1::RunState::Cancelled,
    }
}
