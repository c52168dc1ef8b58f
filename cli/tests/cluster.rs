//! The cluster as real processes: a run in one of them, and one whose workers and coordinator are killed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use agon_testing::{binary, processes};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use agon_analysis::dataset::Dataset;
use agon_games::random::{below, seeded};
use agon_records::Table;
use binary::{agon, json, refused};
use processes::{Cluster, Process, digests, until};
use serde_json::Value;

const SPEC: &str = r#"
name = "kill"
game = "connect-four"
seed = 3
limit = { nodes = 4000 }
openings = { random_plies = 4 }
[tournament]
format = "round-robin"
bouts = 100
[[player]]
name = "pvs"
search = { algorithm = "pvs", table_mb = 1 }
[[player]]
name = "uct"
search = { algorithm = "uct" }
"#;

/// A tune, whose every bout follows from those before.
const TUNE: &str = r#"
name = "kill-tune"
game = "connect-four"
seed = 3
limit = { nodes = 3000 }
openings = { random_plies = 4 }
[tune]
player = "uct"
method = "spsa"
bouts = 120
pairs = 2
window = 4
rate = 0.2
validation = { bouts = 20 }
[[tune.parameter]]
path = "search.c"
start = 3
min = 0.1
max = 8
scale = "log"
step = 1.5
[[player]]
name = "uct"
search = { algorithm = "uct" }
"#;

/// Plays a spec in one process without disturbance, and again in a cluster whose members are killed at random moments:
/// the datasets must be equal.
fn kills_change_nothing(spec: &str, kills: usize, seed: u64, longest_peace: Duration) {
    let mut random = seeded(seed);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(path("spec.toml"), spec).unwrap();

    // 1. Undisturbed, in one process.
    let told = json(&["run", &path("spec.toml"), "--data", &path("calm"), "--json"]);
    let bouts = told["total"].as_u64().unwrap();
    assert_eq!((told["state"].as_str(), told["bouts"].as_u64()), (Some("done"), Some(bouts)));

    // 2. A cluster whose members die.
    let mut cluster = Cluster::start(Duration::from_millis(600));
    let mut workers = ["a", "b"].map(|name| Some(cluster.worker(name)));
    cluster.submit(spec);
    let mut killed = [0; 3];
    for kill in 0..kills {
        let shortest = Duration::from_millis(100);
        let peace = below(&mut random, (longest_peace - shortest).as_millis() as usize);
        std::thread::sleep(shortest + Duration::from_millis(peace as u64));
        let answer = cluster.ask(&["list", "--json"]);
        assert!(!answer.out.contains("\"state\":\"done\""), "too quick to be disturbed after {kill} kills");
        let victim = below(&mut random, 3);
        killed[victim] += 1;
        match victim {
            2 => cluster.start_again(),
            worker => {
                workers[worker] = None;
                workers[worker] = Some(cluster.worker(["a", "b"][worker]));
            }
        }
    }
    let run = until("the run is done", || {
        let answer = cluster.ask(&["list", "--json"]);
        let told: Value = serde_json::from_str(&answer.out).ok()?;
        Some(told["runs"][0].clone()).filter(|run| run["state"] == "done")
    });
    drop(workers);
    cluster.kill();

    // 3. The same, everything once, and sound.
    let (calm, wild) = (digests(Path::new(&path("calm"))), digests(cluster.data()));
    assert_eq!(calm.keys().copied().collect::<Vec<_>>(), (0..bouts).collect::<Vec<u64>>());
    assert_eq!(calm, wild);
    cluster.verifies();
    let data = cluster.data().to_str().unwrap();
    if spec.contains("[tune]") {
        let told = |data: &str| json(&["tune", "latest", "--json", "--data", data]);
        assert_eq!(told(&path("calm")), told(data), "the path, the answer and the proof");
    }
    let answer = agon(&["replay", "latest", "--games", "10", "--data", data]);
    assert_eq!(answer.code, 0, "{} {}", answer.out, answer.err);
    println!(
        "seed {seed}: {kills} kills ({} and {} of workers, {} of the coordinator), {bouts} bouts, {} given up under way; \
         the contents of all are those of an undisturbed run, and agon verify agrees",
        killed[0], killed[1], killed[2], run["abandoned"]
    );
}

