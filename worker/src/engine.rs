//! Engines: players that are processes of their own.
//!
//! [`Engines`] knows which commands this machine may run. A client for each protocol speaks to a process, and all measure time
//! alike.

mod bot;
mod gtp;
mod process;
mod time;
mod uci;

use std::collections::BTreeMap;
use std::sync::Arc;

use agon_arena::engine::{Command, Program, Protocol};
use agon_arena::{EngineConfig, EngineError, EngineFactory, ExternalPlayer};
use agon_games::GameSpec;
use agon_search::SearchControl;

/// The engines that this machine can start.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Engines {
    /// The commands by name.
    pub named: BTreeMap<String, Command>,
    /// Whether specs may give commands of their own, because this machine is their author's.
    pub any_command: bool,
}

impl Engines {
    /// Returns the names of the engines.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// Returns the command of an engine, or why this machine does not start it.
    pub fn command(&self, config: &EngineConfig) -> Result<Command, String> {
        match &config.program {
            Program::Named(name) => self.named.get(name).cloned().ok_or_else(|| {
                format!("this machine has no engine `{name}`; name one with --engine {name}=COMMAND")
            }),
            Program::Command(command) if self.any_command => Ok(command.clone()),
            Program::Command(command) => Err(format!(
                "the spec starts `{}` by `command`, which this machine does not do for others; give the engine a `name`",
                command.program
            )),
        }
    }
}

impl EngineFactory for Engines {
    fn start(
        &self,
        config: &EngineConfig,
        game: &GameSpec,
        control: &Arc<SearchControl>,
    ) -> Result<Box<dyn ExternalPlayer>, EngineError> {
        let command = self.command(config).map_err(EngineError::Unavailable)?;
        Ok(match config.protocol {
            Protocol::Uci => Box::new(uci::Uci::start(&command, config, control)?),
            Protocol::Gtp => Box::new(gtp::Gtp::start(&command, config, game, control)?),
            Protocol::Agon => Box::new(bot::Bot::start(&command, config, game, control)?),
        })
    }
}
