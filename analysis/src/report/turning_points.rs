//! Turning points: the last time a loser evaluated its position as ahead, and how far its score then dropped.
//!
//! Scores of different players have different units, so a drop is measured in units of the player's mean change between
//! consecutive searches. With more than two seats a score does not show who is ahead; there the largest drop of a player
//! that did not win counts. Memory is bounded by player, not by game. Deliberately not here: the boards.

use agon_records::SearchRow;
use agon_search::Proof;

use crate::games::Recording;

/// Number of turning points in a report.
const REPORTED: usize = 3;

/// A turning point of a game.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct TurningPoint {
    /// The bout.
    pub bout: u64,
    /// The game.
    pub game: u16,
    /// Ply of the loser's move.
    pub ply: u16,
    /// Ply of its next search.
    pub next: u16,
    /// ScoreDrop of the score in units of the player's mean change.
    pub steps: f64,
}

/// A drop of a player's score.
#[derive(Clone, Copy, PartialEq, Debug)]
struct ScoreDrop {
    /// Its finite part: the whole drop, or the score before a proven loss.
    size: f64,
    bout: u64,
    game: u16,
    ply: u16,
    next: u16,
}

/// A change between two consecutive searches of a player.
struct Change {
    /// Whether the player was ahead before; always true with more than two seats.
    ahead: bool,
    /// Whether it may be the turning point.
    turning: bool,
    /// Whether it ended in a proven loss.
    proven: bool,
    drop: ScoreDrop,
}

/// Running state of a player.
#[derive(Clone, Default)]
struct Candidates {
    /// Sum and number of the absolute score changes.
    changes: (f64, u64),
    /// Largest finite absolute score.
    largest: f64,
    /// Largest drops to a finite score.
    finite: Vec<ScoreDrop>,
    /// Largest drops to a proven loss.
    proven: Vec<ScoreDrop>,
}

/// Collector of the largest drops by player.
pub(super) struct TurningPoints(Vec<Candidates>);

impl TurningPoints {
    pub(super) fn new(players: usize) -> TurningPoints {
        TurningPoints(vec![Candidates::default(); players])
    }

    /// Adds the turning points of a game.
    pub(super) fn add_game(&mut self, players: &[String], recording: &Recording) {
        let row = &recording.game;
        let (most, duel) = (row.payoffs.iter().max(), row.players.len() == 2);
        let decided = most != row.payoffs.iter().min();
        for (seat, name) in row.players.iter().enumerate() {
            let Some(player) = players.iter().position(|known| known == name) else { continue };
            let own = recording.moves.iter().filter(|ply| ply.seat.map(usize::from) == Some(seat));
            let searches: Vec<(u16, &SearchRow)> =
                own.filter_map(|ply| Some((ply.ply, ply.search.as_ref()?))).collect();
            let candidates = &mut self.0[player];
            let mut changes = Vec::new();
            for pair in searches.windows(2) {
                let [(ply, before), (next, after)] = pair else { continue };
                let (before, after) = (before.value(), after.value());
                let won_or_lost = matches!(before.proof, Some(Proof::Win(_) | Proof::Loss(_)));
                if won_or_lost || !before.number.is_finite() || !after.number.is_finite() {
                    continue;
                }
                candidates.largest = candidates.largest.max(before.number.abs());
                let mut ahead = before.number > 0.0 || !duel;
                let difference = before.number - after.number;
                let (turning, size) = match after.proof {
                    Some(Proof::Draw(_) | Proof::Exact(_)) | None => {
                        candidates.changes.0 += difference.abs();
                        candidates.changes.1 += 1;
                        let behind = after.number < if duel { 0.0 } else { before.number };
                        (ahead && behind, difference)
                    }
                    Some(Proof::Loss(_)) => (ahead, before.number),
                    Some(Proof::Win(_)) => {
                        ahead = true;
                        (false, 0.0)
                    }
                };
                let proven = matches!(after.proof, Some(Proof::Loss(_)));
                let drop = ScoreDrop { size, bout: row.bout, game: row.game, ply: *ply, next: *next };
                changes.push(Change { ahead, turning, proven, drop });
            }
            // The end surprised a loser that was ahead at its last search: none of its moves is the turning point.
            let surprised = duel && searches.last().is_some_and(|(_, search)| search.score > 0.0);
            if !decided || surprised || row.payoffs.get(seat) == most {
                continue;
            }
            // In a duel only changes since the loser was last ahead count.
            let from = if duel { changes.iter().rposition(|change| change.ahead).unwrap_or(0) } else { 0 };
            let turning = changes[from.min(changes.len())..].iter().filter(|change| change.turning);
            let largest = turning.max_by(|one, other| {
                let order = (one.proven, one.drop.size).partial_cmp(&(other.proven, other.drop.size));
                order.unwrap_or(std::cmp::Ordering::Equal)
            });
            if let Some(Change { proven, drop, .. }) = largest {
                keep_largest(if *proven { &mut candidates.proven } else { &mut candidates.finite }, *drop);
            }
        }
    }

