//! Those who show the wrong token, or none; and what is public without asking for any.

use std::time::Duration;

use agon_proto::v1::operator_client::OperatorClient;
use agon_proto::v1::{ListRunsRequest, ShowRunRequest, SubmitRunRequest};
use agon_transport::{ClientCredentials, Connector, Role};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::binary::{agon, refused};
use crate::processes::{Cluster, Process, free_port, until};
use crate::scripted_worker::ScriptedWorker;
use crate::secured_cluster::{SecuredCluster, fails};

#[test]
fn a_token_opens_what_its_role_is_for_and_nothing_else() {
    let secured = SecuredCluster::open(&[]);
    let _there = ScriptedWorker::with(&secured.connector("plays"), "there").unwrap();
    let before = secured.state();
    secured.token("gone", Role::Operator);
    until("it counts", || (secured.call(&["list"], Some("gone"), Some("client")).code == 0).then_some(()));
    secured.revoke("gone");
    until("it counts no more", || {
        (secured.call(&["list"], Some("gone"), Some("client")).code == 1).then_some(())
    });
    std::fs::write(secured.path("other.token"), format!("agon_{}", "0".repeat(64))).unwrap();
    std::fs::write(secured.path("broken.token"), "let me in\n").unwrap();
    std::fs::write(secured.path("long.token"), format!("agon_{}", "0".repeat(60_000))).unwrap();
    let run = secured.run();
    for (what, command, token, code, sentence) in [
        ("no token", vec!["cancel", run], None, 1, "asks for a token; give --token-file"),
        ("a token of nobody", vec!["cancel", run], Some("other"), 1, "not known here, or it was revoked"),
        ("a revoked token", vec!["cancel", run], Some("gone"), 1, "not known here, or it was revoked"),
        (
            "no token in the file",
            vec!["cancel", run],
            Some("broken"),
            2,
            "has no token: it must hold the one line",
        ),
        ("no such file", vec!["cancel", run], Some("nowhere"), 2, "cannot be read"),
        (
            "a token of sixty kilobytes",
            vec!["cancel", run],
            Some("long"),
            2,
            "has no token: it must hold the one line that `agon token create` printed",
        ),
        (
            "a viewer cancels",
            vec!["cancel", run],
            Some("looks"),
            1,
            "has the role viewer, and agon.v1.Operator/CancelRun needs operator",
        ),
        ("a viewer pauses", vec!["pause", run], Some("looks"), 1, "needs operator"),
        ("a viewer quarantines", vec!["workers", "quarantine", "there"], Some("looks"), 1, "needs operator"),
        (
            "a worker cancels",
            vec!["cancel", run],
            Some("plays"),
            1,
            "has the role worker, and agon.v1.Operator/CancelRun",
        ),
        (
            "a worker looks",
            vec!["list"],
            Some("plays"),
            1,
            "has the role worker, and agon.v1.Operator/ListRuns needs viewer",
        ),
    ] {
        fails(what, &secured.call(&command, token, Some("client")), code, sentence);
    }
    for (role, token) in [("operator", "op"), ("viewer", "looks")] {
        let answer = secured.call(&["worker", "--name", "x", "--slots", "1"], Some(token), Some("client"));
        let sentence = format!("has the role {role}, and agon.v1.Worker/Session needs worker");
        assert!(answer.code == 1 && answer.err.contains(&sentence), "{}", answer.err);
    }
    assert_eq!(secured.call(&["list"], Some("looks"), Some("client")).code, 0);
    assert_eq!(secured.call(&["audit"], Some("looks"), Some("client")).code, 0);
    assert_eq!(secured.call(&["health"], None, Some("client")).code, 0, "whether it lives is no secret");
    assert_eq!(secured.state(), before);
    assert!(!secured.cluster.said().contains("agon_0"), "no token is ever in a log");
}

