//! TLS 1.3 on both sides, from files that are read again when they change. Sessions are never resumed, so that every
//! connection shows its certificate.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::{ClientConfig, ConfigBuilder, RootCertStore, ServerConfig, client};

use crate::CredentialError;
use crate::caller::Caller;
use crate::connector::ClientCredentials;
use crate::files::{WatchedFiles, read, read_secret};

/// HTTP/2, by its name in a handshake.
const PROTOCOL: &[u8] = b"h2";

/// What a coordinator shows, and whom it asks for a certificate.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Its certificate, and those between it and its authority.
    pub certificate: PathBuf,
    /// The key of its certificate.
    pub key: PathBuf,
    /// The authority of clients' certificates; without it none are asked for.
    pub client_authority: Option<PathBuf>,
}

impl TlsFiles {
    fn load(&self) -> Result<Arc<ServerConfig>, CredentialError> {
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| CredentialError(error.to_string()))?;
        let builder = match &self.client_authority {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(authorities(path)?), provider)
                        .build()
                        .map_err(|error| CredentialError(format!("{}: {error}", path.display())))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let (chain, key) = identity(&self.certificate, &self.key)?;
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| misfit(&self.certificate, &self.key, &error))?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

/// The coordinator's side while it runs.
pub(crate) struct ServerTls {
    files: TlsFiles,
    watched: Mutex<WatchedFiles>,
    config: Mutex<Arc<ServerConfig>>,
}

impl ServerTls {
    /// Reads the files.
    pub(crate) fn open(files: TlsFiles) -> Result<ServerTls, CredentialError> {
        let mut paths = vec![files.certificate.clone(), files.key.clone()];
        paths.extend(files.client_authority.clone());
        let watched = Mutex::new(WatchedFiles::new(paths));
        Ok(ServerTls { config: Mutex::new(files.load()?), watched, files })
    }

    /// Whether clients are asked for certificates.
    pub(crate) fn asks_for_certificates(&self) -> bool {
        self.files.client_authority.is_some()
    }

    /// What the next handshake is made with.
    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the files again if they have changed. Whether they have; files that make no sense, as in the middle of a
    /// change, leave everything as it was.
    pub(crate) fn refresh(&self) -> Result<bool, CredentialError> {
        if !self.watched.lock().unwrap_or_else(PoisonError::into_inner).changed() {
            return Ok(false);
        }
        let config = self.files.load()?;
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(true)
    }
}

/// The client's side, as the files are now.
pub(crate) fn client_config(credentials: &ClientCredentials) -> Result<Arc<ClientConfig>, CredentialError> {
    let Some(authority) = &credentials.authority else {
        return Err(CredentialError(
            "an https:// coordinator needs --tls-ca, the ca.pem of `agon certs`, to know it by".to_string(),
        ));
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| CredentialError(error.to_string()))?
        .with_root_certificates(authorities(authority)?);
    let mut config = with_identity(builder, credentials)?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.resumption = client::Resumption::disabled();
    Ok(Arc::new(config))
}

fn with_identity(
    builder: ConfigBuilder<ClientConfig, client::WantsClientCert>,
    credentials: &ClientCredentials,
) -> Result<ClientConfig, CredentialError> {
    match (&credentials.certificate, &credentials.key) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(certificate), Some(key)) => {
            let (chain, secret) = identity(certificate, key)?;
            builder.with_client_auth_cert(chain, secret).map_err(|error| misfit(certificate, key, &error))
        }
        _ => Err(CredentialError("--tls-cert and --tls-key belong together; give both or none".to_string())),
    }
}

fn misfit(certificate: &Path, key: &Path, error: &tokio_rustls::rustls::Error) -> CredentialError {
    CredentialError(format!("{} and {} do not go together: {error}", certificate.display(), key.display()))
}

fn identity(
    certificate: &Path,
    key: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), CredentialError> {
    let chain = certificates(certificate)?;
    let text = read_secret(key, "the key")?;
    let key = PrivateKeyDer::from_pem_slice(text.as_bytes())
        .map_err(|_| CredentialError(format!("{} has no private key in the form of PEM", key.display())))?;
    Ok((chain, key))
}

/// The certificates of a file, of which there is at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CredentialError> {
    let text = read(path, "the certificate")?;
    let list: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let list = list.unwrap_or_default();
    if list.is_empty() {
        return Err(CredentialError(format!("{} has no certificate in the form of PEM", path.display())));
    }
    Ok(list)
}

fn authorities(path: &Path) -> Result<RootCertStore, CredentialError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| CredentialError(format!("{} is no authority: {error}", path.display())))?;
    }
    Ok(roots)
}

/// Whoever showed this certificate, by its subject.
pub(crate) fn caller(certificate: &CertificateDer<'_>) -> Caller {
    let subject = webpki::EndEntityCert::try_from(certificate).map(|parsed| parsed.subject().to_vec());
    let subject = subject.unwrap_or_else(|_| certificate.to_vec());
    let digest = blake3::hash(&subject).to_hex();
    let name = common_name(&subject).unwrap_or("unnamed");
    // Subjects with the same name and something else besides are told apart.
    Caller::certificate(format!("{name} {}", &digest[..8]))
}

/// The common name in a subject: behind its object identifier, 2.5.4.3, stand a tag, a length and the text.
fn common_name(subject: &[u8]) -> Option<&str> {
    const COMMON_NAME_OID: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];
    let slot = subject.windows(COMMON_NAME_OID.len()).position(|window| window == COMMON_NAME_OID)?;
    let (&[_tag, length], rest) = subject.get(slot + COMMON_NAME_OID.len()..)?.split_first_chunk()?;
    let text = rest.get(..usize::from(length)).filter(|_| length < 0x80)?;
    std::str::from_utf8(text).ok().filter(|text| !text.chars().any(char::is_control))
}
