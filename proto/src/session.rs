//! The small messages of a session, checked: hello and welcome, heartbeats, returned and revoked leases.

use std::ops::RangeInclusive;
use std::time::Duration;

use agon_games::printable::printable;

use crate::check;
use crate::error::WireError;
use crate::lease::Lease;
use crate::limits::{
    MAX_BUILD, MAX_COUNT, MAX_ENGINES, MAX_LEASES, MAX_PLAYERS, MAX_PLIES, MAX_REASON, MAX_RUN_ID, MAX_SLOTS,
    MAX_SPEED, MAX_WORKER_NAME,
};
use crate::v1;

/// Checks the name of a worker in an operator's request; empty for none.
pub fn worker_name(name: String) -> Result<String, WireError> {
    check::line("worker", name, MAX_WORKER_NAME)
}

/// The first message of a session.
#[derive(Clone, PartialEq, Debug)]
pub struct Hello {
    /// The protocol versions that the worker supports.
    pub protocols: RangeInclusive<u32>,
    /// The name of the worker.
    pub worker: String,
    /// The version of the program.
    pub build: String,
    /// The number of bouts that it plays at once.
    pub slots: usize,
    /// The search signature.
    pub signature: String,
    /// Nodes per second of a fixed search on one slot.
    pub speed: f64,
    /// The leases from an earlier session.
    pub held: Vec<Lease>,
    /// The runs whose specs the worker has.
    pub specs: Vec<String>,
    /// The names of the engines that the worker can start.
    pub engines: Vec<String>,
}

impl From<&Hello> for v1::Hello {
    fn from(hello: &Hello) -> v1::Hello {
        v1::Hello {
            protocol_min: *hello.protocols.start(),
            protocol_max: *hello.protocols.end(),
            worker: hello.worker.clone(),
            build: hello.build.clone(),
            slots: u32::try_from(hello.slots).unwrap_or(u32::MAX),
            signature: hello.signature.clone(),
            speed: hello.speed,
            held: Lease::to_messages(&hello.held),
            specs: hello.specs.clone(),
            engines: hello.engines.clone(),
        }
    }
}

impl TryFrom<v1::Hello> for Hello {
    type Error = WireError;

    fn try_from(hello: v1::Hello) -> Result<Hello, WireError> {
        check::count("specs", hello.specs.len(), 0..=MAX_LEASES)?;
        let run = |run| check::name("specs", run, MAX_RUN_ID);
        check::count("engines", hello.engines.len(), 0..=MAX_ENGINES)?;
        let engine = |engine| check::name("engines", engine, MAX_BUILD);
        let least = check::number("protocol_min", hello.protocol_min, 1..=u32::MAX)?;
        Ok(Hello {
            protocols: least..=check::number("protocol_max", hello.protocol_max, least..=u32::MAX)?,
            worker: check::name("worker", hello.worker, MAX_WORKER_NAME)?,
            build: check::name("build", hello.build, MAX_BUILD)?,
            slots: check::number("slots", hello.slots, 1..=MAX_SLOTS as u32)? as usize,
            signature: check::name("signature", hello.signature, MAX_BUILD)?,
            speed: check::at_most("speed", hello.speed, MAX_SPEED)?,
            held: Lease::from_messages(hello.held)?,
            specs: hello.specs.into_iter().map(run).collect::<Result<_, _>>()?,
            engines: hello.engines.into_iter().map(engine).collect::<Result<_, _>>()?,
        })
    }
}

/// The answer to a hello.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Welcome {
    /// The protocol version of the session.
    pub protocol: u32,
    /// The epoch of the coordinator.
    pub epoch: u64,
    /// The interval of heartbeats.
    pub heartbeat: Duration,
    /// The duration of a lease without a heartbeat.
    pub lease: Duration,
    /// The unacknowledged bytes above which nothing is granted.
    pub window_bytes: u64,
    /// The earlier leases that remain valid.
    pub adopted: Vec<Lease>,
}

impl From<&Welcome> for v1::Welcome {
    fn from(welcome: &Welcome) -> v1::Welcome {
        let milliseconds = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        v1::Welcome {
            protocol: welcome.protocol,
            epoch: welcome.epoch,
            heartbeat_ms: milliseconds(welcome.heartbeat),
            lease_ms: milliseconds(welcome.lease),
            window_bytes: welcome.window_bytes,
            adopted: Lease::to_messages(&welcome.adopted),
        }
    }
}

impl TryFrom<v1::Welcome> for Welcome {
    type Error = WireError;

    fn try_from(welcome: v1::Welcome) -> Result<Welcome, WireError> {
        let time = |field, found: u32| {
            check::number(field, found, 1..=u32::MAX).map(|ms| Duration::from_millis(u64::from(ms)))
        };
        Ok(Welcome {
            protocol: check::number("protocol", welcome.protocol, crate::PROTOCOLS)?,
            epoch: welcome.epoch,
            heartbeat: time("heartbeat_ms", welcome.heartbeat_ms)?,
            lease: time("lease_ms", welcome.lease_ms)?,
            window_bytes: welcome.window_bytes,
            adopted: Lease::from_messages(welcome.adopted)?,
        })
    }
}

