//! How one comes in: a connection to a coordinator with everything that it asks for.
//!
//! Files are read at every connection, so that a certificate that was renewed or a token that was replaced counts from
//! the next one on.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tower_service::Service;

use crate::files::read_secret;
use crate::sentences::{cause, for_client};
use crate::tls::client_config;
use crate::tokens::PREFIX;

/// What a client shows, and by what it knows the coordinator.
#[derive(Clone, Default, Debug)]
pub struct Papers {
    /// The authority of the coordinator's certificate.
    pub authority: Option<PathBuf>,
    /// A certificate, where the coordinator asks for one.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
    /// A file with a token, where the coordinator asks for one.
    pub token: Option<PathBuf>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// A setting or a file makes no sense.
    #[error("{0}")]
    Papers(String),
    /// Somebody answers, and the two do not come together.
    #[error("no connection to {url}: {reason}")]
    Stranger {
        /// Where.
        url: String,
        /// A sentence with its remedy.
        reason: String,
    },
    /// Nobody answers.
    #[error("nobody answers at {url}: {reason}")]
    Silence {
        /// Where.
        url: String,
        /// What the system says.
        reason: String,
    },
}

/// What became of a connection, as soon as anybody knows: an error of the bytes may kill it while a call is only being
/// made, which then hears of a closed connection and nothing else.
type Fate = Arc<OnceLock<String>>;

/// A connection that shows its token with every call.
#[derive(Clone)]
pub struct Connection {
    channel: Channel,
    token: Option<HeaderValue>,
    fate: Fate,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Service<Request<Body>> for Connection {
    type Response = Response<Body>;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Failure>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.channel.poll_ready(cx).map_err(|error| explained(error, &self.fate))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if let Some(token) = &self.token {
            request.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        let (answer, fate) = (self.channel.call(request), Arc::clone(&self.fate));
        Box::pin(async move { answer.await.map_err(|error| explained(error, &fate)) })
    }
}

fn explained(error: tonic::transport::Error, fate: &Fate) -> Failure {
    match fate.get() {
        Some(sentence) => Box::new(Sentence(sentence.clone())),
        None => error.into(),
    }
}

/// Where a coordinator is, and what to show it.
#[derive(Clone, Debug)]
pub struct Dialer {
    endpoint: Endpoint,
    papers: Papers,
}

impl From<Endpoint> for Dialer {
    /// A coordinator that asks for nothing.
    fn from(endpoint: Endpoint) -> Dialer {
        Dialer { endpoint, papers: Papers::default() }
    }
}

impl Dialer {
    /// A coordinator by its address; one without a scheme is meant without TLS, unless there are papers of it.
    pub fn new(address: &str, papers: Papers) -> Result<Dialer, DialError> {
        let wrong = |reason: String| Err(DialError::Papers(reason));
        let secure = papers.authority.is_some();
        let url = if address.contains("://") {
            address.to_string()
        } else {
            format!("{}://{address}", if secure { "https" } else { "http" })
        };
        let Ok(endpoint) = Endpoint::from_shared(url) else {
            return wrong(format!(
                "`{address}` is no address; give one as http://host:7400 or https://host:7400"
            ));
        };
        let (scheme, host) = (endpoint.uri().scheme_str(), endpoint.uri().host());
        match (scheme, host) {
            (_, None) => return wrong(format!("`{address}` names no host; give one as https://host:7400")),
            (Some("https"), _) if !secure => {
                return wrong(
                    "an https:// coordinator needs --tls-ca, the ca.pem of `agon certs`, to know it by"
                        .to_string(),
                );
            }
            (Some("http"), _) if secure || papers.certificate.is_some() || papers.key.is_some() => {
                return wrong(format!(
                    "certificates do nothing over `{address}`; say https://, or leave out --tls-ca, --tls-cert and \
                     --tls-key"
                ));
            }
            (Some("http" | "https"), _) => {}
            _ => return wrong(format!("`{address}` is neither http:// nor https://")),
        }
        Ok(Dialer { endpoint, papers })
    }

    /// Changes how the connection is kept.
    pub fn with(self, change: impl FnOnce(Endpoint) -> Endpoint) -> Dialer {
        Dialer { endpoint: change(self.endpoint), papers: self.papers }
    }

    /// Where the coordinator is.
    pub fn url(&self) -> String {
        self.endpoint.uri().to_string().trim_end_matches('/').to_string()
    }

    /// Whether a token would cross a network that others can read.
    pub fn shows_token_openly(&self) -> bool {
        let host = self.endpoint.uri().host().unwrap_or_default().trim_matches(['[', ']']);
        let near = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        self.papers.token.is_some() && self.papers.authority.is_none() && !near
    }

    /// Whether every file can be read and makes sense.
    pub fn check(&self) -> Result<(), DialError> {
        token(&self.papers).and(self.connector(&Fate::default()).map(|_| ())).map_err(DialError::Papers)
    }

    /// Connects.
    pub async fn connect(&self) -> Result<Connection, DialError> {
        let papers = |reason: String| DialError::Papers(reason);
        let token = token(&self.papers).map_err(papers)?;
        let fate = Fate::default();
        let connector = self.connector(&fate).map_err(papers)?;
        let channel = self.endpoint.connect_with_connector(connector).await;
        let channel = channel.map_err(|error| {
            let (url, reason) = (self.url(), cause(&error));
            if is_sentence(&error) {
                DialError::Stranger { url, reason }
            } else {
                DialError::Silence { url, reason }
            }
        })?;
        Ok(Connection { channel, token, fate })
    }

