//! Ratings of pools: known values, laws, and a slow second implementation.

use std::num::NonZeroUsize;

use agon_simulation::world::World;
use agon_stats::distribution::{Z95, chi_square_tail, seeded};
use agon_stats::elo::{self, Split, expected_score};
use agon_stats::outcome::Outcome::{self, Draw, Loss, Win};
use agon_stats::pairs::Scores;
use agon_stats::pool::{Bound, Fit, Options, Results};
use rand::RngExt as _;

const ONE_THREAD: NonZeroUsize = NonZeroUsize::MIN;

fn replicas(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).expect("positive")
}

/// Creates results of single games from the first player, the second, and the first's losses, draws and wins.
fn games(rows: &[(&str, &str, [u64; 3])]) -> Results {
    let mut results = Results::default();
    for &(first, second, counts) in rows {
        let (first, second) = (results.player(first), results.player(second));
        for (outcome, count) in Outcome::ALL.into_iter().zip(counts) {
            results.add_games(first, second, outcome, count).expect("two different players");
        }
    }
    results
}

fn fit(results: &Results) -> Fit {
    Fit::new(results, &Options::default()).expect("default options fit every pool")
}

#[track_caller]
fn near(got: f64, expected: f64, tolerance: f64) {
    assert!((got - expected).abs() <= tolerance, "{got} is not {expected}");
}

/// Sixty wins, thirty draws and ten losses are a score of .75, whatever the seats, if they are even.
#[test]
fn three_quarter_score_is_191_elo() {
    let one_seat = fit(&games(&[("a", "b", [10, 30, 60])]));
    let both_seats = fit(&games(&[("a", "b", [5, 15, 30]), ("b", "a", [30, 15, 5])]));
    for fit in [&one_seat, &both_seats] {
        near(fit.ratings()[0] - fit.ratings()[1], 190.85, 0.005);
        near(fit.ratings()[0] + fit.ratings()[1], 0.0, 1e-9);
        // The draw rate at equality at which thirty of a hundred are drawn at .75.
        near(Split::at(0.75, fit.draw_rate()).draw, 0.3, 1e-9);
    }
    assert_eq!(one_seat.seat_advantage(), None);
    near(both_seats.seat_advantage().unwrap(), 0.0, 1e-9);
}

#[test]
fn prior_of_one_win_and_one_loss() {
    let results = games(&[("a", "b", [100, 0, 200])]);
    let fit = Fit::new(&results, &Options { prior: 1.0, ..Options::default() }).unwrap();
    near(fit.ratings()[0], 59.983, 0.0005);
    near(fit.ratings()[1], -59.983, 0.0005);
    let plain = self::fit(&results);
    near(plain.ratings()[0] - plain.ratings()[1], elo::difference(2.0 / 3.0), 1e-9);
}

/// A first seat's advantage that explains all results leaves the players equal.
#[test]
fn separates_advantage_from_strength() {
    let results = games(&[("a", "b", [30, 0, 70]), ("b", "a", [30, 0, 70])]);
    let fit = fit(&results);
    near(fit.ratings()[0], 0.0, 1e-9);
    near(fit.seat_advantage().unwrap(), elo::difference(0.7), 1e-6);
    let without = Fit::new(&results, &Options { seat_advantage: false, ..Options::default() }).unwrap();
    assert_eq!(without.seat_advantage(), None);
}

/// Returns the log-likelihood by definition.
fn log_likelihood(rows: &[(usize, usize, [u64; 3])], ratings: &[f64], advantage: f64, draw_rate: f64) -> f64 {
    rows.iter()
        .map(|&(first, second, counts)| {
            let score = expected_score(ratings[first] - ratings[second] + advantage);
            let split = Split::at(score, draw_rate);
            let probabilities = [split.loss, split.draw, split.win];
            let seen = counts.iter().zip(probabilities).filter(|(count, _)| **count > 0);
            seen.map(|(&count, probability)| count as f64 * probability.ln()).sum::<f64>()
        })
        .sum()
}

