//! The source of each setting, as `agon config show` reports it.

use std::process::Command;

use serde_json::Value;

use agon_testing::binary::{agon, assert_refused};
use agon_testing::folder::Folder;

/// Returns the settings that `agon config show` prints with these arguments and environment variables.
fn show(arguments: &[&str], environment: &[(&str, &str)]) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agon"));
    command.args(["config", "show"]).args(arguments).arg("--json");
    let output = command.envs(environment.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["settings"].as_array().unwrap().clone()
}

/// Returns the value and the source of a setting.
fn setting<'a>(settings: &'a [Value], key: &str) -> (&'a str, &'a str) {
    let setting = settings.iter().find(|setting| setting["key"] == key).unwrap();
    (setting["value"].as_str().unwrap_or("-"), setting["place"].as_str().unwrap())
}

#[test]
fn config_reports_the_source_of_each_value() {
    let folder = Folder::new();
    folder.write("secret.token", "agon_verysecret");
    let file = folder.write(
        "agon.toml",
        "[coordinator]\nlisten = \"127.0.0.1:7411\"\ntokens = \"tokens.toml\"\nheartbeat_ms = 1000\n\
         [coordinator.limits]\nstreams = 7\n\
         [client]\ncoordinator = \"http://127.0.0.1:7411\"\ntoken_file = \"secret.token\"\n\
         [worker]\nslots = 3\n",
    );
    let all = show(&["--config", &file], &[]);
    let line = |number: u32| format!("{file}:{number}");
    for (key, value, place) in [
        ("coordinator.listen", "127.0.0.1:7411", line(2)),
        ("coordinator.tokens", &folder.path("tokens.toml"), line(3)),
        ("coordinator.limits.streams", "7", line(6)),
        ("coordinator.limits.connections", "16384", "default".to_string()),
        ("coordinator.metrics", "-", "default".to_string()),
        ("client.token_file", &folder.path("secret.token"), line(9)),
        ("worker.slots", "3", line(11)),
    ] {
        assert_eq!(setting(&all, key), (value, place.as_str()), "{key}");
    }
    assert!(!format!("{all:?}").contains("verysecret"));
    let keys: Vec<&str> = all.iter().map(|setting| setting["key"].as_str().unwrap()).collect();
    let distinct: std::collections::BTreeSet<&&str> = keys.iter().collect();
    assert!(keys.len() >= 28 && distinct.len() == keys.len(), "{keys:?}");

    let over =
        show(&["worker", "--config", &file, "--slots", "9"], &[("AGON_COORDINATOR", "http://[::1]:1")]);
    assert_eq!(setting(&over, "worker.slots"), ("9", "--slots"));
    assert_eq!(setting(&over, "client.coordinator"), ("http://[::1]:1", "AGON_COORDINATOR"));
    assert!(over.iter().all(|setting| !setting["key"].as_str().unwrap().starts_with("coordinator.")));
    let named = show(&["coordinator", "--listen", "127.0.0.1:9"], &[("AGON_CONFIG", &file)]);
    assert_eq!(setting(&named, "coordinator.listen"), ("127.0.0.1:9", "--listen"));
    assert_eq!(setting(&named, "coordinator.heartbeat_ms"), ("1000", line(4).as_str()));

    // Conflicts between settings are reported after the settings.
    std::fs::write(&file, "[coordinator]\nlisten = \"127.0.0.1:7411\"\ntls_cert = \"x\"\n").unwrap();
    let answer = agon(&["config", "show", "coordinator", "--config", &file]);
    assert!(answer.code == 2 && answer.out.contains("127.0.0.1:7411"), "{} {}", answer.code, answer.out);
    assert!(answer.err.contains("--tls-cert and --tls-key belong together"), "{}", answer.err);

    for (text, message) in [
        ("[coordinator]\nlisen = 3\n", "agon.toml:2: there is no setting `coordinator.lisen`: did you mean"),
        ("[coordinator]\nlisten = 3\n", "agon.toml:2: `listen`: `3` is not an address"),
        ("[coordinator]\nlease_ms = 1\n", "agon.toml:2: `lease_ms`: the lease duration is a whole number"),
        ("[coordinator]\ntls_cert = \"x\"\n", "--tls-cert and --tls-key belong together"),
        ("[coordinator]\nlisten = \"0.0.0.0:1\"\n", "can be reached from other machines"),
    ] {
        std::fs::write(&file, text).unwrap();
        assert_refused(&["coordinator", "--config", &file, "--data", &folder.path("data")], message);
    }
}
