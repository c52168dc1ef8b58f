//! Where a dataset lies: a folder, or a prefix of an object store.
//!
//! `s3://bucket/prefix` is the way to write the second. Credentials, region and endpoint come from the variables that
//! every program for that store reads, through the store's own library. Which stores there are is a matter of how the
//! program was built: the feature `cloud` brings them, and without it their names are understood and refused.

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use object_store::ObjectStore;

/// A place for a dataset.
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
    /// What all names begin with, without slashes at its ends; may be empty.
    pub prefix: String,
}

/// The kinds of stores, and the builder's variables for each.
#[cfg(feature = "cloud")]
const SCHEMES: [&str; 3] = ["s3", "gs", "az"];

/// Why a place cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocationError {
    /// The feature is missing.
    #[error("{0} needs object stores, and this agon was built without them: build with --features cloud")]
    NotBuilt(Address),
    /// The address makes no sense.
    #[error("{location} is no place for a dataset: {reason}")]
    Wrong {
        /// The address.
        location: Address,
        /// Why.
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
    fn from(place: &Location) -> Location {
        place.clone()
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
    /// The store behind the address. Nothing is asked of it yet.
    #[cfg(feature = "cloud")]
    pub fn open(&self) -> Result<Arc<dyn ObjectStore>, LocationError> {
        let wrong = |reason: String| LocationError::Wrong { location: self.clone(), reason };
        if self.bucket.is_empty() {
            return Err(wrong("it has no bucket; write scheme://bucket/prefix".to_string()));
        }
        let prefix =
            object_store::path::Path::parse(&self.prefix).map_err(|error| wrong(error.to_string()))?;
        let store = self.build().map_err(|error| wrong(error.to_string()))?.ok_or_else(|| {
            wrong(format!("`{}` is no kind of store; there are {}", self.scheme, SCHEMES.join(", ")))
        })?;
        Ok(Arc::new(object_store::prefix::PrefixStore::new(store, prefix)))
    }

    /// The store of the address's kind, if there is such a kind.
    #[cfg(feature = "cloud")]
    fn build(&self) -> object_store::Result<Option<Arc<dyn ObjectStore>>> {
        use object_store::{RetryConfig, aws, azure, gcp};
        // A store that does not answer is reported soon; the caller decides whether to retry.
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

    /// The store behind the address, which this program cannot talk to.
    #[cfg(not(feature = "cloud"))]
    pub fn open(&self) -> Result<Arc<dyn ObjectStore>, LocationError> {
        Err(LocationError::NotBuilt(self.clone()))
    }
}

/// What a store says, in a line: its own sentence where it has one, and not the whole of its answer.
pub fn in_a_line(error: &object_store::Error) -> String {
    let text = error.to_string();
    let between = |open: &str, close: &str| {
        let rest = text.split_once(open)?.1;
        rest.split_once(close).map(|(inner, _)| inner.to_string())
    };
    match (between("<Message>", "</Message>"), between("<Code>", "</Code>")) {
        (Some(message), Some(code)) => format!("{message} ({code})"),
        (Some(message), None) => message,
        _ => text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST).collect(),
    }
}

/// How much of an answer that is no sentence is shown.
const LONGEST: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_a_store_is_told_in_a_line() {
        let told = |text: &str| {
            in_a_line(&object_store::Error::Generic { store: "S3", source: text.to_string().into() })
        };
        let answer = "404:\n<Error><Code>NoSuchBucket</Code><Message>There is none</Message></Error>";
        assert_eq!(told(answer), "There is none (NoSuchBucket)");
        assert_eq!(told("no\n route"), "Generic S3 error: no route");
        assert_eq!(told(&"x".repeat(1000)).chars().count(), LONGEST);
    }

    #[test]
    fn a_text_is_a_folder_or_an_address() {
        for folder in ["agon-data", "/var/agon", "a:b/c", "s3:/x"] {
            let place: Location = folder.parse().unwrap();
            assert_eq!(place, Location::Folder(PathBuf::from(folder)));
            assert_eq!(place.to_string(), folder);
        }
        for (text, bucket, prefix, shown) in [
            ("s3://b/p/q", "b", "p/q", "s3://b/p/q"),
            ("S3://b/p/q/", "b", "p/q", "s3://b/p/q"),
            ("s3://b", "b", "", "s3://b"),
            ("s3://b/", "b", "", "s3://b"),
            ("s3:///p", "", "p", "s3:///p"),
        ] {
            let place: Location = text.parse().unwrap();
            let Location::Store(address) = &place else { panic!("{text} is an address") };
            assert_eq!(
                (address.scheme.as_str(), address.bucket.as_str(), address.prefix.as_str()),
                ("s3", bucket, prefix)
            );
            assert_eq!(place.to_string(), shown);
        }
    }

    #[test]
    fn addresses_that_lead_nowhere_are_refused_with_the_remedy() {
        let told = |text: &str| match text.parse().unwrap() {
            Location::Store(address) => address.open().unwrap_err().to_string(),
            Location::Folder(_) => panic!("{text} is an address"),
        };
        if cfg!(feature = "cloud") {
            assert!(told("s3:///prefix").contains("it has no bucket"));
            assert!(told("ftp://host/x").contains("`ftp` is no kind of store; there are s3, gs, az"));
            assert!(told("s3://b/a//b").contains("is no place for a dataset"));
        } else {
            assert!(told("s3://b/p").contains("build with --features cloud"));
        }
    }
}
