//! The location of a dataset: a folder, or a prefix of an object store such as `s3://bucket/prefix`.
//!
//! The store's library reads credentials, region and endpoint from its usual environment variables. The feature `cloud`
//! adds the stores; without it their addresses parse and are rejected.

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use object_store::ObjectStore;

/// The location of a dataset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Location {
    /// A folder on this machine.
    Folder(PathBuf),
    /// A prefix of an object store.
    Store(Address),
}

/// A prefix of an object store: `scheme://bucket/prefix`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// The kind of store.
    pub scheme: String,
    /// The bucket.
    pub bucket: String,
    /// The prefix of all names, without slashes at its ends; may be empty.
    pub prefix: String,
}

/// The supported schemes.
#[cfg(feature = "cloud")]
const SCHEMES: [&str; 3] = ["s3", "gs", "az"];

/// Why a location cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocationError {
    /// The program was built without object stores.
    #[error("{0} needs object stores, and this agon was built without them: build with --features cloud")]
    NotBuilt(Address),
    /// The address is invalid.
    #[error("{location} is not a valid location for a dataset: {reason}")]
    Invalid {
        /// The address.
        location: Address,
        /// The reason.
        reason: String,
    },
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Location {
        let address = path.to_str().and_then(|text| text.split_once("://"));
        match address {
            Some((scheme, rest)) => {
                let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
                Location::Store(Address {
                    scheme: scheme.to_ascii_lowercase(),
                    bucket: bucket.to_string(),
                    prefix: prefix.trim_matches('/').to_string(),
                })
            }
            None => Location::Folder(path.to_path_buf()),
        }
    }
}

impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Location {
        Location::from(path.as_path())
    }
}

impl From<&PathBuf> for Location {
    fn from(path: &PathBuf) -> Location {
        Location::from(path.as_path())
    }
}

impl From<&Location> for Location {
    fn from(location: &Location) -> Location {
        location.clone()
    }
}

impl FromStr for Location {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Location, Infallible> {
        Ok(Location::from(Path::new(text)))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Folder(folder) => folder.display().fmt(f),
            Location::Store(address) => address.fmt(f),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

impl Address {
    /// Opens the store without contacting it.
    #[cfg(feature = "cloud")]
    pub fn open(&self) -> Result<Arc<dyn ObjectStore>, LocationError> {
        let wrong = |reason: String| LocationError::Invalid { location: self.clone(), reason };
        if self.bucket.is_empty() {
            return Err(wrong("it has no bucket; write scheme://bucket/prefix".to_string()));
        }
        let prefix =
            object_store::path::Path::parse(&self.prefix).map_err(|error| wrong(error.to_string()))?;
        let store = self.build().map_err(|error| wrong(error.to_string()))?.ok_or_else(|| {
            wrong(format!("`{}` is not a supported store; use one of {}", self.scheme, SCHEMES.join(", ")))
        })?;
        Ok(Arc::new(object_store::prefix::PrefixStore::new(store, prefix)))
    }

    /// Builds the store, if the scheme is supported.
    #[cfg(feature = "cloud")]
    fn build(&self) -> object_store::Result<Option<Arc<dyn ObjectStore>>> {
        use object_store::{RetryConfig, aws, azure, gcp};
        // Gives up soon on a store that does not answer; the caller decides whether to retry.
        let retry = RetryConfig {
            max_retries: 4,
            retry_timeout: std::time::Duration::from_secs(30),
            ..RetryConfig::default()
        };
        let bucket = self.bucket.as_str();
        Ok(match self.scheme.as_str() {
            "s3" => {
                let builder = aws::AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
                Some(Arc::new(builder.build()?))
            }
            "gs" => {
                let builder =
                    gcp::GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket).with_retry(retry);
                Some(Arc::new(builder.build()?))
            }
            "az" => {
                let builder =
                    azure::MicrosoftAzureBuilder::from_env().with_container_name(bucket).with_retry(retry);
                Some(Arc::new(builder.build()?))
            }
            _ => None,
        })
    }

    /// Rejects the address: this build has no object stores.
    #[cfg(not(feature = "cloud"))]
    pub fn open(&self) -> Result<Arc<dyn ObjectStore>, LocationError> {
        Err(LocationError::NotBuilt(self.clone()))
    }
}

/// Formats an error of a store in one line: the message and code of its XML answer, or the shortened text.
pub fn one_line(error: &object_store::Error) -> String {
    let text = error.to_string();
    let between = |open: &str, close: &str| {
        let rest = text.split_once(open)?.1;
        rest.split_once(close).map(|(inner, _)| inner.to_string())
    };
    match (between("<Message>", "</Message>"), between("<Code>", "</Code>")) {
        (Some(message), Some(code)) => format!("{message} ({code})"),
        (Some(message), None) => message,
        _ => text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_ANSWER_CHARS).collect(),
    }
}

/// The most characters of an answer that is not XML.
const MAX_ANSWER_CHARS: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_store_errors_in_one_line() {
        let line = |text: &str| {
            one_line(&object_store::Error::Generic { store: "S3", source: text.to_string().into() })
        };
        let answer = "404:\n<Error><Code>NoSuchBucket</Code><Message>There is none</Message></Error>";
        assert_eq!(line(answer), "There is none (NoSuchBucket)");
        assert_eq!(line("no\n route"), "Generic S3 error: no route");
        assert_eq!(line(&"x".repeat(1000)).chars().count(), MAX_ANSWER_CHARS);
    }

    #[test]
    fn parses_folders_and_addresses() {
        for folder in ["agon-data", "/var/agon", "a:b/c", "s3:/x"] {
            let location: Location = folder.parse().unwrap();
            assert_eq!(location, Location::Folder(PathBuf::from(folder)));
            assert_eq!(location.to_string(), folder);
        }
        for (text, bucket, prefix, shown) in [
            ("s3://b/p/q", "b", "p/q", "s3://b/p/q"),
            ("S3://b/p/q/", "b", "p/q", "s3://b/p/q"),
            ("s3://b", "b", "", "s3://b"),
            ("s3://b/", "b", "", "s3://b"),
            ("s3:///p", "", "p", "s3:///p"),
        ] {
            let location: Location = text.parse().unwrap();
            let Location::Store(address) = &location else { panic!("{text} is an address") };
            assert_eq!(
                (address.scheme.as_str(), address.bucket.as_str(), address.prefix.as_str()),
                ("s3", bucket, prefix)
            );
            assert_eq!(location.to_string(), shown);
        }
    }

    #[test]
    fn rejects_unusable_addresses_with_a_remedy() {
        let error = |text: &str| match text.parse().unwrap() {
            Location::Store(address) => address.open().unwrap_err().to_string(),
            Location::Folder(_) => panic!("{text} is an address"),
        };
        if cfg!(feature = "cloud") {
            assert!(error("s3:///prefix").contains("it has no bucket"));
            assert!(error("ftp://host/x").contains("`ftp` is not a supported store; use one of s3, gs, az"));
            assert!(error("s3://b/a//b").contains("is not a valid location for a dataset"));
        } else {
            assert!(error("s3://b/p").contains("build with --features cloud"));
        }
    }
}
