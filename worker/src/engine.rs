//! Engines: players that are processes of their own.

use std::collections::BTreeMap;

use agon_arena::EngineConfig;
use agon_arena::engine::{Command, Program};

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
