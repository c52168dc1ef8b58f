//! Clusters of real processes: local runs, interrupted runs, and runs whose workers and coordinator are killed.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use agon_analysis::dataset::Dataset;
use agon_games::random::{below, seeded};
use agon_records::Table;
use agon_testing::binary::{agon, assert_refused, json};
use agon_testing::folder::Folder;
use agon_testing::processes::{Cluster, Process, digests, free_port, wait_until};
use agon_testing::specs::{PVS_VS_UCT, SPSA, vary};
use serde_json::Value;

/// A tournament that is long enough to be disturbed.
static SPEC: LazyLock<String> =
    LazyLock::new(|| vary(PVS_VS_UCT).name("kill").seed(3).limit("nodes = 4000").bouts(100).text());

/// A tuning run, in which every bout depends on earlier ones.
static TUNE: LazyLock<String> = LazyLock::new(|| {
    let spec = vary(SPSA).name("kill-tune").seed(3).limit("nodes = 3000").bouts(120).set("pairs", 2);
    spec.set("window", 4).set("rate", 0.2).set("start", 3).set("step", 1.5).text()
});

/// Plays a spec undisturbed in one process, and again in a cluster whose processes are killed at random moments, and
/// asserts that the datasets are equal.
fn assert_kills_change_nothing(spec: &str, kills: usize, seed: u64, longest_pause: Duration) {
    let mut random = seeded(seed);
    let folder = Folder::new();
    folder.write("spec.toml", spec);

    // 1. Undisturbed, in one process.
    let document = json(&["run", &folder.path("spec.toml"), "--data", &folder.path("undisturbed"), "--json"]);
    let bouts = document["total"].as_u64().unwrap();
    assert_eq!((document["state"].as_str(), document["bouts"].as_u64()), (Some("done"), Some(bouts)));

    // 2. In a cluster whose processes are killed.
    let mut cluster = Cluster::start(Duration::from_millis(600));
    let mut workers = ["a", "b"].map(|name| Some(cluster.worker(name)));
    cluster.submit(spec);
    let mut killed = [0; 3];
    for kill in 0..kills {
        let shortest = Duration::from_millis(100);
        let pause = below(&mut random, (longest_pause - shortest).as_millis() as usize);
        std::thread::sleep(shortest + Duration::from_millis(pause as u64));
        let answer = cluster.agon(&["list", "--json"]);
        assert!(!answer.out.contains("\"state\":\"done\""), "the run finished after only {kill} kills");
        let victim = below(&mut random, 3);
        killed[victim] += 1;
        match victim {
            2 => cluster.spawn_coordinator(),
            worker => {
                workers[worker] = None;
                workers[worker] = Some(cluster.worker(["a", "b"][worker]));
            }
        }
    }
    let run = wait_until("the run is done", || {
        let answer = cluster.agon(&["list", "--json"]);
        let document: Value = serde_json::from_str(&answer.out).ok()?;
        Some(document["runs"][0].clone()).filter(|run| run["state"] == "done")
    });
    drop(workers);
    cluster.kill();

    // 3. Both datasets have every bout once, with the same content, and verify.
    let (undisturbed, killed_run) =
        (digests(Path::new(&folder.path("undisturbed"))), digests(cluster.data()));
    assert_eq!(undisturbed.keys().copied().collect::<Vec<_>>(), (0..bouts).collect::<Vec<u64>>());
    assert_eq!(undisturbed, killed_run);
    cluster.assert_verifies();
    let data = cluster.data().to_str().unwrap();
    if spec.contains("[tune]") {
        let document = |data: &str| json(&["tune", "latest", "--json", "--data", data]);
        assert_eq!(document(&folder.path("undisturbed")), document(data), "path, answer and validation");
    }
    let answer = agon(&["replay", "latest", "--games", "10", "--data", data]);
    assert_eq!(answer.code, 0, "{} {}", answer.out, answer.err);
    println!(
        "seed {seed}: {kills} kills ({} and {} of workers, {} of the coordinator), {bouts} bouts, {} abandoned; all \
         contents equal those of an undisturbed run, and agon verify passes",
        killed[0], killed[1], killed[2], run["abandoned"]
    );
}

