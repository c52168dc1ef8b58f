//! Status reports for operators, and gauges for monitoring.

use agon_arena::Spec;
use agon_arena::spec::{Format, Plan};
use agon_proto::v1;

use super::{Coordinator, Run, State, Worker, lease_ref};
use agon_schedule::RunState;

impl Coordinator {
    /// Returns the status of a run. `intervals` requests rating intervals, which are computed only after its end.
    pub(crate) fn status(&self, id: &str, intervals: bool) -> Option<v1::RunStatus> {
        let guard = self.lock();
        let state = &*guard;
        let run = state.durable.run(id)?;
        let record = run.record();
        let workers = state.workers.values().filter(|worker| worker.queue.is_some()).count() as u32;
        // The ledger of a run that ended early has bouts that were never played.
        let done = if record.state.is_open() {
            run.ledger.done()
        } else {
            record.standings.totals().bouts + record.voided.len() as u64
        };
        let seconds = run.since.elapsed().as_secs_f64().max(1e-3);
        let rate = (done - run.done_before.min(done)) as f64 / seconds;
        let games = record.standings.totals().games;
        let running = record.state == RunState::Running;
        let left = run.ledger.total().saturating_sub(done) as f64 / rate;
        let waiting = match state.write_faults.values().next().or(run.export_fault.as_ref()) {
            // A failed export is reported after the end too, as the run is not complete.
            Some(reason) if running || run.export_fault.is_some() => reason.clone(),
            _ if running && state.durable.awaits_replicas(id) => {
                "waiting until workers with other credentials have replicated earlier bouts; connect one if there is none"
                    .to_string()
            }
            _ if !running || done == run.ledger.total() => String::new(),
            _ if workers == 0 => "no worker is connected".to_string(),
            _ if run.ledger.withheld() > 0 && state.leases.count_of_run(id) == 0 => {
                format!("waiting up to {} s for workers to return earlier bouts", self.timing.grace.as_secs())
            }
            _ if state.connected().all(|(name, _)| state.durable.quarantine().contains_key(name)) => {
                "every connected worker is in quarantine: `agon workers` shows why".to_string()
            }
            _ if state.connected().all(|(_, worker)| !worker.has_engines(&run.spec, self.only_requested)) => {
                missing_engines(&run.spec, self.only_requested)
            }
            _ if run.spec.is_timed() && state.connected().all(|(_, worker)| worker.throttled) => {
                "every connected worker is throttled by its operating system, and the run is timed"
                    .to_string()
            }
            _ => String::new(),
        };
        let (standings, ended) = (record.standings.clone(), !record.state.is_open());
        let mut status = v1::RunStatus {
            run: id.to_string(),
            name: run.spec.name.clone(),
            game: run.spec.game.to_string(),
            state: wire_state(record.state) as i32,
            pause_reason: self.pause_reason(run) as i32,
            existed: false,
            bouts: run.ledger.total(),
            committed: done,
            failed: record.standings.totals().failed,
            leased: state.leases.count_of_run(id),
            games,
            exported: run.exported_bouts(),
            bouts_per_second: rate,
            games_per_second: (games - run.games_before.min(games)) as f64 / seconds,
            seconds_left: (running && left.is_finite()).then_some(left),
            standings: Vec::new(),
            sprt: record.standings.sprt(record.state),
            data: self.data.clone(),
            waiting,
            workers,
            abandoned: record.abandoned,
            priority: record.priority,
            voided: record.voided.len() as u64,
            checked: run.checked,
            disputed: run.disputed,
            tune: run.tune_status(),
            probe: matches!(run.spec.plan, Plan::Probe(_)),
            hypotheses: hypotheses(&run.spec),
            verdict: None,
            los: None,
            caution: String::new(),
        };
        // Rating many players takes time, so it is done without the lock.
        drop(guard);
        let (table, conclusion) = standings.table(intervals && ended);
        status.standings = table;
        if let Some(conclusion) = conclusion {
            status.verdict = Some(conclusion.sentence);
            status.los = conclusion.los;
            status.caution = conclusion.caution.unwrap_or_default();
        }
        Some(status)
    }

