//! Where games were decided: the last time a loser thought itself ahead, and how far its score fell from there.
//!
//! Scores of different players are not in one unit, so that a fall is measured in the player's own usual step: the mean
//! change of its score from one of its searches to its next. In games of many seats nobody can tell from a score who is
//! ahead; there it is the largest fall of one who did not win. A few places are kept by player, whatever the number of
//! games. Deliberately not here: the boards.

use agon_records::SearchRow;
use agon_search::Proof;

use crate::games::Recording;

/// How many moments the page has room for.
const MOMENTS: usize = 3;

/// Where a game was decided.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Place {
    /// The bout.
    pub bout: u64,
    /// Its game.
    pub game: u16,
    /// The ply that the loser moved at.
    pub ply: u16,
    /// The next ply that it searched at.
    pub next: u16,
    /// The fall of its score in its own usual steps.
    pub steps: f64,
}

/// A fall of a player's score.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Fall {
    /// The part of it that was a number: the whole of it where the end was one, too.
    size: f64,
    bout: u64,
    game: u16,
    ply: u16,
    next: u16,
}

/// What is kept of a player's falls.
#[derive(Clone, Default)]
struct Kept {
    /// Sum and number of the changes of its scores.
    steps: (f64, u64),
    /// The largest score that was a number.
    largest: f64,
    /// The largest falls to a number, and from the largest number to a proven loss.
    to_number: Vec<Fall>,
    to_loss: Vec<Fall>,
}

/// The largest falls by player.
pub(super) struct Candidates(Vec<Kept>);

impl Candidates {
    pub(super) fn new(players: usize) -> Candidates {
        Candidates(vec![Kept::default(); players])
    }

    /// Looks at a game.
    pub(super) fn look(&mut self, players: &[String], recording: &Recording) {
        let row = &recording.game;
        let (most, duel) = (row.payoffs.iter().max(), row.players.len() == 2);
        let decided = most != row.payoffs.iter().min();
        for (seat, name) in row.players.iter().enumerate() {
            let Some(player) = players.iter().position(|known| known == name) else { continue };
            let own = |ply: &&agon_records::MoveRow| ply.seat.map(usize::from) == Some(seat);
            let searches: Vec<(u16, &SearchRow)> = recording
                .moves
                .iter()
                .filter(own)
                .filter_map(|ply| ply.search.as_ref().map(|search| (ply.ply, search)))
                .collect();
            let kept = &mut self.0[player];
            let mut falls = Vec::new();
            for pair in searches.windows(2) {
                let [(ply, before), (next, after)] = pair else { continue };
                let (before, after) = (before.value(), after.value());
                if before.proof.is_some() || !before.number.is_finite() || !after.number.is_finite() {
                    continue;
                }
                kept.largest = kept.largest.max(before.number.abs());
                let ahead = before.number > 0.0 || !duel;
                let place = |size: f64| Fall { size, bout: row.bout, game: row.game, ply: *ply, next: *next };
                match after.proof {
                    None => {
                        kept.steps.0 += (before.number - after.number).abs();
                        kept.steps.1 += 1;
                        let fell = after.number < if duel { 0.0 } else { before.number };
                        falls.push((ahead, ahead && fell, false, place(before.number - after.number)));
                    }
                    Some(Proof::Loss(_)) => falls.push((ahead, ahead, true, place(before.number))),
                    Some(Proof::Win(_)) => falls.push((true, false, false, place(0.0))),
                }
            }
            // Who hoped to the end was surprised by it, and no move of its own shows where.
            let hoped = duel && searches.last().is_some_and(|(_, search)| search.score > 0.0);
            if !decided || hoped || row.payoffs.get(seat) == most {
                continue;
            }
            // In a duel only what came after the loser's last hope decided.
            let from = if duel { falls.iter().rposition(|fall| fall.0).unwrap_or(0) } else { 0 };
            let chosen = falls[from.min(falls.len())..].iter().filter(|fall| fall.1);
            let largest = chosen.max_by(|one, other| {
                (one.2, one.3.size).partial_cmp(&(other.2, other.3.size)).unwrap_or(std::cmp::Ordering::Equal)
            });
            if let Some(&(_, _, lost, fall)) = largest {
                keep(if lost { &mut kept.to_loss } else { &mut kept.to_number }, fall);
            }
        }
    }