/// Kills eight times with a fixed seed. `AGON_KILL_SEED` sets another seed and raises the numbers to sixty kills in two
/// thousand bouts, which takes minutes.
#[test]
fn killed_run_equals_undisturbed_run() {
    let Ok(seed) = std::env::var("AGON_KILL_SEED") else {
        return assert_kills_change_nothing(&SPEC, 8, 1, Duration::from_millis(400));
    };
    // Long enough that a fast machine is still playing after the last kill.
    let spec = SPEC.replace("bouts = 100", "bouts = 2000").replace("nodes = 4000", "nodes = 12000");
    assert_kills_change_nothing(&spec, 60, seed.parse().unwrap(), Duration::from_millis(2000));
}

#[test]
fn killed_tuning_run_equals_undisturbed_run() {
    assert_kills_change_nothing(&TUNE, 6, 2, Duration::from_millis(400));
    let bayes = TUNE
        .replace("kill-tune", "kill-bayes")
        .replace("\"spsa\"", "\"bayes\"")
        .replace("window = 4\nrate = 0.2", "batch = 10")
        .replace("step = 1.5\n", "");
    assert_kills_change_nothing(&bayes, 6, 3, Duration::from_millis(400));
}

/// Repeats that end early at a precision, and the validation of each.
#[test]
fn killed_repeats_that_end_early_equal_undisturbed_run() {
    let repeats = TUNE
        .replace("kill-tune", "kill-repeats")
        .replace("\"spsa\"", "\"bayes\"")
        .replace("window = 4\nrate = 0.2", "batch = 10\nrepeats = 2\nprecision = 150")
        .replace("step = 1.5\n", "");
    assert_kills_change_nothing(&repeats, 6, 4, Duration::from_millis(400));
}

#[test]
fn interrupted_run_stops_and_resumes() {
    let folder = Folder::new();
    folder.write("spec.toml", SPEC.replace("bouts = 100", "bouts = 300"));
    let call = ["run", &folder.path("spec.toml"), "--data", &folder.path("data"), "--json"];
    let mut running = Process::start(&call);
    std::thread::sleep(Duration::from_millis(700));
    running.signal("INT");
    running.wait();
    let document = json(&call);
    assert_eq!((document["state"].as_str(), document["bouts"].as_u64()), (Some("done"), Some(300)));
}

/// Calls `agon run`, interrupts it after some bouts, and returns its exit code, standard output and standard error. Unless
/// `read_output`, its standard output is closed.
fn interrupt(call: &[&str], data: &str, read_output: bool) -> (i32, String, String) {
    let stored = || {
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        let file = Path::new(data).join("coordinator.sqlite");
        let state = rusqlite::Connection::open_with_flags(file, flags).ok()?;
        state.query_row("SELECT count(*) FROM bouts", [], |row| row.get::<_, i64>(0)).ok()
    };
    let before = stored().unwrap_or(0);
    let mut command = Command::new(env!("CARGO_BIN_EXE_agon"));
    let mut child = command.args(call).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let out = child.stdout.take().filter(|_| read_output);
    wait_until("bouts are stored", || stored().filter(|stored| *stored > before + 5));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let out = out.map(|out| std::io::read_to_string(out).unwrap()).unwrap_or_default();
    let err = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    (child.wait().unwrap().code().unwrap(), out, err)
}

#[test]
fn interrupted_run_reports_its_state() {
    let folder = Folder::new();
    folder.write("spec.toml", SPEC.replace("bouts = 100", "bouts = 5000"));
    let call = ["run", &folder.path("spec.toml"), "--data", &folder.path("data")];
    let (code, out, err) = interrupt(&call, &folder.path("data"), true);
    assert_eq!(code, 1, "{err}");
    assert!(out.contains("): interrupted\n") && out.contains("agon verify"), "{out}");
    assert!(!out.contains("Every search is in"), "{out}");
    assert!(err.contains("interrupted; the same command continues the run"), "{err}");
    assert!(!err.contains("no worker is connected"), "{err}");
    // With standard output closed, the message and the exit code are the same.
    let (code, _, err) = interrupt(&call, &folder.path("data"), false);
    assert!(code == 1 && err.contains("interrupted; the same command continues the run"), "{code}: {err}");
    let (code, out, _) = interrupt(&[&call[..], &["--json"]].concat(), &folder.path("data"), true);
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, document["state"].as_str()), (1, Some("interrupted")));
    let list = json(&["list", "--json", "--data", &folder.path("data")]);
    assert_eq!(
        (&list["runs"][0]["state"], &list["runs"][0]["bouts"]),
        (&"unfinished".into(), &document["bouts"])
    );
}

