//! The certificates of a private cluster: an authority of its own, and what it signs.

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

/// How long an authority lasts: longer than what it signs.
const AUTHORITY_LIFETIME: Duration = Duration::from_secs(10 * 366 * 86_400);

/// Clocks may differ by so much.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// A certificate and its key, in the form of PEM.
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

impl Pair {
    /// Writes `name.pem` and `name.key`.
    pub fn write(&self, folder: &Path, name: &str) -> Result<(), CredentialError> {
        for (ending, text, mode) in [("key", &self.key, 0o600), ("pem", &self.certificate, 0o644)] {
            let path = folder.join(format!("{name}.{ending}"));
            write_atomic(&path, text, mode)
                .map_err(|error| CredentialError(format!("{} cannot be written: {error}", path.display())))?;
        }
        Ok(())
    }
}

/// From when to when a certificate is valid.
#[derive(Clone, Copy)]
pub struct Validity {
    from: SystemTime,
    until: SystemTime,
}

impl Validity {
    /// From now on, for so long.
    pub fn of(length: Duration) -> Validity {
        let now = SystemTime::now();
        Validity { from: now - CLOCK_SKEW, until: now + length }
    }

    /// Over since a minute.
    pub fn expired() -> Validity {
        let now = SystemTime::now();
        Validity { from: now - CLOCK_SKEW, until: now - Duration::from_secs(60) }
    }
}

/// An authority that signs certificates. Its name follows from its key, so that two of them are never taken for one.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new authority with its certificate.
    pub fn create() -> Result<(Authority, Pair), CredentialError> {
        let key = KeyPair::generate().map_err(|error| failed(&error))?;
        let parameters = parameters(&key);
        let certificate = parameters.self_signed(&key).map_err(|error| failed(&error))?.pem();
        let pair = Pair { certificate, key: key.serialize_pem() };
        Ok((Authority { issuer: Issuer::new(parameters, key) }, pair))
    }

    /// An authority that was created before, from its certificate and its key.
    pub fn open(certificate: &Path, key: &Path) -> Result<Authority, CredentialError> {
        let text = read_secret(key, "the authority's key")?;
        let pair = KeyPair::from_pem(&text).map_err(|error| {
            CredentialError(format!("{} is no key of an authority: {error}", key.display()))
        })?;
        if parsed(certificate, |parsed| parsed.subject_public_key_info().to_vec())?
            != pair.subject_public_key_info()
        {
            return Err(CredentialError(format!(
                "{} is not the key of {}; bring back the one that belongs to it, or choose an empty folder",
                key.display(),
                certificate.display()
            )));
        }
        Ok(Authority { issuer: Issuer::new(parameters(&pair), pair) })
    }

    /// A certificate for a coordinator that is called by any of these names and addresses.
    pub fn coordinator(&self, hosts: &[String], validity: Validity) -> Result<Pair, CredentialError> {
        let parameters = CertificateParams::new(hosts).map_err(|error| {
            CredentialError(format!("these are no names of hosts: {} ({error})", hosts.join(", ")))
        })?;
        self.sign(parameters, "agon coordinator", ExtendedKeyUsagePurpose::ServerAuth, validity)
    }

    /// A certificate for whoever calls a coordinator.
    pub fn client(&self, name: &str, validity: Validity) -> Result<Pair, CredentialError> {
        self.sign(CertificateParams::default(), name, ExtendedKeyUsagePurpose::ClientAuth, validity)
    }

    fn sign(
        &self,
        mut parameters: CertificateParams,
        name: &str,
        purpose: ExtendedKeyUsagePurpose,
        validity: Validity,
    ) -> Result<Pair, CredentialError> {
        let key = KeyPair::generate().map_err(|error| failed(&error))?;
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.not_before = OffsetDateTime::from(validity.from);
        parameters.not_after = OffsetDateTime::from(validity.until);
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![purpose];
        parameters.use_authority_key_identifier_extension = true;
        let certificate = parameters.signed_by(&key, &self.issuer).map_err(|error| failed(&error))?.pem();
        Ok(Pair { certificate, key: key.serialize_pem() })
    }
}

/// The names and addresses that a coordinator's certificate is for.
pub fn hosts(certificate: &Path) -> Result<Vec<String>, CredentialError> {
    // Whoever asks for a name that it cannot have is told those that it has.
    let nobody = ServerName::try_from("nobody.invalid").expect("it is a name");
    parsed(certificate, |parsed| match parsed.verify_is_valid_for_subject_name(&nobody) {
        Err(webpki::Error::CertNotValidForName(names)) => {
            names.presented.iter().map(|name| host_of_name(name)).collect()
        }
        _ => Vec::new(),
    })
}

/// Whether a coordinator can be called so: a name, one with `*.` before it, or an address.
pub fn check_host(host: &str) -> Result<(), CredentialError> {
    match ServerName::try_from(host.strip_prefix("*.").unwrap_or(host)) {
        Ok(_) => Ok(()),
        Err(_) => Err(CredentialError(format!(
            "`{host}` is no name of a host and no address; give it without https:// and without a port, as \
             agon.example or 10.0.0.7"
        ))),
    }
}

fn parsed<T>(path: &Path, look: impl FnOnce(&webpki::EndEntityCert<'_>) -> T) -> Result<T, CredentialError> {
    let chain = certificates(path)?;
    let parsed = webpki::EndEntityCert::try_from(&chain[0])
        .map_err(|error| CredentialError(format!("{} is no certificate: {error}", path.display())))?;
    Ok(look(&parsed))
}

/// What an authority's certificate says, for one key always the same but for its dates.
fn parameters(key: &KeyPair) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    let digest = blake3::hash(key.public_key_raw()).to_hex();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, format!("agon authority {}", &digest[..8]));
    let validity = Validity::of(AUTHORITY_LIFETIME);
    parameters.not_before = OffsetDateTime::from(validity.from);
    parameters.not_after = OffsetDateTime::from(validity.until);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    parameters
}

fn failed(error: &rcgen::Error) -> CredentialError {
    CredentialError(format!("no certificate can be made: {error}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_says_what_it_is_for_and_a_foreign_key_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (authority, pair) = Authority::create().unwrap();
        pair.write(folder.path(), "ca").unwrap();
        let called = ["localhost", "127.0.0.1", "::1", "agon.example", "*.agon.example", "10.0.0.7"];
        let called = called.map(str::to_string);
        let valid = Validity::of(Duration::from_secs(60));
        authority.coordinator(&called, valid).unwrap().write(folder.path(), "coordinator").unwrap();
        assert_eq!(hosts(&path("coordinator.pem")).unwrap(), called);
        assert!(hosts(&path("ca.pem")).unwrap().is_empty());
        assert!(Authority::open(&path("ca.pem"), &path("ca.key")).is_ok());
        Authority::create().unwrap().1.write(folder.path(), "other").unwrap();
        let error = Authority::open(&path("ca.pem"), &path("other.key")).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("is not the key of"), "{error}");
    }

    #[test]
    fn what_no_coordinator_can_be_called_is_refused() {
        for host in ["agon.example", "agon", "10.0.0.7", "fe80::1", "*.agon.example"] {
            assert!(check_host(host).is_ok(), "{host}");
        }
        for host in ["", "bad host", "https://agon.example", "agon.example:7400", "[::1]", "a/b", "*"] {
            assert!(check_host(host).is_err(), "{host}");
        }
    }
}