/// Maximises the likelihood slowly, moving one parameter at a time by shrinking steps.
fn climb(rows: &[(usize, usize, [u64; 3])], players: usize) -> (Vec<f64>, f64, f64) {
    let mut at = vec![0.0; players + 2];
    let value = |at: &[f64]| {
        let draw_rate = 1.0 / (1.0 + (-at[players + 1] / 100.0).exp());
        log_likelihood(rows, &at[..players], at[players], draw_rate)
    };
    let mut best = value(&at);
    let mut step = 128.0;
    while step > 1e-7 {
        let mut moved = false;
        for index in 0..players + 2 {
            for side in [step, -step] {
                at[index] += side;
                let there = value(&at);
                if there > best {
                    best = there;
                    moved = true;
                    break;
                }
                at[index] -= side;
            }
        }
        if !moved {
            step /= 2.0;
        }
    }
    let mean = at[..players].iter().sum::<f64>() / players as f64;
    let draw_rate = 1.0 / (1.0 + (-at[players + 1] / 100.0).exp());
    (at[..players].iter().map(|rating| rating - mean).collect(), at[players], draw_rate)
}

#[test]
fn newton_matches_coordinate_ascent() {
    let rows = [
        (0, 1, [12, 20, 31]),
        (1, 0, [14, 17, 22]),
        (1, 2, [3, 9, 40]),
        (2, 3, [8, 11, 13]),
        (3, 0, [19, 4, 1]),
        (3, 1, [7, 2, 0]),
        (0, 2, [1, 5, 9]),
    ];
    let names = ["a", "b", "c", "d"];
    let named: Vec<_> =
        rows.iter().map(|&(first, second, counts)| (names[first], names[second], counts)).collect();
    let fit = fit(&games(&named));
    let (ratings, advantage, draw_rate) = climb(&rows, 4);
    for (got, expected) in fit.ratings().iter().zip(&ratings) {
        near(*got, *expected, 0.01);
    }
    near(fit.seat_advantage().unwrap(), advantage, 0.01);
    near(fit.draw_rate(), draw_rate, 1e-5);
    let found = log_likelihood(&rows, fit.ratings(), fit.seat_advantage().unwrap(), fit.draw_rate());
    assert!(found >= log_likelihood(&rows, &ratings, advantage, draw_rate) - 1e-9);
}

/// The strengths of a world with balanced openings are recovered exactly from infinitely many results.
#[test]
fn recovers_known_ratings() {
    let world = World {
        ratings: vec![-310.0, -40.0, 0.0, 55.0, 295.0],
        seat_advantage: 35.0,
        draw_rate: 0.4,
        openings: vec![0.0],
    };
    let endless = fit(&world.expected_tournament(1e12));
    for (got, expected) in endless.ratings().iter().zip(&world.ratings) {
        near(*got, *expected, 1e-4);
    }
    near(endless.seat_advantage().unwrap(), 35.0, 1e-4);
    near(endless.draw_rate(), 0.4, 1e-6);

    let some = fit(&world.tournament(2000, &mut seeded(1, 0)));
    let errors = some.sandwich();
    for (player, expected) in world.ratings.iter().enumerate() {
        near(some.ratings()[player], *expected, 4.0 * errors.deviation(player));
        assert!(errors.deviation(player) < 6.0);
    }
}

#[test]
fn anchor_is_zero_and_keeps_differences() {
    let results = World::ladder(4, 80.0).tournament(100, &mut seeded(2, 0));
    let free = fit(&results);
    let anchored =
        Fit::new(&results, &Options { anchor: Some("player 0002".into()), ..Options::default() }).unwrap();
    assert_eq!(anchored.ratings()[2], 0.0);
    let (one, other) = (free.sandwich(), anchored.sandwich());
    assert!(other.deviation(2) < 1e-9);
    let resampled = anchored.bootstrap(replicas(50), 1, ONE_THREAD);
    assert_eq!((resampled.low[2], resampled.high[2]), (0.0, 0.0));
    for a in 0..4 {
        near(anchored.ratings()[a] - anchored.ratings()[0], free.ratings()[a] - free.ratings()[0], 1e-9);
        for b in 0..4 {
            // The likelihood of superiority depends only on differences.
            let (one, other) = (one.superiority(&free, a, b), other.superiority(&anchored, a, b));
            near(one.unwrap(), other.unwrap(), 1e-9);
        }
    }
    let unknown = Fit::new(&results, &Options { anchor: Some("nobody".into()), ..Options::default() });
    assert!(unknown.unwrap_err().to_string().contains("player 0003"));
    for prior in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(Fit::new(&results, &Options { prior, ..Options::default() }).is_err());
    }
}

