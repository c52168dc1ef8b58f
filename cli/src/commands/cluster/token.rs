//! `agon token`: creates, lists and revokes access tokens.
//!
//! Edits the tokens file only: a running coordinator reads the file again when it has changed.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use agon_transport::tokens::{TokenEntry, TokenFile};
use agon_transport::{CredentialError, Role, write_secret};
use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};

use crate::fail::{Outcome, UsageError, bail_usage, note};
use crate::output::{is_stdout, open_stream};
use crate::settings::Layers;
use crate::table::{Align, Table, print, utc};

/// The commands of `agon token`.
#[derive(Subcommand)]
pub enum Token {
    /// Create a token and print it once
    Create(Create),
    /// List tokens
    List(List),
    /// Revoke a token and close its connections within a second
    Revoke(Revoke),
}

#[derive(Args)]
pub struct Create {
    /// Unique name of the token
    name: String,
    /// Role that the token grants
    #[arg(long)]
    role: RoleName,
    #[command(flatten)]
    file: File,
    /// Write the token to this file, readable by its owner only, and do not print it; - prints it
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleName {
    /// Lease bouts and return results
    Worker,
    /// Submit, control and inspect runs and workers
    Operator,
    /// Inspect runs and workers
    Viewer,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Role {
        match name {
            RoleName::Worker => Role::Worker,
            RoleName::Operator => Role::Operator,
            RoleName::Viewer => Role::Viewer,
        }
    }
}

#[derive(Args)]
pub struct List {
    #[command(flatten)]
    file: File,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct Revoke {
    /// Name of the token
    name: String,
    #[command(flatten)]
    file: File,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The location of the tokens file.
#[derive(Args)]
struct File {
    /// Tokens file of the coordinator [default: coordinator.tokens of the configuration file, or tokens.toml]
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Configuration file [env: AGON_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl File {
    fn path(self) -> anyhow::Result<PathBuf> {
        Layers::open(self.config.as_deref())?.path_or("coordinator.tokens", self.tokens, "tokens.toml")
    }
}

/// Returns the absolute path of a file that may not exist yet.
fn absolute(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    path.canonicalize().unwrap_or_else(|_| folder.join(path.file_name().unwrap_or_default()))
}

impl Token {
    pub fn run(self) -> Outcome {
        match self {
            Token::Create(command) => command.run(),
            Token::List(command) => command.run(),
            Token::Revoke(command) => command.run(),
        }
    }
}

fn wrong(error: CredentialError) -> UsageError {
    UsageError(error.0)
}

impl Create {
    fn run(self) -> Outcome {
        let output = self.output.filter(|output| !is_stdout(output));
        if output.as_ref().is_some_and(|output| output.is_file()) {
            bail_usage!("the file exists already; choose another --output");
        }
        let tokens = self.file.path()?;
        if output.as_ref().is_some_and(|output| absolute(output) == absolute(&tokens)) {
            bail_usage!("--output names the tokens file; choose another file");
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let created = utc(i64::try_from(now.as_micros()).unwrap_or(i64::MAX));
        let role = Role::from(self.role);
        let make = |file: &mut TokenFile| file.create(&self.name, role, &created);
        let secret = TokenFile::update(&tokens, make).map_err(wrong)?;
        if let Some(output) = &output {
            // Revoke a token that cannot be stored.
            write_token(output, &format!("{secret}\n")).or_else(|error| {
                TokenFile::update(&tokens, |file| file.revoke(&self.name)).map_err(wrong)?;
                Err(error)
            })?;
        }
        let output = output.map(|output| output.display().to_string());
        let printed = output.is_none().then_some(&secret);
        let document = serde_json::json!({
            "name": self.name, "role": role.name(), "created": created, "token": printed, "output": output,
        });
        if printed.is_some() && !self.json {
            let advice = "it is not shown again; keep it in a file of its own, for --token-file";
            note(&format!("token `{}` ({}): {advice}", self.name, role.name()));
        }
        print(self.json, &document, |out| match &output {
            Some(file) => writeln!(out, "token `{}` ({}) is in {file}", self.name, role.name()),
            None => writeln!(out, "{secret}"),
        })
    }
}

/// Writes a token to a new file, readable by its owner only, or to a device or pipe.
fn write_token(output: &Path, text: &str) -> anyhow::Result<()> {
    match open_stream(output)? {
        Some(mut stream) => stream.write_all(text.as_bytes()),
        None => write_secret(output, text),
    }
    .with_context(|| format!("{} cannot be written", output.display()))
}

impl List {
    fn run(self) -> Outcome {
        let file = TokenFile::read(&self.file.path()?).map_err(wrong)?;
        let token = |entry: &TokenEntry| serde_json::json!({ "name": entry.name, "role": entry.role.name(), "created": entry.created });
        let document = serde_json::json!({ "tokens": file.entries.iter().map(token).collect::<Vec<_>>() });
        print(self.json, &document, |out| {
            if file.entries.is_empty() {
                return writeln!(out, "no tokens yet; create one with `agon token create`");
            }
            let mut table = Table::new(&["name", "role", "created"].map(|name| (name, Align::Fixed)));
            for entry in file.entries {
                table.row([entry.name, entry.role.name().to_string(), entry.created]);
            }
            table.write(out)
        })
    }
}

impl Revoke {
    fn run(self) -> Outcome {
        let tokens = self.file.path()?;
        let file = tokens.display().to_string();
        if !tokens.exists() {
            bail_usage!("there is no file {file}; name the tokens file with --tokens");
        }
        TokenFile::update(&tokens, |file| file.revoke(&self.name)).map_err(wrong)?;
        let document = serde_json::json!({ "name": self.name, "revoked": true, "tokens": file });
        print(self.json, &document, |out| {
            let effect = "a coordinator with this file closes its connections within a second";
            writeln!(out, "token `{}` revoked in {file}: {effect}", self.name)
        })
    }
}
