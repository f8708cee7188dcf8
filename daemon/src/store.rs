//! Where session records live: the trait that every engine implements, and the bounds on asking one.
//!
//! The data path knows only [`Store`]. An engine may be slow, full or away; none of that is ever "not found".

pub mod memory;

use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use mooring_runtime::Timestamp;
use tokio::{sync::broadcast, time::timeout};

use crate::{
    fault::Fault,
    session::{id::Key, record::Record},
};

/// The longest that a request waits for the store.
const DEADLINE: Duration = Duration::from_secs(2);

/// Counts the writes of one key; compare-and-set compares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revision(pub u64);

/// A record as a store holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The record.
    pub record: Arc<Record>,
    /// What a compare-and-set must name to replace it.
    pub revision: Revision,
}

/// What a compare-and-set came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// Stored, as this revision.
    Stored(Revision),
    /// Somebody was faster: this is what is there, or that nothing is.
    Conflict(Option<Stored>),
}

/// What a compare-and-delete came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deleted {
    /// Removed.
    Removed,
    /// There is none.
    Absent,
    /// Somebody wrote it meanwhile: this is what is there.
    Conflict(Stored),
}

/// Why a store did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It cannot be reached, or did not answer in time. The write may have happened.
    #[error("the store cannot be reached: {0}")]
    Away(String),
    /// It takes no more.
    #[error("the store is full")]
    Full,
}

/// Something that happened to a record, whoever did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It was written.
    Written(Key, Revision),
    /// It is gone.
    Removed(Key),
}

/// An engine. Every acknowledged write is durable as far as the engine is.
pub trait Records: fmt::Debug + Send + Sync + 'static {
    /// Reads one record.
    fn get(&self, key: Key) -> BoxFuture<'_, Result<Option<Stored>, StoreError>>;

    /// Writes one record if its revision is still `expected`; `None` expects that there is none.
    fn compare_and_set(
        &self,
        key: Key,
        expected: Option<Revision>,
        record: Arc<Record>,
    ) -> BoxFuture<'_, Result<Written, StoreError>>;

    /// Removes one record; whether there was one.
    fn delete(&self, key: Key) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Removes one record if its revision is still `expected`.
    fn compare_and_delete(&self, key: Key, expected: Revision) -> BoxFuture<'_, Result<Deleted, StoreError>>;

    /// At most `limit` records whose time has come, as [`Record::expired`] has it.
    fn scan_expired(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(Key, Stored)>, StoreError>>;

    /// Changes from now on. A receiver that lags learns so, and must read again what it holds.
    fn watch(&self) -> broadcast::Receiver<Change>;
}

/// An engine behind a deadline.
#[derive(Debug, Clone)]
pub struct Store(Arc<dyn Records>);

impl Store {
    /// Wraps an engine.
    pub fn new(engine: impl Records) -> Self {
        Self(Arc::new(engine))
    }

    /// See [`Records::get`].
    ///
    /// # Errors
    /// [`StoreError`]; a deadline that passed is [`StoreError::Away`].
    pub async fn get(&self, key: Key) -> Result<Option<Stored>, StoreError> {
        within(self.0.get(key)).await
    }

    /// See [`Records::compare_and_set`].
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn compare_and_set(
        &self,
        key: Key,
        expected: Option<Revision>,
        record: Arc<Record>,
    ) -> Result<Written, StoreError> {
        within(self.0.compare_and_set(key, expected, record)).await
    }

    /// See [`Records::delete`].
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn delete(&self, key: Key) -> Result<bool, StoreError> {
        within(self.0.delete(key)).await
    }

    /// See [`Records::compare_and_delete`].
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn compare_and_delete(&self, key: Key, expected: Revision) -> Result<Deleted, StoreError> {
        within(self.0.compare_and_delete(key, expected)).await
    }

    /// See [`Records::scan_expired`].
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn scan_expired(&self, now: Timestamp, limit: usize) -> Result<Vec<(Key, Stored)>, StoreError> {
        within(self.0.scan_expired(now, limit)).await
    }

    /// See [`Records::watch`].
    pub fn watch(&self) -> broadcast::Receiver<Change> {
        self.0.watch()
    }
}

async fn within<T>(work: BoxFuture<'_, Result<T, StoreError>>) -> Result<T, StoreError> {
    timeout(DEADLINE, work).await.unwrap_or_else(|_| Err(StoreError::Away("no answer in time".to_owned())))
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Away(_) => Self::StoreAway,
            StoreError::Full => Self::StoreFull,
        }
    }
}
