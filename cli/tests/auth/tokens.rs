//! Missing and invalid tokens, and the calls that need none.

use std::time::Duration;

use agon_proto::v1::operator_client::OperatorClient;
use agon_proto::v1::{ListRunsRequest, ShowRunRequest, SubmitRunRequest};
use agon_transport::{ClientCredentials, Connector, Role};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::secured_cluster::{SecuredCluster, assert_fails};
use agon_testing::binary::{agon, assert_refused};
use agon_testing::folder::Folder;
use agon_testing::processes::{Cluster, Process, free_port, wait_until};
use agon_testing::scripted_worker::ScriptedWorker;

#[test]
fn token_permits_only_the_calls_of_its_role() {
    let secured = SecuredCluster::start(&[]);
    let _worker = ScriptedWorker::connect(&secured.connector("plays"), "present").unwrap();
    let before = secured.state();
    secured.create_token("gone", Role::Operator);
    wait_until("the token is valid", || {
        (secured.call(&["list"], Some("gone"), Some("client")).code == 0).then_some(())
    });
    secured.revoke("gone");
    wait_until("the token is revoked", || {
        (secured.call(&["list"], Some("gone"), Some("client")).code == 1).then_some(())
    });
    std::fs::write(secured.path("other.token"), format!("agon_{}", "0".repeat(64))).unwrap();
    std::fs::write(secured.path("broken.token"), "no token\n").unwrap();
    std::fs::write(secured.path("long.token"), format!("agon_{}", "0".repeat(60_000))).unwrap();
    let run = secured.run();
    for (what, command, token, code, message) in [
        ("no token", vec!["cancel", run], None, 1, "requires a token; set --token-file"),
        ("an unknown token", vec!["cancel", run], Some("other"), 1, "unknown or revoked token"),
        ("a revoked token", vec!["cancel", run], Some("gone"), 1, "unknown or revoked token"),
        (
            "no token in the file",
            vec!["cancel", run],
            Some("broken"),
            2,
            "contains no token; it must hold the one line",
        ),
        ("no such file", vec!["cancel", run], Some("nowhere"), 2, "cannot read token file"),
        (
            "a token of sixty kilobytes",
            vec!["cancel", run],
            Some("long"),
            2,
            "contains no token; it must hold the one line printed by `agon token create`",
        ),
        (
            "a viewer cancels",
            vec!["cancel", run],
            Some("looks"),
            1,
            "has role viewer, but agon.v1.Operator/CancelRun requires operator",
        ),
        ("a viewer pauses", vec!["pause", run], Some("looks"), 1, "requires operator"),
        (
            "a viewer quarantines",
            vec!["workers", "quarantine", "present"],
            Some("looks"),
            1,
            "requires operator",
        ),
        (
            "a worker cancels",
            vec!["cancel", run],
            Some("plays"),
            1,
            "has role worker, but agon.v1.Operator/CancelRun",
        ),
        (
            "a worker lists runs",
            vec!["list"],
            Some("plays"),
            1,
            "has role worker, but agon.v1.Operator/ListRuns requires viewer",
        ),
    ] {
        assert_fails(what, &secured.call(&command, token, Some("client")), code, message);
    }
    for (role, token) in [("operator", "op"), ("viewer", "looks")] {
        let answer = secured.call(&["worker", "--name", "x", "--slots", "1"], Some(token), Some("client"));
        let message = format!("has role {role}, but agon.v1.Worker/Session requires worker");
        assert!(answer.code == 1 && answer.err.contains(&message), "{}", answer.err);
    }
    assert_eq!(secured.call(&["list"], Some("looks"), Some("client")).code, 0);
    assert_eq!(secured.call(&["audit"], Some("looks"), Some("client")).code, 0);
    assert_eq!(secured.call(&["health"], None, Some("client")).code, 0, "health checks are public");
    assert_eq!(secured.state(), before);
    assert!(!secured.cluster.log().contains("agon_0"), "the log contains no token");
}

#[test]
fn revoking_a_token_ends_its_streams() {
    let secured = SecuredCluster::start(&[]);
    // A paused run does not end.
    let paused = secured.cluster.agon(&["pause", secured.run()]);
    assert_eq!(paused.code, 0, "{}", paused.err);
    let mut watch = secured.start_process(&["watch", secured.run()], "looks", "client");
    let mut worker = secured.start_worker("w", "client");
    secured.wait_for_worker("w");
    wait_until("the watcher sees the run", || watch.log().contains("auth-").then_some(()));
    secured.create_token("stays", Role::Viewer);
    secured.revoke("looks");
    assert_eq!(watch.wait(), 1);
    assert!(watch.log().contains("the token was revoked during the call"), "{}", watch.log());
    assert_eq!(worker.try_exit_code(), None, "another token's revocation does not end it");
    secured.revoke("plays");
    assert_eq!(worker.wait(), 1);
    assert!(worker.log().contains("unknown or revoked token"), "{}", worker.log());
    let status = secured.cluster.worker_status("w");
    assert_eq!(status["connected"].as_bool(), Some(false), "{status}");
}

