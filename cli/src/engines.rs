//! The engines that this machine may start, as flags and settings name them.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::sync::Arc;

use agon_arena::engine::{Command, is_engine_name};
use agon_arena::{EngineFactory as _, Spec};
use agon_search::SearchControl;
use agon_worker::Engines;
use clap::Args;

use crate::fail::UsageError;

/// The flag that names engines.
#[derive(Args, Clone, Default)]
pub struct EngineFlags {
    /// Engine that specs may name, with the command that starts it; repeatable
    #[arg(long = "engine", value_name = "NAME=COMMAND", value_parser = named_engine)]
    engines: Vec<NamedEngine>,
}

/// An engine with its name.
#[derive(Clone, Debug)]
pub struct NamedEngine {
    name: String,
    command: Command,
}

impl EngineFlags {
    /// Returns the commands by name.
    pub fn named(&self) -> BTreeMap<String, Command> {
        self.engines.iter().map(|engine| (engine.name.clone(), engine.command.clone())).collect()
    }

    /// Returns the engines of a command that plays on the machine of its user, where specs may start programs.
    pub fn local(&self) -> Engines {
        Engines { named: self.named(), any_command: true }
    }
}

impl Display for NamedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.command.program)
    }
}

/// Parses `NAME=COMMAND`.
fn named_engine(text: &str) -> Result<NamedEngine, String> {
    let form = "give a name of letters, digits and -_.+ and a command, as in --engine stockfish=/usr/games/stockfish";
    let (name, line) = text.split_once('=').ok_or(form)?;
    let command = Command::parse(line).filter(|_| is_engine_name(name)).ok_or(form)?;
    Ok(NamedEngine { name: name.to_string(), command })
}

/// Starts every engine of a spec once, so that what is wrong with it is said before a game is lost by it.
pub fn check_engines(spec: &Spec, engines: &Engines) -> Result<(), UsageError> {
    let mut problems = Vec::new();
    for player in &spec.players {
        if let Some(engine) = player.config.engine()
            && let Err(error) = engines.start(engine, &spec.game, &Arc::<SearchControl>::default())
        {
            problems.push(format!("player `{}`: {error}", player.name));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(UsageError(problems.join("\n"))) }
}
