//! The operator's connection to a coordinator.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use agon_proto::v1::operator_client::OperatorClient;
use agon_transport::{ClientCredentials, ConnectError, Connection, Connector, status_text};
use anyhow::anyhow;
use clap::Args;
use tonic::{Code, Status};

use crate::fail::WrongCall;
use crate::settings::Layers;

/// Where a coordinator is unless somebody says otherwise.
const USUAL: &str = "http://127.0.0.1:7400";

/// Where the coordinator is, and what to show it.
#[derive(Args, Clone)]
#[command(next_help_heading = "Connection")]
pub struct Address {
    /// Coordinator URL; https:// enables TLS [env: AGON_COORDINATOR] [default: http://127.0.0.1:7400]
    #[arg(long, value_name = "URL")]
    coordinator: Option<String>,
    /// Authority of the server certificate; ca.pem of `agon certs` [env: AGON_TLS_CA]
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Client certificate [env: AGON_TLS_CERT]
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Key of the client certificate [env: AGON_TLS_KEY]
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// File with a token of `agon token create` [env: AGON_TOKEN_FILE]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Configuration file; flags and variables override it [env: AGON_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl Address {
    /// What is asked for, from all layers.
    pub fn connector(self, layers: &Layers) -> anyhow::Result<Connector> {
        let text = |text: &str| Ok(text.to_string());
        let url = layers.value_or("client.coordinator", self.coordinator, text, USUAL.to_string())?;
        let credentials = ClientCredentials {
            authority: layers.path("client.tls_ca", self.tls_ca)?,
            certificate: layers.path("client.tls_cert", self.tls_cert)?,
            key: layers.path("client.tls_key", self.tls_key)?,
            token: layers.path("client.token_file", self.token_file)?,
        };
        let connector = Connector::new(&url, credentials).map_err(|error| WrongCall(error.to_string()))?;
        if connector.sends_token_unencrypted() {
            let warning = "warning: the token crosses the network without TLS, where others can read it";
            let _ = writeln!(std::io::stderr(), "{warning}");
        }
        Ok(connector.with(|endpoint| endpoint.connect_timeout(Duration::from_secs(5))))
    }

    /// An operator's connection.
    pub async fn connect(self) -> anyhow::Result<Operator> {
        self.connection().await.map(client)
    }

    /// A connection.
    pub async fn connection(self) -> anyhow::Result<Connection> {
        let layers = Layers::open(self.config.as_deref())?;
        self.connector(&layers)?.connect().await.map_err(|error| match error {
            ConnectError::Unreachable { url, .. } => anyhow!(
                "no coordinator answers at {url}; start one with `agon coordinator`, or say where it is with \
                 --coordinator"
            ),
            ConnectError::Credentials(reason) => WrongCall(reason).into(),
            other => other.into(),
        })
    }
}

/// What operators' commands speak with.
pub type Operator = OperatorClient<Connection>;

/// The client over a connection.
pub fn client(connection: Connection) -> Operator {
    OperatorClient::new(connection).max_decoding_message_size(64 << 20)
}

/// What a refusal means for the caller: wrong calls end with 2, the rest with 1.
pub fn told(status: &Status) -> anyhow::Error {
    match status.code() {
        Code::InvalidArgument | Code::NotFound | Code::FailedPrecondition => {
            WrongCall(status.message().to_string()).into()
        }
        _ if std::error::Error::source(status).is_some() => {
            anyhow!("the connection broke: {}", status_text(status))
        }
        _ => anyhow!("the coordinator says: {}", status_text(status)),
    }
}