#[test]
fn what_a_revoked_token_opened_ends() {
    let secured = SecuredCluster::open(&[]);
    let start = |call: &[&str], token: &str| {
        let flags = secured.flags(Some(token), Some("client"));
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let address = secured.cluster.address();
        let call = [call, &["--coordinator", &address], &flags].concat();
        Process::start_logged(&call, secured.folder().join(format!("{token}.log")))
    };
    // The run must not end: nobody plays it.
    let paused = secured.cluster.ask(&["pause", secured.run()]);
    assert_eq!(paused.code, 0, "{}", paused.err);
    let mut watch = start(&["watch", secured.run()], "looks");
    let mut worker = start(&["worker", "--name", "w", "--slots", "1"], "plays");
    until("the worker is there", || {
        secured.cluster.worker_status("w")["connected"].as_bool().filter(|there| *there)
    });
    until("the watcher sees something", || watch.said().contains("auth-").then_some(()));
    secured.token("stays", Role::Viewer);
    secured.revoke("looks");
    assert_eq!(watch.exit_code(), 1);
    assert!(watch.said().contains("the token of this call was revoked"), "{}", watch.said());
    assert_eq!(worker.ended(), None, "another token changes nothing for it");
    secured.revoke("plays");
    assert_eq!(worker.exit_code(), 1);
    assert!(worker.said().contains("this token is not known here, or it was revoked"), "{}", worker.said());
    let there = secured.cluster.worker_status("w");
    assert_eq!(there["connected"].as_bool(), Some(false), "{there}");
}

#[test]
fn messages_and_calls_have_their_limits() {
    let secured = SecuredCluster::open(&["--max-calls-per-second", "20"]);
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
        assert!(exhausted > 0, "nobody was held back");
        println!("200 calls at once | {exhausted} were told to wait a second");
    });
    // Whoever calls too often holds nobody else up.
    assert_eq!(secured.state(), before);
}

/// What needs no token is small, seldom and soon over.
#[test]
fn without_a_token_there_is_little_to_be_had() {
    let secured = SecuredCluster::plain(&["--max-calls-per-second", "20"]);
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
        println!("watching whether it lives without a token | {:?}: {}", status.code(), status.message());
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
        assert!(answered < 200, "nobody was held back");
        println!("200 questions at once whether it lives | {answered} were answered");
    });
    assert_eq!(secured.state(), before);
}

#[test]
fn a_public_address_is_refused_unless_somebody_is_asked_or_it_is_said_to_be_insecure() {
    let secured = SecuredCluster::open(&[]);
    let data = secured.path("data");
    let public = ["coordinator", "--listen", "0.0.0.0:0", "--data", &data];
    let (tokens, certificate, key) =
        (secured.path("tokens.toml"), secured.path("coordinator.pem"), secured.path("coordinator.key"));
    refused(
        &public,
        "0.0.0.0:0 can be reached from other machines, and nobody is asked who they are: listen on 127.0.0.1",
    );
    let tls = ["--tls-cert", &certificate, "--tls-key", &key];
    refused(&[&public[..], &tls].concat(), "nobody is asked who they are");
    refused(&[&public[..], &["--tokens", &tokens]].concat(), "tokens cross the network without TLS");
    refused(&[&public[..], &tls[..2]].concat(), "--tls-cert and --tls-key belong together");
    refused(&[&public[..], &["--tls-client-ca", &certificate]].concat(), "needs --tls-cert and --tls-key");
    for (flags, sentence) in [
        (vec!["--insecure"], "INSECURE: 0.0.0.0:0 can be reached from other machines, and nobody is asked"),
        (
            vec!["--insecure", "--tokens", &tokens],
            "INSECURE: 0.0.0.0:0 can be reached from other machines, and tokens cross",
        ),
        ([&tls[..], &["--tokens", &tokens]].concat(), "listening"),
    ] {
        let log = secured.folder().join("public.log");
        let process = Process::start_logged(&[&public[..], &flags].concat(), log);
        until(sentence, || process.said().contains(sentence).then_some(()));
    }
    for (flags, sentence) in [
        (vec!["--tokens", "nowhere.toml"], "the tokens file nowhere.toml cannot be read"),
        (vec!["--tokens", &key], "makes no sense"),
        (vec!["--tls-cert", &tokens, "--tls-key", &key], "has no certificate in the form of PEM"),
        (
            vec!["--tls-cert", &certificate, "--tls-key", &certificate],
            "has no private key in the form of PEM",
        ),
    ] {
        let unmade = secured.path("unmade");
        let answer =
            agon(&[&["coordinator", "--listen", "127.0.0.1:0", "--data", &unmade], &flags[..]].concat());
        assert!(answer.code == 2 && answer.err.contains(sentence), "{} {}", answer.code, answer.err);
        assert!(!std::path::Path::new(&unmade).exists(), "nothing was changed");
    }
    // Who wants no log is told all the same.
    let quiet = [("AGON_LOG".to_string(), "error".to_string())];
    let call = [&public[..], &["--insecure", "--metrics", "0.0.0.0:0"]].concat();
    let process = Process::start_with(&call, &quiet, secured.folder().join("quiet.log"));
    for sentence in
        ["warning: INSECURE: 0.0.0.0:0 can be reached", "/healthz and /readyz ask nobody anything"]
    {
        until(sentence, || process.said().contains(sentence).then_some(()));
    }
}

