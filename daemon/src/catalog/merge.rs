//! Pure: one list of each kind out of many targets' lists, and where a name or a URI leads.

use std::sync::Arc;

use super::{
    kind::{self, ByKind, Kind},
    listing::Listing,
    pages::{Filter, List, Of},
    template::Template,
};
use crate::route::Router;

/// How many names a report gives as examples.
const EXAMPLES: usize = 5;
/// The most templates of one target that URIs are matched with.
const MOST_TEMPLATES: usize = 1000;

/// The merged lists.
#[derive(Debug)]
pub struct Merged {
    /// How names are read in the configuration that they were made under.
    pub router: Router,
    /// The listings that they were made of, in the configuration's order.
    pub listings: Vec<Arc<Listing>>,
    /// By position: names that are too long, and names that an older target has.
    pub reports: Vec<Findings>,
    lists: ByKind<Arc<List>>,
    /// Oldest target first, with positions.
    templates: Vec<(Template, usize)>,
}

/// What users should know of one target's names.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Findings {
    /// Exposed names that some clients refuse for their length.
    pub long_names: Vec<String>,
    /// Names and URIs hidden by an older target's.
    pub collisions: Vec<String>,
}

/// What tells each list from others of its kind, as one caller sees them: equal marks are equal lists.
pub type Marks = ByKind<u64>;

impl Findings {
    pub(super) fn collision(&mut self, kind: Kind, name: &str) {
        example(&mut self.collisions, kind, name);
    }

    /// Both, as far as there is room for examples.
    fn and(mut self, other: &Self) -> Self {
        let Self { long_names, collisions } = other;
        self.long_names.extend(long_names.iter().cloned());
        self.collisions.extend(collisions.iter().cloned());
        self.long_names.truncate(EXAMPLES);
        self.collisions.truncate(EXAMPLES);
        self
    }

    pub(super) fn long_name(&mut self, kind: Kind, name: &str) {
        example(&mut self.long_names, kind, name);
    }
}

fn same_items(kind: Kind, listings: &[Arc<Listing>], before: &[Arc<Listing>]) -> bool {
    let same = |(now, before): (&Arc<Listing>, &Arc<Listing>)| now.has_items_of(before, kind);
    listings.len() == before.len() && listings.iter().zip(before).all(same)
}

fn example(examples: &mut Vec<String>, kind: Kind, name: &str) {
    if examples.len() < EXAMPLES {
        examples.push(match kind {
            Kind::Tools => name.to_owned(),
            Kind::Prompts | Kind::Resources | Kind::Templates => format!("{} {name}", kind.noun()),
        });
    }
}

impl Default for Merged {
    fn default() -> Self {
        Self {
            router: Router::default(),
            listings: Vec::new(),
            reports: Vec::new(),
            lists: ByKind::new(|kind| Arc::new(List::empty(kind))),
            templates: Vec::new(),
        }
    }
}

/// Merges listings, oldest target first. A list that is the one `before` keeps its mark, and any other gets the `next`.
pub fn merge(
    router: &Router,
    listings: Vec<Arc<Listing>>,
    before: &Merged,
    mut next: impl FnMut() -> u64,
) -> Merged {
    let lists = ByKind::new(|kind| {
        // Most changes are of one kind of one target.
        if *router == before.router && same_items(kind, &listings, &before.listings) {
            return Arc::clone(before.list(kind));
        }
        let list = List::merge(kind, router, &listings, Of::All);
        Arc::new(list.marked(before.list(kind), &mut next))
    });
    let reports = (0..listings.len()).map(|position| {
        let of_kinds = kind::ALL.into_iter().filter_map(|kind| lists.get(kind).findings(position));
        of_kinds.fold(Findings::default(), Findings::and)
    });
    let reports = reports.collect();
    let mut templates = Vec::new();
    for position in 0..listings.len() {
        let of_it = lists.get(Kind::Templates).iter().filter(|(of, _)| *of == position);
        let parsed = of_it.take(MOST_TEMPLATES).filter_map(|(_, text)| Template::parse(text));
        templates.extend(parsed.map(|template| (template, position)));
    }
    Merged { router: router.clone(), listings, reports, lists, templates }
}

impl Merged {
    /// The merged list of a kind.
    pub fn list(&self, kind: Kind) -> &Arc<List> {
        self.lists.get(kind)
    }

    /// What tells each list, as `filter` shows it, from others of its kind.
    pub fn marks(&self, filter: Filter<'_>) -> Marks {
        ByKind::new(|kind| self.list(kind).mark(filter))
    }

    /// The target behind an exposed name or a URI, by its position in `listings`, and what the target calls it.
    ///
    /// A resource that is in no list is that of the oldest target one of whose templates can have made its URI. Prompts
    /// and tools are found where they are listed; whether a prefix alone leads further is [`Router::route`]'s to say.
    pub fn target_of<'a>(&'a self, kind: Kind, exposed: &'a str) -> Option<(usize, &'a str)> {
        if let Some(found) = self.list(kind).find(exposed) {
            return Some(found);
        }
        match kind {
            Kind::Tools | Kind::Prompts | Kind::Templates => None,
            Kind::Resources => {
                let (_, position) = self.templates.iter().find(|(template, _)| template.matches(exposed))?;
                Some((*position, exposed))
            }
        }
    }

    /// Seconds to wait for a kind's lists that may still come; none where all are there.
    pub fn list_pending(&self, kind: Kind) -> Option<u32> {
        self.listings.iter().filter_map(|listing| listing.list_seconds(kind)).max()
    }

    /// Seconds to wait for what targets announce; none where all are heard of.
    pub fn introductions_pending(&self) -> Option<u32> {
        self.listings.iter().filter_map(|listing| listing.introduction_seconds()).max()
    }

    /// The kinds whose lists, as `filter` shows them, are neither those that were `seen` nor those that were `told` of.
    pub fn changes_since(&self, seen: &Marks, told: &Marks, filter: Filter<'_>) -> Vec<Kind> {
        let marks = self.marks(filter);
        let new = |kind: &Kind| {
            let mark = marks.get(*kind);
            mark != seen.get(*kind) && mark != told.get(*kind)
        };
        kind::ALL.into_iter().filter(new).collect()
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "merge_properties.rs"]
mod properties;
