//! Many at once, and those who take their time: nobody else waits for them.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agon_proto::v1::operator_client::OperatorClient;
use agon_proto::v1::{ListRunsRequest, RunStatus, WatchRunRequest};
use agon_transport::Connection;
use tokio::runtime::Runtime;
use tonic::Streaming;

use crate::processes::{Process, free_port, until};
use crate::scripted_worker::ScriptedWorker;
use crate::secured_cluster::{SecuredCluster, fails};
use crate::wire::{is_closed, metric, ping_until_stuck, socket};

/// A connection with these credentials and a run that is watched over it.
async fn watch(secured: &SecuredCluster, token: &str) -> (OperatorClient<Connection>, Streaming<RunStatus>) {
    let mut client = OperatorClient::new(secured.connector(token).connect().await.unwrap());
    let run = secured.run().to_string();
    let watched = client.watch_run(WatchRunRequest { run }).await.unwrap().into_inner();
    (client, watched)
}

/// More connections than there are places, none of which says anything: those with a credential come in all the same.
#[test]
fn a_flood_of_strangers_pushes_itself_out() {
    let secured = SecuredCluster::open(&["--max-connections", "20", "--first-call-ms", "60000"]);
    let client = secured.flags(Some("plays"), Some("client"));
    let flags: Vec<&str> = client.iter().map(String::as_str).collect();
    let address = secured.cluster.address();
    let call = ["worker", "--coordinator", &address, "--name", "steady", "--slots", "1"];
    let worker = Process::start_logged(&[&call[..], &flags].concat(), secured.folder().join("worker.log"));
    secured.cluster.until_run("the run is done", |run| run["state"] == "done");
    let before = secured.state();
    let mut strangers = Vec::new();
    for round in 0..10 {
        strangers.extend((0..50).map(|_| socket(secured.socket())));
        assert_eq!(secured.call(&["list"], Some("looks"), Some("client")).code, 0, "round {round}");
    }
    until("the first are gone", || strangers[..480].iter_mut().all(is_closed).then_some(()));
    let open = strangers.iter_mut().map(is_closed).filter(|closed| !closed).count();
    assert!(open <= 20, "{open}");
    assert_eq!(worker.said().matches(" connected").count(), 1, "who was let in stays: {}", worker.said());
    assert!(secured.cluster.said().contains("it makes room for the next"), "{}", secured.cluster.said());
    assert_eq!(secured.state(), before);
    println!("500 silent connections, 20 places | 10 of 10 calls answered, {open} strangers left");
}

/// One says nothing, one a byte now and then, one shakes hands and stops: each is sent away when its time is over.
#[test]
fn the_slow_hold_nobody_up() {
    let port = free_port();
    let secured =
        SecuredCluster::open(&["--first-call-ms", "1500", "--metrics", &format!("127.0.0.1:{port}")]);
    let before = secured.state();
    let runtime = Runtime::new().unwrap();
    let mut silent = socket(secured.socket());
    let mut slow = socket(secured.socket());
    let shaken = runtime.block_on(secured.connector("looks").connect()).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut writing = slow.try_clone().unwrap();
        let over = &over;
        scope.spawn(move || {
            // The head of a handshake that announces more than will ever come.
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
        until("the silent one is gone", || is_closed(&mut silent).then_some(()));
        until("the slow one is gone", || is_closed(&mut slow).then_some(()));
        over.store(true, Ordering::Relaxed);
    });
    until("all three were sent away", || {
        (metric(port, "agon_refusals_total{why=\"silent\"}")? >= 3.0).then_some(())
    });
    drop(shaken);
    assert!(secured.cluster.said().contains("it made no call in time"), "{}", secured.cluster.said());
    assert_eq!(secured.state(), before);
}

/// A file that cannot be read to its end keeps nobody from being sent away.
#[cfg(unix)]
#[test]
fn a_file_that_hangs_switches_nothing_off() {
    let secured = SecuredCluster::plain(&["--first-call-ms", "1500"]);
    let tokens = secured.path("tokens.toml");
    let pipe = secured.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::fs::rename(&pipe, &tokens).unwrap();
    until("it is complained about", || {
        secured.cluster.said().contains("certificates and tokens are not read within").then_some(())
    });
    let mut silent = socket(secured.socket());
    until("the silent one is gone", || is_closed(&mut silent).then_some(()));
    assert_eq!(secured.call(&["list"], Some("looks"), None).code, 0, "those from before count");
}

/// Every place is taken by somebody who sends and never reads, so that the coordinator cannot write to them.
#[test]
fn who_does_not_read_gives_up_its_place() {
    let secured = SecuredCluster::plain(&["--max-connections", "4", "--first-call-ms", "1500"]);
    let before = secured.state();
    let mut stuck: Vec<TcpStream> = (0..4).map(|_| socket(secured.socket())).collect();
    std::thread::scope(|scope| {
        for stream in &mut stuck {
            scope.spawn(|| ping_until_stuck(stream));
        }
    });
    until("they are told to go", || secured.cluster.said().contains("it made no call in time").then_some(()));
    // A connection that is closed over bytes that nobody read is reset.
    for stream in &mut stuck {
        until("it is gone", || {
            stream.write_all(&[0; 4096]).is_err_and(|error| is_over(&error)).then_some(())
        });
    }
    assert_eq!(secured.call(&["list"], Some("looks"), None).code, 0);
    assert_eq!(secured.state(), before);
    println!("4 that send and do not read, 4 places | each is gone when its time is over");
}

