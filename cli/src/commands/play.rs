//! `agon play`: a game between a person and a player in the terminal.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use agon_arena::{Arena, Environment, Opening, SeedPath};
use agon_games::random::seeded;
use agon_games::{AnyGame, GameSpec, Seat, Turn};
use agon_search::Limit;
use clap::Args;

use super::player::{default_player, read_limit, read_player};
use super::search::value_text;
use crate::fail::{Outcome, UsageError, bail_usage};
use crate::number::whole;
use crate::table::write_sentence;

#[derive(Args)]
pub struct Play {
    /// Game: a name, or name:key=value,key=value
    #[arg(value_name = "GAME")]
    game: String,
    /// Your seat: a number from 0, or `human` for the first
    #[arg(long, default_value = "human", allow_negative_numbers = true)]
    seat: String,
    /// Player of the other seats: an algorithm, or TOML such as 'search = { algorithm = "pvs" }'
    #[arg(long, value_name = "PLAYER")]
    against: Option<String>,
    /// Limit per move of that player: ms=500, nodes=1000, depth=6, ...
    #[arg(long, value_name = "LIMIT", default_value = "ms=500")]
    limit: String,
    /// Seed of dice and searches [default: from the clock, and printed]
    #[arg(long, value_parser = whole::<u64>("the seed", 0, u64::MAX), allow_negative_numbers = true)]
    seed: Option<u64>,
}

impl Play {
    pub fn run(self) -> Outcome {
        let game = GameSpec::parse(&self.game)?;
        let player = read_player(&game, self.against.as_deref().unwrap_or_else(|| default_player(&game)))?;
        let limit = read_limit(&self.limit)?;
        if matches!(limit, Limit::Clock { .. }) {
            bail_usage!("--limit: a game against a person has no clock; give ms, cpu_ms, nodes or depth");
        }
        let seats = game.parameters().seats();
        let index = if self.seat == "human" { Some(0) } else { self.seat.parse().ok() };
        let human = index.filter(|seat| usize::from(*seat) < seats).map(Seat).ok_or_else(|| {
            UsageError(format!("--seat {}: {game} has seats 0 to {}", self.seat, seats - 1))
        })?;
        let seed = self.seed.unwrap_or_else(seed_from_clock);
        let arena = Arena::new(&game, &[player.config], Environment::system())?;
        let greeting =
            format!("{game}, seed {seed}. You play seat {}; {} plays all other seats.", human.0, player.name);
        let mut out = io::stdout();
        write_sentence(&greeting, &mut out)?;
        writeln!(out, "Type a move, `moves`, `back` or `quit`.")?;
        let seed_path = SeedPath { run: seed, bout: 0, game: 0 };
        Session { start: game.start(None)?, arena, limit, human, seed_path }.play()
    }
}

/// Returns a seed from the clock, of at most six digits so that it is easy to type.
fn seed_from_clock() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |time| time.as_millis() as u64 % 1_000_000)
}

/// A game in progress.
struct Session {
    start: Box<dyn AnyGame>,
    arena: Arena,
    limit: Limit,
    human: Seat,
    seed_path: SeedPath,
}

/// A line typed by the person.
enum Input {
    Move(String),
    Back,
    Quit,
}

impl Session {
    fn play(mut self) -> Outcome {
        // The moves and chance outcomes so far.
        let mut line: Vec<String> = Vec::new();
        // The length of the line when the board was last shown.
        let mut shown = usize::MAX;
        let mut out = io::stdout();
        loop {
            let mut position = self.start.copy();
            position.follow(&line.join(" ")).expect("only legal moves are in the line");
            let turn = position.turn();
            if shown != line.len() && (turn == Turn::Over || turn == Turn::Player(self.human)) {
                writeln!(out, "\n{}\n", position.board())?;
                shown = line.len();
            }
            let seed = self.seed_path.ply_seed(line.len() as u32);
            match turn {
                Turn::Over => {
                    let ending = position.ending().unwrap_or_default();
                    writeln!(out, "Game over: {ending}. {}", result(&*position, self.human))?;
                    return Ok(ExitCode::SUCCESS);
                }
                Turn::Chance => {
                    let outcome = position.draw(&mut seeded(seed));
                    writeln!(out, "chance: {outcome}")?;
                    line.push(outcome);
                }
                Turn::Player(seat) if seat == self.human => match ask(&*position)? {
                    Input::Move(text) => line.push(text),
                    Input::Quit => return Ok(ExitCode::SUCCESS),
                    Input::Back => take_back(&*self.start, &mut line, self.human),
                },
                Turn::Player(seat) => {
                    let opening = Opening { position: None, moves: line.join(" ") };
                    let record = self.arena.search(0, &opening, self.limit, seed, &mut |_| ())?;
                    writeln!(out, "seat {}: {} ({})", seat.0, record.mv, value_text(record.value))?;
                    line.push(record.mv);
                }
            }
        }
    }
}

/// Asks until the person enters a legal move, `back` or `quit`. The end of the input quits.
fn ask(position: &dyn AnyGame) -> io::Result<Input> {
    let mut bytes = Vec::new();
    let mut out = io::stdout();
    loop {
        write!(out, "your move: ")?;
        out.flush()?;
        bytes.clear();
        if io::stdin().lock().read_until(b'\n', &mut bytes)? == 0 {
            writeln!(out)?;
            return Ok(Input::Quit);
        }
        // Invalid UTF-8 becomes an illegal move.
        match String::from_utf8_lossy(&bytes).trim() {
            "" => {}
            "quit" | "exit" => return Ok(Input::Quit),
            "back" => return Ok(Input::Back),
            "moves" => writeln!(out, "{}", position.legal().join(" "))?,
            word => match position.copy().play(0, word) {
                Ok(text) => return Ok(Input::Move(text)),
                Err(_) => writeln!(out, "`{word}` is not a legal move; `moves` lists them")?,
            },
        }
    }
}

/// Undoes the person's last move and everything after it. Does nothing if the person has not moved yet.
fn take_back(start: &dyn AnyGame, line: &mut Vec<String>, human: Seat) {
    let mut position = start.copy();
    let mut last = None;
    for (ply, word) in line.iter().enumerate() {
        if position.turn() == Turn::Player(human) {
            last = Some(ply);
        }
        position.play(ply, word).expect("only legal moves are in the line");
    }
    line.truncate(last.unwrap_or(line.len()));
}

/// Describes the result of a finished game for the person: a win is a payoff above an even share of the sum.
fn result(position: &dyn AnyGame, human: Seat) -> String {
    let payoffs = position.payoffs().unwrap_or_default();
    let even_share = f64::from(position.payoff_sum()) / position.seats() as f64;
    let own = payoffs.get(usize::from(human.0)).map_or(even_share, |&payoff| f64::from(payoff));
    let payoffs: Vec<String> =
        payoffs.iter().enumerate().map(|(seat, payoff)| format!("seat {seat}: {payoff}")).collect();
    let verdict = if own > even_share {
        "You win."
    } else if own < even_share {
        "You lose."
    } else {
        "Draw."
    };
    format!("{verdict} Payoffs: {}.", payoffs.join(", "))
}
