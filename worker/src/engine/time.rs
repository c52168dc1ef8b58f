//! The time of one question to an engine: Agon measures it, whatever the engine says.

use std::time::{Duration, Instant};

use agon_arena::{EngineConfig, EngineError, FaultKind};
use agon_search::Limit;

use super::process::EngineProcess;

/// How often the processor time of a searching engine is read.
const CPU_LOOK: Duration = Duration::from_millis(20);

/// The time of one question.
pub(super) struct Stopwatch {
    started: Instant,
    limit: Limit,
    grace: Duration,
    hang: Duration,
    cpu_before: Duration,
}

impl Stopwatch {
    /// Starts to measure.
    pub(super) fn start(limit: Limit, config: &EngineConfig, process: &EngineProcess) -> Stopwatch {
        let cpu_before = if matches!(limit, Limit::Cpu(_)) { process.cpu_time() } else { Duration::ZERO };
        Stopwatch { started: Instant::now(), limit, grace: config.grace, hang: config.hang, cpu_before }
    }

    /// Returns the time until which the engine may answer. A limit of processor time is looked at again and again.
    pub(super) fn deadline(&self, process: &EngineProcess) -> Result<Instant, EngineError> {
        let hangs = self.started + self.hang;
        match self.limit {
            Limit::Wall(time) | Limit::Clock { remaining: time, .. } => Ok(self.started + time + self.grace),
            Limit::Nodes(_) | Limit::Depth(_) => Ok(hangs),
            Limit::Cpu(time) => {
                let used = process.cpu_time().saturating_sub(self.cpu_before);
                if used > time + self.grace {
                    return Err(process.fault(FaultKind::NoAnswer, "it used up its processor time"));
                }
                Ok((Instant::now() + CPU_LOOK).min(hangs + time))
            }
        }
    }

    /// Reads a line within the time.
    pub(super) fn read_line(&self, process: &mut EngineProcess) -> Result<String, EngineError> {
        loop {
            let until = self.deadline(process)?;
            match process.read_line(until) {
                // A limit of processor time has moved on.
                Err(EngineError::Fault(fault))
                    if fault.kind == FaultKind::NoAnswer && self.deadline(process)? > Instant::now() => {}
                read => return read,
            }
        }
    }

    /// Returns the time that is limited.
    pub(super) fn elapsed(&self, process: &EngineProcess) -> Duration {
        match self.limit {
            Limit::Cpu(_) => process.cpu_time().saturating_sub(self.cpu_before),
            _ => self.started.elapsed(),
        }
    }

    /// Describes a search without an answer in time.
    pub(super) fn too_late(&self, outcome: &str) -> String {
        let limit = match self.limit {
            Limit::Wall(time) => format!("{} ms", time.as_millis()),
            Limit::Cpu(time) => format!("{} ms of processor time", time.as_millis()),
            Limit::Clock { remaining, .. } => format!("{} ms on its clock", remaining.as_millis()),
            Limit::Nodes(_) | Limit::Depth(_) => {
                return format!(
                    "it did not answer within {} ms and counts as hanging; {outcome}",
                    self.hang.as_millis()
                );
            }
        };
        format!("it did not answer within {limit} and a margin of {} ms; {outcome}", self.grace.as_millis())
    }
}