/// Kills eight times from a fixed seed. `AGON_KILL_SEED` chooses other moments and victims and makes it sixty kills in two
/// thousand bouts, which takes minutes.
#[test]
fn killed_run_equals_an_undisturbed_run() {
    let Ok(seed) = std::env::var("AGON_KILL_SEED") else {
        return kills_change_nothing(SPEC, 8, 1, Duration::from_millis(400));
    };
    // Long enough that a quick machine still plays after the last kill.
    let spec = SPEC.replace("bouts = 100", "bouts = 2000").replace("nodes = 4000", "nodes = 12000");
    kills_change_nothing(&spec, 60, seed.parse().unwrap(), Duration::from_millis(2000));
}

#[test]
fn killed_tuning_run_equals_an_undisturbed_run() {
    kills_change_nothing(TUNE, 6, 2, Duration::from_millis(400));
    let bayes = TUNE
        .replace("kill-tune", "kill-bayes")
        .replace("\"spsa\"", "\"bayes\"")
        .replace("window = 4\nrate = 0.2", "batch = 10")
        .replace("step = 1.5\n", "");
    kills_change_nothing(&bayes, 6, 3, Duration::from_millis(400));
}

#[test]
fn a_run_that_is_interrupted_ends_at_once_and_goes_on_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(path("spec.toml"), SPEC.replace("bouts = 100", "bouts = 300")).unwrap();
    let call = ["run", &path("spec.toml"), "--data", &path("data"), "--json"];
    let mut running = Process::start(&call);
    std::thread::sleep(Duration::from_millis(700));
    running.signal("INT");
    running.exit_code();
    let told = json(&call);
    assert_eq!((told["state"].as_str(), told["bouts"].as_u64()), (Some("done"), Some(300)));
}

/// Calls `agon run`, interrupts it when it has played something, and returns its exit code, standard output and standard
/// error. Where nobody reads its standard output, that is closed.
fn interrupted(call: &[&str], data: &str, read: bool) -> (i32, String, String) {
    let kept = || {
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        let file = Path::new(data).join("coordinator.sqlite");
        let state = rusqlite::Connection::open_with_flags(file, flags).ok()?;
        state.query_row("SELECT count(*) FROM bouts", [], |row| row.get::<_, i64>(0)).ok()
    };
    let before = kept().unwrap_or(0);
    let mut command = Command::new(env!("CARGO_BIN_EXE_agon"));
    let mut child = command.args(call).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let out = child.stdout.take().filter(|_| read);
    until("a bout is kept", || kept().filter(|kept| *kept > before));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let out = out.map(|out| std::io::read_to_string(out).unwrap()).unwrap_or_default();
    let err = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    (child.wait().unwrap().code().unwrap(), out, err)
}

#[test]
fn an_interrupted_run_says_what_is_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(path("spec.toml"), SPEC.replace("bouts = 100", "bouts = 5000")).unwrap();
    let call = ["run", &path("spec.toml"), "--data", &path("data")];
    let (code, out, err) = interrupted(&call, &path("data"), true);
    assert_eq!(code, 1, "{err}");
    for command in ["ratings", "report"] {
        refused(&[command, "--data", &path("data")], "; bouts reach it in parts");
    }
    assert!(out.contains("stopped") && out.contains("are kept in the state, and reach the dataset"), "{out}");
    assert!(!out.contains("Every search is in") && !out.contains("agon verify"), "{out}");
    assert!(err.contains("stopped; the same command goes on from here"), "{err}");
    assert!(!err.contains("no worker is connected"), "{err}");
    // Whoever reads the answer may be gone: the sentence and the exit code are the same.
    let (code, _, err) = interrupted(&call, &path("data"), false);
    assert!(code == 1 && err.contains("stopped; the same command goes on from here"), "{code}: {err}");
}