/// Whoever asks whether the coordinator lives is told so without a token.
#[test]
fn tokens_alone_do_on_this_machine() {
    let secured = SecuredCluster::open(&[]);
    let tokens = secured.path("tokens.toml");
    let client = vec!["--token-file".to_string(), secured.path("op.token")];
    let mut cluster =
        Cluster::prepare(Duration::from_secs(60)).with_flags(vec!["--tokens".to_string(), tokens], client);
    cluster.restart();
    assert_eq!(cluster.ask(&["list"]).code, 0);
    fails(
        "no token, and no TLS",
        &agon(&["list", "--coordinator", &cluster.address()]),
        1,
        "asks for a token",
    );
    let unused = format!("http://127.0.0.1:{}", free_port());
    let answer = agon(&["list", "--coordinator", &unused]);
    fails("nobody is there", &answer, 1, "no coordinator answers at");
}

/// Everything about tokens, as people do it: where the file is can stand in the configuration, and who may read it stays.
#[test]
fn the_tokens_file_is_found_and_stays_with_whom_it_belongs_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::create_dir(path("etc")).unwrap();
    std::fs::write(path("agon.toml"), "[coordinator]\ntokens = \"etc/tokens.toml\"\n").unwrap();
    let config = path("agon.toml");
    let output = path("a.token");
    let create = ["token", "create", "a", "--role", "worker", "--config", &config, "--output"];
    refused(&[&create[..], &[&path("etc/../etc/tokens.toml")]].concat(), "written over the tokens file");
    assert_eq!(agon(&[&create[..], &[&output]].concat()).code, 0);
    assert!(std::path::Path::new(&path("etc/tokens.toml")).exists());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &str| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        // A coordinator that runs as somebody else reads it.
        std::fs::set_permissions(path("etc/tokens.toml"), std::fs::Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink("etc/tokens.toml", path("link.toml")).unwrap();
        assert_eq!(
            agon(&["token", "create", "b", "--role", "viewer", "--tokens", &path("link.toml")]).code,
            0
        );
        assert!(std::path::Path::new(&path("link.toml")).is_symlink());
        assert_eq!(mode(&path("etc/tokens.toml")), 0o644);
        // Who leaves a secret open is told, log or not.
        std::fs::set_permissions(&output, std::fs::Permissions::from_mode(0o644)).unwrap();
        let nowhere = format!("http://127.0.0.1:{}", free_port());
        let answer = agon(&["list", "--coordinator", &nowhere, "--token-file", &output]);
        assert!(answer.err.contains("a.token can be read by everybody on this machine"), "{}", answer.err);
    }
    let listed = agon(&["token", "list", "--config", &config]);
    assert!(listed.out.contains("a ") && listed.out.contains("b "), "{}", listed.out);
    let answer = agon(&["token", "revoke", "a", "--config", &config]);
    assert!(answer.out.contains("the token `a` is no more in"), "{}", answer.out);
}
