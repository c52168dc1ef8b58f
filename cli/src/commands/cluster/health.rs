//! `agon health`: checks by the standard health service of gRPC that a coordinator serves, as a probe of its container.

use std::io::Write as _;
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
use super::client::{Address, rejection};
use crate::fail::Outcome;
use crate::number::whole;
use crate::table::print;

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
    pub fn run(self) -> Outcome {
        block_on(async move {
            let Ok(serves) = timeout(Duration::from_secs(self.timeout.into()), check(self.address)).await
            else {
                bail!("the coordinator did not answer within {} s", self.timeout);
            };
            let serves = serves?;
            print(self.json, &Document { serves }, |out| {
                writeln!(out, "the coordinator {}", if serves { "serves" } else { "does not serve" })
            })?;
            Ok(if serves { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        })
    }
}

async fn check(address: Address) -> anyhow::Result<bool> {
    let mut client = HealthClient::new(address.connection().await?);
    // The empty name stands for the whole server.
    let request = HealthCheckRequest { service: String::new() };
    let answer = client.check(request).await.map_err(|status| rejection(&status))?;
    Ok(answer.into_inner().status() == ServingStatus::Serving)
}
