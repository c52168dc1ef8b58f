//! The certificates of a private cluster: an authority of its own, and what it signs.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use time::OffsetDateTime;

use crate::DoorError;
use crate::files::{read_secret, write_whole};

/// How long an authority lasts: longer than what it signs.
const AUTHORITY: Duration = Duration::from_secs(10 * 366 * 86_400);

/// Clocks may differ by so much.
const BEFORE: Duration = Duration::from_secs(3600);

/// A certificate and its key, in the form of PEM.
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

impl Pair {
    /// Writes `name.pem` and `name.key`.
    pub fn write(&self, folder: &Path, name: &str) -> Result<(), DoorError> {
        for (ending, text, mode) in [("key", &self.key, 0o600), ("pem", &self.certificate, 0o644)] {
            let path = folder.join(format!("{name}.{ending}"));
            write_whole(&path, text, mode)
                .map_err(|error| DoorError(format!("{} cannot be written: {error}", path.display())))?;
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
        Validity { from: now - BEFORE, until: now + length }
    }

    /// Over since a minute.
    pub fn expired() -> Validity {
        let now = SystemTime::now();
        Validity { from: now - BEFORE, until: now - Duration::from_secs(60) }
    }
}

/// An authority that signs certificates. Its name follows from its key, so that two of them are never taken for one.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new authority with its certificate.
    pub fn create() -> Result<(Authority, Pair), DoorError> {
        let key = KeyPair::generate().map_err(|error| failed(&error))?;
        let parameters = parameters(&key);
        let certificate = parameters.self_signed(&key).map_err(|error| failed(&error))?.pem();
        let pair = Pair { certificate, key: key.serialize_pem() };
        Ok((Authority { issuer: Issuer::new(parameters, key) }, pair))
    }

    /// An authority that was created before, from its key.
    pub fn open(key: &Path) -> Result<Authority, DoorError> {
        let text = read_secret(key, "the authority's key")?;
        let pair = KeyPair::from_pem(&text)
            .map_err(|error| DoorError(format!("{} is no key of an authority: {error}", key.display())))?;
        Ok(Authority { issuer: Issuer::new(parameters(&pair), pair) })
    }

    /// A certificate for a coordinator that is called by any of these names and addresses.
    pub fn coordinator(&self, hosts: &[String], validity: Validity) -> Result<Pair, DoorError> {
        let parameters = CertificateParams::new(hosts).map_err(|error| {
            DoorError(format!("these are no names of hosts: {} ({error})", hosts.join(", ")))
        })?;
        self.sign(parameters, "agon coordinator", ExtendedKeyUsagePurpose::ServerAuth, validity)
    }

    /// A certificate for whoever calls a coordinator.
    pub fn client(&self, name: &str, validity: Validity) -> Result<Pair, DoorError> {
        self.sign(CertificateParams::default(), name, ExtendedKeyUsagePurpose::ClientAuth, validity)
    }

    fn sign(
        &self,
        mut parameters: CertificateParams,
        name: &str,
        purpose: ExtendedKeyUsagePurpose,
        validity: Validity,
    ) -> Result<Pair, DoorError> {
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

/// What an authority's certificate says, for one key always the same but for its dates.
fn parameters(key: &KeyPair) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    let digest = blake3::hash(key.public_key_raw()).to_hex();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, format!("agon authority {}", &digest[..8]));
    let validity = Validity::of(AUTHORITY);
    parameters.not_before = OffsetDateTime::from(validity.from);
    parameters.not_after = OffsetDateTime::from(validity.until);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    parameters
}

fn failed(error: &rcgen::Error) -> DoorError {
    DoorError(format!("no certificate can be made: {error}"))
}
