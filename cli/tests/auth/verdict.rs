//! Sequential tests with a worker that fabricates wins.

use agon_arena::{Spec, SpecSource};
use agon_proto::LeasedBout;
use agon_records::BoutRows;
use agon_testing::bouts;
use agon_testing::processes::wait_until;
use agon_testing::scripted_worker::{BUILD, ScriptedWorker};
use agon_transport::Role;
use serde_json::Value;
use std::time::Duration;

use crate::secured_cluster::SecuredCluster;

/// Two equal players, so that the first is not 100 Elo stronger.
const SPEC: &str = r#"
name = "equal"
game = "connect-four"
seed = 5
limit = { nodes = 5 }
openings = { random_plies = 2 }
[tournament]
format = "sprt"
bounds = [0, 100]
model = "logistic"
alpha = 0.05
beta = 0.05
max_bouts = 2000
[[player]]
name = "new"
search = { algorithm = "random" }
[[player]]
name = "old"
search = { algorithm = "random" }
"#;

/// Returns legal games of a bout that the first player wins: games of other seeds with the seeds of the true ones.
fn fabricate(liar: &ScriptedWorker, bout: &LeasedBout) -> BoutRows {
    let honest = liar.play(bout);
    let mut rows = BoutRows::default();
    for game in &honest.games {
        let is_won = |row: &agon_records::GameRow| {
            let seat = row.players.iter().position(|name| name == "new").unwrap();
            row.payoffs[seat] == *row.payoffs.iter().max().unwrap()
                && row.payoffs.iter().any(|payoff| *payoff != row.payoffs[seat])
        };
        let (won, moves) = (100..)
            .find_map(|seed| {
                let text = SPEC.replace("seed = 5", &format!("seed = {seed}"));
                let spec = Spec::parse(&SpecSource { text, ..SpecSource::default() }).unwrap();
                let mut played = bouts::play(&spec, bout, "liar", BUILD);
                played.moves.retain(|row| row.game == game.game);
                let won = played.games.swap_remove(usize::from(game.game));
                is_won(&won).then_some((won, played.moves))
            })
            .unwrap();
        rows.games.push(agon_records::GameRow { seed: game.seed, ..won });
        rows.moves.extend(moves);
    }
    rows
}

/// Returns the kinds of the audit entries of a run.
fn audit(secured: &SecuredCluster, run: &str) -> Vec<String> {
    let audit = secured.cluster.json(&["audit", "--run", run]);
    let kind = |entry: &Value| entry["kind"].as_str().map(str::to_string);
    audit["entries"].as_array().unwrap().iter().filter_map(kind).collect()
}

#[test]
fn liar_decides_no_sequential_test() {
    let secured = SecuredCluster::start_plaintext(&[]);
    for token in ["one", "two"] {
        secured.create_token(token, Role::Worker);
    }
    assert_eq!(secured.cluster.agon(&["cancel", secured.run()]).code, 0);
    let run = secured.cluster.submit(SPEC);
    let mut workers = [("plays", "liar"), ("one", "first"), ("two", "second")].map(|(token, name)| {
        wait_until("the token is valid", || ScriptedWorker::connect(&secured.connector(token), name).ok())
    });
    let mut submitted = [0; 3];
    // 1. The others are slow: the liar plays until its wins would decide.
    while let Some(bout) = workers[0].lease_within(Duration::from_secs(1)) {
        let rows = fabricate(&workers[0], &bout);
        workers[0].submit_one(workers[0].messages(&bout, &rows));
        submitted[0] += 1;
    }
    let mut status = secured.cluster.run_status(&run);
    let sprt = &status["sprt"];
    println!("after {submitted:?} bouts: {sprt}");
    assert!(sprt["llr"].as_f64() > sprt["upper"].as_f64(), "{status}");
    assert_eq!((&status["state"], &sprt["verdict"]), (&"running".into(), &"continue".into()), "{status}");
    assert!(status["waiting"].as_str().unwrap().contains("other credentials"), "{status}");
    // 2. All play: the wins are contradicted, voided and replayed.
    for round in 0..3000 {
        for (index, worker) in workers.iter_mut().enumerate() {
            let Some(bout) = worker.lease_within(Duration::from_millis(20)) else { continue };
            if bout.lease.run != run {
                continue;
            }
            let rows = if index == 0 { fabricate(worker, &bout) } else { worker.play(&bout) };
            worker.submit_one(worker.messages(&bout, &rows));
            submitted[index] += 1;
        }
        if round % 10 == 0 {
            status = secured.cluster.run_status(&run);
            assert_ne!(status["sprt"]["verdict"], "H1", "after {submitted:?} bouts: {status}");
            if status["state"] == "decided" {
                break;
            }
        }
    }
    println!("{submitted:?} bouts and replicas of the liar and two honest workers: {}", status["sprt"]);
    assert_eq!((&status["state"], &status["sprt"]["verdict"]), (&"decided".into(), &"H0".into()), "{status}");
    let kinds = audit(&secured, &run);
    for kind in ["convicted", "voided", "decided"] {
        assert!(kinds.iter().any(|known| known == kind), "{kind}: {kinds:?}");
    }
    assert!(!kinds.iter().any(|kind| kind == "unverified"), "{kinds:?}");
    secured.cluster.assert_verifies();
}
