//! The connection of operator commands to a coordinator.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use agon_games::printable::printable_lines;
use agon_proto::Printable;
use agon_proto::v1::operator_client::OperatorClient;
use agon_transport::{ClientCredentials, ConnectError, Connection, Connector, status_text};
use anyhow::anyhow;
use clap::Args;
use tonic::{Code, Response, Status};

use super::block_on;
use crate::fail::{UsageError, note};
use crate::settings::Layers;

/// The default address of a coordinator.
const DEFAULT_URL: &str = "http://127.0.0.1:7400";

/// The time within which a coordinator accepts a token that was created just before.
const FRESH_TOKEN: Duration = Duration::from_millis(1500);

/// The time between two attempts with a token that is not accepted yet.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// The heading of the options in help. Each option names it: `next_help_heading` would also move the options that follow
/// in the commands that include these.
const HEADING: &str = "Connection";

/// The address of a coordinator, and the credentials for it.
#[derive(Args, Clone)]
pub struct Address {
    /// Coordinator URL; https:// enables TLS [env: AGON_COORDINATOR] [default: http://127.0.0.1:7400]
    #[arg(long, help_heading = HEADING, value_name = "URL")]
    coordinator: Option<String>,
    /// Authority of the server certificate; ca.pem of `agon certs` [env: AGON_TLS_CA]
    #[arg(long, help_heading = HEADING, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Client certificate [env: AGON_TLS_CERT]
    #[arg(long, help_heading = HEADING, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Key of the client certificate [env: AGON_TLS_KEY]
    #[arg(long, help_heading = HEADING, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// File with a token of `agon token create` [env: AGON_TOKEN_FILE]
    #[arg(long, help_heading = HEADING, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Configuration file; flags and variables override it [env: AGON_CONFIG]
    #[arg(long, help_heading = HEADING, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl Address {
    /// Merges the layers into a connector.
    pub fn connector(self, layers: &Layers) -> anyhow::Result<Connector> {
        let text = |text: &str| Ok(text.to_string());
        let url = layers.value_or("client.coordinator", self.coordinator, text, DEFAULT_URL.to_string())?;
        let credentials = ClientCredentials {
            authority: layers.path("client.tls_ca", self.tls_ca)?,
            certificate: layers.path("client.tls_cert", self.tls_cert)?,
            key: layers.path("client.tls_key", self.tls_key)?,
            token: layers.path("client.token_file", self.token_file)?,
        };
        let connector = Connector::new(&url, credentials).map_err(|error| UsageError(error.to_string()))?;
        if connector.sends_token_unencrypted() {
            note("warning: the token crosses the network without TLS, where others can read it");
        }
        Ok(connector.with(|endpoint| endpoint.connect_timeout(Duration::from_secs(5))))
    }

    /// Connects an operator client.
    pub async fn connect(self) -> anyhow::Result<Operator> {
        self.connection().await.map(client)
    }

    /// Connects, makes one call and returns its answer, with printable texts.
    pub fn ask<T: Printable>(
        self,
        ask: impl AsyncFn(&mut Operator) -> Result<Response<T>, Status>,
    ) -> anyhow::Result<T> {
        block_on(async { Ok(call(&mut self.connect().await?, ask).await?.printable()) })
    }

    /// Connects to the coordinator.
    pub async fn connection(self) -> anyhow::Result<Connection> {
        let layers = Layers::open(self.config.as_deref())?;
        self.connector(&layers)?.connect().await.map_err(explained)
    }

    /// Connects an operator client. Returns none if no layer names a coordinator and none answers at the default address.
    pub async fn connect_if_any(self) -> anyhow::Result<Option<Operator>> {
        let layers = Layers::open(self.config.as_deref())?;
        let text = |text: &str| Ok(text.to_string());
        let named = layers.value("client.coordinator", self.coordinator.clone(), text)?;
        match self.connector(&layers)?.connect().await {
            Err(ConnectError::Unreachable { .. }) if named.is_none() => Ok(None),
            connected => connected.map(|connection| Some(client(connection))).map_err(explained),
        }
    }
}

/// Returns the error with its remedy.
fn explained(error: ConnectError) -> anyhow::Error {
    match error {
        ConnectError::Unreachable { url, .. } => anyhow!(
            "no coordinator answers at {url}; start one with `agon coordinator`, or give its address with --coordinator"
        ),
        ConnectError::Credentials(reason) => UsageError(reason).into(),
        other => other.into(),
    }
}

/// The client of operator commands.
pub type Operator = OperatorClient<Connection>;

/// Creates an operator client over a connection.
pub fn client(connection: Connection) -> Operator {
    OperatorClient::new(connection).max_decoding_message_size(64 << 20)
}

/// Makes a call. Repeats it while a token may be too new: the coordinator reads its file of tokens once a second.
pub async fn call<T>(
    operator: &mut Operator,
    call: impl AsyncFn(&mut Operator) -> Result<Response<T>, Status>,
) -> anyhow::Result<T> {
    let start = Instant::now();
    loop {
        match call(operator).await {
            Err(status) if status.code() == Code::Unauthenticated && start.elapsed() < FRESH_TOKEN => {
                tokio::time::sleep(RETRY_DELAY).await;
            }
            answer => return answer.map(Response::into_inner).map_err(|status| rejection(&status)),
        }
    }
}

/// Turns the status of a failed call into an error: a usage error if the request was wrong, rather than refused in the
/// present state.
pub fn rejection(status: &Status) -> anyhow::Error {
    match status.code() {
        Code::InvalidArgument | Code::NotFound => UsageError(printable_lines(status.message())).into(),
        Code::FailedPrecondition => anyhow!(printable_lines(status.message())),
        _ if std::error::Error::source(status).is_some() => {
            anyhow!("connection lost: {}", status_text(status))
        }
        _ => anyhow!("the coordinator refused: {}", status_text(status)),
    }
}