    /// The largest falls of all players in their own steps, each of another bout. A proven loss counts as the largest
    /// number that the player has thought.
    pub(super) fn best(&self) -> Vec<Place> {
        let mut places: Vec<Place> = Vec::new();
        for kept in &self.0 {
            let step = kept.steps.0 / kept.steps.1.max(1) as f64;
            if step <= 0.0 {
                continue;
            }
            let lost = kept.to_loss.iter().map(|fall| (fall, fall.size + kept.largest));
            for (fall, size) in kept.to_number.iter().map(|fall| (fall, fall.size)).chain(lost) {
                let Fall { bout, game, ply, next, .. } = *fall;
                places.push(Place { bout, game, ply, next, steps: size / step });
            }
        }
        places.sort_by(|one, other| {
            other
                .steps
                .total_cmp(&one.steps)
                .then_with(|| (one.bout, one.game).cmp(&(other.bout, other.game)))
        });
        let mut chosen: Vec<Place> = Vec::new();
        for place in places {
            if chosen.len() < MOMENTS && chosen.iter().all(|other| other.bout != place.bout) {
                chosen.push(place);
            }
        }
        chosen
    }
}

/// Keeps the largest falls. One more of a bout than the page needs is enough: a bout is told once.
fn keep(kept: &mut Vec<Fall>, fall: Fall) {
    if let Some(same) = kept.iter_mut().find(|other| other.bout == fall.bout) {
        if fall.size > same.size {
            *same = fall;
        }
    } else {
        kept.push(fall);
    }
    kept.sort_by(|one, other| other.size.total_cmp(&one.size).then_with(|| one.bout.cmp(&other.bout)));
    // Falls to a number and to a loss may be of the same bouts.
    kept.truncate(2 * MOMENTS);
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
        };
        Recording { game, moves: scores.iter().enumerate().map(ply).collect() }
    }

    fn best(games: &[Recording]) -> Vec<(u64, u16)> {
        let names: Vec<String> = (0..4).map(|seat| format!("p{seat}")).collect();
        let mut candidates = Candidates::new(names.len());
        games.iter().for_each(|game| candidates.look(&names, game));
        candidates.best().iter().map(|place| (place.bout, place.ply)).collect()
    }

    /// Seat 0 is ahead, falls behind, hopes again and falls for good: the last fall decides.
    #[test]
    fn the_last_hope_of_the_loser_is_told() {
        let scores = [5.0, 0.0, -5.0, 0.0, 2.0, 0.0, -3.0, 0.0, -4.0];
        assert_eq!(best(&[recording(0, &[-1, 1], &scores)]), [(0, 4)]);
        // The winner's falls, draws, and losers who never hoped tell nothing.
        assert_eq!(best(&[recording(0, &[1, -1], &scores)]), []);
        assert_eq!(best(&[recording(0, &[0, 0], &scores)]), []);
        assert_eq!(best(&[recording(0, &[-1, 1], &[-1.0, 0.0, -2.0, 0.0, -3.0])]), []);
        assert_eq!(best(&[recording(0, &[-1, 1], &[5.0, 0.0, -5.0, 0.0, 2.0])]), []);
        assert_eq!(best(&[recording(0, &[-1, 1], &[])]), []);
    }

    #[test]
    fn the_largest_falls_are_told_once_a_bout() {
        let fall = |bout: u64, size: f64| recording(bout, &[-1, 1], &[size, 0.0, -size, 0.0, -size]);
        let games: Vec<Recording> =
            [3.0, 9.0, 1.0, 7.0, 8.0].into_iter().zip(0..).map(|(size, bout)| fall(bout, size)).collect();
        assert_eq!(best(&games), [(1, 0), (4, 0), (3, 0)]);
        assert_eq!(best(&[fall(2, 3.0), fall(2, 4.0), fall(5, 1.0)]), [(2, 0), (5, 0)]);
    }

    /// A unit that is a thousand times as large makes no difference.
    #[test]
    fn falls_are_measured_in_the_players_own_steps() {
        let seat_1 = |bout: u64, size: f64| recording(bout, &[1, -1], &[0.0, size, 0.0, -size, 0.0, -size]);
        let calm = |bout: u64| recording(bout, &[1, -1], &[0.0, 1000.0, 0.0, -1000.0, 0.0, -1000.0]);
        let seat_0 = |bout: u64, size: f64| recording(bout, &[-1, 1], &[size, 0.0, -size, 0.0, -size]);
        let games = [calm(0), calm(1), seat_1(2, 1500.0), seat_0(3, 0.1), seat_0(4, 0.1), seat_0(5, 0.9)];
        assert_eq!(best(&games)[0], (5, 0));
    }

    #[test]
    fn a_proven_loss_is_the_deepest_fall() {
        let loss = -99_999.0;
        let scores = [5.0, 0.0, loss];
        assert_eq!(
            best(&[recording(0, &[-1, 1], &scores), recording(1, &[-1, 1], &[6.0, 0.0, -1.0, 0.0, -2.0])]),
            [(0, 0), (1, 0)]
        );
    }

    #[test]
    fn with_many_seats_any_fall_of_a_loser_counts() {
        let scores = [0.5, 0.3, 0.3, 0.4, 0.1, 0.3, 0.3, 0.6];
        assert_eq!(best(&[recording(7, &[0, 0, 0, 60], &scores)]), [(7, 0)]);
    }
}
