//! Exclusive ownership of a prefix of an object store.
//!
//! A folder has a lock; an object store has none. There, the object `agon.json` names the coordinator state that owns the
//! dataset, and the epoch of that state. It is created only if absent and replaced only by a writer that has read its
//! current version. Some stores ignore these conditions, so [`check_conditional_writes`] tests a store before use.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, UpdateVersion};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::location::one_line;

/// The name of the object that names the owner.
const NAME: &str = "agon.json";
/// The version of the dataset's layout.
const FORMAT: u64 = 1;
/// The number of writers that race for one object in the test of a store.
const RACING_WRITERS: usize = 8;
/// The number of attempts on a store that does not answer, and the delay between them.
const ATTEMPTS: u64 = 5;
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// The content of the object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Owner {
    /// The version of the layout.
    pub format: u64,
    /// The id of the state that owns the dataset.
    pub state: String,
    /// The epoch of that state: how often it had been opened.
    pub epoch: u64,
}

impl Owner {
    fn text(&self) -> Bytes {
        let text = serde_json::to_string(self).expect("an owner is plain data");
        Bytes::from(text + "\n")
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state {} in its life {}", self.state.get(..8).unwrap_or(&self.state), self.epoch)
    }
}

/// Why a prefix of a store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OwnershipError {
    /// The store does not answer, or rejects requests.
    #[error(
        "a request to the store failed: {0}; check address and credentials (s3: AWS_ACCESS_KEY_ID, \
         AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL, AWS_ALLOW_HTTP=true for a store without TLS; \
         gs: GOOGLE_*; az: AZURE_*)"
    )]
    Unreachable(String),
    /// The store ignores conditions of writes.
    #[error(
        "the store does not support conditional writes: {0}. Two coordinators could overwrite each other's data there; \
         use a store that supports them"
    )]
    NoConditionalWrites(&'static str),
    /// The object has another format.
    #[error("{NAME} at this prefix was not written by agon ({0}); give another prefix with --data")]
    Foreign(String),
    /// A newer program wrote the object.
    #[error(
        "the dataset has format {0}, and this program supports up to {FORMAT}; use the program that wrote it"
    )]
    NewerFormat(u64),
    /// Another coordinator owns the dataset.
    #[error(
        "the dataset belongs to another coordinator ({0}); use that one, give another prefix with --data, or, if it is gone \
         for good, pass --take-over"
    )]
    OtherOwner(Owner),
    /// The state is older than the dataset.
    #[error(
        "the local state is older than the dataset, which {0} wrote: the state was restored from a backup, or a copy of it \
         runs elsewhere. Make sure that no other coordinator uses the dataset, then pass --take-over"
    )]
    StaleState(Owner),
    /// The state has exported bouts, and the prefix has no dataset.
    #[error(
        "the state has exported bouts, and there is no dataset of agon; give the place that they were exported to with \
         --data, or pass --take-over if it is gone for good"
    )]
    NoDataset,
    /// Another coordinator took the prefix at the same time.
    #[error("another coordinator took the dataset at the same time; start again if this one should own it")]
    Raced,
    /// Another coordinator has taken the prefix since.
    #[error("the dataset was taken over by another coordinator ({0}); stop this one")]
    Lost(String),
}

impl From<Error> for OwnershipError {
    fn from(error: Error) -> OwnershipError {
        OwnershipError::Unreachable(one_line(&error))
    }
}

/// The identity of a coordinator state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The id, which copies share.
    pub id: String,
    /// The epoch: how often the state has been opened.
    pub epoch: u64,
    /// Whether bouts of the state have been exported.
    pub has_exported: bool,
}

/// A prefix whose owner has been read and that is not taken yet.
pub struct InspectedPrefix {
    store: Arc<dyn ObjectStore>,
    before: Option<(Owner, UpdateVersion)>,
}

/// A prefix that this coordinator owns.
pub struct OwnedPrefix {
    store: Arc<dyn ObjectStore>,
    owner: Owner,
}

