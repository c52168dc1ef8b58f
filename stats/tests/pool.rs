//! Ratings of pools: known values, laws, and a slow second implementation.

use agon_simulation::world::World;
use agon_stats::comparison::{Comparison, SURE};
use agon_stats::distribution::{chi_square_tail, seeded};
use agon_stats::elo::{self, Split, expected_score};
use agon_stats::outcome::Outcome::{self, Draw, Loss, Win};
use agon_stats::pairs::{Games, Scores};
use agon_stats::pool::{Bound, Fit, Options, Results};
use rand::RngExt as _;

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
    let errors = some.uncertainty();
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
    let (one, other) = (free.uncertainty(), anchored.uncertainty());
    assert!(other.deviation(2) < 1e-9);
    assert_eq!(other.intervals[2], (Some(0.0), Some(0.0)));
    for a in 0..4 {
        near(anchored.ratings()[a] - anchored.ratings()[0], free.ratings()[a] - free.ratings()[0], 1e-9);
        for b in 0..4 {
            // The likelihood of superiority depends only on differences.
            let (one, other) = (one.compare(&free, a, b), other.compare(&anchored, a, b));
            assert_eq!((one.is_some(), other.is_some()), (a != b, a != b));
            near(one.map_or(0.5, |one| one.los), other.map_or(0.5, |other| other.los), 1e-9);
        }
    }
    let unknown = Fit::new(&results, &Options { anchor: Some("nobody".into()), ..Options::default() });
    assert!(unknown.unwrap_err().to_string().contains("player 0003"));
    for prior in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(Fit::new(&results, &Options { prior, ..Options::default() }).is_err());
    }
}

/// Results in another order give the same bits.
#[test]
fn ratings_are_independent_of_order() {
    let rows = [("b", "a", [3, 4, 5]), ("c", "a", [2, 0, 7]), ("c", "b", [6, 3, 4]), ("a", "c", [4, 4, 1])];
    let mut reversed = rows;
    reversed.reverse();
    let (one, other) = (fit(&games(&rows)), fit(&games(&reversed)));
    assert_eq!(one.ratings(), other.ratings());
    assert_eq!(one.names(), other.names());
    let (one, other) = (one.uncertainty(), other.uncertainty());
    assert_eq!((&one.intervals, &one.covariance), (&other.intervals, &other.covariance));
    assert!(one.intervals[0].0 < one.intervals[0].1);
}

/// A player who won everything is ahead of the others by a finite estimate, with an interval that is open above; the
/// mean of the others stays at 0.
#[test]
fn clean_records_have_open_intervals() {
    let all = [
        ("b", "c", [4, 0, 6]),
        ("c", "b", [5, 0, 5]),
        ("a", "b", [0, 0, 7]),
        ("c", "a", [7, 0, 0]),
        ("c", "d", [0, 0, 3]),
        ("a", "d", [0, 0, 5]),
    ];
    let fit = fit(&games(&all));
    let bounds: Vec<_> = (0..4).map(|player| fit.bound(player)).collect();
    assert_eq!(bounds, [Some(Bound::AtLeast), None, None, Some(Bound::AtMost)]);
    near(fit.ratings()[1] + fit.ratings()[2], 0.0, 1e-9);
    let standings = fit.standings(&fit.uncertainty());
    let rows: Vec<_> = standings
        .iter()
        .map(|row| (row.rank, row.name.as_str(), row.low.is_some(), row.high.is_some()))
        .collect();
    assert_eq!(
        rows,
        [(1, "a", true, false), (2, "b", true, true), (3, "c", true, true), (4, "d", false, true)]
    );
    assert!(standings[0].elo > 200.0 && standings[0].los_next.unwrap() > 0.975, "{standings:?}");
    assert!(standings[0].low.unwrap() > 0.0 && standings[1].los_next.unwrap() > 0.5);
    assert_eq!((standings[0].games, standings[0].wins, standings[0].score), (19, 19, Some(1.0)));
}

