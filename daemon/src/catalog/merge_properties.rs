//! What holds of merging for any targets: every visible item is on exactly one page, and leads back.

use mooring_crds::config::Naming;
use proptest::prelude::*;

use super::{
    tests::{all, listing_of, merged},
    *,
};
use crate::route::Route;

/// Any lists, with names that repeat, hold separators and need escapes.
fn any_lists() -> impl Strategy<Value = ByKind<Vec<String>>> {
    let name = prop_oneof!["[a-c]{1,2}", "[a-c_\"\\\\é]{1,6}", Just("a___b".to_owned()), "a:[0-9]{1,3}"];
    let list = || prop::collection::vec(name.clone(), 0..40);
    (list(), list(), list(), list()).prop_map(|(tools, prompts, resources, templates)| {
        ByKind::new(|kind| match kind {
            Kind::Tools => tools.clone(),
            Kind::Prompts => prompts.clone(),
            Kind::Resources => resources.clone(),
            Kind::Templates => templates.clone(),
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_visible_item_is_on_one_page_and_leads_back_to_the_target_that_listed_it(
        targets in prop::collection::vec(any_lists(), 0..5),
        plain: bool,
        hidden in 0_usize..6,
        repeat in 1_usize..40,
    ) {
        let aliases: Vec<String> = (0..targets.len()).map(|n| format!("t{n}")).collect();
        let naming = if plain { Naming::Plain } else { Naming::default() };
        let router = Router::new(naming, aliases.iter().cloned());
        // Lists long enough for several pages, out of few names.
        let lists: Vec<ByKind<Vec<String>>> = targets.iter().map(|lists| ByKind::new(|kind| {
            let names = lists.get(kind);
            (0..repeat).flat_map(|n| names.iter().map(move |name| format!("{name}{n}"))).collect()
        })).collect();
        let listings: Vec<_> = aliases.iter().zip(&lists).map(|(alias, lists)| listing_of(alias, lists)).collect();
        let merged = merged(&router, listings);
        let hidden = format!("t{hidden}");
        let visible = |_: Kind, alias: &str, _: &str| alias != hidden;
        for kind in kind::ALL {
            let list = merged.list(kind);
            let mut wanted = Vec::new();
            for (alias, lists) in aliases.iter().zip(&lists) {
                for own in lists.get(kind) {
                    let exposed = if kind.is_named() { router.expose(alias, own) } else { own.clone() };
                    if wanted.iter().all(|(_, _, known)| *known != exposed) {
                        wanted.push((alias, own, exposed));
                    }
                }
            }
            let (shown, cursors) = all(list, kind, None);
            prop_assert_eq!(&shown, &wanted.iter().map(|(_, _, exposed)| exposed.clone()).collect::<Vec<_>>());
            let (seen, _) = all(list, kind, Some(&visible));
            let of_others = wanted.iter().filter(|(alias, _, _)| **alias != hidden);
            prop_assert_eq!(seen, of_others.map(|(_, _, exposed)| exposed.clone()).collect::<Vec<_>>());
            for (alias, own, exposed) in &wanted {
                let (at, name) = merged.target_of(kind, exposed).unwrap();
                prop_assert_eq!((&aliases[at], name), (*alias, own.as_str()));
                if !plain && kind.is_named() {
                    prop_assert_eq!(router.route(exposed), Route::Target(at, own));
                }
            }
            for (cursor, other) in cursors.iter().flat_map(|cursor| kind::ALL.map(|other| (cursor, other))) {
                prop_assert_eq!(merged.list(other).page(Some(cursor), None).is_some(), other == kind);
            }
            let later = Arc::new(List::merge(kind, &router, &[], Of::All).marked(list, || u64::MAX));
            for cursor in &cursors {
                prop_assert!(later.page(Some(cursor), None).is_none());
            }
        }
    }
}
