//! `agon play`: a person plays in the terminal.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use agon_arena::{Arena, Environment, Opening, SeedPath};
use agon_games::random::seeded;
use agon_games::{AnyGame, GameSpec, Seat, Turn};
use agon_search::Limit;
use clap::Args;

use super::player::{default_player, read_limit, read_player};
use super::search::value_text;
use crate::fail::{Outcome, WrongCall};
use crate::number::whole;
use crate::table::write_sentence;

/// The arguments of `agon play`.
#[derive(Args)]
pub struct Play {
    /// Game: a name, or name:key=value,key=value
    #[arg(value_name = "GAME")]
    game: String,
    /// Your seat: a number from 0, or `human` for the first
    #[arg(long, default_value = "human", allow_negative_numbers = true)]
    seat: String,
    /// Player of the other seats: an algorithm, or TOML as 'search = { algorithm = "pvs" }'
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
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let game = GameSpec::parse(&self.game)?;
        let player = read_player(&game, self.against.as_deref().unwrap_or_else(|| default_player(&game)))?;
        let limit = read_limit(&self.limit)?;
        if matches!(limit, Limit::Clock { .. }) {
            let reason = "--limit: against a person there is no game clock; give ms, cpu_ms, nodes or depth";
            return Err(WrongCall(reason.to_string()).into());
        }
        let seats = game.parameters().seats();
        let number = if self.seat == "human" { Some(0) } else { self.seat.parse().ok() };
        let human = number.filter(|seat| usize::from(*seat) < seats).map(Seat).ok_or_else(|| {
            WrongCall(format!("--seat {}: {game} has the seats 0 to {}", self.seat, seats - 1))
        })?;
        let seed = self.seed.unwrap_or_else(time_of_day);
        let arena = Arena::new(&game, &[player.config], Environment::system())?;
        let sentence =
            format!("{game}, seed {seed}. You have seat {}; {} has the others.", human.0, player.name);
        write_sentence(&sentence, &mut io::stdout())?;
        say(format_args!("Type a move, `moves`, `back` or `quit`."))?;
        let seed_path = SeedPath { run: seed, bout: 0, game: 0 };
        Session { start: game.start(None)?, arena, limit, human, seed_path }.play()
    }
}

/// A seed for those who give none; it is printed, so that the game can be played again.
fn time_of_day() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |time| time.as_millis() as u64 % 1_000_000)
}

struct Session {
    start: Box<dyn AnyGame>,
    arena: Arena,
    limit: Limit,
    human: Seat,
    seed_path: SeedPath,
}

/// What the person typed.
enum Word {
    Move(String),
    Back,
    Quit,
}

impl Session {
    fn play(mut self) -> Outcome {
        let mut line: Vec<String> = Vec::new();
        let mut drawn = usize::MAX;
        loop {
            let mut position = self.start.copy();
            position.follow(&line.join(" ")).expect("only legal moves are in the line");
            let turn = position.turn();
            if drawn != line.len() && (turn == Turn::Over || turn == Turn::Player(self.human)) {
                say(format_args!("\n{}\n", position.board()))?;
                drawn = line.len();
            }
            let seed = self.seed_path.ply_seed(line.len() as u32);
            match turn {
                Turn::Over => {
                    let ending = position.ending().unwrap_or_default();
                    say(format_args!("Over: {ending}. {}", result(&*position, self.human)))?;
                    return Ok(ExitCode::SUCCESS);
                }
                Turn::Chance => {
                    let word = position.draw(&mut seeded(seed));
                    say(format_args!("chance: {word}"))?;
                    line.push(word);
                }
                Turn::Player(seat) if seat == self.human => match ask(&*position)? {
                    Word::Move(text) => line.push(text),
                    Word::Quit => return Ok(ExitCode::SUCCESS),
                    Word::Back => take_back(&*self.start, &mut line, self.human),
                },
                Turn::Player(seat) => {
                    let opening = Opening { position: None, moves: line.join(" ") };
                    let record = self.arena.search(0, &opening, self.limit, seed, &mut |_| ())?;
                    say(format_args!("seat {}: {} ({})", seat.0, record.mv, value_text(record.value)))?;
                    line.push(record.mv);
                }
            }
        }
    }
}

/// A line for the person; where nobody reads it any more that is an error to return and not a panic.
fn say(text: std::fmt::Arguments<'_>) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}

fn ask(position: &dyn AnyGame) -> io::Result<Word> {
    let mut bytes = Vec::new();
    loop {
        write!(io::stdout(), "your move: ")?;
        io::stdout().flush()?;
        bytes.clear();
        if io::stdin().lock().read_until(b'\n', &mut bytes)? == 0 {
            say(format_args!(""))?;
            return Ok(Word::Quit);
        }
        // What is no text is no move either, and is asked for again.
        match String::from_utf8_lossy(&bytes).trim() {
            "" => {}
            "quit" | "exit" => return Ok(Word::Quit),
            "back" => return Ok(Word::Back),
            "moves" => say(format_args!("{}", position.legal().join(" ")))?,
            word => match position.copy().play(0, word) {
                Ok(text) => return Ok(Word::Move(text)),
                Err(_) => say(format_args!("`{word}` is not a legal move; `moves` lists them"))?,
            },
        }
    }
}

/// Takes moves back to the person's last decision, if there is one.
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

fn result(position: &dyn AnyGame, human: Seat) -> String {
    let payoffs = position.payoffs().unwrap_or_default();
    let even = f64::from(position.payoff_sum()) / position.seats() as f64;
    let own = payoffs.get(usize::from(human.0)).map_or(even, |&payoff| f64::from(payoff));
    let payoffs: Vec<String> =
        payoffs.iter().enumerate().map(|(seat, payoff)| format!("seat {seat}: {payoff}")).collect();
    let verdict = if own > even {
        "You win."
    } else if own < even {
        "You lose."
    } else {
        "A draw."
    };
    format!("{verdict} Payoffs: {}.", payoffs.join(", "))
}