/// Reads the owner of a prefix.
pub async fn inspect(store: Arc<dyn ObjectStore>) -> Result<InspectedPrefix, OwnershipError> {
    let before = match read(&store, &Path::from(NAME)).await {
        Ok((text, version)) => Some((parse_owner(&text)?, version)),
        Err(Error::NotFound { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    Ok(InspectedPrefix { store, before })
}

fn parse_owner(text: &[u8]) -> Result<Owner, OwnershipError> {
    let owner: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| OwnershipError::Foreign(error.to_string()))?;
    match owner["format"].as_u64() {
        Some(FORMAT) => {
            serde_json::from_value(owner).map_err(|error| OwnershipError::Foreign(error.to_string()))
        }
        Some(format) => Err(OwnershipError::NewerFormat(format)),
        None => Err(OwnershipError::Foreign("it has no format".to_string())),
    }
}

async fn read(store: &Arc<dyn ObjectStore>, path: &Path) -> object_store::Result<(Bytes, UpdateVersion)> {
    let answer = store.get(path).await?;
    let version = UpdateVersion { e_tag: answer.meta.e_tag.clone(), version: answer.meta.version.clone() };
    Ok((answer.bytes().await?, version))
}

impl InspectedPrefix {
    /// Checks whether a state may own the prefix. Returns the epoch that its own must exceed.
    pub fn check_owner(&self, state: &Identity, take_over: bool) -> Result<u64, OwnershipError> {
        match &self.before {
            _ if take_over => {}
            None if state.has_exported => return Err(OwnershipError::NoDataset),
            Some((owner, _)) if owner.state != state.id => {
                return Err(OwnershipError::OtherOwner(owner.clone()));
            }
            Some((owner, _)) if owner.epoch > state.epoch => {
                return Err(OwnershipError::StaleState(owner.clone()));
            }
            Some(_) | None => {}
        }
        Ok(self.before.as_ref().map_or(0, |(owner, _)| owner.epoch))
    }

    /// Takes the prefix, if its owner has not changed since it was read.
    pub async fn take(self, state: &str, epoch: u64) -> Result<OwnedPrefix, OwnershipError> {
        let owner = Owner { format: FORMAT, state: state.to_string(), epoch };
        let mode = match self.before {
            Some((_, version)) => PutMode::Update(version),
            None => PutMode::Create,
        };
        let put = self.store.put_opts(&Path::from(NAME), owner.text().into(), PutOptions::from(mode)).await;
        // A write without an answer, or one that was retried, may have succeeded: the stored object decides.
        if let Err(error) = put {
            match read(&self.store, &Path::from(NAME)).await {
                Ok((text, _)) if text == owner.text() => {}
                Ok(_) if is_condition_failure(&error) => return Err(OwnershipError::Raced),
                Ok(_) | Err(_) => return Err(error.into()),
            }
        }
        Ok(OwnedPrefix { store: self.store, owner })
    }
}

impl OwnedPrefix {
    /// Checks that no other coordinator has taken the prefix.
    pub async fn check(&self) -> Result<(), OwnershipError> {
        match read(&self.store, &Path::from(NAME)).await {
            Ok((text, _)) if text == self.owner.text() => Ok(()),
            Ok((text, _)) => Err(OwnershipError::Lost(
                parse_owner(&text).map_or_else(|error| error.to_string(), |owner| owner.to_string()),
            )),
            Err(Error::NotFound { .. }) => Err(OwnershipError::Lost(format!("{NAME} is gone"))),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns whether the store reports a failed condition.
fn is_condition_failure(error: &Error) -> bool {
    matches!(error, Error::AlreadyExists { .. } | Error::Precondition { .. })
}

/// Checks that the store enforces conditions of writes, using objects that no one else writes.
pub async fn check_conditional_writes(
    store: &Arc<dyn ObjectStore>,
    name: &str,
) -> Result<(), OwnershipError> {
    let mut last = None;
    for attempt in 0..ATTEMPTS {
        let path = Path::from(format!("agon-probe/{name}-{attempt}"));
        let outcome = check_once(store, &path).await;
        // A leftover object is harmless, and permission to delete is not required.
        let _ = store.delete(&path).await;
        match outcome {
            Ok(()) => return Ok(()),
            Err(OwnershipError::Unreachable(error)) => last = Some(error),
            Err(error) => return Err(error),
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
    Err(OwnershipError::Unreachable(last.expect("at least one attempt was made")))
}

/// Runs the check once. A store that does not answer is [`OwnershipError::Unreachable`].
async fn check_once(store: &Arc<dyn ObjectStore>, path: &Path) -> Result<(), OwnershipError> {
    let put = |text: String, mode: PutMode| {
        let (store, path) = (Arc::clone(store), path.clone());
        async move { store.put_opts(&path, text.into(), PutOptions::from(mode)).await }
    };
    // 1. Many writers create the same object at once: the stored text is that of the one that succeeded.
    let mut race = JoinSet::new();
    for racer in 0..RACING_WRITERS {
        let attempt = put(racer.to_string(), PutMode::Create);
        race.spawn(async move { (racer.to_string(), attempt.await) });
    }
    let (mut winners, mut failure) = (Vec::new(), None);
    for (text, outcome) in race.join_all().await {
        match outcome {
            Ok(_) => winners.push(text),
            Err(error) if is_condition_failure(&error) && failure.is_some() => {}
            Err(error) => failure = Some(error),
        }
    }
    let stored = match read(store, path).await {
        Ok((text, _)) => text,
        Err(Error::NotFound { .. }) if !winners.is_empty() => {
            return Err(OwnershipError::NoConditionalWrites("an acknowledged object is missing"));
        }
        Err(error) => return Err(failure.unwrap_or(error).into()),
    };
    if winners.iter().any(|winner| winner.as_bytes() != stored) {
        return Err(OwnershipError::NoConditionalWrites(
            "several writers created the same object, and each was acknowledged as the first",
        ));
    }
    // 2. A later create fails.
    must_fail(put("late".to_string(), PutMode::Create).await, "a create overwrote an existing object")?;
    // 3. An update succeeds only with the current version.
    let (_, version) = read(store, path).await?;
    if version.e_tag.is_none() && version.version.is_none() {
        return Err(OwnershipError::NoConditionalWrites("its objects have no ETags or versions"));
    }
    if let Err(error) = put("changed".to_string(), PutMode::Update(version.clone())).await {
        // The write may have succeeded without an answer.
        let stored = read(store, path).await?.0;
        if stored != "changed".as_bytes() {
            return Err(error.into());
        }
    }
    must_fail(
        put("stale".to_string(), PutMode::Update(version)).await,
        "an update with an outdated version succeeded",
    )
}

fn must_fail<T>(outcome: object_store::Result<T>, fault: &'static str) -> Result<(), OwnershipError> {
    match outcome {
        Ok(_) => Err(OwnershipError::NoConditionalWrites(fault)),
        Err(error) if is_condition_failure(&error) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    fn identity(id: &str, epoch: u64, has_exported: bool) -> Identity {
        Identity { id: id.to_string(), epoch, has_exported }
    }

    async fn start(
        store: &Arc<dyn ObjectStore>,
        state: &Identity,
        take_over: bool,
    ) -> Result<(OwnedPrefix, u64), OwnershipError> {
        let found = inspect(Arc::clone(store)).await?;
        let epoch = found.check_owner(state, take_over)?.max(state.epoch) + 1;
        Ok((found.take(&state.id, epoch).await?, epoch))
    }

    #[tokio::test]
    async fn one_state_owns_a_prefix_until_an_operator_overrides_it() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let error = |outcome: Result<(OwnedPrefix, u64), OwnershipError>| outcome.err().unwrap();
        // 1. The prefix is free, unless the state has exported bouts.
        assert!(matches!(
            error(start(&store, &identity("a", 3, true), false).await),
            OwnershipError::NoDataset
        ));
        let (first, epoch) = start(&store, &identity("a", 3, false), false).await.unwrap();
        assert_eq!(epoch, 4);
        first.check().await.unwrap();
        // 2. The same state continues; the previous process detects it.
        let (second, epoch) = start(&store, &identity("a", 4, true), false).await.unwrap();
        assert_eq!(epoch, 5);
        second.check().await.unwrap();
        assert!(matches!(first.check().await, Err(OwnershipError::Lost(_))));
        // 3. An older copy of the state and another state are rejected until the operator overrides it.
        assert!(matches!(
            error(start(&store, &identity("a", 4, true), false).await),
            OwnershipError::StaleState(_)
        ));
        assert!(matches!(
            error(start(&store, &identity("b", 9, false), false).await),
            OwnershipError::OtherOwner(_)
        ));
        second.check().await.unwrap();
        let (third, epoch) = start(&store, &identity("a", 2, true), true).await.unwrap();
        assert_eq!(epoch, 6);
        let (fourth, epoch) = start(&store, &identity("b", 0, false), true).await.unwrap();
        assert_eq!(epoch, 7);
        assert!(matches!(third.check().await, Err(OwnershipError::Lost(_))));
        fourth.check().await.unwrap();
        // 4. Of two that read the owner at the same time, the second to write fails.
        let (one, other) =
            (inspect(Arc::clone(&store)).await.unwrap(), inspect(Arc::clone(&store)).await.unwrap());
        one.take("b", 8).await.unwrap();
        assert!(matches!(other.take("c", 8).await.err(), Some(OwnershipError::Raced)));
    }

    #[tokio::test]
    async fn rejects_objects_that_name_no_owner() {
        for (text, newer) in
            [("{\"format\": 7}", true), ("{}", false), ("dear mother", false), ("{\"format\": 1}", false)]
        {
            let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
            store.put(&Path::from(NAME), text.into()).await.unwrap();
            let error = inspect(store).await.err().unwrap();
            assert_eq!(matches!(error, OwnershipError::NewerFormat(7)), newer, "{text}: {error}");
            assert_eq!(matches!(error, OwnershipError::Foreign(_)), !newer, "{text}: {error}");
        }
    }

    #[tokio::test]
    async fn check_passes_on_a_correct_store_and_leaves_no_objects() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        check_conditional_writes(&store, "x").await.unwrap();
        assert!(store.list_with_delimiter(None).await.unwrap().common_prefixes.is_empty());
    }
}