#[test]
fn run_resumes_unless_the_build_changed() {
    let mut cluster = Cluster::start(Duration::from_secs(5));
    let spec = SPEC.replace("bouts = 100", "bouts = 5");
    let id = cluster.submit(&spec);
    assert_eq!(cluster.ask(&["pause", &id]).code, 0);
    let said = cluster.ask(&["submit", &cluster.path("spec.toml")]).out;
    assert!(said.contains(&format!("let it go on with: agon resume {id}")), "{said}");
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
    for hint in [format!("agon verify {id} --data {data}"), format!("agon replay {id} --data {data}")] {
        assert!(answer.out.contains(&hint), "{}", answer.out);
    }
    cluster.restart();
    let said = cluster.ask(&["submit", &cluster.path("spec.toml")]).out;
    assert!(said.contains("run it once more with: agon submit") && said.contains("--again"), "{said}");
}

#[test]
fn whoever_is_no_coordinator_is_said_to_be_none() {
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
    assert!(answer.err.contains("whoever answers there is no coordinator"), "{}", answer.err);
}

#[test]
fn a_folder_is_one_run_s_at_a_time() {
    let cluster = Cluster::start(Duration::from_secs(5));
    cluster.submit(SPEC);
    let answer = agon(&["run", &cluster.path("spec.toml"), "--data", cluster.data().to_str().unwrap()]);
    assert!(
        answer.code == 1 && answer.err.contains("perhaps that of an `agon run`; wait for its end"),
        "{}",
        answer.err
    );
}

#[test]
fn the_same_spec_again_is_the_same_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(path("spec.toml"), SPEC.replace("bouts = 100", "bouts = 3")).unwrap();
    let call = ["run", &path("spec.toml"), "--data", &path("data"), "--json"];
    let first = json(&call);
    let second = json(&call);
    for key in ["run", "state", "bouts", "games", "standings"] {
        assert_eq!(second[key], first[key], "a finished run is shown and not played: {key}");
    }
    let again = agon(&[&call[..], &["--again"]].concat());
    assert!(
        again.err.contains("once more, move by move") && again.err.contains("change `seed`"),
        "{}",
        again.err
    );
    let again: Value = serde_json::from_str(&again.out).unwrap();
    let [first, again] = [&first, &again].map(|told| told["run"].as_str().unwrap());
    assert_eq!(again, format!("{first}-2"));
    refused(&["ratings", first, again, "--data", &path("data")], "have the same games");
}

#[test]
fn what_cannot_be_run_is_refused_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let spec = path("spec.toml");
    for (from, to, sentence) in [
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
            "say with `max_bouts` how many it may take at most",
        ),
    ] {
        assert!(SPEC.contains(from));
        std::fs::write(&spec, SPEC.replace(from, to)).unwrap();
        refused(&["run", &spec, "--data", &path("data")], sentence);
        refused(&["check", &spec], sentence);
    }
    std::fs::write(&spec, SPEC).unwrap();
    std::fs::create_dir(path("foreign")).unwrap();
    std::fs::write(path("foreign/letter.txt"), "dear").unwrap();
    let answer = agon(&["run", &spec, "--data", &path("foreign")]);
    assert!(answer.code == 1 && answer.err.contains("is no data folder of agon"), "{}", answer.err);
    let answer = agon(&["list", "--coordinator", "http://127.0.0.1:9"]);
    assert!(answer.code == 1 && answer.err.contains("no coordinator answers at"), "{}", answer.err);
}

