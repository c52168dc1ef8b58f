//! Rows for tests: random rows with extreme values in every column, and rows of played games.

use agon_arena::{Adjudication, Arena, Bout, Environment, Opening, PlayerConfig, SeedPath, parse_limit};
use agon_games::GameSpec;
use agon_games::random::mix;
use agon_search::Counters;

use crate::rows::{BoutRows, GameHead, GameRow, LimitKind, MoveRow, ProbeRow, SearchRow};

/// A generator of random rows, determined by its seed.
pub struct RandomRows {
    seed: u64,
    drawn: u64,
}

impl RandomRows {
    pub fn new(seed: u64) -> RandomRows {
        RandomRows { seed, drawn: 0 }
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        mix(self.seed, self.drawn) % bound
    }

    fn number(&mut self) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => u64::MAX,
            2 => u64::MAX >> 1,
            3 => self.below(u64::MAX),
            _ => self.below(1000),
        }
    }

    fn small(&mut self) -> u16 {
        [0, u16::MAX, 1 << 15, self.below(60) as u16][self.below(4) as usize]
    }

    fn text(&mut self) -> String {
        let texts = ["", "e2e4", "d3 c5 \u{0} d6", "käse 棋 ♟\u{1f3b2}", "\"';--\n\t", "[x] y"];
        let text = texts[self.below(6) as usize];
        text.repeat(1 + self.below(3) as usize)
    }

    fn list<T>(&mut self, mut draw: impl FnMut(&mut RandomRows) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| draw(self)).collect()
    }

    pub fn game(&mut self) -> GameRow {
        let mut row = GameRow {
            bout: self.number(),
            game: self.small(),
            rules: self.text(),
            variant: self.text(),
            opening: self.text(),
            players: self.list(RandomRows::text),
            payoffs: self.list(|random| [0, i32::MIN, i32::MAX, -1][random.below(4) as usize]),
            plies: [0, u32::MAX, 1 << 31, 60][self.below(4) as usize],
            ending: self.text(),
            seed: self.number(),
            worker: self.text(),
            build: self.text(),
            started: [0, i64::MIN, i64::MAX, 1_794_000_000_000_000][self.below(4) as usize],
            duration_us: self.number(),
            speed_factor: [1.0, 0.5, 1.75][self.below(3) as usize],
            settings: self.list(RandomRows::text),
            detail: String::new(),
            engine_cpu_us: Vec::new(),
        };
        // Added later, without another draw, so that the rows of earlier tests stay as they were.
        row.detail.clone_from(&row.ending);
        row.engine_cpu_us = row.payoffs.iter().map(|payoff| u64::from(payoff.unsigned_abs())).collect();
        row
    }

    pub fn ply(&mut self) -> MoveRow {
        MoveRow {
            bout: self.number(),
            game: self.small(),
            ply: self.small(),
            seat: (self.below(3) > 0).then(|| self.small()),
            mv: self.text(),
            legal: self.small(),
            search: (self.below(3) > 0).then(|| self.search()),
        }
    }

    pub fn search(&mut self) -> SearchRow {
        let scores = [0.0, -0.0, f64::MAX, f64::MIN_POSITIVE, -12.3456, f64::INFINITY];
        SearchRow {
            player: self.text(),
            depth: self.small(),
            selective_depth: self.small(),
            counters: self.counters(),
            depth_nodes: self.list(RandomRows::number),
            depth_time_us: self.list(RandomRows::number),
            score: scores[self.below(6) as usize],
            pv: self.text(),
            time_us: self.number(),
            overshoot_us: self.number(),
            limit_kind: LimitKind::ALL[self.below(LimitKind::ALL.len() as u64) as usize],
            limit_value: self.number(),
        }
    }

    /// Draws counters. Later additions to the list do not change the numbers drawn after them.
    fn counters(&mut self) -> Counters {
        let mut later = RandomRows::new(mix(self.seed, self.drawn));
        Counters::from_values(std::array::from_fn(|index| {
            if index < Counters::ORIGINAL { self.number() } else { later.number() }
        }))
    }

    pub fn probe(&mut self) -> ProbeRow {
        ProbeRow { position: self.text(), moves: self.text(), decision: self.ply() }
    }
}

/// Plays bouts of two algorithms over random openings.
pub fn played(game: &str, players: [&str; 2], limit: &str, bouts: u64) -> Vec<BoutRows> {
    let game = GameSpec::parse(game).unwrap();
    let configs = players.map(|player| {
        PlayerConfig::parse(&game, &format!("search = {{ algorithm = \"{player}\" }}")).unwrap()
    });
    let names = players.map(String::from);
    let mut arena = Arena::new(&game, &configs, Environment::system()).unwrap();
    let limits = vec![parse_limit(limit).unwrap(); 2];
    let mut all = Vec::new();
    for bout in 0..bouts {
        let seed_path = SeedPath { run: 1, bout, game: 0 };
        let opening = Opening { position: None, moves: arena.random_opening(seed_path, 4).unwrap() };
        let planned = Bout { index: bout, players: vec![0, 1], opening, values: Vec::new() };
        let mut rows = BoutRows::default();
        for (index, request) in
            planned.games(1, limits.clone(), vec![None; 2], Adjudication::default()).enumerate()
        {
            let record = arena.play(&request, &mut |_| ()).unwrap();
            let head = GameHead {
                game: &game,
                names: &names,
                opening: &planned.opening,
                bout,
                index: index as u16,
                worker: "worker-1",
                build: "0.1.0",
                started: 1_794_000_000_000_000 + bout as i64 * 1_234_567,
                speed_factor: 1.0,
                settings: &[],
            };
            rows.add_game(&head, &record).unwrap();
        }
        all.push(rows);
    }
    all
}
