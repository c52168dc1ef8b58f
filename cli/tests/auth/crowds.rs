//! Floods of connections and slow clients, which must not delay other callers.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agon_proto::v1::operator_client::OperatorClient;
use agon_proto::v1::{ListRunsRequest, RunStatus, WatchRunRequest};
use agon_transport::Connection;
use tokio::runtime::Runtime;
use tonic::Streaming;

use crate::secured_cluster::{SecuredCluster, assert_fails, spec};
use crate::wire::{is_closed, metric, ping_until_stuck, socket};
use agon_testing::processes::{free_port, wait_until};
use agon_testing::scripted_worker::ScriptedWorker;

/// Connects with a token and watches the run.
async fn watch(secured: &SecuredCluster, token: &str) -> (OperatorClient<Connection>, Streaming<RunStatus>) {
    let mut client = OperatorClient::new(secured.connector(token).connect().await.unwrap());
    let run = secured.run().to_string();
    let watched = client.watch_run(WatchRunRequest { run }).await.unwrap().into_inner();
    (client, watched)
}

#[test]
fn connection_flood_evicts_its_own_connections() {
    let secured = SecuredCluster::start(&["--max-connections", "20", "--first-call-ms", "60000"]);
    let worker = secured.start_worker("steady", "client");
    secured.cluster.wait_for_run("the run is done", |run| run["state"] == "done");
    let before = secured.state();
    let mut silent = Vec::new();
    for round in 0..10 {
        silent.extend((0..50).map(|_| socket(secured.socket())));
        assert_eq!(secured.call(&["list"], Some("looks"), Some("client")).code, 0, "round {round}");
    }
    wait_until("the first are closed", || silent[..480].iter_mut().all(is_closed).then_some(()));
    let open = silent.iter_mut().map(is_closed).filter(|closed| !closed).count();
    assert!(open <= 20, "{open}");
    assert_eq!(
        worker.log().matches(" connected").count(),
        1,
        "an authenticated connection stays: {}",
        worker.log()
    );
    assert!(secured.cluster.log().contains("evicted while unauthenticated"), "{}", secured.cluster.log());
    assert_eq!(secured.state(), before);
    println!("500 silent connections, 20 slots | 10 of 10 calls answered, {open} silent connections left");
}

/// One client sends nothing, one sends a byte now and then, one makes no call after its handshake.
#[test]
fn slow_handshakes_do_not_block_others() {
    let port = free_port();
    let secured =
        SecuredCluster::start(&["--first-call-ms", "1500", "--metrics", &format!("127.0.0.1:{port}")]);
    let before = secured.state();
    let runtime = Runtime::new().unwrap();
    let mut silent = socket(secured.socket());
    let mut slow = socket(secured.socket());
    let idle = runtime.block_on(secured.connector("looks").connect()).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut writing = slow.try_clone().unwrap();
        let over = &over;
        scope.spawn(move || {
            // The begin of a handshake that announces more than is sent.
            for byte in [0x16, 3, 1, 1, 0, 1, 0, 0, 0xfc, 3, 3].into_iter().chain(std::iter::repeat(7)) {
                if over.load(Ordering::Relaxed) || writing.write_all(&[byte]).is_err() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        for _ in 0..5 {
            assert_eq!(secured.call(&["list"], Some("looks"), Some("client")).code, 0);
        }
        wait_until("the silent connection is closed", || is_closed(&mut silent).then_some(()));
        wait_until("the slow connection is closed", || is_closed(&mut slow).then_some(()));
        over.store(true, Ordering::Relaxed);
    });
    wait_until("all three are counted", || {
        (metric(port, "agon_refusals_total{why=\"silent\"}")? >= 3.0).then_some(())
    });
    drop(idle);
    assert!(secured.cluster.log().contains("no call before the deadline"), "{}", secured.cluster.log());
    assert_eq!(secured.state(), before);
}

#[cfg(unix)]
#[test]
fn pipe_in_place_of_the_tokens_does_not_disable_authentication() {
    let secured = SecuredCluster::start_plaintext(&["--first-call-ms", "1500"]);
    let tokens = secured.path("tokens.toml");
    let pipe = secured.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::fs::rename(&pipe, &tokens).unwrap();
    wait_until("the coordinator warns", || {
        secured.cluster.log().contains("credential reload failed").then_some(())
    });
    let mut silent = socket(secured.socket());
    wait_until("the silent connection is closed", || is_closed(&mut silent).then_some(()));
    assert_eq!(secured.call(&["list"], Some("looks"), None).code, 0, "the previous tokens stay valid");
}

/// All slots are occupied by clients that send and never read, so that the coordinator cannot write to them.
#[test]
fn closes_connections_that_stop_reading() {
    let secured = SecuredCluster::start_plaintext(&["--max-connections", "4", "--first-call-ms", "1500"]);
    let before = secured.state();
    let mut stuck: Vec<TcpStream> = (0..4).map(|_| socket(secured.socket())).collect();
    std::thread::scope(|scope| {
        for stream in &mut stuck {
            scope.spawn(|| ping_until_stuck(stream));
        }
    });
    wait_until("the coordinator closes them", || {
        secured.cluster.log().contains("no call before the deadline").then_some(())
    });
    // Closing a socket with unread bytes resets the connection.
    for stream in &mut stuck {
        wait_until("the connection is closed", || {
            stream.write_all(&[0; 4096]).is_err_and(|error| is_disconnect(&error)).then_some(())
        });
    }
    assert_eq!(secured.call(&["list"], Some("looks"), None).code, 0);
    assert_eq!(secured.state(), before);
    println!("4 clients that never read, 4 slots | each is closed at its deadline");
}

fn is_disconnect(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset)
}