/// The regular message of a worker.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Heartbeat {
    /// The number of further bouts that the worker accepts.
    pub room: usize,
    /// The progress of all leased bouts.
    pub progress: Vec<Progress>,
    /// The number of bytes that are not acknowledged yet.
    pub unacknowledged_bytes: u64,
    /// The number of grants received in this session.
    pub grants_received: u64,
    /// Whether the system throttled the worker since the last interval.
    pub throttled: bool,
    /// Nodes per second of a fixed search on each slot while all are busy; 0 without a new measurement.
    pub speed: f64,
}

/// The progress of a bout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The bout.
    pub lease: Lease,
    /// Whether the bout has a slot.
    pub started: bool,
    /// The current game, or the current search of a probe.
    pub game: u32,
    /// The number of plies played in the game.
    pub ply: u32,
    /// A number that grows while a search runs.
    pub pulse: u64,
}

impl From<&Heartbeat> for v1::Heartbeat {
    fn from(heartbeat: &Heartbeat) -> v1::Heartbeat {
        v1::Heartbeat {
            room: u32::try_from(heartbeat.room).unwrap_or(u32::MAX),
            progress: heartbeat.progress.iter().map(v1::Progress::from).collect(),
            unacknowledged_bytes: heartbeat.unacknowledged_bytes,
            grants_received: heartbeat.grants_received,
            throttled: heartbeat.throttled,
            speed: heartbeat.speed,
        }
    }
}

impl TryFrom<v1::Heartbeat> for Heartbeat {
    type Error = WireError;

    fn try_from(heartbeat: v1::Heartbeat) -> Result<Heartbeat, WireError> {
        check::count("progress", heartbeat.progress.len(), 0..=MAX_LEASES)?;
        Ok(Heartbeat {
            room: check::number("room", heartbeat.room, 0..=MAX_LEASES as u32)? as usize,
            progress: heartbeat.progress.into_iter().map(Progress::try_from).collect::<Result<_, _>>()?,
            unacknowledged_bytes: check::number(
                "unacknowledged_bytes",
                heartbeat.unacknowledged_bytes,
                0..=MAX_COUNT,
            )?,
            grants_received: check::number("grants_received", heartbeat.grants_received, 0..=MAX_COUNT)?,
            throttled: heartbeat.throttled,
            speed: check::at_most("speed", heartbeat.speed, MAX_SPEED)?,
        })
    }
}

impl From<&Progress> for v1::Progress {
    fn from(progress: &Progress) -> v1::Progress {
        v1::Progress {
            lease: Some((&progress.lease).into()),
            started: progress.started,
            game: progress.game,
            ply: progress.ply,
            pulse: progress.pulse,
        }
    }
}

impl TryFrom<v1::Progress> for Progress {
    type Error = WireError;

    fn try_from(progress: v1::Progress) -> Result<Progress, WireError> {
        Ok(Progress {
            lease: Lease::required(progress.lease)?,
            started: progress.started,
            game: check::number("game", progress.game, 0..=MAX_PLAYERS as u32)?,
            ply: check::number("ply", progress.ply, 0..=MAX_PLIES as u32)?,
            pulse: check::number("pulse", progress.pulse, 0..=MAX_COUNT)?,
        })
    }
}

/// Leases that a worker returns or a coordinator revokes, with the reason.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Returned {
    /// The leases.
    pub leases: Vec<Lease>,
    /// The reason; empty when a worker drains.
    pub reason: String,
}

impl Returned {
    fn read(leases: Vec<v1::LeaseRef>, reason: &str) -> Result<Returned, WireError> {
        Ok(Returned { leases: Lease::from_messages(leases)?, reason: check::reason("reason", reason)? })
    }
}

impl From<&Returned> for v1::Return {
    fn from(returned: &Returned) -> v1::Return {
        let reason = clean_reason(&returned.reason);
        v1::Return { leases: Lease::to_messages(&returned.leases), reason }
    }
}

impl TryFrom<v1::Return> for Returned {
    type Error = WireError;

    fn try_from(message: v1::Return) -> Result<Returned, WireError> {
        Returned::read(message.leases, &message.reason)
    }
}

impl From<&Returned> for v1::Revoke {
    fn from(returned: &Returned) -> v1::Revoke {
        let reason = clean_reason(&returned.reason);
        v1::Revoke { leases: Lease::to_messages(&returned.leases), reason }
    }
}

impl TryFrom<v1::Revoke> for Returned {
    type Error = WireError;

    fn try_from(message: v1::Revoke) -> Result<Returned, WireError> {
        Returned::read(message.leases, &message.reason)
    }
}

/// Returns a reason as one printable line of at most [`MAX_REASON`] bytes.
pub fn clean_reason(reason: &str) -> String {
    let reason = printable(reason);
    let mut end = reason.len().min(MAX_REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason[..end].to_string()
}