/// A sequential test that does not end within a test.
fn endless_test() -> String {
    SPEC.replace(
        "format = \"round-robin\"\nbouts = 100",
        "format = \"sprt\"\nbounds = [199, 200]\nalpha = 1e-6\nbeta = 1e-6\nmax_bouts = 50_000",
    )
}

/// Asserts that all commands answer from the first `exported` bouts of the latest run, and returns the answer of `sprt`.
#[track_caller]
fn assert_partial_answers(data: &str, exported: u64) -> Value {
    let ratings = json(&["ratings", "--json", "--data", data]);
    assert_eq!((&ratings["complete"], &ratings["runs"][0]["bouts"]), (&false.into(), &exported.into()));
    for command in ["ratings", "crosstable", "sprt"] {
        let answer = agon(&[command, "--data", data]);
        let progress = format!("unfinished: {exported} of 50000 bouts");
        assert!(answer.code == 0 && answer.out.contains(&progress), "{} {}", answer.out, answer.err);
    }
    for command in ["pruning", "games", "verify"] {
        let answer = agon(&[command, "--data", data]);
        assert_eq!(answer.code, 0, "{command}: {} {}", answer.out, answer.err);
    }
    let report = format!("{data}.html");
    let answer = agon(&["report", "--data", data, "--output", &report]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert!(std::fs::read_to_string(report).unwrap().contains(&format!("{exported} of 50")));
    json(&["sprt", "--json", "--data", data])
}

#[test]
fn interrupted_run_can_be_analysed() {
    let folder = Folder::new();
    folder.write("spec.toml", endless_test());
    let data = folder.path("data");
    let call = ["run", &folder.path("spec.toml"), "--data", &data, "--json"];
    for _ in 0..2 {
        let (code, out, err) = interrupt(&call, &data, true);
        let shown: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(code, 1, "{err}");
        let exported = shown["exported"].as_u64().unwrap();
        // Bouts after one that was interrupted wait for it.
        assert!(exported > 0 && exported <= shown["bouts"].as_u64().unwrap(), "{shown}");
        let test = assert_partial_answers(&data, exported);
        for key in ["llr", "pairs", "prefix"] {
            assert_eq!(test[key], shown["sprt"][key], "{key}: {test} {shown}");
        }
    }
}

#[test]
fn running_run_can_be_analysed() {
    let mut cluster = Cluster::new(Duration::from_secs(60));
    cluster.export_seconds = "1".to_string();
    cluster.restart();
    cluster.submit(&endless_test());
    let worker = cluster.worker("one");
    let data = cluster.data().to_str().unwrap().to_string();
    for least in [1, 20] {
        cluster.wait_for_run("bouts are exported", |run| run["exported"].as_u64() >= Some(least));
        let ratings = json(&["ratings", "--json", "--data", &data]);
        assert!(ratings["runs"][0]["bouts"].as_u64().unwrap() >= least, "{ratings}");
    }
    // Parts that are not full are few: their interval grows with the run.
    drop(worker);
    let run = cluster.wait_for_run("all bouts are exported", |run| run["exported"] == run["bouts"]);
    assert_partial_answers(&data, run["exported"].as_u64().unwrap());
}

#[test]
fn bouts_of_a_killed_coordinator_are_exported_at_the_next_start() {
    let mut cluster = Cluster::start(Duration::from_secs(60));
    cluster.submit(&endless_test());
    let worker = cluster.worker("one");
    cluster.wait_for_run("bouts are committed", |run| run["bouts"].as_u64() >= Some(3));
    cluster.kill();
    drop(worker);
    let data = cluster.data().to_str().unwrap().to_string();
    let answer = agon(&["ratings", "--data", &data]);
    assert!(
        answer.code == 1 && answer.err.contains("; bouts are exported every few seconds"),
        "{}",
        answer.err
    );
    cluster.restart();
    let run = cluster.wait_for_run("all bouts are exported", |run| run["exported"] == run["bouts"]);
    assert_partial_answers(&data, run["exported"].as_u64().unwrap());
}

#[test]
fn run_resumes_unless_the_build_changed() {
    let mut cluster = Cluster::start(Duration::from_secs(5));
    let spec = SPEC.replace("bouts = 100", "bouts = 5");
    let id = cluster.submit(&spec);
    assert_eq!(cluster.agon(&["pause", &id]).code, 0);
    let text = cluster.agon(&["submit", &cluster.path("spec.toml")]).out;
    assert!(text.contains(&format!("resume it with: agon resume {id}")), "{text}");
    cluster.kill();
    let data = cluster.data().to_str().unwrap();
    let state = rusqlite::Connection::open(cluster.data().join("coordinator.sqlite")).unwrap();
    let signature: String = state.query_row("SELECT signature FROM runs", [], |row| row.get(0)).unwrap();
    let sign = |signature: &str| state.execute("UPDATE runs SET signature = ?1", [signature]).unwrap();
    let call = ["run", &cluster.path("spec.toml"), "--data", data];
    assert_eq!(sign("of another build"), 1);
    let answer = agon(&call);
    assert_eq!(answer.code, 1, "{}", answer.err);
    for words in ["is paused: it was started by a build", &format!("`agon resume {id}`"), "--again"] {
        assert!(answer.err.contains(words), "{}", answer.err);
    }
    assert_eq!(sign(&signature), 1);
    drop(state);
    let answer = agon(&call);
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert!(answer.err.contains("was paused by an operator and is resumed"), "{}", answer.err);
    assert!(answer.out.contains(": done\n5/5 bouts"), "{}", answer.out);
    for command in ["verify", "replay", "report", "ratings"] {
        assert!(answer.out.contains(&format!("agon {command} {id} --data {data}")), "{}", answer.out);
    }
    assert!(answer.out.lines().last().unwrap().starts_with("  agon ratings "), "{}", answer.out);
    cluster.restart();
    let text = cluster.agon(&["submit", &cluster.path("spec.toml")]).out;
    assert!(text.contains("run it once more with: agon submit") && text.contains("--again"), "{text}");
}

#[test]
fn reports_peer_that_is_not_a_coordinator() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let page = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
            let _ = std::io::Write::write_all(&mut stream, page);
            open.push(stream);
        }
    });
    let answer = agon(&["list", "--coordinator", &address]);
    assert_eq!(answer.code, 1, "{}", answer.err);
    assert!(answer.err.contains("the server is not a coordinator"), "{}", answer.err);
}

