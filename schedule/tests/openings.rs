//! Which openings a run plays, and when they are drawn.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::thread;

use agon_arena::{Spec, SpecSource};
use agon_games::random::mix;
use agon_schedule::{Schedule, ScheduleError};

const UCT: &str = "uct";
const PVS: &str = "pvs";

fn tournament(game: &str, openings: &str, bouts: u64, algorithm: &str) -> String {
    let player =
        |name: &str| format!("[[player]]\nname = \"{name}\"\nsearch = {{ algorithm = \"{algorithm}\" }}\n");
    format!(
        "name = \"t\"\ngame = \"{game}\"\nlimit = {{ nodes = 100 }}\nopenings = {openings}\n\
         [tournament]\nformat = \"round-robin\"\nbouts = {bouts}\n{}{}",
        player("a"),
        player("b")
    )
}

fn probe(game: &str, positions: &str) -> String {
    format!(
        "name = \"p\"\ngame = \"{game}\"\nlimit = {{ depth = 3 }}\n[probe]\npositions = {positions}\n\
         [[player]]\nname = \"a\"\nsearch = {{ algorithm = \"alpha-beta\" }}\n"
    )
}

fn spec(text: &str) -> Spec {
    let lines = "d2d4 d7d5 c2c4\nc2c4 d7d5 d2d4\ne2e4\n";
    let files = SpecSource::needed_files(text).unwrap().into_iter().map(|name| (name, lines.to_string()));
    Spec::parse(&SpecSource { text: text.to_string(), files: files.collect() }).unwrap()
}

#[test]
fn openings_are_pinned() {
    // Other openings would make the datasets of earlier builds invalid.
    let pinned = [
        (tournament("chess", "{ random_plies = 8 }", 5000, UCT), 0xfec6_a965_3d83_2189),
        (tournament("tic-tac-toe", "{ random_plies = 3 }", 5000, UCT), 0xefeb_2c73_e720_f7a9),
        (tournament("connect-four", "{ random_plies = 6 }", 30_000, UCT), 0xd588_17f6_44ff_8148),
        (tournament("chess", "{ file = \"x\" }", 10, UCT), 0x85a9_bd0f_0c21_032e),
        (probe("connect-four", "{ random = 2000, plies = [2, 9] }"), 0x4366_8302_31e7_f6e8),
        (probe("othello", "{ play = \"random\", turns = 1, games = 500 }"), 0x9b0b_d342_30e7_9e71),
        (
            probe("tic-tac-toe", "{ play = \"random\", turns = 2, games = 500, after = 1 }"),
            0x5250_cc2e_ca2d_1769,
        ),
    ];
    for (text, expected) in pinned {
        let mut schedule = Schedule::resume(spec(&text)).unwrap();
        // One preparation and preparations one by one find the same openings.
        let mut whole = Schedule::resume(spec(&text)).unwrap();
        if let Some(preparation) = whole.prepare(u64::MAX) {
            whole.finish(preparation.run());
        }
        let mut sum = 0;
        for index in 0..schedule.bouts() {
            let bout = schedule.draw_bout(index).unwrap();
            assert_eq!(whole.bout(index).unwrap(), bout);
            sum = bout.opening.moves.bytes().fold(mix(sum, index), |sum, byte| mix(sum, u64::from(byte)));
        }
        assert_eq!(sum, expected, "{sum:#x}: {text}");
    }
}

#[test]
fn a_bout_far_ahead_is_prepared_elsewhere() {
    let text = tournament("chess", "{ random_plies = 8 }", 1_000_000_000, UCT);
    let mut schedule = Schedule::new(spec(&text)).unwrap();
    // Nobody can make the schedule draw by naming a bout.
    let last = schedule.bouts() - 1;
    assert!(!schedule.is_prepared(last));
    assert_eq!(schedule.bout(last), Err(ScheduleError::NotPrepared(last)));
    assert!(!schedule.is_prepared(3000) && schedule.is_prepared(0));
    let preparation = schedule.prepare(3000).unwrap();
    assert!(schedule.prepare(4000).is_none(), "one preparation at a time");
    assert_eq!(schedule.bout(3000), Err(ScheduleError::NotPrepared(3000)));
    assert!(schedule.bout(0).is_ok(), "what is known remains available");
    schedule.finish(thread::spawn(|| preparation.run()).join().unwrap());
    assert!(schedule.is_prepared(3000) && !schedule.is_prepared(3001) && schedule.prepare(3000).is_none());
    let mut other = Schedule::resume(spec(&text)).unwrap();
    assert_eq!(schedule.bout(3000).unwrap(), other.draw_bout(3000).unwrap());
}

/// The validation, which is played last, has the first openings.
#[test]
fn preparing_the_last_bout_of_a_tuning_run_prepares_all() {
    let text = "name = \"t\"\ngame = \"connect-four\"\nlimit = { nodes = 100 }\nopenings = { random_plies = 6 }\n\
         [tune]\nplayer = \"a\"\nmethod = \"spsa\"\nbouts = 2000\nvalidation = { bouts = 20 }\n\
         [[tune.parameter]]\npath = \"search.c\"\nstart = 1\nmin = 0.1\nmax = 8\nstep = 0.5\n\
         [[player]]\nname = \"a\"\nsearch = { algorithm = \"uct\" }\n";
    let mut schedule = Schedule::resume(spec(text)).unwrap();
    let last = schedule.bouts() - 1;
    let preparation = schedule.prepare(last).unwrap();
    schedule.finish(preparation.run());
    assert!((0..=last).all(|index| schedule.is_prepared(index)) && schedule.prepare(u64::MAX).is_none());
    // The first bouts are known, whose values do not depend on results.
    assert!(schedule.bout(0).is_ok());
}

#[test]
fn rejects_openings_that_cost_too_much() {
    let rejected = |text: String| Schedule::new(spec(&text)).err().unwrap();
    // Few random games last so long.
    let rare = rejected(tournament("chess", "{ random_plies = 500 }", 1, UCT));
    assert!(matches!(rare, ScheduleError::RareOpenings { .. }), "{rare}");
    // Only players that would repeat themselves need all openings to be different.
    let many = |algorithm| tournament("chess", "{ random_plies = 8 }", 1_000_000_000, algorithm);
    assert_eq!(rejected(many(PVS)), ScheduleError::TooManyToCompare { wanted: 1_000_000_000 });
    assert!(Schedule::new(spec(&many(UCT))).is_ok());
}