    /// Returns why a run is paused.
    fn pause_reason(&self, run: &Run) -> v1::PauseReason {
        if run.record().state != RunState::Paused {
            v1::PauseReason::Unspecified
        } else if run.record().signature != self.signature {
            v1::PauseReason::BuildChanged
        } else {
            v1::PauseReason::Operator
        }
    }

    /// Returns whether a run has ended and all its bouts are exported.
    pub(crate) fn is_complete(&self, id: &str) -> bool {
        self.with_run(id, |run| !run.record().state.is_open() && run.record().exported == run.ledger.total())
            .unwrap_or(false)
    }

    /// Updates the gauges.
    pub(crate) fn update_gauges(&self) {
        let (state, metrics) = (self.lock(), &self.metrics);
        let runs = || state.durable.runs().map(|(_, run)| run);
        let running = runs().filter(|run| run.record().state == RunState::Running);
        let pending: u64 = running.map(|run| run.ledger.total().saturating_sub(run.ledger.done())).sum();
        let waiting = !state.write_faults.is_empty() || runs().any(|run| run.export_fault.is_some());
        let throttled = state.connected().filter(|(_, worker)| worker.throttled).count();
        metrics.sessions.set(state.connected().count() as i64);
        metrics.slots.set(state.connected().map(|(_, worker)| i64::from(worker.slots)).sum());
        metrics.quarantined.set(state.durable.quarantine().len() as i64);
        metrics.throttled.set(throttled as i64);
        metrics.leases.set(state.leases.count() as i64);
        metrics.pending.set(i64::try_from(pending).unwrap_or(i64::MAX));
        metrics.checks.set(state.durable.replication().waiting() as i64);
        metrics.waiting.set(i64::from(waiting));
        for (kind, name) in RunState::ALL {
            metrics.set_runs(name, runs().filter(|run| run.record().state == kind).count() as i64);
        }
    }

    /// Returns all workers that have connected since the start.
    pub(crate) fn workers(&self) -> Vec<v1::WorkerStatus> {
        let guard = self.lock();
        let state = &*guard;
        state.workers.iter().map(|(name, worker)| state.worker_status(name, worker)).collect()
    }

    /// Returns a worker, if it has connected since the start.
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
            connected: worker.queue.is_some(),
            leases: held.len() as u32,
            committed: worker.reputation.bouts,
            refused: worker.refused,
            flag: self.durable.quarantine().get(name).cloned().unwrap_or_default(),
            progress: held
                .iter()
                .filter(|(_, lease)| lease.progress.started)
                .map(|(key, lease)| v1::Progress {
                    lease: Some(lease_ref(key, lease.token)),
                    started: true,
                    game: lease.progress.game,
                    ply: lease.progress.ply,
                    pulse: lease.progress.pulse,
                })
                .collect(),
            seconds_since_heartbeat: worker.last_heartbeat.elapsed().as_secs_f64(),
            throttled: worker.throttled,
            confirmed: self.durable.replication().confirmed(name),
            crashes: worker.reputation.crashes,
            forfeits: worker.reputation.forfeits,
            mean_overshoot_us: worker.reputation.mean_overshoot_us(),
        }
    }
}

/// Returns the hypotheses of a sequential test.
/// Explains that no worker can start the engines of a spec.
fn missing_engines(spec: &Spec, is_local: bool) -> String {
    if let Some(engine) = spec.engine_command().filter(|_| !is_local) {
        return format!("the spec starts `{}` by `command`; play it with `agon run`", engine.name());
    }
    let mut names: Vec<&str> = spec.engine_names().collect();
    names.sort_unstable();
    names.dedup();
    let engines = if names.len() == 1 { "the engine" } else { "all of the engines" };
    let name = names.first().copied().unwrap_or_default();
    format!("no connected worker has {engines} {}; start one with --engine {name}=COMMAND", names.join(", "))
}

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