/// One seat never lost: the ratings stay finite and moderate, and so does the seat's advantage.
#[test]
fn seat_that_never_lost_is_finite() {
    // Equally often from either seat, two players differ by their score.
    let pair = fit(&games(&[("a", "b", [0, 0, 5]), ("b", "a", [3, 0, 2])]));
    near(pair.ratings()[0] - pair.ratings()[1], elo::difference(0.8), 1e-9);
    assert!(pair.is_separated() && pair.seat_advantage().unwrap() < 500.0, "{pair:?}");
    let compared = pair.uncertainty().compare(&pair, 0, 1).unwrap();
    assert_eq!(compared, Scores::from(Games { wins: 8, draws: 0, losses: 2 }).compare().unwrap());
    // Otherwise the seats are accounted for.
    let uneven = fit(&games(&[("a", "b", [0, 0, 6]), ("b", "a", [3, 0, 2])]));
    let difference = uneven.ratings()[0] - uneven.ratings()[1];
    assert!(difference > 100.0 && difference < 600.0, "{difference}");
    let third = fit(&games(&[
        ("a", "b", [0, 0, 5]),
        ("b", "a", [3, 0, 2]),
        ("a", "c", [0, 1, 4]),
        ("c", "b", [0, 2, 3]),
    ]));
    assert!(third.ratings().iter().all(|rating| rating.abs() < 700.0), "{:?}", third.ratings());
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
    assert_eq!(both.uncertainty().compare(&both, 0, 2), None);
    let standings = both.standings(&both.uncertainty());
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
            let errors = fit.uncertainty();
            let ends = errors.intervals.iter().flat_map(|&(low, high)| [low, high]).flatten();
            for number in fit.ratings().iter().copied().chain(ends).chain(errors.covariance.iter().copied()) {
                assert!(number.is_finite() && number.abs() < 1e9, "pool {index}, prior {prior}: {number}");
            }
            for row in fit.standings(&errors) {
                assert!(row.los_next.is_none_or(|los| (0.0..=1.0).contains(&los)));
                assert!(row.elo.abs() < 3000.0, "pool {index}: {row:?}");
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
    assert!(fit.seat_advantage().unwrap() > 300.0 && fit.seat_advantage().unwrap() < 1200.0);
    assert!(fit.ratings().iter().all(|rating| rating.abs() < 1e-6));
}

/// Small random pools, most of them degenerate: all values are finite, LOS and interval agree, and without separation
/// moving a rating does not increase the likelihood.
#[test]
fn every_fit_is_finite_and_consistent() {
    let mut random = seeded(21, 0);
    let (mut estimated, mut separated, mut compared) = (0, 0, 0);
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
        let ratings = fit.ratings();
        assert!(ratings.iter().all(|rating| rating.abs() < 3000.0), "{named:?}: {ratings:?}");
        let errors = fit.uncertainty();
        assert!(errors.covariance.iter().all(|number| number.is_finite()), "{named:?}");
        assert!(fit.transitivity().likelihood_ratio.is_finite(), "{named:?}");
        for one in 0..ratings.len() {
            for other in 0..ratings.len() {
                let Some(comparison) = errors.compare(&fit, one, other) else { continue };
                compared += 1;
                let Comparison { elo, low, high, los, .. } = comparison;
                assert!(elo * (los - 0.5) >= 0.0, "{named:?}: {comparison:?}");
                assert_eq!(los >= SURE, low.is_some_and(|low| low >= 0.0), "{named:?}: {comparison:?}");
                assert_eq!(
                    los <= 1.0 - SURE,
                    high.is_some_and(|high| high <= 0.0),
                    "{named:?}: {comparison:?}"
                );
            }
        }
        separated += usize::from(fit.is_separated());
        if fit.is_separated() || ratings.len() == 2 {
            continue;
        }
        let place =
            |player: usize| fit.names().iter().position(|name| name == names[player]).expect("played");
        let rows: Vec<_> =
            rows.iter().map(|&(first, second, counts)| (place(first), place(second), counts)).collect();
        let advantage = fit.seat_advantage().unwrap_or(0.0);
        let value = |ratings: &[f64]| log_likelihood(&rows, ratings, advantage, fit.draw_rate());
        for player in 0..ratings.len() {
            estimated += 1;
            for step in [-0.5, 0.5] {
                let mut moved = ratings.to_vec();
                moved[player] += step;
                assert!(value(&moved) <= value(ratings) + 1e-9, "{named:?}: {} {step}", fit.names()[player]);
            }
        }
    }
    assert!(estimated > 1000 && separated > 300 && compared > 5000, "{estimated} {separated} {compared}");
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
    let los = fit.superiority(&fit.uncertainty());
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

/// For two players the pool shows what their pairs show, and a pool that includes them shows nearly that.
#[test]
fn two_player_errors_match_pairs() {
    let world = World::ladder(2, -70.0);
    let expected = Scores::from(world.pairs(0, 1, 1000, &mut seeded(9, 0))).compare().unwrap();
    let fit = fit(&world.tournament(1000, &mut seeded(9, 0)));
    let errors = fit.uncertainty();
    assert_eq!(errors.compare(&fit, 0, 1), Some(expected));
    near(fit.ratings()[0] - fit.ratings()[1], expected.elo, 1e-9);
    assert_eq!(errors.intervals[0].0, expected.low.map(|low| low / 2.0));
    let formula = Options { prior: 1e-9, ..Options::default() };
    let fit = Fit::new(&world.tournament(1000, &mut seeded(9, 0)), &formula).unwrap();
    let pooled = fit.uncertainty().compare(&fit, 0, 1).unwrap();
    near(pooled.elo, expected.elo, 1.0);
    near(pooled.error().unwrap(), expected.error().unwrap(), 0.03 * expected.error().unwrap());
}
