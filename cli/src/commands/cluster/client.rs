//! The operator's connection to a coordinator.

use std::time::Duration;

use agon_proto::v1::operator_client::OperatorClient;
use anyhow::anyhow;
use clap::Args;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::fail::WrongCall;

/// Where the coordinator is.
#[derive(Args, Clone)]
pub struct Address {
    /// The coordinator's address
    #[arg(
        long,
        env = "AGON_COORDINATOR",
        value_name = "URL",
        default_value = "http://127.0.0.1:7400",
        hide_env_values = true
    )]
    pub coordinator: String,
}

impl Address {
    /// The endpoint, if the text is one.
    pub fn endpoint(&self) -> anyhow::Result<Endpoint> {
        let url = if self.coordinator.contains("://") {
            self.coordinator.clone()
        } else {
            format!("http://{}", self.coordinator)
        };
        let endpoint = Endpoint::from_shared(url).map_err(|_| {
            WrongCall(format!("`{}` is no address; give one as http://host:7400", self.coordinator))
        })?;
        Ok(endpoint.connect_timeout(Duration::from_secs(5)))
    }

    /// What operators' commands speak with.
    pub async fn connect(&self) -> anyhow::Result<Operator> {
        Ok(client(self.channel().await?))
    }

    /// A connection.
    pub async fn channel(&self) -> anyhow::Result<Channel> {
        self.endpoint()?.connect().await.map_err(|_| {
            anyhow!(
                "no coordinator answers at {}; start one with `agon coordinator`, or say where it is with --coordinator",
                self.coordinator
            )
        })
    }
}

/// What operators' commands speak with.
pub type Operator = OperatorClient<Channel>;

/// The client over a channel.
pub fn client(channel: Channel) -> Operator {
    OperatorClient::new(channel).max_decoding_message_size(64 << 20)
}

/// What a refusal means for the caller: wrong calls end with 2, the rest with 1.
pub fn told(status: &Status) -> anyhow::Error {
    match status.code() {
        Code::InvalidArgument | Code::NotFound | Code::FailedPrecondition => {
            WrongCall(status.message().to_string()).into()
        }
        _ => anyhow!("the coordinator says: {}", status.message()),
    }
}