#[test]
fn data_folder_has_one_process_at_a_time() {
    let cluster = Cluster::start(Duration::from_secs(5));
    cluster.submit(&SPEC);
    let answer = agon(&["run", &cluster.path("spec.toml"), "--data", cluster.data().to_str().unwrap()]);
    assert!(
        answer.code == 1 && answer.err.contains("perhaps an `agon run`; wait for it to end"),
        "{}",
        answer.err
    );
}

#[test]
fn same_spec_is_the_same_run() {
    let folder = Folder::new();
    folder.write("spec.toml", SPEC.replace("bouts = 100", "bouts = 3"));
    let call = ["run", &folder.path("spec.toml"), "--data", &folder.path("data"), "--json"];
    let first = json(&call);
    let second = json(&call);
    for key in ["run", "state", "bouts", "games", "standings"] {
        assert_eq!(second[key], first[key], "{key} of a finished run");
    }
    let again = agon(&[&call[..], &["--again"]].concat());
    assert!(
        again.err.contains("repeats the games of") && again.err.contains("change `seed`"),
        "{}",
        again.err
    );
    let again: Value = serde_json::from_str(&again.out).unwrap();
    let [first, again] = [&first, &again].map(|document| document["run"].as_str().unwrap());
    assert_eq!(again, format!("{first}-2"));
    assert_refused(&["ratings", first, again, "--data", &folder.path("data")], "have the same games");
}

