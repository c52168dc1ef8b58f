//! The two rating models agree where both apply: two seats, no draws.

use agon_simulation::world::World;
use agon_stats::distribution::seeded;
use agon_stats::outcome::Outcome;
use agon_stats::plackett_luce::{Anchor, Game, LowestPlaces, Pool};
use agon_stats::pool::{Fit, Options, Results};
use rand::RngExt as _;

/// Fits single games of a world without draws with both models.
fn both(world: &World, games: usize, seed: u64) -> (Fit, agon_stats::plackett_luce::Fit) {
    let players = world.ratings.len();
    let mut random = seeded(seed, 0);
    let mut results = Results::default();
    let known: Vec<_> = (0..players).map(|player| results.player(&format!("player {player:02}"))).collect();
    let mut pool = Pool::new(players, 2, LowestPlaces::Decided).expect("two seats");
    for _ in 0..games {
        let first = random.random_range(0..players);
        let second = (first + random.random_range(1..players)) % players;
        let lead = world.ratings[first] - world.ratings[second] + world.seat_advantage;
        let wins = random.random::<f64>() < agon_stats::elo::expected_score(lead);
        let (outcome, payoffs) = if wins { (Outcome::Win, [1, -1]) } else { (Outcome::Loss, [-1, 1]) };
        results.add_games(known[first], known[second], outcome, 1).expect("two different players");
        let game = Game { players: vec![first, second], payoffs: payoffs.to_vec() };
        pool.add(&[game]).expect("a game of this pool");
    }
    (Fit::new(&results, &Options::default()).expect("default options fit every pool"), pool.fit(Anchor::Mean))
}

#[test]
fn both_models_agree_on_two_seats_without_draws() {
    for (players, games, seed) in [(2, 60, 1), (3, 90, 2), (6, 400, 3), (12, 3000, 4)] {
        let world = World { draw_rate: 0.0, ..World::ladder(players, 70.0) };
        let (pool, rankings) = both(&world, games, seed);
        for (player, (&elo, strength)) in pool.ratings().iter().zip(&rankings.strengths).enumerate() {
            assert!(
                pool.bound(player).is_none() && strength.bound.is_none(),
                "seed {seed} shall rate everybody"
            );
            assert!((elo - strength.elo).abs() < 1e-3, "{players} players: {elo} is not {}", strength.elo);
        }
        let advantage = rankings.seat_effects[0] - rankings.seat_effects[1];
        let fitted = pool.seat_advantage().expect("both seats were played");
        assert!((fitted - advantage).abs() < 1e-3, "{fitted} is not {advantage}");
    }
}
