//! Merging by example.

use bytes::Bytes;
use mooring_crds::config::Naming;

use super::*;
use crate::{
    catalog::{item::Item, listing::Known},
    testing::{router, target},
    version::LATEST,
};

fn item(kind: Kind, name: &str) -> Item {
    let raw = serde_json::json!({key_of(kind): name, "title": "x"});
    Item::read(kind, raw.to_string().into()).unwrap()
}

fn key_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Tools | Kind::Prompts => "name",
        Kind::Resources => "uri",
        Kind::Templates => "uriTemplate",
    }
}

pub(super) fn listing_of(alias: &str, lists: &ByKind<Vec<String>>) -> Arc<Listing> {
    let lists = ByKind::new(|kind| Some(lists.get(kind).iter().map(|name| item(kind, name)).collect()));
    Arc::new(Listing::ready(&target(alias), LATEST, Known { lists, ..Known::default() }))
}

fn listing(alias: &str, kind: Kind, names: &[&str]) -> Arc<Listing> {
    let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    listing_of(alias, &ByKind::new(|of| if of == kind { names.clone() } else { Vec::new() }))
}

pub(super) fn merged(router: &Router, listings: Vec<Arc<Listing>>) -> Merged {
    let mut mark = 0;
    merge(router, listings, &Merged::default(), || {
        mark += 1;
        mark
    })
}

fn names(kind: Kind, page: &Bytes) -> (Vec<String>, Option<String>) {
    let value: serde_json::Value = serde_json::from_slice(page).unwrap();
    let key = key_of(kind);
    let items = value[kind.member()].as_array().unwrap();
    let names = items.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect();
    (names, value["nextCursor"].as_str().map(str::to_owned))
}

/// All pages, in order, and the cursors that led to them.
pub(super) fn all(list: &List, kind: Kind, filter: Filter<'_>) -> (Vec<String>, Vec<String>) {
    let (mut all, mut cursors) = (Vec::new(), Vec::<String>::new());
    loop {
        let page = list.page(cursors.last().map(String::as_str), filter).unwrap();
        let (names, next) = names(kind, &page);
        all.extend(names);
        match next {
            Some(next) => cursors.push(next),
            None => return (all, cursors),
        }
    }
}