    /// Returns the largest drops over all players, at most one per bout. A proven loss counts as minus the largest score of
    /// the player.
    pub(super) fn largest(&self) -> Vec<TurningPoint> {
        let mut points: Vec<TurningPoint> = Vec::new();
        for candidates in &self.0 {
            let step = candidates.changes.0 / candidates.changes.1.max(1) as f64;
            if step <= 0.0 {
                continue;
            }
            let proven = candidates.proven.iter().map(|drop| (drop, drop.size + candidates.largest));
            for (drop, size) in candidates.finite.iter().map(|drop| (drop, drop.size)).chain(proven) {
                let ScoreDrop { bout, game, ply, next, .. } = *drop;
                points.push(TurningPoint { bout, game, ply, next, steps: size / step });
            }
        }
        points.sort_by(|one, other| {
            other
                .steps
                .total_cmp(&one.steps)
                .then_with(|| (one.bout, one.game).cmp(&(other.bout, other.game)))
        });
        let mut reported: Vec<TurningPoint> = Vec::new();
        for point in points {
            if reported.len() < REPORTED && reported.iter().all(|other| other.bout != point.bout) {
                reported.push(point);
            }
        }
        reported
    }
}

/// Adds a drop to the largest ones, at most one per bout.
fn keep_largest(drops: &mut Vec<ScoreDrop>, drop: ScoreDrop) {
    if let Some(same) = drops.iter_mut().find(|other| other.bout == drop.bout) {
        if drop.size > same.size {
            *same = drop;
        }
    } else {
        drops.push(drop);
    }
    drops.sort_by(|one, other| other.size.total_cmp(&one.size).then_with(|| one.bout.cmp(&other.bout)));
    // Finite and proven drops may be of the same bouts.
    drops.truncate(2 * REPORTED);
}

#[cfg(test)]
mod tests {
    use agon_records::{GameRow, MoveRow};
    use agon_search::Counters;

    use super::*;

    fn recording(bout: u64, payoffs: &[i32], scores: &[f64]) -> Recording {
        let seats = payoffs.len();
        let search = |score: f64, seat: usize| SearchRow {
            player: format!("p{seat}"),
            depth: 1,
            selective_depth: 1,
            counters: Counters::default(),
            depth_nodes: vec![1],
            depth_time_us: vec![1],
            score,
            pv: String::new(),
            time_us: 1,
            overshoot_us: 0,
            limit_kind: agon_records::LimitKind::Nodes,
            limit_value: 1,
        };
        let ply = |(ply, score): (usize, &f64)| MoveRow {
            bout,
            game: 0,
            ply: ply as u16,
            seat: Some((ply % seats) as u16),
            mv: String::new(),
            legal: 1,
            search: Some(search(*score, ply % seats)),
        };
        let game = GameRow {
            bout,
            game: 0,
            rules: "none".to_string(),
            variant: String::new(),
            opening: String::new(),
            players: (0..seats).map(|seat| format!("p{seat}")).collect(),
            payoffs: payoffs.to_vec(),
            plies: scores.len() as u32,
            ending: "over".to_string(),
            seed: 0,
            worker: String::new(),
            build: String::new(),
            started: 0,
            duration_us: 0,
            speed_factor: 1.0,
            settings: Vec::new(),
            detail: String::new(),
            engine_cpu_us: Vec::new(),
        };
        Recording { game, moves: scores.iter().enumerate().map(ply).collect() }
    }

