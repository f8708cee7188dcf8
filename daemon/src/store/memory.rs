//! The engine without durability: a map in this process. Its sessions end with it.

use std::{collections::HashMap, sync::Arc};

use futures_util::future::BoxFuture;
use mooring_runtime::Timestamp;
use parking_lot::Mutex;
use tokio::sync::broadcast;

use super::{Change, Deleted, Records, Revision, StoreError, Stored, Written};
use crate::session::{id::Key, record::Record};

/// Changes that a slow watcher may lag behind before it is told to read again.
const WATCH_BUFFER: usize = 1024;

/// A map, bounded in bytes.
#[derive(Debug)]
pub struct Memory {
    records: Mutex<Held>,
    most_bytes: usize,
    changes: broadcast::Sender<Change>,
}

#[derive(Debug, Default)]
struct Held {
    by_key: HashMap<Key, Stored>,
    /// What they take together, as [`Record::bytes`] has it.
    bytes: usize,
}

impl Memory {
    /// An empty store that takes new records until they are `most_bytes`.
    pub fn new(most_bytes: usize) -> Self {
        Self { records: Mutex::default(), most_bytes, changes: broadcast::Sender::new(WATCH_BUFFER) }
    }

    fn announce(&self, change: Change) {
        // Nobody listening is no error: the table subscribes when it starts.
        drop(self.changes.send(change));
    }

    fn remove(&self, key: Key, expected: Option<Revision>) -> Deleted {
        let mut records = self.records.lock();
        let Some(current) = records.by_key.get(&key) else { return Deleted::Absent };
        if expected.is_some_and(|expected| current.revision != expected) {
            return Deleted::Conflict(current.clone());
        }
        records.bytes -= current.record.bytes();
        records.by_key.remove(&key);
        drop(records);
        self.announce(Change::Removed(key));
        Deleted::Removed
    }

    fn write(
        &self,
        key: Key,
        expected: Option<Revision>,
        record: Arc<Record>,
    ) -> Result<Written, StoreError> {
        let mut records = self.records.lock();
        let current = records.by_key.get(&key).cloned();
        if current.as_ref().map(|stored| stored.revision) != expected {
            return Ok(Written::Conflict(current));
        }
        let bytes = records.bytes + record.bytes();
        // A record that is there may grow: its session runs, and would be lost.
        if current.is_none() && bytes > self.most_bytes {
            return Err(StoreError::Full);
        }
        records.bytes = bytes - current.as_ref().map_or(0, |stored| stored.record.bytes());
        let revision = Revision(current.map_or(1, |stored| stored.revision.0 + 1));
        records.by_key.insert(key, Stored { record, revision });
        drop(records);
        self.announce(Change::Written(key, revision));
        Ok(Written::Stored(revision))
    }
}

impl Records for Memory {
    fn get(&self, key: Key) -> BoxFuture<'_, Result<Option<Stored>, StoreError>> {
        Box::pin(async move { Ok(self.records.lock().by_key.get(&key).cloned()) })
    }

    fn compare_and_set(
        &self,
        key: Key,
        expected: Option<Revision>,
        record: Arc<Record>,
    ) -> BoxFuture<'_, Result<Written, StoreError>> {
        Box::pin(async move { self.write(key, expected, record) })
    }

    fn delete(&self, key: Key) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move { Ok(self.remove(key, None) == Deleted::Removed) })
    }

    fn compare_and_delete(&self, key: Key, expected: Revision) -> BoxFuture<'_, Result<Deleted, StoreError>> {
        Box::pin(async move { Ok(self.remove(key, Some(expected))) })
    }

    fn scan_expired(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(Key, Stored)>, StoreError>> {
        Box::pin(async move {
            let records = self.records.lock();
            let expired = records.by_key.iter().filter(|(_, stored)| stored.record.expired(now)).take(limit);
            Ok(expired.map(|(key, stored)| (*key, stored.clone())).collect())
        })
    }

    fn watch(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{session::id::SessionId, testing::record};

    fn key() -> Key {
        SessionId::mint().unwrap().key()
    }

    #[tokio::test]
    async fn of_two_writers_that_read_the_same_the_second_learns_what_the_first_wrote() {
        let store = Memory::new(1 << 20);
        let key = key();
        let first = store.compare_and_set(key, None, Arc::new(record())).await.unwrap();
        let Written::Stored(revision) = first else { panic!("{first:?}") };
        let second = store.compare_and_set(key, None, Arc::new(record())).await.unwrap();
        assert!(matches!(second, Written::Conflict(Some(stored)) if stored.revision == revision));
        assert!(matches!(
            store.compare_and_set(key, Some(revision), Arc::new(record())).await,
            Ok(Written::Stored(Revision(2)))
        ));
        let stale = store.compare_and_delete(key, revision).await.unwrap();
        assert!(matches!(stale, Deleted::Conflict(stored) if stored.revision == Revision(2)));
        assert_eq!(store.compare_and_delete(key, Revision(2)).await, Ok(Deleted::Removed));
        assert_eq!(store.compare_and_delete(key, Revision(2)).await, Ok(Deleted::Absent));
        assert!(matches!(
            store.compare_and_set(key, Some(Revision(2)), Arc::new(record())).await,
            Ok(Written::Conflict(None))
        ));
    }

    #[tokio::test]
    async fn a_full_store_refuses_new_records_and_keeps_writing_those_it_has() {
        let store = Memory::new(record().bytes() * 3 / 2);
        let (old, new) = (key(), key());
        store.compare_and_set(old, None, Arc::new(record())).await.unwrap();
        assert_eq!(store.compare_and_set(new, None, Arc::new(record())).await, Err(StoreError::Full));
        let grown = Arc::new(Record { client_info: "x".repeat(4096).into(), ..record() });
        assert!(store.compare_and_set(old, Some(Revision(1)), grown).await.is_ok());
        assert!(store.delete(old).await.unwrap());
        assert!(
            store.compare_and_set(new, None, Arc::new(record())).await.is_ok(),
            "what is removed takes nothing"
        );
    }

    #[tokio::test]
    async fn a_scan_finds_what_has_expired_and_nothing_else() {
        let store = Memory::new(1 << 20);
        let (old, young) = (key(), key());
        let with_end = |expires| Arc::new(Record { expires: Timestamp(expires), ..record() });
        store.compare_and_set(old, None, with_end(1_000)).await.unwrap();
        store.compare_and_set(young, None, with_end(9_000)).await.unwrap();
        let found = store.scan_expired(Timestamp(1_000), 10).await.unwrap();
        assert_eq!(found.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [old]);
    }

    #[tokio::test]
    async fn a_watcher_hears_of_writes_and_removals() {
        let store = Memory::new(1 << 20);
        let mut changes = store.watch();
        let key = key();
        store.compare_and_set(key, None, Arc::new(record())).await.unwrap();
        store.delete(key).await.unwrap();
        assert_eq!(changes.try_recv(), Ok(Change::Written(key, Revision(1))));
        assert_eq!(changes.try_recv(), Ok(Change::Removed(key)));
    }
}