/// Results in another order, and any number of threads, give the same bits.
#[test]
fn ratings_are_independent_of_order_and_threads() {
    let rows = [("b", "a", [3, 4, 5]), ("c", "a", [2, 0, 7]), ("c", "b", [6, 3, 4]), ("a", "c", [4, 4, 1])];
    let mut reversed = rows;
    reversed.reverse();
    let (one, other) = (fit(&games(&rows)), fit(&games(&reversed)));
    assert_eq!(one.ratings(), other.ratings());
    assert_eq!(one.names(), other.names());
    let one = one.bootstrap(replicas(33), 7, ONE_THREAD);
    let other = other.bootstrap(replicas(33), 7, replicas(4));
    assert_eq!((&one.low, &one.high, &one.covariance), (&other.low, &other.high, &other.covariance));
    assert!(one.low[0] < one.high[0]);
    let two = fit(&games(&rows)).bootstrap(replicas(2), 7, ONE_THREAD);
    assert!(two.deviation(0) > 0.0, "replicas are drawn apart");
}

/// A player who won everything has a bound, at which that has a probability of 5 %; the others are rated as without
/// that player.
#[test]
fn clean_records_have_bounds() {
    let inner = [("b", "c", [4, 0, 6]), ("c", "b", [5, 0, 5])];
    let all = [
        inner[0],
        inner[1],
        ("a", "b", [0, 0, 7]),
        ("c", "a", [7, 0, 0]),
        ("c", "d", [0, 0, 3]),
        ("a", "d", [0, 0, 5]),
    ];
    let (inside, outside) = (fit(&games(&inner)), fit(&games(&all)));
    near(outside.ratings()[1], inside.ratings()[0], 1e-9);
    near(outside.ratings()[2], inside.ratings()[1], 1e-9);
    assert_eq!(outside.bounds(), [Some(Bound::AtLeast), None, None, Some(Bound::AtMost)]);
    let advantage = outside.seat_advantage().unwrap();
    let r = outside.ratings();
    let all_won =
        expected_score(r[0] - r[1] + advantage).powi(7) * expected_score(r[0] - r[2] - advantage).powi(7);
    near(all_won, 0.05, 1e-9);
    // That a also beat d adds nothing: a lower bound bounds no other player from above.
    near(expected_score(r[2] - r[3] + advantage).powi(3), 0.05, 1e-9);

    let standings = outside.standings(&outside.bootstrap(replicas(100), 1, ONE_THREAD));
    let rows: Vec<_> = standings
        .iter()
        .map(|row| (row.rank, row.name.as_str(), row.low.is_some(), row.high.is_some()))
        .collect();
    assert_eq!(
        rows,
        [(1, "a", true, false), (2, "b", true, true), (3, "c", true, true), (4, "d", false, true)]
    );
    assert_eq!(standings[0].los_next, None);
    assert!(standings[1].los_next.unwrap() > 0.5);
    assert_eq!((standings[0].games, standings[0].wins, standings[0].score), (19, 19, Some(1.0)));
}

#[test]
fn disconnected_pools_are_rated_separately() {
    let first = [("a", "b", [10, 5, 20]), ("b", "a", [12, 5, 9])];
    let second = [("x", "y", [3, 5, 30]), ("y", "x", [30, 5, 9])];
    let both = fit(&games(&[first[0], first[1], second[0], second[1]]));
    assert_eq!(both.components(), 2);
    let of = both.component_of();
    assert!(of[0] == of[1] && of[2] == of[3] && of[0] != of[2]);
    near(both.ratings()[0] + both.ratings()[1], 0.0, 1e-9);
    near(both.ratings()[2] + both.ratings()[3], 0.0, 1e-9);
    assert_eq!(both.sandwich().superiority(&both, 0, 2), None);
    let standings = both.standings(&both.sandwich());
    assert_eq!(standings.iter().map(|row| row.rank).collect::<Vec<_>>(), [1, 2, 1, 2]);
}