    fn largest(games: &[Recording]) -> Vec<(u64, u16)> {
        let names: Vec<String> = (0..4).map(|seat| format!("p{seat}")).collect();
        let mut points = TurningPoints::new(names.len());
        games.iter().for_each(|game| points.add_game(&names, game));
        points.largest().iter().map(|point| (point.bout, point.ply)).collect()
    }

    /// Seat 0 is ahead, falls behind, is ahead again and then falls for good: the last drop is the turning point.
    #[test]
    fn last_lead_of_loser_is_turning_point() {
        let scores = [5.0, 0.0, -5.0, 0.0, 2.0, 0.0, -3.0, 0.0, -4.0];
        assert_eq!(largest(&[recording(0, &[-1, 1], &scores)]), [(0, 4)]);
        // Drops of the winner, draws, and losers that were never ahead are no turning points.
        assert_eq!(largest(&[recording(0, &[1, -1], &scores)]), []);
        assert_eq!(largest(&[recording(0, &[0, 0], &scores)]), []);
        assert_eq!(largest(&[recording(0, &[-1, 1], &[-1.0, 0.0, -2.0, 0.0, -3.0])]), []);
        assert_eq!(largest(&[recording(0, &[-1, 1], &[5.0, 0.0, -5.0, 0.0, 2.0])]), []);
        assert_eq!(largest(&[recording(0, &[-1, 1], &[])]), []);
    }

    #[test]
    fn largest_drops_are_reported_once_per_bout() {
        let drop = |bout: u64, size: f64| recording(bout, &[-1, 1], &[size, 0.0, -size, 0.0, -size]);
        let games: Vec<Recording> =
            [3.0, 9.0, 1.0, 7.0, 8.0].into_iter().zip(0..).map(|(size, bout)| drop(bout, size)).collect();
        assert_eq!(largest(&games), [(1, 0), (4, 0), (3, 0)]);
        assert_eq!(largest(&[drop(2, 3.0), drop(2, 4.0), drop(5, 1.0)]), [(2, 0), (5, 0)]);
    }

    #[test]
    fn drops_are_measured_in_own_mean_change() {
        let seat_1 = |bout: u64, size: f64| recording(bout, &[1, -1], &[0.0, size, 0.0, -size, 0.0, -size]);
        let calm = |bout: u64| recording(bout, &[1, -1], &[0.0, 1000.0, 0.0, -1000.0, 0.0, -1000.0]);
        let seat_0 = |bout: u64, size: f64| recording(bout, &[-1, 1], &[size, 0.0, -size, 0.0, -size]);
        let games = [calm(0), calm(1), seat_1(2, 1500.0), seat_0(3, 0.1), seat_0(4, 0.1), seat_0(5, 0.9)];
        assert_eq!(largest(&games)[0], (5, 0));
    }

    #[test]
    fn proven_loss_is_largest_drop() {
        let loss = -99_999.0;
        let scores = [5.0, 0.0, loss];
        assert_eq!(
            largest(&[recording(0, &[-1, 1], &scores), recording(1, &[-1, 1], &[6.0, 0.0, -1.0, 0.0, -2.0])]),
            [(0, 0), (1, 0)]
        );
    }

    #[test]
    fn many_seats_use_largest_drop_of_loser() {
        let scores = [0.5, 0.3, 0.3, 0.4, 0.1, 0.3, 0.3, 0.6];
        assert_eq!(largest(&[recording(7, &[0, 0, 0, 60], &scores)]), [(7, 0)]);
    }
}