#[test]
fn a_test_stops_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let sprt = SPEC
        .replace(
            "format = \"round-robin\"\nbouts = 100",
            "format = \"sprt\"\nbounds = [0, 100]\nmax_bouts = 400",
        )
        .replace("\"uct\" }", "\"random\" }");
    std::fs::write(path("spec.toml"), sprt).unwrap();
    let told = json(&["run", &path("spec.toml"), "--data", &path("data"), "--json"]);
    assert_eq!((told["state"].as_str(), told["sprt"]["verdict"].as_str()), (Some("decided"), Some("H1")));
    assert!(told["sprt"]["prefix"].as_u64().unwrap() < 200, "{told}");
    // What was counted is in the dataset when the command ends, and sound.
    let found = digests(Path::new(&path("data"))).len() as u64;
    assert_eq!(Some(found), told["bouts"].as_u64(), "{told}");
    let again = json(&["run", &path("spec.toml"), "--data", &path("data"), "--json"]);
    for key in ["state", "bouts", "games", "standings", "sprt"] {
        assert_eq!(again[key], told[key], "{key} after a restart");
    }
    let words = agon(&["run", &path("spec.toml"), "--data", &path("data")]).out.replace('\n', " ");
    assert!(words.contains("H1 is accepted: pvs is 100 nElo stronger than uct rather than 0"), "{words}");
    assert!(agon(&["check", &path("spec.toml")]).out.contains("at most 400 bouts"));
    let answer = agon(&["verify", "--data", &path("data")]);
    assert_eq!(answer.code, 0, "{} {}", answer.out, answer.err);
    // What was under way when the test decided may still have come in.
    assert!(told["bouts"].as_u64().unwrap() < 20_000, "{told}");
}

#[test]
fn limits_of_time_are_scaled_by_the_speed_of_whoever_plays() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let timed = SPEC.replace("limit = { nodes = 4000 }", "limit = { cpu_ms = 40 }\nnormalise = true");
    std::fs::write(path("spec.toml"), timed.replace("bouts = 100", "bouts = 1")).unwrap();
    let told = json(&["run", &path("spec.toml"), "--data", &path("data"), "--json"]);
    assert_eq!(told["state"].as_str(), Some("done"));
    let dataset = Dataset::open(Path::new(&path("data"))).unwrap();
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
    // The same check that every answer starts from: the limit is the spec's, times the factor.
    assert_eq!(agon(&["verify", "--data", &path("data")]).code, 0);
}

#[test]
fn monitors_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").to_str().unwrap().to_string();
    let [listen, monitor] = [0; 2].map(|_| format!("127.0.0.1:{}", processes::free_port()));
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
    until("it is ready", || ask("/readyz").filter(|answer| answer.starts_with("HTTP/1.1 200")));
    assert!(ask("/healthz").unwrap().starts_with("HTTP/1.1 200"));
    let page = ask("/metrics").unwrap();
    for line in ["agon_bouts_total 0", "agon_sessions 0", "# TYPE agon_commit_seconds histogram", "# EOF"] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
    assert!(ask("/nowhere").unwrap().starts_with("HTTP/1.1 404"));
    let head = request("HEAD", "/metrics").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "a head has no body: {head}");
    // What dashboards and autoscaling ask for is there, though nothing has happened yet.
    let names = metrics_of(&page);
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy");
    let files = [
        "monitoring/dashboards/agon.json",
        "kubernetes/components/autoscale/scaling.yaml",
        "../docs/alerts.yml",
    ];
    for file in files {
        let text = std::fs::read_to_string(deploy.join(file)).unwrap();
        let asked: BTreeSet<&str> = text
            .split(|letter: char| letter != '_' && !letter.is_alphanumeric())
            .filter(|word| word.starts_with("agon_"))
            .collect();
        assert!(!asked.is_empty(), "{file} asks for nothing");
        for name in asked {
            assert!(names.contains(name), "{file} asks for {name}, and there are only {names:?}");
        }
    }
    let health = |address: &str| agon(&["health", "--coordinator", address, "--json"]);
    let told = health(&format!("http://{listen}"));
    assert_eq!((told.code, told.out.contains("\"serves\":true")), (0, true), "{}", told.err);
    let nobody = health(&format!("http://127.0.0.1:{}", processes::free_port()));
    assert_eq!(nobody.code, 1, "{}", nobody.out);
    assert!(nobody.err.contains("no coordinator answers"), "{}", nobody.err);
    let said = coordinator.said();
    let line: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!(line["level"].as_str(), Some("INFO"), "{said}");
}

/// The names that a page of metrics has lines of, now or once something has happened.
fn metrics_of(page: &str) -> BTreeSet<String> {
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let endings = |kind: &str| match kind {
        "counter" => &["_total"][..],
        "histogram" => &["_bucket", "_sum", "_count"],
        _ => &[""],
    };
    types.flat_map(|(name, kind)| endings(kind).iter().map(move |ending| format!("{name}{ending}"))).collect()
}