#[test]
fn rejects_invalid_spec_with_file_and_line() {
    let folder = Folder::new();
    let spec = folder.path("spec.toml");
    for (from, to, message) in [
        ("bouts = 100", "bouts = 0", "spec.toml:9: `bouts` of [tournament] must be a whole number from 1 to"),
        ("limit =", "limits =", "did you mean `limit`?"),
        ("\"uct\" }", "\"utc\" }", "there is no algorithm `utc`"),
        ("name = \"uct\"", "name = \"pvs\"", "two players are called `pvs`"),
        ("random_plies = 4", "file = \"nowhere\"", "nowhere"),
        ("[tournament]", "[tournament", "this is not TOML"),
        ("nodes = 4000", "nodes = -1", "must be a whole number"),
        ("nodes = 4000", "nodes = 0", "must be a whole number from 1 to"),
        (
            "format = \"round-robin\"",
            "format = \"sprt\"\nbounds = [0, 5]",
            "give the most that it may play as `max_bouts`",
        ),
    ] {
        std::fs::write(&spec, &*vary(&SPEC).replace(from, to)).unwrap();
        assert_refused(&["run", &spec, "--data", &folder.path("data")], message);
        assert_refused(&["check", &spec], message);
    }
    std::fs::write(&spec, SPEC.as_str()).unwrap();
    std::fs::create_dir(folder.path("foreign")).unwrap();
    folder.write("foreign/letter.txt", "dear");
    let answer = agon(&["run", &spec, "--data", &folder.path("foreign")]);
    assert!(answer.code == 1 && answer.err.contains("is no data folder of agon"), "{}", answer.err);
    let answer = agon(&["list", "--coordinator", "http://127.0.0.1:9"]);
    assert!(answer.code == 1 && answer.err.contains("no coordinator answers at"), "{}", answer.err);
}

#[test]
fn sequential_test_stops_when_decided() {
    let folder = Folder::new();
    let sprt = SPEC
        .replace(
            "format = \"round-robin\"\nbouts = 100",
            "format = \"sprt\"\nbounds = [0, 100]\nmax_bouts = 400",
        )
        .replace("\"uct\" }", "\"random\" }");
    folder.write("spec.toml", sprt);
    let document = json(&["run", &folder.path("spec.toml"), "--data", &folder.path("data"), "--json"]);
    assert_eq!(
        (document["state"].as_str(), document["sprt"]["verdict"].as_str()),
        (Some("decided"), Some("H1"))
    );
    assert!(document["sprt"]["prefix"].as_u64().unwrap() < 200, "{document}");
    // Every counted bout is in the dataset when the command exits.
    let found = digests(Path::new(&folder.path("data"))).len() as u64;
    assert_eq!(Some(found), document["bouts"].as_u64(), "{document}");
    let again = json(&["run", &folder.path("spec.toml"), "--data", &folder.path("data"), "--json"]);
    for key in ["state", "bouts", "games", "standings", "sprt"] {
        assert_eq!(again[key], document[key], "{key} after a restart");
    }
    let words =
        agon(&["run", &folder.path("spec.toml"), "--data", &folder.path("data")]).out.replace('\n', " ");
    assert!(words.contains("H1 is accepted: pvs is 100 nElo stronger than uct rather than 0"), "{words}");
    assert!(agon(&["check", &folder.path("spec.toml")]).out.contains("at most 400 bouts"));
    // A test that uses up its bouts is undecided.
    let short = std::fs::read_to_string(folder.path("spec.toml")).unwrap();
    folder
        .write("short.toml", short.replace("max_bouts = 400", "max_bouts = 3").replace("[0, 100]", "[0, 5]"));
    let call = ["run", &folder.path("short.toml"), "--data", &folder.path("short")];
    assert_eq!(json(&[&call[..], &["--json"]].concat())["sprt"]["verdict"], "undecided");
    let words = agon(&call).out.replace('\n', " ");
    assert!(words.contains("after 3 bouts: undecided, as no bouts are left"), "{words}");
    let answer = agon(&["verify", "--data", &folder.path("data")]);
    assert_eq!(answer.code, 0, "{} {}", answer.out, answer.err);
    // Bouts in flight at the decision may still have been counted.
    assert!(document["bouts"].as_u64().unwrap() < 20_000, "{document}");
}

