//! Bytes from the network: messages, their conversions, and bouts assembled from them.

#![no_main]

use std::sync::{Arc, LazyLock};

use agon_arena::{Spec, SpecSource};
use agon_fuzz::{PROBE, TOURNAMENT, bout, encoded, messages, spec};
use agon_proto::session::{Heartbeat, Hello, Progress, Returned, Welcome};
use agon_proto::{Assembler, LeasedBout, v1};
use agon_records::BoutRows;
use libfuzzer_sys::fuzz_target;
use prost::Message as _;

static SPECS: LazyLock<[Arc<Spec>; 2]> = LazyLock::new(|| [spec(TOURNAMENT), spec(PROBE)]);

fuzz_target!(|data: &[u8]| {
    let Some((&kind, bytes)) = data.split_first() else { return };
    match kind % 4 {
        which @ (0 | 1) => assemble(&SPECS[usize::from(which)], bytes),
        2 => worker_message(bytes),
        _ => coordinator_message(bytes),
    }
});

/// Checks that an assembled bout round-trips.
fn assemble(spec: &Arc<Spec>, bytes: &[u8]) {
    let Ok(rows) = Assembler::read(Arc::clone(spec), bout(), bytes) else { return };
    let sent = messages(spec, &bout(), &BoutRows::from(&rows)).expect("an assembled bout can be sent");
    let again =
        Assembler::read(Arc::clone(spec), bout(), &encoded(&sent)).expect("a sent bout can be assembled");
    assert_eq!(again.content_digest(), rows.content_digest());
}

fn worker_message(bytes: &[u8]) {
    use v1::worker_message::Kind;
    let Ok(message) = v1::WorkerMessage::decode(bytes) else { return };
    let refused = match message.kind {
        Some(Kind::Hello(hello)) => Hello::try_from(hello).err(),
        Some(Kind::Heartbeat(heartbeat)) => Heartbeat::try_from(heartbeat).err(),
        Some(Kind::Return(returned)) => Returned::try_from(returned).err(),
        _ => None,
    };
    assert!(refused.is_none_or(|error| !error.to_string().is_empty()));
    if let Ok(progress) = v1::Progress::decode(bytes) {
        let _ = Progress::try_from(progress);
    }
    if let Ok(spec) = v1::Spec::decode(bytes) {
        let _ = SpecSource::try_from(spec);
    }
}

fn coordinator_message(bytes: &[u8]) {
    use v1::coordinator_message::Kind;
    let Ok(message) = v1::CoordinatorMessage::decode(bytes) else { return };
    let refused = match message.kind {
        Some(Kind::Welcome(welcome)) => Welcome::try_from(welcome).err(),
        Some(Kind::Revoke(revoke)) => Returned::try_from(revoke).err(),
        _ => None,
    };
    assert!(refused.is_none_or(|error| !error.to_string().is_empty()));
    if let Ok(grant) = v1::Grant::decode(bytes)
        && let Ok(bout) = LeasedBout::try_from(grant)
    {
        let _ = SPECS.iter().map(|spec| bout.check(spec)).collect::<Vec<_>>();
    }
}
