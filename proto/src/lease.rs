//! A lease: a bout, and the right to play it.

use std::fmt;

use crate::check;
use crate::error::WireError;
use crate::limits::{MAX_LEASES, MAX_RUN_ID};
use crate::v1;

/// The loan of one bout to one worker. Two loans of the same bout differ in their numbers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lease {
    /// The run.
    pub run: String,
    /// The number of the bout in it.
    pub bout: u64,
    /// The epoch of the coordinator that gave it.
    pub epoch: u64,
    /// A number that was given once in that epoch.
    pub sequence: u64,
}

impl fmt::Display for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bout {} of {} (lease {}.{})", self.bout, self.run, self.epoch, self.sequence)
    }
}

impl From<&Lease> for v1::LeaseRef {
    fn from(lease: &Lease) -> v1::LeaseRef {
        v1::LeaseRef {
            run: lease.run.clone(),
            bout: lease.bout,
            epoch: lease.epoch,
            sequence: lease.sequence,
        }
    }
}

impl TryFrom<v1::LeaseRef> for Lease {
    type Error = WireError;

    fn try_from(lease: v1::LeaseRef) -> Result<Lease, WireError> {
        Ok(Lease {
            run: check::name("run", lease.run, MAX_RUN_ID)?,
            bout: lease.bout,
            epoch: lease.epoch,
            sequence: lease.sequence,
        })
    }
}

impl Lease {
    /// The lease that a message must name.
    pub fn required(lease: Option<v1::LeaseRef>) -> Result<Lease, WireError> {
        check::required("lease", lease)?.try_into()
    }

    /// The leases of a message.
    pub fn list(leases: Vec<v1::LeaseRef>) -> Result<Vec<Lease>, WireError> {
        check::count("leases", leases.len(), 0..=MAX_LEASES)?;
        leases.into_iter().map(Lease::try_from).collect()
    }

    /// Leases for a message.
    pub fn references<'a>(leases: impl IntoIterator<Item = &'a Lease>) -> Vec<v1::LeaseRef> {
        leases.into_iter().map(v1::LeaseRef::from).collect()
    }
}
