//! The examples in help, called as they are typed, one after another as a newcomer would.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use std::path::Path;
use std::process::{Child, Command, Stdio};

use agon_testing::folder::{Folder, copy_folder};
use agon_testing::processes::{free_port, wait_until};
use serde_json::Value;

/// Returns the examples of all commands in the order of help.
fn examples(command: &clap::Command, found: &mut Vec<String>) {
    let mut inner: Vec<&clap::Command> = command.get_subcommands().collect();
    inner.sort_by_key(|command| command.get_display_order());
    for command in inner {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        found.extend(text.strip_prefix("Example: ").map(str::to_string).filter(|text| !found.contains(text)));
        examples(command, found);
    }
}

/// The folders in which the examples run: those of one machine, and those of a cluster with a coordinator's address of its
/// own.
struct Place {
    folder: Folder,
    port: u16,
    services: Vec<Child>,
}

impl Place {
    fn command(&self, line: &str) -> Command {
        let name = line.split(' ').nth(1).unwrap();
        const OF_A_CLUSTER: [&str; 14] = [
            "coordinator",
            "worker",
            "submit",
            "list",
            "watch",
            "pause",
            "resume",
            "cancel",
            "prioritise",
            "workers",
            "audit",
            "token",
            "certs",
            "health",
        ];
        let is_of_a_cluster = OF_A_CLUSTER.contains(&name) || line.starts_with("agon data void");
        let line = line.replacen("agon", "\"$AGON\"", 1).replace("7400", &self.port.to_string());
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec {line}")]);
        command.current_dir(self.folder.path(if is_of_a_cluster { "cluster" } else { "local" }));
        command.env("AGON", agon_testing::binary::path());
        command.env("AGON_COORDINATOR", format!("http://127.0.0.1:{}", self.port));
        command.stdin(Stdio::null());
        command
    }

    /// Calls a line as typed and returns its standard output.
    #[track_caller]
    fn call(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {err}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts a service and waits until a call reaches it.
    fn start(&mut self, line: &str, call: &str, word: &str) {
        let service = self.command(line).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.services.push(service.unwrap());
        wait_until(word, || {
            let answer = self.command(call).output().unwrap();
            String::from_utf8(answer.stdout).unwrap().contains(word).then_some(())
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for service in &mut self.services {
            let _ = service.kill();
            let _ = service.wait();
        }
    }
}

#[test]
fn examples_in_help_work_as_typed() {
    let mut lines = Vec::new();
    examples(&agon::command(), &mut lines);
    assert!(lines.len() > 45, "{lines:?}");
    let folder = Folder::new();
    for place in ["local", "cluster"] {
        let examples = folder.as_path().join(place).join("examples");
        copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples"), &examples);
        // A few bouts of each pairing are enough.
        for name in ["quick-start.toml", "gauntlet.toml"] {
            let text = std::fs::read_to_string(examples.join(name)).unwrap();
            let short = text.replace("bouts  = 40", "bouts = 2").replace("bouts  = 60", "bouts = 2");
            assert_ne!(short, text);
            std::fs::write(examples.join(name), short).unwrap();
        }
    }
    let mut place = Place { folder, port: free_port(), services: Vec::new() };
    for line in &lines {
        match line.split(' ').nth(1).unwrap() {
            "coordinator" => place.start(line, "agon health", "the coordinator serves"),
            // Only a build with the feature can.
            "sql" if !cfg!(feature = "sql") => {}
            "worker" => place.start(line, "agon workers", "connected"),
            name => {
                // The first run is over; the next one is long enough to be steered.
                match name {
                    "compare" => drop(place.call("agon run examples/gauntlet.toml --quiet")),
                    "pause" => {
                        place.call("agon submit examples/othello-ladder.toml");
                        // There must be something to void after it was cancelled.
                        wait_until("a bout is committed", || {
                            let runs: Value = serde_json::from_str(&place.call("agon list --json")).unwrap();
                            let latest = runs["runs"].as_array().unwrap().last().unwrap();
                            (latest["bouts"].as_u64() > Some(0)).then_some(())
                        });
                    }
                    _ => {}
                }
                place.call(line);
            }
        }
    }
    assert!(place.folder.as_path().join("local/report.html").is_file());
}
