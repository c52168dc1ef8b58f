//! Rows for tests: random ones with extremes in every column, and those of games that were really played.

use agon_arena::{Arena, BoutRequest, Environment, Opening, PlayerConfig, parse_limit};
use agon_games::GameSpec;
use agon_games::random::mix;
use agon_search::Counters;

use crate::rows::{BoutRows, GameHead, GameRow, LimitKind, MoveRow, ProbeRow, SearchRow};

/// Random values, a function of the seed.
pub struct Source {
    seed: u64,
    drawn: u64,
}

impl Source {
    pub fn new(seed: u64) -> Source {
        Source { seed, drawn: 0 }
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

    fn list<T>(&mut self, mut of: impl FnMut(&mut Source) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| of(self)).collect()
    }

    pub fn game(&mut self) -> GameRow {
        GameRow {
            bout: self.number(),
            game: self.small(),
            rules: self.text(),
            variant: self.text(),
            opening: self.text(),
            players: self.list(Source::text),
            payoffs: self.list(|source| [0, i32::MIN, i32::MAX, -1][source.below(4) as usize]),
            plies: [0, u32::MAX, 1 << 31, 60][self.below(4) as usize],
            ending: self.text(),
            seed: self.number(),
            worker: self.text(),
            build: self.text(),
            started: [0, i64::MIN, i64::MAX, 1_794_000_000_000_000][self.below(4) as usize],
            duration_us: self.number(),
            speed_factor: [1.0, 0.5, 1.75][self.below(3) as usize],
            settings: self.list(Source::text),
        }
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
            depth_nodes: self.list(Source::number),
            depth_time_us: self.list(Source::number),
            score: scores[self.below(6) as usize],
            pv: self.text(),
            time_us: self.number(),
            overshoot_us: self.number(),
            limit_kind: LimitKind::ALL[self.below(5) as usize],
            limit_value: self.number(),
        }
    }

    /// Counters that were added later do not move what is drawn behind them.
    fn counters(&mut self) -> Counters {
        let mut later = Source::new(mix(self.seed, self.drawn));
        Counters::from_values(std::array::from_fn(|index| {
            if index < Counters::ORIGINAL { self.number() } else { later.number() }
        }))
    }

    pub fn probe(&mut self) -> ProbeRow {
        ProbeRow { position: self.text(), moves: self.text(), decision: self.ply() }
    }
}

/// The rows of bouts of two players over random openings, one `BoutRows` a bout.
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
        let mut request = BoutRequest {
            opening: Opening::default(),
            players: vec![0, 1],
            limits: limits.clone(),
            run_seed: 1,
            bout,
        };
        let seed_path = request.games().next().unwrap().seed_path;
        request.opening.moves = arena.random_opening(seed_path, 4).unwrap();
        let mut rows = BoutRows::default();
        for (index, asked) in request.games().enumerate() {
            let record = arena.play(&asked, &mut |_| ()).unwrap();
            let head = GameHead {
                game: &game,
                names: &names,
                opening: &request.opening,
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
