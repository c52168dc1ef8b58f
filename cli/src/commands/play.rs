//! `agon play`: a person plays in the terminal.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use agon_arena::{Arena, Opening, Place, Surroundings};
use agon_games::line::legal_texts;
use agon_games::random::seeded;
use agon_games::{Complete, GameSpec, Parameters, Seat, Turn, UniformVisitor};
use agon_search::Limit;
use clap::Args;

use super::player::{default_player, read_limit, read_player};
use super::search::value_text;
use crate::fail::{Outcome, WrongCall};
use crate::number::whole;

/// The arguments of `agon play`.
#[derive(Args)]
pub struct Play {
    /// The game: a name, or name:key=value,key=value
    #[arg(value_name = "GAME")]
    game: String,
    /// The person's seat: a number from 0, or `human` for the first
    #[arg(long, default_value = "human", allow_negative_numbers = true)]
    seat: String,
    /// Who plays the other seats: an algorithm's name, or TOML such as 'search = { algorithm = "pvs" }'
    #[arg(long, value_name = "PLAYER")]
    against: Option<String>,
    /// The limit of each of its moves: ms=500, nodes=1000, depth=6, ...
    #[arg(long, value_name = "LIMIT", default_value = "ms=500")]
    limit: String,
    /// The seed of dice and searches [default: the time of day, and it is said]
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
        let arena = Arena::new(&game, &[player.config], Surroundings::system())?;
        say(format_args!("{game}, seed {seed}. You have seat {}; {} has the others.", human.0, player.name))?;
        say(format_args!("Type a move, `moves`, `back` or `quit`."))?;
        game.visit_any(Session { arena, limit, human, place: Place { run: seed, bout: 0, game: 0 } })
    }
}

/// A seed for those who give none; it is printed, so that the game can be played again.
fn time_of_day() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |time| time.as_millis() as u64 % 1_000_000)
}

struct Session {
    arena: Arena,
    limit: Limit,
    human: Seat,
    place: Place,
}

/// What the person typed.
enum Word<M> {
    Move(M),
    Back,
    Quit,
}

impl UniformVisitor for Session {
    type Output = Outcome;

    fn visit<G: Complete>(mut self, parameters: &Parameters) -> Outcome {
        let start = G::initial(parameters)?;
        let mut line: Vec<String> = Vec::new();
        let mut drawn = usize::MAX;
        loop {
            let mut position = start.clone();
            for word in &line {
                let mv = position.parse_move(word).expect("only legal moves are in the line");
                position.play(mv);
            }
            let turn = position.turn();
            if drawn != line.len() && (turn == Turn::Over || turn == Turn::Player(self.human)) {
                say(format_args!("\n{}\n", position.board()))?;
                drawn = line.len();
            }
            let seed = self.place.ply_seed(line.len() as u32);
            match turn {
                Turn::Over => {
                    say(format_args!("Over: {}. {}", position.ending(), result(&position, self.human)))?;
                    return Ok(ExitCode::SUCCESS);
                }
                Turn::Chance => {
                    let outcome = position.sample(&mut seeded(seed), &mut Vec::new());
                    let word = position.move_text(outcome);
                    say(format_args!("chance: {word}"))?;
                    line.push(word);
                }
                Turn::Player(seat) if seat == self.human => match ask(&position)? {
                    Word::Move(mv) => line.push(position.move_text(mv)),
                    Word::Quit => return Ok(ExitCode::SUCCESS),
                    Word::Back => take_back(&start, &mut line, self.human),
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

fn ask<G: Complete>(position: &G) -> io::Result<Word<G::Move>> {
    let mut text = String::new();
    loop {
        write!(io::stdout(), "your move: ")?;
        io::stdout().flush()?;
        text.clear();
        if io::stdin().lock().read_line(&mut text)? == 0 {
            say(format_args!(""))?;
            return Ok(Word::Quit);
        }
        match text.trim() {
            "" => {}
            "quit" | "exit" => return Ok(Word::Quit),
            "back" => return Ok(Word::Back),
            "moves" => say(format_args!("{}", legal_texts(position).join(" ")))?,
            word => match position.parse_move(word) {
                Some(mv) => return Ok(Word::Move(mv)),
                None => say(format_args!("`{word}` is not a legal move; `moves` lists them"))?,
            },
        }
    }
}

/// Takes moves back to the person's last decision, if there is one.
fn take_back<G: Complete>(start: &G, line: &mut Vec<String>, human: Seat) {
    let mut position = start.clone();
    let mut last = None;
    for (ply, word) in line.iter().enumerate() {
        if position.turn() == Turn::Player(human) {
            last = Some(ply);
        }
        let mv = position.parse_move(word).expect("only legal moves are in the line");
        position.play(mv);
    }
    line.truncate(last.unwrap_or(line.len()));
}

fn result<G: Complete>(position: &G, human: Seat) -> String {
    let payoffs: Vec<String> =
        Seat::all(G::SEATS).map(|seat| format!("seat {}: {}", seat.0, position.payoff(seat))).collect();
    let even = f64::from(G::PAYOFFS.sum) / G::SEATS as f64;
    let own = f64::from(position.payoff(human));
    let verdict = if own > even {
        "You win."
    } else if own < even {
        "You lose."
    } else {
        "A draw."
    };
    format!("{verdict} Payoffs: {}.", payoffs.join(", "))
}
