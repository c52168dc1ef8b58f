//! Specs, openings and leased bouts, checked.

use std::collections::BTreeMap;

use agon_arena::spec::{Plan, Values};
use agon_arena::{Bout, Opening, Spec, SpecSource};

use crate::check;
use crate::error::WireError;
use crate::lease::Lease;
use crate::limits::{MAX_FILE_NAME, MAX_LINE, MAX_PARAMETERS, MAX_PLAYERS, MAX_SPEC_BYTES, MAX_SPEC_FILES};
use crate::v1;

impl From<&SpecSource> for v1::Spec {
    fn from(source: &SpecSource) -> v1::Spec {
        v1::Spec { text: source.text.clone(), files: source.files.clone().into_iter().collect() }
    }
}

impl TryFrom<v1::Spec> for SpecSource {
    type Error = WireError;

    fn try_from(spec: v1::Spec) -> Result<SpecSource, WireError> {
        check::count("files", spec.files.len(), 0..=MAX_SPEC_FILES)?;
        let mut files = BTreeMap::new();
        let mut bytes = spec.text.len();
        for (name, content) in spec.files {
            bytes += content.len();
            files.insert(check::name("files", name, MAX_FILE_NAME)?, content);
        }
        if bytes > MAX_SPEC_BYTES {
            return Err(WireError::TooLong { field: "spec", found: bytes, most: MAX_SPEC_BYTES });
        }
        Ok(SpecSource { text: spec.text, files })
    }
}

impl From<&Opening> for v1::Opening {
    fn from(opening: &Opening) -> v1::Opening {
        v1::Opening { position: opening.position.clone().unwrap_or_default(), moves: opening.moves.clone() }
    }
}

impl TryFrom<v1::Opening> for Opening {
    type Error = WireError;

    fn try_from(opening: v1::Opening) -> Result<Opening, WireError> {
        let position = check::text("position", opening.position, MAX_LINE)?;
        Ok(Opening {
            position: Some(position).filter(|text| !text.is_empty()),
            moves: check::line("moves", opening.moves, MAX_LINE)?,
        })
    }
}

/// A leased bout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeasedBout {
    /// The lease.
    pub lease: Lease,
    /// The bout; its index is that of the lease.
    pub bout: Bout,
}

impl From<&LeasedBout> for v1::Grant {
    fn from(LeasedBout { lease, bout }: &LeasedBout) -> v1::Grant {
        let wire = |player: usize| u32::try_from(player).expect("a spec has few players");
        let values = |(player, values): &(usize, Values)| v1::PlayerValues {
            player: wire(*player),
            millionths: values.0.clone(),
        };
        v1::Grant {
            lease: Some(lease.into()),
            players: bout.players.iter().map(|&player| wire(player)).collect(),
            opening: Some((&bout.opening).into()),
            values: bout.values.iter().map(values).collect(),
        }
    }
}

impl TryFrom<v1::Grant> for LeasedBout {
    type Error = WireError;

    fn try_from(grant: v1::Grant) -> Result<LeasedBout, WireError> {
        check::count("players", grant.players.len(), 1..=MAX_PLAYERS)?;
        check::count("values", grant.values.len(), 0..=grant.players.len())?;
        let player = |player| check::number("players", player, 0..=MAX_PLAYERS as u32 - 1);
        let values = |given: v1::PlayerValues| {
            check::count("millionths", given.millionths.len(), 1..=MAX_PARAMETERS)?;
            Ok::<_, WireError>((player(given.player)? as usize, Values(given.millionths)))
        };
        let lease = Lease::required(grant.lease)?;
        let players = grant.players.into_iter().map(|number| Ok(player(number)? as usize));
        let players = players.collect::<Result<_, WireError>>()?;
        let opening = check::required("opening", grant.opening)?.try_into()?;
        let values = grant.values.into_iter().map(values).collect::<Result<_, _>>()?;
        Ok(LeasedBout::new(lease, players, opening, values))
    }
}

impl LeasedBout {
    /// Creates a leased bout.
    pub fn new(
        lease: Lease,
        players: Vec<usize>,
        opening: Opening,
        values: Vec<(usize, Values)>,
    ) -> LeasedBout {
        LeasedBout { bout: Bout { index: lease.bout, players, opening, values }, lease }
    }

    /// Checks the bout against its spec: one known player per seat, and values within the bounds of the tuning.
    pub fn check(&self, spec: &Spec) -> Result<(), WireError> {
        let Bout { players, values, .. } = &self.bout;
        if let Plan::Tournament(_) | Plan::Tune(_) = spec.plan {
            let seats = spec.game.parameters().seats();
            check::count("players", players.len(), seats..=seats)?;
        }
        let last = spec.players.len().saturating_sub(1) as u64;
        for &player in players {
            check::number("players", player as u64, 0..=last)?;
        }
        let allowed = |(player, values): &(usize, Values)| {
            players.contains(player) && spec.tune().is_some_and(|tune| tune.allows(values))
        };
        if values.iter().all(allowed) { Ok(()) } else { Err(WireError::Values) }
    }
}