fn is_over(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset)
}

/// A token has half of the places; who comes when all are taken is told so; what is revoked makes room.
#[test]
fn a_token_has_half_of_the_places_and_a_revoked_one_none() {
    let secured = SecuredCluster::open(&["--max-connections", "3"]);
    let before = secured.state();
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let _looking = [watch(&secured, "looks").await, watch(&secured, "looks").await];
        let mut third = OperatorClient::new(secured.connector("looks").connect().await.unwrap());
        let status = third.list_runs(ListRunsRequest {}).await.unwrap_err();
        assert!(status.message().contains("the token `looks` has half of all connections"), "{status}");
        println!("more than half of the places with one token | {:?}: {}", status.code(), status.message());
        drop(third);
        let _other = watch(&secured, "op").await;
        let told = until("every place is taken", || {
            let answer = secured.call(&["list"], Some("op"), Some("client"));
            answer.err.contains("hung up without a word").then_some(answer)
        });
        fails("every place is taken", &told, 1, "(--max-connections), or it has just ended; try again");
        secured.revoke("looks");
        until("there is room", || {
            (secured.call(&["list"], Some("op"), Some("client")).code == 0).then_some(())
        });
    });
    assert_eq!(secured.state(), before);
}

#[test]
fn a_connection_without_calls_is_closed_and_calls_at_once_have_their_limit() {
    let port = free_port();
    let monitor = format!("127.0.0.1:{port}");
    let secured = SecuredCluster::open(&["--idle-ms", "700", "--max-streams", "2", "--metrics", &monitor]);
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let (client, first) = watch(&secured, "looks").await;
        let run = secured.run().to_string();
        let second = client.clone().watch_run(WatchRunRequest { run }).await.unwrap();
        let mut more = client.clone();
        let mut third = tokio::spawn(async move { more.list_runs(ListRunsRequest {}).await });
        let early = tokio::time::timeout(Duration::from_secs(2), &mut third).await;
        assert!(early.is_err(), "two are under way, over a time in which a quiet connection is closed");
        drop(first);
        assert_eq!(third.await.unwrap().unwrap().into_inner().runs.len(), 1);
        drop(second);
        until("the connection is closed", || (metric(port, "agon_connections")? == 0.0).then_some(()));
        drop(client);
    });
}

/// Monitors that ask half a question hold no others up.
#[test]
fn slow_monitors_make_room() {
    let port = free_port();
    let _house = SecuredCluster::open(&["--metrics", &format!("127.0.0.1:{port}")]);
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let mut slow: Vec<TcpStream> = (0..100).map(|_| socket(address)).collect();
    for stream in &mut slow {
        let _ = stream.write_all(b"GET /met");
    }
    assert!(metric(port, "agon_connections").is_some());
    let open = slow.iter_mut().map(is_closed).filter(|closed| !closed).count();
    assert!(open <= 32, "{open}");
}

/// A worker that asks and gives back and never reads is lent what fits into the way to it, and no more.
#[test]
fn what_waits_for_a_worker_that_does_not_read_has_a_bound() {
    const CYCLES: u64 = 400;
    const EACH: u64 = 257;
    let port = free_port();
    let secured = SecuredCluster::plain(&["--metrics", &format!("127.0.0.1:{port}")]);
    assert_eq!(secured.cluster.ask(&["cancel", secured.run()]).code, 0);
    let spec =
        crate::secured_cluster::SPEC.replace("bouts = 4", "bouts = 400").replace("\"auth\"", "\"many\"");
    let run = secured.cluster.submit(&spec);
    let rogue = ScriptedWorker::with(&secured.connector("plays"), "deaf").unwrap();
    for cycle in 0..CYCLES {
        rogue.claim(EACH as usize);
        let lease =
            |bout| agon_proto::Lease { run: run.clone(), bout, epoch: 1, sequence: cycle * EACH + bout + 1 };
        rogue.give_back(&(0..EACH).map(lease).collect::<Vec<_>>());
    }
    let grants = || metric(port, "agon_grants_total");
    until("it was lent something", || grants().filter(|grants| *grants >= EACH as f64));
    // The last thing that it says is heard when everything before it was.
    rogue.claim(0);
    let mut last = -1.0;
    let lent = until("it is lent no more", || {
        std::thread::sleep(Duration::from_secs(1));
        let now = grants()?;
        (std::mem::replace(&mut last, now) == now).then_some(now)
    });
    assert!(lent < (CYCLES * EACH / 2) as f64, "{lent}");
    println!("a worker that asks for {} bouts and reads nothing | was lent {lent}", CYCLES * EACH);
}

/// Everybody comes back at the same moment: all are served.
#[test]
fn a_storm_is_served() {
    const CALLERS: usize = 200;
    let secured = SecuredCluster::open(&[]);
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
