//! The certificate authority of a private cluster.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData as _,
};
use time::OffsetDateTime;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::CredentialError;
use crate::error_text::host_of_name;
use crate::files::{read_secret, write_atomic};
use crate::tls::certificates;

/// The lifetime of an authority: longer than that of its certificates.
const AUTHORITY_LIFETIME: Duration = Duration::from_secs(10 * 366 * 86_400);

/// The tolerated difference between clocks.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// A certificate and its private key, in PEM.
pub struct CertifiedKey {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl CertifiedKey {
    /// Writes `name.pem` and `name.key`.
    pub fn write(&self, folder: &Path, name: &str) -> Result<(), CredentialError> {
        for (ending, text, mode) in [("key", &self.key, 0o600), ("pem", &self.certificate, 0o644)] {
            let path = folder.join(format!("{name}.{ending}"));
            write_atomic(&path, text, mode)
                .map_err(|error| CredentialError(format!("cannot write {}: {error}", path.display())))?;
        }
        Ok(())
    }
}

/// The validity period of a certificate.
#[derive(Clone, Copy)]
pub struct Validity {
    from: SystemTime,
    until: SystemTime,
}

impl Validity {
    /// Starts now and lasts for `length`.
    pub fn lasting(length: Duration) -> Validity {
        let now = SystemTime::now();
        Validity { from: now - CLOCK_SKEW, until: now + length }
    }

    /// Ended a minute ago.
    pub fn expired() -> Validity {
        let now = SystemTime::now();
        Validity { from: now - CLOCK_SKEW, until: now - Duration::from_secs(60) }
    }
}

/// A certificate authority. Its name is derived from its key, so that different authorities have different names.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Creates an authority and its certificate.
    pub fn create() -> Result<(Authority, CertifiedKey), CredentialError> {
        let key = KeyPair::generate().map_err(|error| failed(&error))?;
        let parameters = parameters(&key);
        let certificate = parameters.self_signed(&key).map_err(|error| failed(&error))?.pem();
        let pair = CertifiedKey { certificate, key: key.serialize_pem() };
        Ok((Authority { issuer: Issuer::new(parameters, key) }, pair))
    }

    /// Opens an existing authority.
    pub fn open(certificate: &Path, key: &Path) -> Result<Authority, CredentialError> {
        let text = read_secret(key, "authority key")?;
        let pair = KeyPair::from_pem(&text)
            .map_err(|error| CredentialError(format!("{} is not a private key: {error}", key.display())))?;
        if with_certificate(certificate, |parsed| parsed.subject_public_key_info().to_vec())?
            != pair.subject_public_key_info()
        {
            return Err(CredentialError(format!(
                "{} is not the key of {}; restore the matching key, or choose an empty folder",
                key.display(),
                certificate.display()
            )));
        }
        Ok(Authority { issuer: Issuer::new(parameters(&pair), pair) })
    }

    /// Issues a server certificate for host names and addresses.
    pub fn issue_server(
        &self,
        hosts: &[String],
        validity: Validity,
    ) -> Result<CertifiedKey, CredentialError> {
        let parameters = CertificateParams::new(hosts).map_err(|error| {
            CredentialError(format!("invalid host names: {} ({error})", hosts.join(", ")))
        })?;
        self.sign(parameters, "agon coordinator", ExtendedKeyUsagePurpose::ServerAuth, validity)
    }

    /// Issues a client certificate.
    pub fn issue_client(&self, name: &str, validity: Validity) -> Result<CertifiedKey, CredentialError> {
        self.sign(CertificateParams::default(), name, ExtendedKeyUsagePurpose::ClientAuth, validity)
    }

