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
    #[command(flatten)]
    address: Address,
    /// Seconds to wait for an answer
    #[arg(long, value_name = "SECONDS", default_value = "5",
          value_parser = whole::<u32>("the time to wait", 1, 3600), allow_negative_numbers = true)]
    timeout: u32,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    coordinator: &'a str,
    serves: bool,
}

impl Health {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        block_on(async move {
            let asked = timeout(Duration::from_secs(self.timeout.into()), self.ask()).await;
            let serves = match asked {
                Ok(answer) => answer?,
                Err(_) => bail!(
                    "the coordinator at {} did not answer within {} s",
                    self.address.coordinator,
                    self.timeout
                ),
            };
            let mut out = io::stdout().lock();
            if self.json {
                let document = Document { coordinator: &self.address.coordinator, serves };
                write_json(&document, &mut out)?;
            } else {
                let word = if serves { "serves" } else { "does not serve" };
                writeln!(out, "the coordinator at {} {word}", self.address.coordinator)?;
            }
            Ok(if serves { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        })
    }

    async fn ask(&self) -> anyhow::Result<bool> {
        let mut client = HealthClient::new(self.address.channel().await?);
        // The service without a name is the coordinator as a whole.
        let request = HealthCheckRequest { service: String::new() };
        let answer = client.check(request).await.map_err(|status| told(&status))?;
        Ok(answer.into_inner().status() == ServingStatus::Serving)
    }
}