/// One token has half of the slots; when all are in use a call fails with the reason; revoking a token frees slots.
#[test]
fn limits_connections_per_token() {
    let secured = SecuredCluster::start(&["--max-connections", "3"]);
    let before = secured.state();
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let _looking = [watch(&secured, "looks").await, watch(&secured, "looks").await];
        let mut third = OperatorClient::new(secured.connector("looks").connect().await.unwrap());
        let status = third.list_runs(ListRunsRequest {}).await.unwrap_err();
        assert!(
            status.message().contains("token `looks` already holds half of the coordinator's connections"),
            "{status}"
        );
        println!("more than half of the slots with one token | {:?}: {}", status.code(), status.message());
        drop(third);
        let _other = watch(&secured, "op").await;
        let document = wait_until("every slot is in use", || {
            let answer = secured.call(&["list"], Some("op"), Some("client"));
            answer.err.contains("the server closed the connection without a response").then_some(answer)
        });
        assert_fails(
            "every slot is in use",
            &document,
            1,
            "has reached --max-connections or has just stopped; retry",
        );
        secured.revoke("looks");
        wait_until("a slot is free", || {
            (secured.call(&["list"], Some("op"), Some("client")).code == 0).then_some(())
        });
    });
    assert_eq!(secured.state(), before);
}

#[test]
fn closes_idle_connections_and_limits_concurrent_calls() {
    let port = free_port();
    let monitor = format!("127.0.0.1:{port}");
    let secured = SecuredCluster::start(&["--idle-ms", "700", "--max-streams", "2", "--metrics", &monitor]);
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let (client, first) = watch(&secured, "looks").await;
        let run = secured.run().to_string();
        let second = client.clone().watch_run(WatchRunRequest { run }).await.unwrap();
        let mut more = client.clone();
        let mut third = tokio::spawn(async move { more.list_runs(ListRunsRequest {}).await });
        let early = tokio::time::timeout(Duration::from_secs(2), &mut third).await;
        assert!(early.is_err(), "two calls are open, for longer than the idle timeout");
        drop(first);
        assert_eq!(third.await.unwrap().unwrap().into_inner().runs.len(), 1);
        drop(second);
        wait_until("the connection is closed", || (metric(port, "agon_connections")? == 0.0).then_some(()));
        drop(client);
    });
}

#[test]
fn evicts_slow_metrics_clients() {
    let port = free_port();
    let _secured = SecuredCluster::start(&["--metrics", &format!("127.0.0.1:{port}")]);
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let mut slow: Vec<TcpStream> = (0..100).map(|_| socket(address)).collect();
    for stream in &mut slow {
        let _ = stream.write_all(b"GET /met");
    }
    assert!(metric(port, "agon_connections").is_some());
    let open = slow.iter_mut().map(is_closed).filter(|closed| !closed).count();
    assert!(open <= 32, "{open}");
}

#[test]
fn bounds_queue_for_worker_that_stops_reading() {
    const CYCLES: u64 = 400;
    const EACH: u64 = 257;
    let port = free_port();
    let secured = SecuredCluster::start_plaintext(&["--metrics", &format!("127.0.0.1:{port}")]);
    assert_eq!(secured.cluster.agon(&["cancel", secured.run()]).code, 0);
    let run = secured.cluster.submit(&spec("many", 400));
    let rogue = ScriptedWorker::connect(&secured.connector("plays"), "deaf").unwrap();
    for cycle in 0..CYCLES {
        rogue.claim_all_received(EACH as usize);
        let lease =
            |bout| agon_proto::Lease { run: run.clone(), bout, epoch: 1, sequence: cycle * EACH + bout + 1 };
        rogue.return_leases(&(0..EACH).map(lease).collect::<Vec<_>>());
    }
    let grants = || metric(port, "agon_grants_total");
    wait_until("bouts are granted", || grants().filter(|grants| *grants >= EACH as f64));
    // Messages are handled in order, so that all earlier ones precede this.
    rogue.claim_all_received(0);
    let mut last = -1.0;
    let granted = wait_until("no more bouts are granted", || {
        std::thread::sleep(Duration::from_secs(1));
        let now = grants()?;
        (std::mem::replace(&mut last, now) == now).then_some(now)
    });
    assert!(granted < (CYCLES * EACH / 2) as f64, "{granted}");
    println!("a worker that requests {} bouts and reads nothing | {granted} granted", CYCLES * EACH);
}

#[test]
fn serves_burst_of_connections() {
    const CALLERS: usize = 200;
    let secured = SecuredCluster::start(&[]);
    let runtime = Runtime::new().unwrap();
    let served = runtime.block_on(async {
        let calls: Vec<_> = (0..CALLERS)
            .map(|_| {
                let connector = secured.connector("looks");
                tokio::spawn(async move {
                    let connection = connector.connect().await.map_err(|error| error.to_string())?;
                    let answer = OperatorClient::new(connection).list_runs(ListRunsRequest {}).await;
                    answer.map_err(|status| status.to_string())
                })
            })
            .collect();
        let mut served = 0;
        for call in calls {
            let answer = call.await.unwrap().unwrap();
            served += usize::from(answer.into_inner().runs.len() == 1);
        }
        served
    });
    assert_eq!(served, CALLERS);
}