    fn sign(
        &self,
        mut parameters: CertificateParams,
        name: &str,
        purpose: ExtendedKeyUsagePurpose,
        validity: Validity,
    ) -> Result<CertifiedKey, CredentialError> {
        let key = KeyPair::generate().map_err(|error| failed(&error))?;
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.not_before = OffsetDateTime::from(validity.from);
        parameters.not_after = OffsetDateTime::from(validity.until);
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![purpose];
        parameters.use_authority_key_identifier_extension = true;
        let certificate = parameters.signed_by(&key, &self.issuer).map_err(|error| failed(&error))?.pem();
        Ok(CertifiedKey { certificate, key: key.serialize_pem() })
    }
}

/// Returns the host names and addresses of a server certificate.
pub fn certificate_hosts(certificate: &Path) -> Result<Vec<String>, CredentialError> {
    // webpki lists the names of a certificate only in the error for a name that does not match.
    let mismatch = ServerName::try_from("mismatch.invalid").expect("a valid name");
    with_certificate(certificate, |parsed| match parsed.verify_is_valid_for_subject_name(&mismatch) {
        Err(webpki::Error::CertNotValidForName(names)) => {
            names.presented.iter().map(|name| host_of_name(name)).collect()
        }
        _ => Vec::new(),
    })
}

/// Rejects texts that are not a host name, a wildcard `*.` name or an IP address.
pub fn validate_host(host: &str) -> Result<(), CredentialError> {
    match ServerName::try_from(host.strip_prefix("*.").unwrap_or(host)) {
        Ok(_) => Ok(()),
        Err(_) => Err(CredentialError(format!(
            "`{host}` is not a host name or IP address; omit https:// and the port, as in agon.example or 10.0.0.7"
        ))),
    }
}

fn with_certificate<T>(
    path: &Path,
    read: impl FnOnce(&webpki::EndEntityCert<'_>) -> T,
) -> Result<T, CredentialError> {
    let chain = certificates(path)?;
    let parsed = webpki::EndEntityCert::try_from(&chain[0])
        .map_err(|error| CredentialError(format!("{} is not a certificate: {error}", path.display())))?;
    Ok(read(&parsed))
}

/// Returns the parameters of an authority's certificate; apart from the dates they depend on the key only.
fn parameters(key: &KeyPair) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    let digest = blake3::hash(key.public_key_raw()).to_hex();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, format!("agon authority {}", &digest[..8]));
    let validity = Validity::lasting(AUTHORITY_LIFETIME);
    parameters.not_before = OffsetDateTime::from(validity.from);
    parameters.not_after = OffsetDateTime::from(validity.until);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    parameters
}

fn failed(error: &rcgen::Error) -> CredentialError {
    CredentialError(format!("cannot create a certificate: {error}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn lists_hosts_and_rejects_a_foreign_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (authority, pair) = Authority::create().unwrap();
        pair.write(folder.path(), "ca").unwrap();
        let expected = ["localhost", "127.0.0.1", "::1", "agon.example", "*.agon.example", "10.0.0.7"];
        let expected = expected.map(str::to_string);
        let valid = Validity::lasting(Duration::from_secs(60));
        authority.issue_server(&expected, valid).unwrap().write(folder.path(), "coordinator").unwrap();
        assert_eq!(certificate_hosts(&path("coordinator.pem")).unwrap(), expected);
        assert!(certificate_hosts(&path("ca.pem")).unwrap().is_empty());
        assert!(Authority::open(&path("ca.pem"), &path("ca.key")).is_ok());
        Authority::create().unwrap().1.write(folder.path(), "other").unwrap();
        let error = Authority::open(&path("ca.pem"), &path("other.key")).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("is not the key of"), "{error}");
    }

    #[test]
    fn validates_host_names() {
        for host in ["agon.example", "agon", "10.0.0.7", "fe80::1", "*.agon.example"] {
            assert!(validate_host(host).is_ok(), "{host}");
        }
        for host in ["", "bad host", "https://agon.example", "agon.example:7400", "[::1]", "a/b", "*"] {
            assert!(validate_host(host).is_err(), "{host}");
        }
    }
}