#[test]
fn time_limits_scale_with_worker_speed() {
    let folder = Folder::new();
    let timed = SPEC.replace("limit = { nodes = 4000 }", "limit = { cpu_ms = 40 }\nnormalise = true");
    folder.write("spec.toml", timed.replace("bouts = 100", "bouts = 1"));
    let document = json(&["run", &folder.path("spec.toml"), "--data", &folder.path("data"), "--json"]);
    assert_eq!(document["state"].as_str(), Some("done"));
    let dataset = Dataset::open(Path::new(&folder.path("data"))).unwrap();
    let run = dataset.find("latest").unwrap();
    let part = |table| dataset.parts(&run, table).unwrap().remove(0);
    let factors: Vec<f64> = part(Table::Games).games().unwrap().iter().map(|row| row.speed_factor).collect();
    assert!(factors.iter().all(|factor| (0.05..=20.0).contains(factor)), "{factors:?}");
    for row in part(Table::Moves).moves().unwrap() {
        if let Some(search) = row.search {
            let expected = (40.0 * factors[usize::from(row.game)]).floor();
            assert!(
                (search.limit_value as f64 - expected).abs() <= 1.0,
                "{} of {factors:?}",
                search.limit_value
            );
        }
    }
    // Verification checks that each limit is the spec's limit times the factor.
    assert_eq!(agon(&["verify", "--data", &folder.path("data")]).code, 0);
    // A timed run cannot be replayed, and `agon run` does not advise it.
    let again = agon(&["run", &folder.path("spec.toml"), "--data", &folder.path("data")]);
    assert!(again.out.contains("agon verify") && !again.out.contains("agon replay"), "{}", again.out);
    let id = document["run"].as_str().unwrap();
    let remedy = format!("so that its moves depend on the speed of the machine; `agon verify {id}` checks");
    assert_refused(&["replay", "--data", &folder.path("data")], &remedy);
}

#[test]
fn serves_metrics_and_health_checks() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").to_str().unwrap().to_string();
    let [listen, monitor] = [0; 2].map(|_| format!("127.0.0.1:{}", free_port()));
    let arguments =
        ["coordinator", "--listen", &listen, "--metrics", &monitor, "--data", &data, "--log", "json"];
    let coordinator = Process::start_logged(&arguments, folder.path().join("log"));
    let request = |method: &str, path: &str| {
        let mut stream = std::net::TcpStream::connect(&monitor).ok()?;
        let request = format!("{method} {path} HTTP/1.1\r\n\r\n");
        std::io::Write::write_all(&mut stream, request.as_bytes()).ok()?;
        std::io::read_to_string(stream).ok()
    };
    let ask = |path: &str| request("GET", path);
    wait_until("the coordinator is ready", || {
        ask("/readyz").filter(|answer| answer.starts_with("HTTP/1.1 200"))
    });
    assert!(ask("/healthz").unwrap().starts_with("HTTP/1.1 200"));
    let page = ask("/metrics").unwrap();
    for line in ["agon_bouts_total 0", "agon_sessions 0", "# TYPE agon_commit_seconds histogram", "# EOF"] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
    assert!(ask("/nowhere").unwrap().starts_with("HTTP/1.1 404"));
    let head = request("HEAD", "/metrics").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "HEAD has a body: {head}");
    // Every metric that dashboards, alerts and autoscaling query exists from the start.
    let names = metric_names(&page);
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy");
    let files = [
        "monitoring/dashboards/agon.json",
        "kubernetes/components/autoscale/scaling.yaml",
        "../docs/ops/alerts.yml",
    ];
    for file in files {
        let text = std::fs::read_to_string(deploy.join(file)).unwrap();
        let asked: BTreeSet<&str> = text
            .split(|letter: char| letter != '_' && !letter.is_alphanumeric())
            .filter(|word| word.starts_with("agon_"))
            .collect();
        assert!(!asked.is_empty(), "{file} queries no metric");
        for name in asked {
            assert!(names.contains(name), "{file} queries {name}; the metrics are {names:?}");
        }
    }
    let health = |address: &str| agon(&["health", "--coordinator", address, "--json"]);
    let document = health(&format!("http://{listen}"));
    assert_eq!((document.code, document.out.contains("\"serves\":true")), (0, true), "{}", document.err);
    let absent = health(&format!("http://127.0.0.1:{}", free_port()));
    assert_eq!(absent.code, 1, "{}", absent.out);
    assert!(absent.err.contains("no coordinator answers"), "{}", absent.err);
    let text = coordinator.log();
    let line: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(line["level"].as_str(), Some("INFO"), "{text}");
}

/// Returns the names of all series that a metrics page can have.
fn metric_names(page: &str) -> BTreeSet<String> {
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let endings = |kind: &str| match kind {
        "counter" => &["_total"][..],
        "histogram" => &["_bucket", "_sum", "_count"],
        _ => &[""],
    };
    types.flat_map(|(name, kind)| endings(kind).iter().map(move |ending| format!("{name}{ending}"))).collect()
}