    fn connector(&self, fate: &Fate) -> Result<Connector, String> {
        let fate = Arc::clone(fate);
        if self.papers.authority.is_none() {
            return Ok(Connector { tls: None, fate });
        }
        let config = client_config(&self.papers).map_err(|error| error.0)?;
        let host = self.endpoint.uri().host().unwrap_or_default().trim_matches(['[', ']']).to_string();
        let name =
            ServerName::try_from(host.clone()).map_err(|_| format!("`{host}` is no name of a host"))?;
        Ok(Connector { tls: Some((config, name)), fate })
    }
}

/// Whether an error was made into a sentence where it happened.
fn is_sentence(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if inner.and_then(|inner| inner.downcast_ref::<Sentence>()).is_some() {
            return true;
        }
        next = error.source();
    }
    false
}

/// A sentence in the place of an error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Sentence(String);

fn told(error: io::Error) -> io::Error {
    match for_client(&error) {
        Some(sentence) => io::Error::new(error.kind(), Sentence(sentence)),
        None => error,
    }
}

/// Whatever is longer is another file.
const LONGEST_TOKEN: usize = 1024;

/// The header that shows a token.
fn token(papers: &Papers) -> Result<Option<HeaderValue>, String> {
    let Some(path) = &papers.token else { return Ok(None) };
    let text = read_secret(path, "the token file").map_err(|error| error.0)?;
    let secret = text.trim();
    let is_token = secret.len() <= LONGEST_TOKEN && secret.starts_with(PREFIX);
    let header = HeaderValue::try_from(format!("Bearer {secret}"));
    match header {
        Ok(mut header) if is_token && !secret.contains(char::is_whitespace) => {
            header.set_sensitive(true);
            Ok(Some(header))
        }
        _ => Err(format!(
            "{} has no token: it must hold the one line that `agon token create` printed, which begins with {PREFIX}",
            path.display()
        )),
    }
}

/// Makes the connection of a channel.
struct Connector {
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    fate: Fate,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Line>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Line>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (tls, fate) = (self.tls.clone(), Arc::clone(&self.fate));
        Box::pin(async move {
            let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_string();
            let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            let bytes = match tls {
                None => Bytes::Plain(stream),
                Some((config, name)) => {
                    let stream = TlsConnector::from(config).connect(name, stream).await;
                    Bytes::Secure(Box::new(stream.map_err(|error| told(hung_up(error)))?))
                }
            };
            Ok(TokioIo::new(Line { bytes, heard: false, fate }))
        })
    }
}

/// The bytes of a connection; what goes wrong is said in sentences.
struct Line {
    bytes: Bytes,
    /// Whether anything was answered.
    heard: bool,
    fate: Fate,
}

enum Bytes {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

/// The first byte of what TLS says to somebody who does not speak it: an alert.
const ALERT: u8 = 0x15;
/// The first byte of what a coordinator says: that of the length of a frame, which is short.
const FIRST: u8 = 0;

fn sentence(kind: io::ErrorKind, text: &str) -> io::Error {
    io::Error::new(kind, Sentence(text.to_string()))
}

/// What it means that somebody took the connection and hung up without a word.
fn hung_up(error: io::Error) -> io::Error {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    match error.kind() {
        kind @ (UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe) => sentence(
            kind,
            "whoever is there hung up without a word: the coordinator has as many connections as it takes \
             (--max-connections), or it has just ended; try again in a moment",
        ),
        _ => error,
    }
}

impl AsyncRead for Line {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Line { bytes, heard, fate } = self.get_mut();
        let before = buffer.filled().len();
        let read = match bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Bytes::Secure(stream) => Pin::new(stream).poll_read(cx, buffer).map_err(told),
        };
        let read = match (read, buffer.filled().get(before)) {
            (Poll::Ready(Ok(())), Some(&ALERT)) if !*heard && matches!(bytes, Bytes::Plain(_)) => {
                Poll::Ready(Err(sentence(
                    io::ErrorKind::InvalidData,
                    "the coordinator speaks TLS; say https:// and give --tls-ca, the ca.pem of `agon certs`",
                )))
            }
            (Poll::Ready(Ok(())), Some(&first)) if !*heard && first != FIRST => Poll::Ready(Err(sentence(
                io::ErrorKind::InvalidData,
                "whoever answers there is no coordinator; say where one is with --coordinator, such as \
                 http://127.0.0.1:7400",
            ))),
            (Poll::Ready(Ok(())), None) if !*heard => {
                Poll::Ready(Err(hung_up(io::ErrorKind::UnexpectedEof.into())))
            }
            (Poll::Ready(Err(error)), _) if !*heard => Poll::Ready(Err(hung_up(error))),
            (read, first) => {
                *heard |= first.is_some();
                read
            }
        };
        if let Poll::Ready(Err(error)) = &read {
            let _ = fate.set(error.to_string());
        }
        read
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_write(cx, data),
            Bytes::Secure(stream) => Pin::new(stream).poll_write(cx, data),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Bytes::Secure(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Bytes::Secure(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, data),
            Bytes::Secure(stream) => Pin::new(stream).poll_write_vectored(cx, data),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.bytes {
            Bytes::Plain(stream) => stream.is_write_vectored(),
            Bytes::Secure(stream) => stream.is_write_vectored(),
        }
    }
}