#[test]
fn every_tool_is_on_exactly_one_page_and_pages_are_in_order() {
    let many: Vec<String> = (0..2500).map(|n| format!("t{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let listings = vec![listing("a", Kind::Tools, &many), listing("b", Kind::Tools, &["x"])];
    let merged = merged(&router(&["a", "b"]), listings);
    let want: Vec<String> = many.iter().map(|n| format!("a___{n}")).chain(["b___x".to_owned()]).collect();
    let (all, cursors) = all(merged.list(Kind::Tools), Kind::Tools, None);
    assert_eq!((all, cursors.len()), (want, 2));
}

#[test]
fn a_cursor_of_another_list_or_of_nobody_names_no_page() {
    let many: Vec<String> = (0..1500).map(|n| format!("t{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let merged = merged(&router(&["a"]), vec![listing("a", Kind::Tools, &many)]);
    let list = merged.list(Kind::Tools);
    assert!(list.page(Some("tools:1.1"), None).is_some());
    for cursor in
        ["tools:2.1", "tools:1.0", "tools:1.2", "tools:1.-1", "prompts:1.1", "1.1", "", "x", "tools:1"]
    {
        assert!(list.page(Some(cursor), None).is_none(), "{cursor}");
    }
}

#[test]
fn of_two_items_with_one_name_the_older_targets_is_shown_and_the_other_is_reported() {
    let plain = Router::new(Naming::Plain, ["old", "new"]);
    for (kind, reported) in [
        (Kind::Tools, "same"),
        (Kind::Prompts, "prompt same"),
        (Kind::Resources, "resource same"),
        (Kind::Templates, "resource template same"),
    ] {
        let merged =
            merged(&plain, vec![listing("old", kind, &["same"]), listing("new", kind, &["same", "own"])]);
        assert_eq!(merged.target_of(kind, "same"), Some((0, "same")));
        assert_eq!(merged.target_of(kind, "own"), Some((1, "own")));
        assert_eq!(all(merged.list(kind), kind, None).0, ["same", "own"]);
        assert_eq!(
            (&merged.reports[0], &*merged.reports[1].collisions),
            (&Findings::default(), &[reported.to_owned()][..])
        );
    }
}

#[test]
fn uris_pass_unchanged_whatever_the_naming_and_prompts_are_named_as_tools_are() {
    let router = router(&["a"]);
    let at = |kind, own| merged(&router, vec![listing("a", kind, &[own])]);
    assert_eq!(at(Kind::Resources, "demo://x").target_of(Kind::Resources, "demo://x"), Some((0, "demo://x")));
    assert_eq!(at(Kind::Prompts, "ask").target_of(Kind::Prompts, "a___ask"), Some((0, "ask")));
    assert_eq!(at(Kind::Prompts, "ask").target_of(Kind::Prompts, "ask"), None);
}

#[test]
fn a_uri_in_no_list_is_of_the_oldest_target_with_a_template_for_it() {
    let lists = |resources: &[&str], templates: &[&str]| {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (resources, templates) = (own(resources), own(templates));
        ByKind::new(|kind| match kind {
            Kind::Resources => resources.clone(),
            Kind::Templates => templates.clone(),
            Kind::Tools | Kind::Prompts => Vec::new(),
        })
    };
    let old = listing_of("old", &lists(&[], &["a:{x}", "b:{x}"]));
    let new = listing_of("new", &lists(&["a:1"], &["a:{x}", "{+any}"]));
    let merged = merged(&router(&["old", "new"]), vec![old, new]);
    assert_eq!(merged.target_of(Kind::Resources, "a:1"), Some((1, "a:1")), "listed");
    assert_eq!(merged.target_of(Kind::Resources, "a:2"), Some((0, "a:2")));
    assert_eq!(merged.target_of(Kind::Resources, "c:2"), Some((1, "c:2")));
    assert_eq!(merged.target_of(Kind::Resources, ""), None);
    assert_eq!(merged.target_of(Kind::Templates, "b:{x}"), Some((0, "b:{x}")));
}

#[test]
fn names_that_clients_may_refuse_are_reported_and_still_shown_and_uris_may_be_long() {
    let long = "x".repeat(65);
    let tools = merged(&router(&["a"]), vec![listing("a", Kind::Tools, &[&long])]);
    assert_eq!(tools.reports[0].long_names, [format!("a___{long}")]);
    assert_eq!(all(tools.list(Kind::Tools), Kind::Tools, None).0.len(), 1);
    let resources = merged(&router(&["a"]), vec![listing("a", Kind::Resources, &[&long])]);
    assert_eq!(resources.reports[0], Findings::default());
}

#[test]
fn a_gateway_without_targets_has_one_empty_page_of_each_kind() {
    let empty = |kind| Merged::default().list(kind).page(None, None).unwrap();
    assert_eq!(empty(Kind::Tools).as_ref(), br#"{"tools":[]}"#);
    assert_eq!(empty(Kind::Templates).as_ref(), br#"{"resourceTemplates":[]}"#);
}

#[test]
fn a_mark_changes_with_its_list_alone_and_what_was_told_or_seen_is_no_change() {
    let router = router(&["a"]);
    let mut next = 0;
    let mut count = || {
        next += 1;
        next
    };
    let first = merge(&router, vec![listing("a", Kind::Tools, &["x"])], &Merged::default(), &mut count);
    let seen = first.marks(None);
    assert_eq!(first.changes_since(&Marks::default(), &Marks::default(), None), [Kind::Tools]);
    let same = merge(&router, vec![listing("a", Kind::Tools, &["x"])], &first, &mut count);
    assert_eq!(same.changes_since(&seen, &Marks::default(), None), []);
    let other = merge(&router, vec![listing("a", Kind::Prompts, &["x"])], &same, &mut count);
    assert_eq!(other.changes_since(&seen, &seen, None), [Kind::Tools, Kind::Prompts]);
    assert_eq!(other.changes_since(&seen, &other.marks(None), None), []);
    // A view that began anew and is empty is not what was seen.
    assert_eq!(Merged::default().changes_since(&seen, &seen, None), [Kind::Tools]);
}

#[test]
fn a_caller_is_shown_and_told_of_what_it_may_see() {
    let plain = Router::new(Naming::Plain, ["a", "b"]);
    let both = |b: &str| vec![listing("a", Kind::Tools, &["x", "y"]), listing("b", Kind::Tools, &[b])];
    let merged_then = merged(&plain, both("z"));
    let visible = |_: Kind, alias: &str, exposed: &str| alias == "a" && exposed != "y";
    let list = merged_then.list(Kind::Tools);
    assert_eq!(all(list, Kind::Tools, Some(&visible)).0, ["x"]);
    let marks = merged_then.marks(Some(&visible));
    let merged_now = merge(&plain, both("other"), &merged_then, || 9);
    assert_eq!(merged_now.changes_since(&marks, &marks, Some(&visible)), [], "what it may not see changed");
    let nothing = |_: Kind, _: &str, _: &str| false;
    assert_eq!(merged_now.marks(Some(&nothing)), Marks::default());
}
