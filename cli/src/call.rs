//! The commands of `agon`, and their dispatch.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::fail::Outcome;
use crate::{commands, help};

/// A self-play tournament cluster: games, search, ratings
#[derive(Parser)]
#[command(name = "agon", version, propagate_version = true)]
struct Call {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Play a spec on this machine: games, data, ratings
    Run(commands::cluster::run::Run),
    /// Read a spec and print what it would play
    Check(commands::cluster::check::Check),
    /// Play a quick series between players on this machine
    Duel(commands::duel::Duel),
    /// Play against a player in the terminal
    Play(commands::play::Play),
    /// Rate the players of runs, PGN files or result tables
    Ratings(commands::ratings::Ratings),
    /// Print each player's results against each opponent
    Crosstable(commands::crosstable::Crosstable),
    /// Run a sequential test on a run of two players or on results
    Sprt(commands::sprt::Sprt),
    /// Compare two runs: ratings, scores, specs
    Compare(commands::compare::Compare),
    /// Measure how the players of a run search and prune
    Pruning(commands::pruning::PruningOfRun),
    /// List, show or export the games of a run
    Games(commands::games::Games),
    /// Write a run as one HTML page: results, charts, games
    Report(commands::report::Report),
    /// Print the result of a tuning run, or fit weights to games
    Tune(commands::tune::TuneOfRun),
    /// Query a run in SQL
    Sql(commands::sql::Sql),
    /// List games, or describe one
    ListGames(commands::list_games::ListGames),
    /// List algorithms, or describe one
    ListAlgorithms(commands::list_algorithms::ListAlgorithms),
    /// Show a position: board, turn, legal moves, payoffs
    #[command(mut_arg("moves", |moves| moves.help(help::SHOW_MOVES)))]
    Show(commands::show::Show),
    /// Count the sequences of exactly DEPTH plies
    Perft(commands::perft::Perft),
    /// Search a position and print statistics
    Search(commands::search::Search),
    /// Start a coordinator
    Coordinator(commands::cluster::coordinator::Coordinator),
    /// Start a worker that plays bouts for a coordinator
    Worker(commands::cluster::worker::Worker),
    /// Submit a spec to a coordinator
    Submit(commands::cluster::submit::Submit),
    /// List the runs of a coordinator or of a data folder
    List(commands::cluster::list::List),
    /// Follow a run until it ends
    Watch(commands::cluster::watch::Watch),
    /// Pause a run
    Pause(commands::cluster::steer::Steer),
    /// Resume a paused run
    Resume(commands::cluster::steer::Steer),
    /// Cancel a run and keep its finished bouts
    #[command(mut_arg("run", |run| run.default_value(None).required(true)))]
    Cancel(commands::cluster::steer::Steer),
    /// Set the priority of a run
    Prioritise(commands::cluster::steer::Prioritise),
    /// List, drain, quarantine or trust workers
    Workers(commands::cluster::workers::Workers),
    /// Print the audit log of workers and runs
    Audit(commands::cluster::audit::Audit),
    /// Create, list or revoke access tokens
    #[command(subcommand)]
    Token(commands::cluster::token::Token),
    /// Create or renew the certificates of a private cluster
    Certs(commands::cluster::certs::Certs),
    /// Check that a coordinator serves; exit 1 if it does not
    Health(commands::cluster::health::Health),
    /// Show settings and where each comes from
    #[command(subcommand)]
    Config(commands::cluster::config::Config),
    /// Check that a dataset or a state is complete and legal
    Verify(commands::verify::Verify),
    /// Replay recorded games and compare them bit by bit
    Replay(commands::replay::ReplayGames),
    /// Back up, restore or void data
    #[command(subcommand)]
    Data(commands::cluster::data::Data),
    /// Serve players as engines, or test an engine
    #[command(subcommand)]
    Engine(commands::engine::Engine),
    /// Measure the speed of games and searches on this machine
    #[command(subcommand)]
    Bench(commands::bench::Bench),
    /// Convert between scores, results and Elo differences
    Elo(commands::elo::Elo),
    /// Print shell completions
    Completions(commands::manual::Completions),
    /// Write manual pages
    Man(commands::manual::Man),
}

/// Returns the description of the command line, with its help arranged.
pub fn command() -> clap::Command {
    help::arrange(Call::command())
}

/// Parses the command line and runs the command.
pub fn run() -> Outcome {
    let call = Call::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit());
    let Some(call) = call.command else {
        std::io::stdout().write_all(help::WELCOME.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    };
    match call {
        Command::Run(command) => command.run(),
        Command::Check(command) => command.run(),
        Command::Duel(command) => command.run(),
        Command::Play(command) => command.run(),
        Command::Ratings(command) => command.run(),
        Command::Crosstable(command) => command.run(),
        Command::Sprt(command) => command.run(),
        Command::Compare(command) => command.run(),
        Command::Pruning(command) => command.run(),
        Command::Games(command) => command.run(),
        Command::Report(command) => command.run(),
        Command::Tune(command) => command.run(),
        Command::Sql(command) => command.run(),
        Command::ListGames(command) => command.run(),
        Command::ListAlgorithms(command) => command.run(),
        Command::Show(command) => command.run(),
        Command::Perft(command) => command.run(),
        Command::Search(command) => command.run(),
        Command::Coordinator(command) => command.run(),
        Command::Worker(command) => command.run(),
        Command::Submit(command) => command.run(),
        Command::List(command) => command.run(),
        Command::Watch(command) => command.run(),
        Command::Pause(command) => command.pause(),
        Command::Resume(command) => command.resume(),
        Command::Cancel(command) => command.cancel(),
        Command::Prioritise(command) => command.run(),
        Command::Workers(command) => command.run(),
        Command::Audit(command) => command.run(),
        Command::Token(command) => command.run(),
        Command::Certs(command) => command.run(),
        Command::Health(command) => command.run(),
        Command::Config(command) => command.run(),
        Command::Verify(command) => command.run(),
        Command::Replay(command) => command.run(),
        Command::Data(command) => command.run(),
        Command::Engine(command) => command.run(),
        Command::Bench(command) => command.run(),
        Command::Elo(command) => command.run(),
        Command::Completions(completions) => completions.run(&mut command()),
        Command::Man(man) => man.run(command()),
    }
}
