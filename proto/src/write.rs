//! The sending end of a submission: encodes the rows of a bout as messages.
//!
//! The sender runs the receiver's [`Assembler`], so it never sends what the receiver would reject, and both compute the
//! digests from the same columns. Plies are encoded from these columns and not decoded again.

use std::sync::Arc;

use agon_arena::Spec;
use agon_records::{GameRow, MoveRow, ProbeRow};

use crate::assemble::Assembler;
use crate::bout::LeasedBout;
use crate::error::WireError;
use crate::lease::Lease;
use crate::session::clean_reason;
use crate::v1;
use crate::v1::submission::Kind;

/// Encodes the messages of one bout, in order.
pub struct BoutWriter {
    assembler: Assembler,
}

impl BoutWriter {
    /// Begins the messages of a bout.
    pub fn new(spec: Arc<Spec>, bout: LeasedBout) -> Result<BoutWriter, WireError> {
        Ok(BoutWriter { assembler: Assembler::new(spec, bout)? })
    }

    /// Returns the first message.
    pub fn head(&mut self, worker: &str, build: &str) -> Result<v1::Submission, WireError> {
        self.write(Kind::Head(v1::BoutHead { worker: worker.to_string(), build: build.to_string() }))
    }

    /// Encodes the next plies of the current game, at most [`crate::limits::MAX_BATCH_MOVES`].
    pub fn moves(&mut self, game: u16, moves: &[MoveRow]) -> Result<v1::Submission, WireError> {
        self.assembler.write_moves(game, moves)
    }

    /// Ends the current game. Leaves out the columns that follow from the spec and the grant.
    pub fn game_end(&mut self, row: &GameRow) -> Result<v1::Submission, WireError> {
        self.write(Kind::GameEnd(v1::GameEnd {
            game: u32::from(row.game),
            payoffs: row.payoffs.clone(),
            ending: row.ending.clone(),
            seed: row.seed,
            started_us: row.started,
            duration_us: row.duration_us,
            speed_factor: row.speed_factor,
            detail: row.detail.clone(),
            engine_cpu_us: row.engine_cpu_us.clone(),
        }))
    }

    /// Encodes searches of a probe, in the order of its players.
    pub fn probes<'a>(
        &mut self,
        probes: impl IntoIterator<Item = &'a ProbeRow>,
    ) -> Result<v1::Submission, WireError> {
        self.assembler.write_probes(probes)
    }

    /// Returns the last message, with the digests of all earlier ones.
    pub fn end(&mut self) -> Result<v1::Submission, WireError> {
        let (content, bytes) = self.assembler.digests();
        self.write(Kind::End(v1::BoutEnd { content_digest: content.to_vec(), bytes_digest: bytes.to_vec() }))
    }

    fn write(&mut self, kind: Kind) -> Result<v1::Submission, WireError> {
        let lease = Some((&self.assembler.leased().lease).into());
        let submission = v1::Submission { lease, kind: Some(kind) };
        self.assembler.accept(submission.clone())?;
        Ok(submission)
    }
}

/// Returns the message that ends a bout which cannot be played.
pub fn failure(lease: &Lease, reason: &str) -> v1::Submission {
    let reason = clean_reason(reason);
    v1::Submission { lease: Some(lease.into()), kind: Some(Kind::Failure(v1::BoutFailure { reason })) }
}
