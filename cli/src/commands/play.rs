//! `agon play`: a game between a person and a player in the terminal.

use std::io::{self, BufRead, IsTerminal as _, Write};
use std::process::ExitCode;

use agon_arena::defaults::default_player;
use agon_arena::{Arena, Environment, Opening, SeedPath};
use agon_games::random::seeded;
use agon_games::schema::hint;
use agon_games::{AnyGame, GameSpec, Seat, Turn};
use agon_search::Limit;
use clap::Args;

use super::player::{read_limit, read_player};
use super::search::value_text;
use crate::fail::{Outcome, UsageError, bail_usage};
use crate::number::whole;
use crate::table::{write_facts, write_sentence, write_words};

#[derive(Args)]
pub struct Play {
    /// Game: a name, or name:key=value,key=value
    #[arg(value_name = "GAME")]
    game: String,
    /// Player of the other seats: an algorithm, or TOML such as 'search = { algorithm = "pvs" }' [default: the game's
    /// default player, as in `agon list-games GAME`]
    #[arg(long, value_name = "PLAYER")]
    against: Option<String>,
    /// Limit of that player per move, and of a hint: ms=500, nodes=1000, depth=6, ...
    #[arg(long, value_name = "LIMIT", default_value = "ms=500")]
    limit: String,
    /// Your seat: its number from 0, or its mark on the board, such as o
    #[arg(long, default_value = "0", allow_negative_numbers = true)]
    seat: String,
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
        let start = game.start(None)?;
        let human = read_seat(&*start, &self.seat)?;
        let seed = self.seed.unwrap_or_else(seed_from_clock);
        let arena = Arena::new(&game, &[player.config], Environment::system())?;
        let others = Seat::all(start.seats()).filter(|&seat| seat != human).map(|seat| start.mark(seat));
        let greeting = format!(
            "{game}, seed {seed}. You are {}; {} plays {}. Type a move, or `help`.",
            start.mark(human),
            player.name,
            others.collect::<Vec<_>>().join(", ")
        );
        write_sentence(&greeting, &mut io::stdout())?;
        let seed_path = SeedPath { run: seed, bout: 0, game: 0 };
        Session { start, arena, limit, human, seed_path, line: Vec::new() }.play()
    }
}

/// Returns the seat with this number or mark.
fn read_seat(start: &dyn AnyGame, text: &str) -> Result<Seat, UsageError> {
    let names = |seat: Seat| [seat.0.to_string(), short_mark(start, seat)];
    Seat::all(start.seats()).find(|&seat| names(seat).iter().any(|name| name == text)).ok_or_else(|| {
        let seats: Vec<String> = Seat::all(start.seats()).map(|seat| names(seat).join(" or ")).collect();
        UsageError(format!("--seat {text}: there is no such seat; give {}", seats.join(", ")))
    })
}

/// Returns the mark of a seat without its explanation.
fn short_mark(position: &dyn AnyGame, seat: Seat) -> String {
    let mark = position.mark(seat);
    mark.split(" (").next().unwrap_or(&mark).to_string()
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
    /// The moves and chance outcomes so far.
    line: Vec<String>,
}

/// The words that a person may type instead of a move, with their meanings.
const COMMANDS: [(&str, &str); 6] = [
    ("moves", "list the legal moves"),
    ("board", "draw the board again"),
    ("hint", "search for a good move, as the other player does"),
    ("undo", "take back your last move and everything after it"),
    ("help", "list these words"),
    ("quit", "leave the game"),
];

/// A decision of the person.
enum Input {
    Move(String),
    Undo,
    Quit,
}

impl Session {
    fn play(mut self) -> Outcome {
        let mut out = io::stdout();
        loop {
            let mut position = self.start.copy();
            position.follow(&self.line.join(" ")).expect("only legal moves are in the line");
            match position.turn() {
                Turn::Over => {
                    let ending = position.ending().unwrap_or_default();
                    write_board(&*position)?;
                    writeln!(out, "Game over: {ending}. {}", result(&*position, self.human))?;
                    return Ok(ExitCode::SUCCESS);
                }
                Turn::Chance => {
                    let outcome = position.draw(&mut seeded(self.seed()));
                    writeln!(out, "chance: {outcome}")?;
                    self.line.push(outcome);
                }
                Turn::Player(seat) if seat == self.human => match self.ask(&*position)? {
                    Input::Move(text) => self.line.push(text),
                    Input::Undo => self.take_back()?,
                    Input::Quit => return Ok(ExitCode::SUCCESS),
                },
                Turn::Player(seat) => {
                    let (mv, value) = self.search()?;
                    writeln!(out, "{} plays {mv} ({value})", short_mark(&*position, seat))?;
                    self.line.push(mv);
                }
            }
        }
    }