/// All reported values are finite.
#[test]
fn degenerate_pools_are_finite() {
    let nothing = Results::default();
    let mut nobody_met = Results::default();
    nobody_met.player("a");
    nobody_met.player("b");
    let mut first_seat_wins = Results::default();
    let (a, b, c) = (first_seat_wins.player("a"), first_seat_wins.player("b"), first_seat_wins.player("c"));
    for (one, other) in [(a, b), (b, c), (c, a)] {
        first_seat_wins.add_bouts(one, other, Win, Loss, 10).unwrap();
    }
    let mut one_bout = Results::default();
    let (a, b) = (one_bout.player("a"), one_bout.player("b"));
    one_bout.add_bouts(a, b, Draw, Win, 1).unwrap();
    let pools = [
        nothing,
        nobody_met,
        first_seat_wins,
        one_bout,
        games(&[("a", "b", [0, 50, 0]), ("b", "c", [0, 50, 0])]),
        games(&[("a", "b", [0, 1_000_000, 1])]),
        games(&[("a", "b", [1, 0, 1_000_000])]),
        games(&[("a", "b", [0, 0, 1])]),
        games(&[("a", "b", [0, 1, 0])]),
        games(&[("a", "b", [1, 0, 1]), ("b", "c", [1, 0, 1]), ("c", "d", [0, 1, 0]), ("d", "a", [0, 0, 9])]),
    ];
    for (index, results) in pools.iter().enumerate() {
        for prior in [0.0, 1.0] {
            let fit = Fit::new(results, &Options { prior, ..Options::default() }).unwrap();
            for errors in [fit.sandwich(), fit.bootstrap(replicas(20), 3, ONE_THREAD)] {
                let numbers =
                    fit.ratings().iter().chain(&errors.low).chain(&errors.high).chain(&errors.covariance);
                for number in numbers {
                    assert!(number.is_finite(), "pool {index}, prior {prior}: {number}");
                }
                for row in fit.standings(&errors) {
                    assert!(row.los_next.is_none_or(|los| (0.0..=1.0).contains(&los)));
                }
            }
            assert!((0.0..=1.0).contains(&fit.draw_rate()));
            assert!(fit.seat_advantage().is_none_or(f64::is_finite));
            let transitivity = fit.transitivity();
            assert!(
                transitivity.likelihood_ratio.is_finite() && transitivity.overdispersion > 0.0,
                "pool {index}"
            );
        }
    }
    let fit = fit(&pools[2]);
    near(fit.seat_advantage().unwrap(), elo::difference(1.0), 1e-6);
    assert!(fit.ratings().iter().all(|rating| rating.abs() < 1e-6));
}

/// Small random pools, most of them degenerate: all values are finite, and moving an estimated rating does not
/// increase the likelihood of the estimated games.
#[test]
fn every_fit_is_a_local_maximum() {
    let mut random = seeded(21, 0);
    let (mut estimated, mut bounded, mut separate) = (0, 0, 0);
    for _ in 0..2000 {
        let players = random.random_range(2..6);
        let names = ["a", "b", "c", "d", "e"];
        let mut rows = Vec::new();
        for _ in 0..random.random_range(1..9) {
            let (first, second) = (random.random_range(0..players), random.random_range(0..players));
            if first != second {
                let mut count = || [0, 0, 1, 2, 9][random.random_range(0..5)];
                rows.push((first, second, [count(), count(), count()]));
            }
        }
        let named: Vec<_> =
            rows.iter().map(|&(first, second, counts)| (names[first], names[second], counts)).collect();
        let fit = fit(&games(&named));
        let place =
            |player: usize| fit.names().iter().position(|name| name == names[player]).expect("played");
        let rows: Vec<_> =
            rows.iter().map(|&(first, second, counts)| (place(first), place(second), counts)).collect();
        separate += usize::from(fit.components() > 1);
        bounded += fit.bounds().iter().flatten().count();
        let (ratings, advantage) = (fit.ratings(), fit.seat_advantage().unwrap_or(0.0));
        assert!(ratings.iter().all(|rating| rating.is_finite()), "{named:?}");
        let among = |&&(first, second, _): &&(usize, usize, [u64; 3])| {
            let free = |player: usize| fit.bounds()[player].is_none();
            free(first) && free(second) && fit.component_of()[first] == fit.component_of()[second]
        };
        let inner: Vec<_> = rows.iter().filter(among).copied().collect();
        let value = |ratings: &[f64]| log_likelihood(&inner, ratings, advantage, fit.draw_rate());
        for player in (0..ratings.len()).filter(|&player| fit.bounds()[player].is_none()) {
            estimated += 1;
            for step in [-0.5, 0.5] {
                let mut moved = ratings.to_vec();
                moved[player] += step;
                assert!(value(&moved) <= value(ratings) + 1e-9, "{named:?}: {} {step}", fit.names()[player]);
            }
        }
        let resampled = fit.bootstrap(replicas(5), 1, ONE_THREAD);
        assert!(resampled.covariance.iter().all(|number| number.is_finite()), "{named:?}");
        assert!(fit.sandwich().covariance.iter().all(|number| number.is_finite()), "{named:?}");
        assert!(fit.transitivity().likelihood_ratio.is_finite(), "{named:?}");
    }
    assert!(estimated > 1000 && bounded > 300 && separate > 100, "{estimated} {bounded} {separate}");
}

