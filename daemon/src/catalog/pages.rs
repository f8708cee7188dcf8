//! Pure: the merged list of one kind: items of many targets under their exposed names, in pages rendered once.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use bytes::Bytes;

use super::{
    item::Item,
    kind::Kind,
    listing::{Listing, is_per_session},
    merge::Findings,
};
use crate::route::{LONGEST_NAME, Router};

/// A page ends behind this many items. High, since many clients never ask for a second page.
const PAGE_ITEMS: usize = 1000;
/// A page ends behind this many bytes.
const PAGE_BYTES: usize = 1 << 20;

/// What a caller may see, where that is not all: by kind, the target's alias, and the target's own name or the URI.
pub type Filter<'f> = Option<&'f (dyn Fn(Kind, &str, &str) -> bool + Send + Sync)>;

/// Whose lists are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// All clients: what each session lists for itself is left out.
    All,
    /// One session.
    Session,
}

/// A merged list.
#[derive(Debug)]
pub struct List {
    kind: Kind,
    /// What tells this list from any other of its kind; zero where there never was anything in it.
    mark: u64,
    /// Items of each page, rendered, but for brackets and cursor.
    pages: Vec<Bytes>,
    entries: Vec<Entry>,
    /// Exposed name to position in `entries`.
    index: HashMap<Arc<str>, usize>,
    /// By position of the target: what users should know of its names.
    findings: Vec<Findings>,
}

#[derive(Debug)]
struct Entry {
    exposed: Arc<str>,
    /// The position of its target in the configuration.
    position: usize,
    alias: Arc<str>,
    item: Item,
}

impl List {
    /// An empty one.
    pub fn empty(kind: Kind) -> Self {
        let (pages, entries) = (vec![Bytes::new()], Vec::new());
        Self { kind, mark: 0, pages, entries, index: HashMap::new(), findings: Vec::new() }
    }

    /// Merges listings, oldest target first: of two items with one exposed name the older target's is shown, and the
    /// findings tell of the other.
    pub fn merge(kind: Kind, router: &Router, listings: &[Arc<Listing>], of: Of) -> Self {
        let (mut list, mut findings) = (Self::empty(kind), Vec::with_capacity(listings.len()));
        for (position, listing) in listings.iter().enumerate() {
            let mut found = Findings::default();
            let left_out = of == Of::All && is_per_session(listing.target());
            let items = if left_out { &[] } else { listing.items(kind) };
            let alias: Arc<str> = listing.alias().into();
            for item in items {
                let exposed: Arc<str> =
                    if kind.is_named() { router.expose(&alias, &item.name) } else { item.name.clone() }
                        .into();
                if let Some(older) = list.index.get(&exposed).and_then(|at| list.entries.get(*at)) {
                    // What a target lists twice itself hides nothing.
                    if older.position != position {
                        found.collision(kind, &exposed);
                    }
                    continue;
                }
                if kind.is_named() && exposed.len() > LONGEST_NAME {
                    found.long_name(kind, &exposed);
                }
                list.index.insert(Arc::clone(&exposed), list.entries.len());
                let alias = Arc::clone(&alias);
                list.entries.push(Entry { exposed, position, alias, item: item.clone() });
            }
            findings.push(found);
        }
        list.findings = findings;
        list.pages = render(&list.entries, |_| true);
        list
    }

    /// The same list under a mark: that of `before` where clients see the same, else the `next`.
    #[must_use]
    pub fn marked(self, before: &Self, next: impl FnOnce() -> u64) -> Self {
        let mark = if self.pages == before.pages { before.mark } else { next() };
        Self { mark, ..self }
    }

    /// The same list under a mark made of what is in it, for lists that are not compared with the one before.
    #[must_use]
    pub fn marked_by_content(self) -> Self {
        let mark = self.digest(|_| true);
        Self { mark, ..self }
    }

    /// What tells this list, as `filter` shows it, from any other of its kind; zero where nothing is in it.
    pub fn mark(&self, filter: Filter<'_>) -> u64 {
        match filter {
            None => self.mark,
            Some(visible) => self.digest(|entry| visible(self.kind, &entry.alias, &entry.item.name)),
        }
    }

    fn digest(&self, visible: impl Fn(&Entry) -> bool) -> u64 {
        let (mut hasher, mut empty) = (DefaultHasher::new(), true);
        for Entry { exposed, position: _, alias, item } in self.entries.iter().filter(|entry| visible(entry))
        {
            (alias, exposed, item.raw()).hash(&mut hasher);
            empty = false;
        }
        if empty { 0 } else { hasher.finish().max(1) }
    }

    /// The `result` of the page that `cursor` names; none where it names no page of this list as it is now.
    ///
    /// A cursor is bound to its kind and to the list's mark: a page of a list that has changed would skip or repeat
    /// items, and one of another caller's list may hold what this caller may not see.
    pub fn page(&self, cursor: Option<&str>, filter: Filter<'_>) -> Option<Bytes> {
        let rendered;
        let pages = match filter {
            None => &self.pages,
            Some(visible) => {
                rendered = render(&self.entries, |entry| visible(self.kind, &entry.alias, &entry.item.name));
                &rendered
            }
        };
        let mark = self.mark(filter);
        let number = match cursor {
            None => 0,
            Some(cursor) => {
                let (kind, rest) = cursor.split_once(':')?;
                let (of, number) = rest.split_once('.')?;
                if kind != self.kind.member() || of.parse() != Ok(mark) {
                    return None;
                }
                number.parse::<usize>().ok().filter(|number| *number > 0)?
            }
        };
        let items = pages.get(number)?;
        let mut out = Vec::with_capacity(items.len() + 64);
        out.extend_from_slice(b"{\"");
        out.extend_from_slice(self.kind.member().as_bytes());
        out.extend_from_slice(b"\":[");
        out.extend_from_slice(items);
        out.push(b']');
        if number + 1 < pages.len() {
            let cursor = format!(r#","nextCursor":"{}:{mark}.{}""#, self.kind.member(), number + 1);
            out.extend_from_slice(cursor.as_bytes());
        }
        out.push(b'}');
        Some(Bytes::from(out))
    }

    /// What users should know of the names of the target at a position.
    pub fn findings(&self, position: usize) -> Option<&Findings> {
        self.findings.get(position)
    }

    /// Whose item is shown under `exposed`: its target's position, and the item's own name.
    pub fn find(&self, exposed: &str) -> Option<(usize, &str)> {
        let entry = self.index.get(exposed).and_then(|at| self.entries.get(*at))?;
        Some((entry.position, &entry.item.name))
    }

    /// All that is in it, as positions of targets and items' own names.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &str)> {
        self.entries.iter().map(|entry| (entry.position, &*entry.item.name))
    }
}

fn render(entries: &[Entry], visible: impl Fn(&Entry) -> bool) -> Vec<Bytes> {
    let (mut done, mut open, mut items) = (Vec::new(), String::new(), 0);
    for entry in entries.iter().filter(|entry| visible(entry)) {
        if items == PAGE_ITEMS || open.len() >= PAGE_BYTES {
            done.push(Bytes::from(std::mem::take(&mut open)));
            items = 0;
        }
        if items > 0 {
            open.push(',');
        }
        entry.item.write_as(&entry.exposed, &mut open);
        items += 1;
    }
    done.push(Bytes::from(open));
    done
}