/// The coordinator reads a changed file of tokens a moment later.
#[test]
fn worker_waits_until_its_fresh_token_is_accepted() {
    let secured = SecuredCluster::start(&[]);
    let file = secured.path("tokens.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    secured.create_token("fresh", Role::Worker);
    let after = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, before).unwrap();
    let worker = secured.start_process(&["worker", "--name", "w", "--slots", "1"], "fresh", "client");
    wait_until("the worker reports the reason", || {
        let log = worker.log();
        (log.contains("credential rejected") && log.contains("unknown or revoked token")).then_some(())
    });
    std::fs::write(&file, after).unwrap();
    secured.cluster.wait_for_run("the run is done", |run| run["state"] == "done");
}

/// A token that was created just before works at once: the commands of operators repeat a call that is refused meanwhile.
#[test]
fn operator_commands_accept_a_fresh_token() {
    let secured = SecuredCluster::start(&[]);
    let run = secured.run().to_string();
    let commands: [&[&str]; 4] = [&["list"], &["workers"], &["pause", &run], &["watch", "--once"]];
    for (number, command) in commands.into_iter().enumerate() {
        let name = format!("fresh-{number}");
        secured.create_token(&name, Role::Operator);
        let answer = secured.call(command, Some(&name), Some("client"));
        assert_eq!(answer.code, 0, "{command:?}: {}", answer.err);
    }
}

#[test]
fn audit_names_the_credential_of_an_operator() {
    let secured = SecuredCluster::start(&[]);
    let _worker = ScriptedWorker::connect(&secured.connector("plays"), "w").unwrap();
    let run = secured.run();
    for call in [
        &["pause", run][..],
        &["resume", run],
        &["prioritise", run, "3"],
        &["workers", "quarantine", "w", "--reason", "too hot"],
        &["workers", "quarantine", "w", "--reason", "too loud"],
    ] {
        let answer = secured.cluster.agon(call);
        assert_eq!(answer.code, 0, "{call:?}: {}", answer.err);
    }
    let flag = "by token `op`: too hot; by token `op`: too loud";
    assert_eq!(secured.cluster.worker_status("w")["flag"], flag);
    for call in [&["workers", "trust", "w"][..], &["workers", "drain", "w"], &["cancel", run]] {
        let answer = secured.cluster.agon(call);
        assert_eq!(answer.code, 0, "{call:?}: {}", answer.err);
    }
    let audit = secured.cluster.json(&["audit"]);
    let texts: Vec<&str> =
        audit["entries"].as_array().unwrap().iter().filter_map(|entry| entry["text"].as_str()).collect();
    assert_eq!(
        texts,
        [
            "submitted by token `op`",
            "paused by token `op`",
            "resumed by token `op`",
            "priority set to 3 by token `op`",
            "by token `op`: too hot",
            "by token `op`: too loud",
            "trusted by token `op`",
            "drained by token `op`",
            "cancelled by token `op`",
        ]
    );
}

/// rustls refers to its manual instead.
#[test]
fn cut_connection_is_reported_in_plain_words() {
    let mut secured = SecuredCluster::start(&[]);
    let worker = secured.start_worker("w", "client");
    secured.wait_for_worker("w");
    secured.cluster.kill();
    wait_until("the worker is disconnected", || worker.log().contains("unreachable").then_some(()));
    let log = worker.log();
    // The system may report the end of the process before rustls does.
    let plain = ["the connection was cut off", "connection reset", "the server closed the connection"];
    assert!(plain.iter().any(|words| log.contains(words)) && !log.contains("https://docs"), "{log}");
}

