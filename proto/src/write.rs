//! The sending end of a submission: rows of one bout become its messages.
//!
//! An [`Assembler`] keeps the rows on this side too, with the same bounds: what the other end would refuse is never sent, and
//! both ends compute the digests of the same columns. Plies are encoded from those columns and never decoded again here.

use std::sync::Arc;

use agon_arena::Spec;
use agon_records::{GameRow, MoveRow, ProbeRow};

use crate::assemble::Assembler;
use crate::bout::Bout;
use crate::error::WireError;
use crate::lease::Lease;
use crate::session::shortened;
use crate::v1;
use crate::v1::submission::Kind;

/// Writes the messages of one bout, in their order.
pub struct BoutWriter {
    assembler: Assembler,
}

impl BoutWriter {
    /// Begins with a bout of this spec.
    pub fn new(spec: Arc<Spec>, bout: Bout) -> Result<BoutWriter, WireError> {
        Ok(BoutWriter { assembler: Assembler::new(spec, bout)? })
    }

    /// The first message.
    pub fn head(&mut self, worker: &str, build: &str) -> Result<v1::Submission, WireError> {
        self.write(Kind::Head(v1::BoutHead { worker: worker.to_string(), build: build.to_string() }))
    }

    /// Plies of the game under way, in their order; at most [`crate::limits::MAX_BATCH_MOVES`].
    pub fn moves(&mut self, game: u16, moves: &[MoveRow]) -> Result<v1::Submission, WireError> {
        self.assembler.write_moves(game, moves)
    }

    /// The end of the game under way. What the spec and the grant say of it is not sent.
    pub fn game_end(&mut self, row: &GameRow) -> Result<v1::Submission, WireError> {
        self.write(Kind::GameEnd(v1::GameEnd {
            game: u32::from(row.game),
            payoffs: row.payoffs.clone(),
            ending: row.ending.clone(),
            seed: row.seed,
            started_us: row.started,
            duration_us: row.duration_us,
            speed_factor: row.speed_factor,
        }))
    }

    /// Searches of a probe, in the order of its players.
    pub fn probes<'a>(
        &mut self,
        probes: impl IntoIterator<Item = &'a ProbeRow>,
    ) -> Result<v1::Submission, WireError> {
        self.assembler.write_probes(probes)
    }

    /// The last message, with the digests of all before.
    pub fn end(&mut self) -> Result<v1::Submission, WireError> {
        let (content, bytes) = self.assembler.digests();
        self.write(Kind::End(v1::BoutEnd { content_digest: content.to_vec(), bytes_digest: bytes.to_vec() }))
    }

    fn write(&mut self, kind: Kind) -> Result<v1::Submission, WireError> {
        let lease = Some((&self.assembler.bout().lease).into());
        let submission = v1::Submission { lease, kind: Some(kind) };
        self.assembler.accept(submission.clone())?;
        Ok(submission)
    }
}

/// The last message of a bout that cannot be played, whatever came before.
pub fn failure(lease: &Lease, reason: &str) -> v1::Submission {
    let reason = shortened(reason);
    v1::Submission { lease: Some(lease.into()), kind: Some(Kind::Failure(v1::BoutFailure { reason })) }
}