/// Sums and symmetry of the tables; residuals of each player sum to zero without draws.
#[test]
fn tables_match_results() {
    let world = World { draw_rate: 0.0, ..World::ladder(5, 60.0) };
    let fit = fit(&world.tournament(40, &mut seeded(5, 0)));
    let table = fit.crosstable();
    for (one, row) in table.iter().enumerate() {
        for (other, meeting) in row.iter().enumerate() {
            assert_eq!(meeting.wins, table[other][one].losses);
            assert_eq!(meeting.games(), if one == other { 0 } else { 80 });
        }
    }
    let mut surplus = [0.0; 5];
    for residual in fit.residuals() {
        surplus[residual.one] += residual.observed - residual.expected;
        surplus[residual.other] -= residual.observed - residual.expected;
        assert_eq!(residual.games, 80);
        assert!(residual.deviations.unwrap().abs() < 5.0);
    }
    for surplus in surplus {
        near(surplus, 0.0, 1e-6);
    }
    assert!(fit.bouts_only());
    let los = fit.superiority(&fit.sandwich());
    near(los[0][4].unwrap() + los[4][0].unwrap(), 1.0, 1e-12);
    assert_eq!(los[2][2], None);
}

/// A cycle is detected; a ladder is rejected no more often than the level of the test, although its openings are
/// unbalanced.
#[test]
fn detects_cycles() {
    let cycle = games(&[
        ("rock", "scissors", [20, 0, 80]),
        ("scissors", "paper", [20, 0, 80]),
        ("paper", "rock", [20, 0, 80]),
    ]);
    let no_seats = Options { seat_advantage: false, ..Options::default() };
    let test = Fit::new(&cycle, &no_seats).unwrap().transitivity();
    assert_eq!(test.degrees, 1);
    assert!(test.p_value.unwrap() < 1e-6);
    // All three are equal: the free pairings gain ln(.8 / .5) for each win and ln(.2 / .5) for each loss.
    let by_hand = 2.0 * 3.0 * (80.0 * (0.8f64 / 0.5).ln() + 20.0 * (0.2f64 / 0.5).ln());
    near(test.likelihood_ratio, by_hand, 1e-6);
    // All winners had the first seat: its advantage explains the same, and no degree of freedom is left.
    let test = fit(&cycle).transitivity();
    assert_eq!((test.degrees, test.p_value), (0, None));
    // With nine games per pairing there is no p-value; with ten there is.
    let few = |wins: u64| [("a", "b", [2, 0, wins]), ("b", "c", [2, 0, wins]), ("c", "a", [2, 0, wins])];
    let p_value = |wins: u64| Fit::new(&games(&few(wins)), &no_seats).unwrap().transitivity().p_value;
    assert!(p_value(7).is_none() && p_value(8).is_some());

    let world = World::ladder(5, 40.0);
    let (mut rejected, mut overdispersion) = (0, 0.0);
    for seed in 0..400 {
        let test = fit(&world.tournament(60, &mut seeded(11, seed))).transitivity();
        assert_eq!(test.degrees, 6);
        let scaled = chi_square_tail(test.likelihood_ratio / test.overdispersion, 6.0);
        near(test.p_value.unwrap(), scaled, 1e-12);
        rejected += u32::from(test.p_value.unwrap() < 0.05);
        overdispersion += test.overdispersion / 400.0;
    }
    // Twenty are expected; the bounds are three standard errors of a binomial.
    assert!((7..=33).contains(&rejected), "{rejected}");
    assert!(overdispersion < 0.9, "shared openings make bouts vary less: {overdispersion}");
}

/// For two players the pool's errors, by both methods, equal those of their pairs.
#[test]
fn two_player_errors_match_pairs() {
    let world = World::ladder(2, -70.0);
    let pairs = world.pairs(0, 1, 1000, &mut seeded(9, 0));
    let results = world.tournament(1000, &mut seeded(9, 0));
    let estimate = Scores::from(pairs).elo().unwrap();
    let options = Options { anchor: Some("player 0001".into()), ..Options::default() };
    let fit = Fit::new(&results, &options).unwrap();
    near(fit.ratings()[0], estimate.value, 1.0);
    for errors in [fit.sandwich(), fit.bootstrap(replicas(2000), 1, replicas(2))] {
        near((errors.high[0] - errors.low[0]) / 2.0, estimate.error, 0.06 * estimate.error);
        near(Z95 * errors.deviation(0), estimate.error, 0.05 * estimate.error);
    }
}
