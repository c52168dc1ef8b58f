//! The one binary, `agon`: reads the call, runs a command, prints for people or as JSON.
//!
//! Standard output has answers, standard error has everything else. Exit codes: 0 done, 1 the work failed or a check
//! said no, 2 the call is wrong.

mod commands;
mod fail;
mod number;
mod progress;
mod settings;
mod table;
mod terminal;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A self-play tournament cluster: games, search, ratings.
#[derive(Parser)]
#[command(name = "agon", version, arg_required_else_help = true, propagate_version = true)]
#[command(after_help = "GAME is a name or name:key=value,key=value as in virus:seats=4,size=10.\n\
                  Start with: agon run examples/quick-start.toml, agon list-games, agon show othello")]
pub struct Call {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the games, or say everything of one
    ListGames(commands::list_games::ListGames),
    /// List the algorithms, or say everything of one
    ListAlgorithms(commands::list_algorithms::ListAlgorithms),
    /// Show a position: board, turn, legal moves, payoffs
    Show(commands::show::Show),
    /// Count the sequences of exactly DEPTH plies
    Perft(commands::perft::Perft),
    /// Search one position and tell everything that was counted
    Search(commands::search::Search),
    /// Play against a player in the terminal
    Play(commands::play::Play),
    /// Play a quick series between players on this machine
    Match(commands::local_match::Match),
    /// Rate the players of runs, of PGN files or of tables of results
    Ratings(commands::ratings::Ratings),
    /// Show who did what against whom in a run
    Crosstable(commands::crosstable::Crosstable),
    /// Say what a sequential test makes of a run of two players, or of results
    Sprt(commands::sprt::Sprt),
    /// Say what changed from one run to another: ratings, scores, specs
    Compare(commands::compare::Compare),
    /// Turn scores, results and Elo differences into each other
    Elo(commands::elo::Elo),
    /// Play a whole spec on this machine: tournament, data, ratings
    Run(commands::cluster::run::Run),
    /// Read a spec and tell what it would do
    Check(commands::cluster::check::Check),
    /// Serve as the coordinator of a cluster
    Coordinator(commands::cluster::coordinator::Coordinator),
    /// Make the certificates of a private cluster, or renew them
    Certs(commands::cluster::certs::Certs),
    /// Make, list and revoke the tokens that a coordinator asks for
    #[command(subcommand)]
    Token(commands::cluster::token::Token),
    /// Show what settings are and where they come from
    #[command(subcommand)]
    Config(commands::cluster::config::Config),
    /// Play what a coordinator lends
    Worker(commands::cluster::worker::Worker),
    /// Ask whether a coordinator serves: 0 where it does, else 1
    Health(commands::cluster::health::Health),
    /// Hand a spec to a coordinator
    Submit(commands::cluster::submit::Submit),
    /// List the runs of a coordinator
    List(commands::cluster::list::List),
    /// Follow a run to its end
    Watch(commands::cluster::watch::Watch),
    /// End a run; what it has played stays
    Cancel(commands::cluster::steer::Steer),
    /// Lend nothing more of a run until it is resumed
    Pause(commands::cluster::steer::Steer),
    /// Let a paused run go on
    Resume(commands::cluster::steer::Steer),
    /// Change which runs are played first
    Prioritise(commands::cluster::steer::Prioritise),
    /// Take bouts out of the count, and play anew those that are not exported
    Void(commands::cluster::steer::Void),
    /// List the workers of a coordinator
    Workers(commands::cluster::workers::Workers),
    /// Give a worker nothing more until it is trusted again
    Quarantine(commands::cluster::workers::Quarantine),
    /// Trust a worker again that is in quarantine
    Trust(commands::cluster::workers::OneWorker),
    /// Ask a worker to finish what it plays and end
    Drain(commands::cluster::workers::OneWorker),
    /// Read what was written down about workers and runs
    Audit(commands::cluster::audit::Audit),
    /// Copy the state of a coordinator while it works
    Backup(commands::cluster::backup::Backup),
    /// Put a copy of a coordinator's state back
    Restore(commands::cluster::backup::Restore),
    /// Say how the players of a run search and prune
    Pruning(commands::pruning::PruningOfRun),
    /// List the games of a run, show one, or write them for other programs
    Games(commands::games::Games),
    /// Ask a run in SQL
    Sql(commands::sql::Sql),
    /// Make one page of a run: the answer, charts, games, how to repeat it
    Report(commands::report::Report),
    /// Tell what a tune came to, or fit weights to the games of runs
    Tune(commands::tune::TuneOfRun),
    /// Check a dataset or a state: every bout once, every game complete and legal
    Verify(commands::verify::Verify),
    /// Play recorded games again and compare them bit by bit
    Replay(commands::replay::ReplayGames),
    /// Measure speed, and what the statistics promise, on this machine
    #[command(subcommand)]
    Bench(commands::bench::Bench),
    /// Print completions for a shell
    Completions(commands::manual::Completions),
    /// Write the manual pages
    Man(commands::manual::Man),
}

fn main() -> ExitCode {
    let call = Call::parse();
    let outcome = match call.command {
        Command::ListGames(command) => command.run(),
        Command::ListAlgorithms(command) => command.run(),
        Command::Show(command) => command.run(),
        Command::Perft(command) => command.run(),
        Command::Search(command) => command.run(),
        Command::Play(command) => command.run(),
        Command::Match(command) => command.run(),
        Command::Ratings(command) => command.run(),
        Command::Crosstable(command) => command.run(),
        Command::Sprt(command) => command.run(),
        Command::Compare(command) => command.run(),
        Command::Elo(command) => command.run(),
        Command::Run(command) => command.run(),
        Command::Check(command) => command.run(),
        Command::Coordinator(command) => command.run(),
        Command::Certs(command) => command.run(),
        Command::Token(command) => command.run(),
        Command::Config(command) => command.run(),
        Command::Worker(command) => command.run(),
        Command::Health(command) => command.run(),
        Command::Submit(command) => command.run(),
        Command::List(command) => command.run(),
        Command::Watch(command) => command.run(),
        Command::Cancel(command) => command.cancel(),
        Command::Pause(command) => command.pause(),
        Command::Resume(command) => command.resume(),
        Command::Prioritise(command) => command.run(),
        Command::Void(command) => command.run(),
        Command::Workers(command) => command.run(),
        Command::Quarantine(command) => command.run(),
        Command::Trust(command) => command.trust(),
        Command::Drain(command) => command.drain(),
        Command::Audit(command) => command.run(),
        Command::Backup(command) => command.run(),
        Command::Restore(command) => command.run(),
        Command::Pruning(command) => command.run(),
        Command::Games(command) => command.run(),
        Command::Sql(command) => command.run(),
        Command::Report(command) => command.run(),
        Command::Tune(command) => command.run(),
        Command::Verify(command) => command.run(),
        Command::Replay(command) => command.run(),
        Command::Bench(command) => command.run(),
        Command::Completions(command) => command.run(&mut Call::command()),
        Command::Man(command) => command.run(Call::command()),
    };
    outcome.unwrap_or_else(|error| fail::report(&error))
}
