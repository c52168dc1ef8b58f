//! `agon health`: whether a coordinator serves, for what watches over its container. It asks the standard health service
//! of gRPC, which any other program can ask too.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use serde::Serialize;
use tokio::time::timeout;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::block_on;
use super::client::{Address, told};
use crate::fail::Outcome;
use crate::number::whole;
use crate::table::write_json;

/// The arguments of `agon health`.
#[derive(Args)]
pub struct Health {
    /// Seconds to wait for a reply
    #[arg(long, value_name = "SECONDS", default_value = "5",
          value_parser = whole::<u32>("the time to wait", 1, 3600), allow_negative_numbers = true)]
    timeout: u32,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    address: Address,
}

#[derive(Serialize)]
struct Document {
    serves: bool,
}

impl Health {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        block_on(async move {
            let Ok(asked) = timeout(Duration::from_secs(self.timeout.into()), ask(self.address)).await else {
                bail!("the coordinator did not answer within {} s", self.timeout);
            };
            let serves = asked?;
            let mut out = io::stdout().lock();
            if self.json {
                write_json(&Document { serves }, &mut out)?;
            } else {
                writeln!(out, "the coordinator {}", if serves { "serves" } else { "does not serve" })?;
            }
            Ok(if serves { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        })
    }
}

async fn ask(address: Address) -> anyhow::Result<bool> {
    let mut client = HealthClient::new(address.connection().await?);
    // The service without a name is the coordinator as a whole.
    let request = HealthCheckRequest { service: String::new() };
    let answer = client.check(request).await.map_err(|status| told(&status))?;
    Ok(answer.into_inner().status() == ServingStatus::Serving)
}
