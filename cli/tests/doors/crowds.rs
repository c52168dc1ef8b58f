//! Many at once, and those who take their time: nobody else waits for them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agon_proto::v1::ListRunsRequest;
use agon_proto::v1::operator_client::OperatorClient;

use crate::house::House;
use crate::processes::{Process, until};

fn socket(house: &House) -> TcpStream {
    let address: SocketAddr = house.cluster.address().trim_start_matches("https://").parse().unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    stream
}

/// Whether the other side has hung up.
fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 64]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

/// More connections than there are places, none of which says anything: those with a credential come in all the same.
#[test]
fn a_flood_of_strangers_pushes_itself_out() {
    let house = House::open(&["--max-connections", "20", "--first-call-ms", "60000"]);
    let client = house.flags(Some("plays"), Some("client"));
    let flags: Vec<&str> = client.iter().map(String::as_str).collect();
    let address = house.cluster.address();
    let call = ["worker", "--coordinator", &address, "--name", "steady", "--slots", "1"];
    let worker = Process::start_logged(&[&call[..], &flags].concat(), house.folder().join("worker.log"));
    house.cluster.until_run("the run is done", |run| run["state"] == "done");
    let before = house.state();
    let mut strangers = Vec::new();
    for round in 0..10 {
        strangers.extend((0..50).map(|_| socket(&house)));
        assert_eq!(house.call(&["list"], Some("looks"), Some("client")).code, 0, "round {round}");
    }
    until("the first are gone", || strangers[..480].iter_mut().all(is_closed).then_some(()));
    let open = strangers.iter_mut().map(is_closed).filter(|closed| !closed).count();
    assert!(open <= 20, "{open}");
    assert_eq!(worker.said().matches(" connected").count(), 1, "who was let in stays: {}", worker.said());
    assert!(house.cluster.said().contains("it makes room for the next"), "{}", house.cluster.said());
    assert_eq!(house.state(), before);
    println!("500 silent connections, 20 places | 10 of 10 calls answered, {open} strangers left");
}

/// One says nothing, one a byte now and then, one shakes hands and stops: each is sent away when its time is over.
#[test]
fn the_slow_hold_nobody_up() {
    let house = House::open(&["--first-call-ms", "1500"]);
    let before = house.state();
    let mut silent = socket(&house);
    let mut slow = socket(&house);
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
            assert_eq!(house.call(&["list"], Some("looks"), Some("client")).code, 0);
        }
        until("the silent one is gone", || is_closed(&mut silent).then_some(()));
        until("the slow one is gone", || is_closed(&mut slow).then_some(()));
        over.store(true, Ordering::Relaxed);
    });
    assert!(house.cluster.said().contains("it made no call in time"), "{}", house.cluster.said());
    assert_eq!(house.state(), before);
}

/// Everybody comes back at the same moment: all are served.
#[test]
fn a_storm_is_served() {
    const CALLERS: usize = 200;
    let house = House::open(&[]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let served = runtime.block_on(async {
        let calls: Vec<_> = (0..CALLERS)
            .map(|_| {
                let dialer = house.dialer("looks");
                tokio::spawn(async move {
                    let connection = dialer.connect().await.map_err(|error| error.to_string())?;
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