    /// Returns the seed of the next ply.
    fn seed(&self) -> u64 {
        self.seed_path.ply_seed(self.line.len() as u32)
    }

    /// Searches for the side to move. Returns the move and its value.
    fn search(&mut self) -> anyhow::Result<(String, String)> {
        let opening = Opening { position: None, moves: self.line.join(" ") };
        let record = self.arena.search(0, &opening, self.limit, self.seed(), &mut |_| ())?;
        Ok((record.mv, value_text(record.value)))
    }

    /// Shows the board and asks until the person decides. The end of the input quits.
    fn ask(&mut self, position: &dyn AnyGame) -> anyhow::Result<Input> {
        let mut bytes = Vec::new();
        let mut out = io::stdout();
        write_board(position)?;
        loop {
            write!(out, "{}, your move: ", short_mark(position, self.human))?;
            out.flush()?;
            bytes.clear();
            let count = io::stdin().lock().read_until(b'\n', &mut bytes)?;
            // Invalid UTF-8 becomes an illegal move.
            let text = String::from_utf8_lossy(&bytes);
            // Only a terminal shows what is typed.
            if count == 0 || !io::stdin().is_terminal() {
                writeln!(out, "{}", text.trim())?;
            }
            match text.trim() {
                _ if count == 0 => return Ok(Input::Quit),
                "" => {}
                "quit" => return Ok(Input::Quit),
                "undo" => return Ok(Input::Undo),
                "help" => {
                    write_facts(&COMMANDS.map(|(word, meaning)| (word, meaning.to_string())), &mut out)?;
                }
                "board" => write_board(position)?,
                "moves" => write_words("legal:", &position.legal(), &mut out)?,
                "hint" => {
                    let (mv, value) = self.search()?;
                    writeln!(out, "{mv} ({value})")?;
                }
                word => match position.copy().play(0, word) {
                    Ok(text) => return Ok(Input::Move(text)),
                    Err(error) => {
                        let words = COMMANDS.iter().map(|command| command.0);
                        let meant = hint(word, error.legal.iter().map(String::as_str).chain(words));
                        let refusal = format!("`{word}` is not a legal move{meant} `moves` lists them");
                        write_sentence(&refusal, &mut out)?;
                    }
                },
            }
        }
    }

    /// Takes back the person's last move and everything after it.
    fn take_back(&mut self) -> io::Result<()> {
        let mut position = self.start.copy();
        let mut last = None;
        for (ply, word) in self.line.iter().enumerate() {
            if position.turn() == Turn::Player(self.human) {
                last = Some(ply);
            }
            position.play(ply, word).expect("only legal moves are in the line");
        }
        match last {
            Some(ply) => self.line.truncate(ply),
            None => writeln!(io::stdout(), "You have not moved yet.")?,
        }
        Ok(())
    }
}

fn write_board(position: &dyn AnyGame) -> io::Result<()> {
    writeln!(io::stdout(), "\n{}\n", position.board())
}

/// Describes the result of a finished game for the person: a win is a payoff above an even share of the sum.
fn result(position: &dyn AnyGame, human: Seat) -> String {
    let payoffs = position.payoffs().unwrap_or_default();
    let even_share = f64::from(position.payoff_sum()) / position.seats() as f64;
    let own = payoffs.get(usize::from(human.0)).map_or(even_share, |&payoff| f64::from(payoff));
    let payoffs: Vec<String> = Seat::all(payoffs.len())
        .zip(&payoffs)
        .map(|(seat, payoff)| format!("{} {payoff}", short_mark(position, seat)))
        .collect();
    let verdict = if own > even_share {
        "You win."
    } else if own < even_share {
        "You lose."
    } else {
        "Draw."
    };
    format!("{verdict} Payoffs: {}.", payoffs.join(", "))
}