#[test]
fn limits_message_size_and_call_rate() {
    let secured = SecuredCluster::start(&["--max-calls-per-second", "20"]);
    let before = secured.state();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let connection = secured.connector("op").connect().await.unwrap();
        let mut operator = OperatorClient::new(connection).max_encoding_message_size(usize::MAX);
        let text = "x".repeat(40 << 20);
        let spec = agon_proto::v1::Spec { text, ..Default::default() };
        let request = SubmitRunRequest { spec: Some(spec), again: false, priority: 0 };
        let status = operator.submit_run(request).await.unwrap_err();
        assert!(status.message().contains("message length too large"), "{status}");
        println!("a message of 40 MB | {:?}: {}", status.code(), status.message());

        let connection = secured.connector("looks").connect().await.unwrap();
        let viewer = OperatorClient::new(connection);
        let request = ShowRunRequest { run: "x".repeat(100 << 10) };
        let status = viewer.clone().show_run(request).await.unwrap_err();
        assert!(status.message().contains("the limit is: 65536 bytes"), "{status}");
        println!("a viewer's message of 100 kB | {:?}: {}", status.code(), status.message());

        let mut long = tonic::Request::new(ListRunsRequest {});
        long.metadata_mut().insert("x-long", "x".repeat(60 << 10).parse().unwrap());
        let status = viewer.clone().list_runs(long).await.unwrap_err();
        assert!(status.message().contains("431"), "{status}");
        println!("a head of 60 kB | {:?}: {}", status.code(), status.message());

        let calls: Vec<_> = (0..200)
            .map(|_| {
                let mut viewer = viewer.clone();
                tokio::spawn(async move { viewer.list_runs(ListRunsRequest {}).await })
            })
            .collect();
        let mut exhausted = 0;
        for call in calls {
            if let Err(status) = call.await.unwrap() {
                assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
                assert!(status.message().contains("wait a second"), "{status}");
                exhausted += 1;
            }
        }
        assert!(exhausted > 0, "no call was limited");
        println!("200 calls at once | {exhausted} rejected: wait a second");
    });
    // Other callers are not limited.
    assert_eq!(secured.state(), before);
}

#[test]
fn limits_calls_without_a_token() {
    let secured = SecuredCluster::start_plaintext(&["--max-calls-per-second", "20"]);
    let before = secured.state();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let connector = Connector::new(&secured.cluster.address(), ClientCredentials::default()).unwrap();
        let client = HealthClient::new(connector.connect().await.unwrap());
        let ask = |service: String| HealthCheckRequest { service };
        let status = client.clone().check(ask("x".repeat(4 << 20))).await.unwrap_err();
        assert!(status.message().contains("the limit is: 1024 bytes"), "{status}");
        println!("4 MB without a token | {:?}: {}", status.code(), status.message());
        let status = client.clone().watch(ask(String::new())).await.unwrap_err();
        assert_eq!(status.code(), Code::Unauthenticated, "{status}");
        println!("a health watch without a token | {:?}: {}", status.code(), status.message());
        let calls: Vec<_> = (0..200)
            .map(|_| {
                let (mut client, request) = (client.clone(), ask(String::new()));
                tokio::spawn(async move { client.check(request).await })
            })
            .collect();
        let mut answered = 0;
        for call in calls {
            match call.await.unwrap() {
                Ok(_) => answered += 1,
                Err(status) => assert_eq!(status.code(), Code::ResourceExhausted, "{status}"),
            }
        }
        assert!(answered < 200, "no call was limited");
        println!("200 health checks at once | {answered} answered");
    });
    assert_eq!(secured.state(), before);
}

#[test]
fn refuses_public_address_without_authentication() {
    let secured = SecuredCluster::start(&[]);
    let data = secured.path("data");
    let public = ["coordinator", "--listen", "0.0.0.0:0", "--data", &data];
    let (tokens, certificate, key) =
        (secured.path("tokens.toml"), secured.path("coordinator.pem"), secured.path("coordinator.key"));
    assert_refused(
        &public,
        "0.0.0.0:0 can be reached from other machines, and callers are not authenticated: listen on 127.0.0.1",
    );
    let tls = ["--tls-cert", &certificate, "--tls-key", &key];
    assert_refused(&[&public[..], &tls].concat(), "callers are not authenticated");
    assert_refused(&[&public[..], &["--tokens", &tokens]].concat(), "tokens cross the network without TLS");
    assert_refused(&[&public[..], &tls[..2]].concat(), "--tls-cert and --tls-key belong together");
    assert_refused(
        &[&public[..], &["--tls-client-ca", &certificate]].concat(),
        "--tls-client-ca needs TLS; give --tls-cert and --tls-key",
    );
    for (flags, message) in [
        (
            vec!["--insecure"],
            "INSECURE: 0.0.0.0:0 can be reached from other machines, and callers are not authenticated",
        ),
        (
            vec!["--insecure", "--tokens", &tokens],
            "INSECURE: 0.0.0.0:0 can be reached from other machines, and tokens cross",
        ),
        ([&tls[..], &["--tokens", &tokens]].concat(), "listening"),
    ] {
        let log = secured.path("public.log").into();
        let process = Process::start_logged(&[&public[..], &flags].concat(), log);
        wait_until(message, || process.log().contains(message).then_some(()));
    }
    for (flags, message) in [
        (vec!["--tokens", "nowhere.toml"], "cannot read token file nowhere.toml"),
        (vec!["--tokens", &key], "invalid token file"),
        (vec!["--tls-cert", &tokens, "--tls-key", &key], "contains no PEM certificate"),
        (vec!["--tls-cert", &certificate, "--tls-key", &certificate], "contains no PEM private key"),
    ] {
        let unmade = secured.path("unmade");
        let answer =
            agon(&[&["coordinator", "--listen", "127.0.0.1:0", "--data", &unmade], &flags[..]].concat());
        assert!(answer.code == 2 && answer.err.contains(message), "{} {}", answer.code, answer.err);
        assert!(!std::path::Path::new(&unmade).exists(), "no folder is created");
    }
    // Warnings are printed even if the log filters them.
    let quiet = [("AGON_LOG".to_string(), "error".to_string())];
    let call = [&public[..], &["--insecure", "--metrics", "0.0.0.0:0"]].concat();
    let process = Process::start_with(&call, &quiet, secured.path("quiet.log").into());
    for message in ["warning: INSECURE: 0.0.0.0:0 can be reached", "/healthz and /readyz need no credentials"]
    {
        wait_until(message, || process.log().contains(message).then_some(()));
    }
}

#[test]
fn tokens_suffice_on_loopback() {
    let secured = SecuredCluster::start(&[]);
    let tokens = secured.path("tokens.toml");
    let client = vec!["--token-file".to_string(), secured.path("op.token")];
    let mut cluster =
        Cluster::new(Duration::from_secs(60)).with_flags(vec!["--tokens".to_string(), tokens], client);
    cluster.restart();
    assert_eq!(cluster.agon(&["list"]).code, 0);
    assert_fails(
        "no token, and no TLS",
        &agon(&["list", "--coordinator", &cluster.address()]),
        1,
        "requires a token",
    );
    let unused = format!("http://127.0.0.1:{}", free_port());
    let answer = agon(&["list", "--coordinator", &unused]);
    assert_fails("no coordinator", &answer, 1, "no coordinator answers at");
}

/// The device is reached by a link, so that a token that replaced its target would leave the device alone.
#[cfg(unix)]
#[test]
fn token_is_written_to_standard_output_and_devices() {
    let folder = Folder::new();
    let tokens = folder.path("tokens.toml");
    let create = |name: &str, output: &str| {
        agon(&["token", "create", name, "--role", "viewer", "--tokens", &tokens, "--output", output])
    };
    let printed = create("a", "-");
    assert_eq!((printed.code, printed.out.lines().count()), (0, 1), "{}", printed.err);
    assert!(printed.out.len() > 20, "the token alone: {}", printed.out);
    assert!(!std::path::Path::new("-").exists());
    let link = folder.path("link");
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    assert_eq!(create("b", &link).code, 0);
    assert_eq!(std::fs::read_link(&link).unwrap(), std::path::Path::new("/dev/null"));
}

#[test]
fn tokens_file_keeps_its_path_and_permissions() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name);
    std::fs::create_dir(path("etc")).unwrap();
    let config = folder.write("agon.toml", "[coordinator]\ntokens = \"etc/tokens.toml\"\n");
    let output = path("a.token");
    let create = ["token", "create", "a", "--role", "worker", "--config", &config, "--output"];
    assert_refused(
        &[&create[..], &[&path("etc/../etc/tokens.toml")]].concat(),
        "--output names the tokens file; choose another",
    );
    assert_eq!(agon(&[&create[..], &[&output]].concat()).code, 0);
    assert!(std::path::Path::new(&path("etc/tokens.toml")).exists());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &str| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        // The coordinator may run as another user.
        std::fs::set_permissions(path("etc/tokens.toml"), std::fs::Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink("etc/tokens.toml", path("link.toml")).unwrap();
        assert_eq!(
            agon(&["token", "create", "b", "--role", "viewer", "--tokens", &path("link.toml")]).code,
            0
        );
        assert!(std::path::Path::new(&path("link.toml")).is_symlink());
        assert_eq!(mode(&path("etc/tokens.toml")), 0o644);
        // A world-readable secret causes a warning even without a log.
        std::fs::set_permissions(&output, std::fs::Permissions::from_mode(0o644)).unwrap();
        let nowhere = format!("http://127.0.0.1:{}", free_port());
        let answer = agon(&["list", "--coordinator", &nowhere, "--token-file", &output]);
        assert!(answer.err.contains("a.token is world-readable"), "{}", answer.err);
    }
    let listed = agon(&["token", "list", "--config", &config]);
    assert!(listed.out.contains("a ") && listed.out.contains("b "), "{}", listed.out);
    let answer = agon(&["token", "revoke", "a", "--config", &config]);
    assert!(answer.out.contains("token `a` revoked in"), "{}", answer.out);
}
