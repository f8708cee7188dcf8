//! Pure: one list of tools out of many, rendered into pages once for each change.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;

use super::listing::Listing;
use crate::{
    access::Access,
    route::{LONGEST_NAME, Router},
};

/// A page ends behind this many tools. High, since many clients never ask for a second page.
const PAGE_TOOLS: usize = 1000;
/// A page ends behind this many bytes.
const PAGE_BYTES: usize = 1 << 20;
/// How many names a report gives as examples.
const EXAMPLES: usize = 5;

/// The merged list.
#[derive(Debug, Default)]
pub struct Merged {
    /// `result` of each page, but for its cursor.
    pages: Vec<Bytes>,
    /// Where naming is plain: exposed name to position of its target in the configuration.
    index: HashMap<String, usize>,
    /// The listings that it was made of, in the configuration's order.
    pub listings: Vec<Arc<Listing>>,
    /// By position: names that are too long, and names that an older target has.
    pub reports: Vec<Findings>,
    /// Seconds to wait for targets that were not heard of yet, where there are any.
    pub pending: Option<u32>,
}

/// What users should know of one target's names.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Findings {
    /// Exposed names that some clients refuse for their length.
    pub long_names: Vec<String>,
    /// Names hidden by an older target's.
    pub collisions: Vec<String>,
}

/// Merges listings, oldest target first: of two tools with one exposed name the older target's is shown.
pub fn merge(router: &Router, listings: &[Arc<Listing>]) -> Merged {
    let mut merged = Merged {
        listings: listings.to_vec(),
        pending: listings.iter().filter_map(|listing| listing.pending_seconds()).max(),
        ..Merged::default()
    };
    let mut pages = Pages::default();
    for (position, listing) in listings.iter().enumerate() {
        let mut findings = Findings::default();
        for tool in listing.tools().iter().flat_map(|tools| tools.iter()) {
            let exposed = router.expose(listing.alias(), &tool.name);
            if merged.index.contains_key(&exposed) {
                example(&mut findings.collisions, &exposed);
                continue;
            }
            if exposed.len() > LONGEST_NAME {
                example(&mut findings.long_names, &exposed);
            }
            pages.push(|out| tool.write_as(&exposed, out));
            merged.index.insert(exposed, position);
        }
        merged.reports.push(findings);
    }
    merged.pages = pages.finish();
    merged
}

fn example(examples: &mut Vec<String>, name: &str) {
    if examples.len() < EXAMPLES {
        examples.push(name.to_owned());
    }
}

#[derive(Default)]
struct Pages {
    done: Vec<Bytes>,
    open: String,
    tools: usize,
}

impl Pages {
    fn push(&mut self, write: impl FnOnce(&mut String)) {
        if self.tools == PAGE_TOOLS || self.open.len() >= PAGE_BYTES {
            self.done.push(Bytes::from(std::mem::take(&mut self.open)));
            self.tools = 0;
        }
        if self.tools > 0 {
            self.open.push(',');
        }
        write(&mut self.open);
        self.tools += 1;
    }

    fn finish(mut self) -> Vec<Bytes> {
        self.done.push(Bytes::from(self.open));
        self.done
    }
}

impl Merged {
    /// The same list without the tools that a caller may not see. Names stay with the targets that have them in the
    /// whole list: what is hidden from somebody does not change what a name means.
    #[must_use]
    pub fn visible(&self, router: &Router, access: &Access<'_>) -> Self {
        let mut pages = Pages::default();
        for (position, listing) in self.listings.iter().enumerate() {
            for tool in listing.tools().iter().flat_map(|tools| tools.iter()) {
                let exposed = router.expose(listing.alias(), &tool.name);
                if self.target_of(&exposed) == Some(position)
                    && access.allows_tool(listing.alias(), &tool.name)
                {
                    pages.push(|out| tool.write_as(&exposed, out));
                }
            }
        }
        Self { pages: pages.finish(), ..Self::default() }
    }

    /// Whether clients see the same list.
    pub fn same_list(&self, other: &Self) -> bool {
        self.pages == other.pages
    }

    /// Which target's tool is shown under `exposed`, by its position.
    pub fn target_of(&self, exposed: &str) -> Option<usize> {
        self.index.get(exposed).copied()
    }

    /// The `result` of the page that `cursor` names; none where it names no page of `generation`.
    ///
    /// A cursor is bound to its generation: a page of a list that has changed would skip or repeat tools.
    pub fn page(&self, cursor: Option<&str>, generation: u64) -> Option<Bytes> {
        let number = match cursor {
            None => 0,
            Some(cursor) => {
                let (of, number) = cursor.split_once('.')?;
                if of.parse() != Ok(generation) {
                    return None;
                }
                number.parse::<usize>().ok().filter(|number| *number > 0)?
            }
        };
        // No target at all is one empty page, too.
        let tools = self.pages.get(number).map_or(&b""[..], |page| page.as_ref());
        if number > 0 && number >= self.pages.len() {
            return None;
        }
        let mut out = Vec::with_capacity(tools.len() + 64);
        out.extend_from_slice(br#"{"tools":["#);
        out.extend_from_slice(tools);
        out.push(b']');
        if number + 1 < self.pages.len() {
            out.extend_from_slice(format!(r#","nextCursor":"{generation}.{}""#, number + 1).as_bytes());
        }
        out.push(b'}');
        Some(Bytes::from(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        auth::Caller,
        catalog::tools::Tool,
        testing::{router, target},
        version::LATEST,
    };
    use mooring_crds::config::{AccessRule, Naming};

    fn listing(alias: &str, names: &[String]) -> Arc<Listing> {
        let tools = names.iter().map(|name| Tool::read(format!(r#"{{"name":"{name}"}}"#).into()).unwrap());
        Arc::new(Listing::ready(&target(alias), LATEST, tools.collect()))
    }

    fn names(page: &Bytes) -> (Vec<String>, Option<String>) {
        let value: serde_json::Value = serde_json::from_slice(page).unwrap();
        let tools = value["tools"].as_array().unwrap();
        let names = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        (names, value["nextCursor"].as_str().map(str::to_owned))
    }

    #[test]
    fn every_tool_is_on_exactly_one_page_and_pages_are_in_order() {
        let many: Vec<String> = (0..2500).map(|n| format!("t{n}")).collect();
        let merged = merge(&router(&["a", "b"]), &[listing("a", &many), listing("b", &["x".to_owned()])]);
        let (mut all, mut cursor, mut pages) = (Vec::new(), None, 0);
        loop {
            let (names, next) = names(&merged.page(cursor.as_deref(), 7).unwrap());
            all.extend(names);
            pages += 1;
            match next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        let want: Vec<String> = many.iter().map(|n| format!("a___{n}")).chain(["b___x".to_owned()]).collect();
        assert_eq!((all, pages), (want, 3));
    }

    #[test]
    fn a_cursor_of_another_list_or_of_nobody_names_no_page() {
        let many: Vec<String> = (0..1500).map(|n| format!("t{n}")).collect();
        let merged = merge(&router(&["a"]), &[listing("a", &many)]);
        assert!(merged.page(Some("7.1"), 7).is_some());
        for cursor in ["6.1", "7.0", "7.2", "7.-1", "", "x", "7"] {
            assert!(merged.page(Some(cursor), 7).is_none(), "{cursor}");
        }
    }

    #[test]
    fn of_two_tools_with_one_name_the_older_targets_is_shown_and_the_other_is_reported() {
        let plain = Router::new(Naming::Plain, ["old", "new"]);
        let same = ["echo".to_owned()];
        let merged = merge(&plain, &[listing("old", &same), listing("new", &same)]);
        assert_eq!(merged.target_of("echo"), Some(0));
        assert_eq!(names(&merged.page(None, 0).unwrap()).0, ["echo"]);
        assert_eq!(merged.reports[1].collisions, ["echo"]);
    }

    #[test]
    fn what_a_caller_may_not_see_is_left_out_and_names_mean_the_same_for_all() {
        let plain = Router::new(Naming::Plain, ["old", "new"]);
        let (echo, both) = (["echo".to_owned()], ["echo".to_owned(), "get".to_owned()]);
        let merged = merge(&plain, &[listing("old", &echo), listing("new", &both)]);
        let rule = AccessRule { targets: vec!["new".to_owned()], ..AccessRule::default() };
        let (rules, nobody) = ([rule], Caller::anonymous());
        let visible = merged.visible(&plain, &Access::of(&rules, &nobody));
        assert_eq!(
            names(&visible.page(None, 0).unwrap()).0,
            ["get"],
            "echo is old's, also for who does not see old"
        );
        let all = merged.visible(&plain, &Access::of(&[], &nobody));
        assert!(all.same_list(&merged));
    }

    #[test]
    fn names_that_clients_may_refuse_are_reported_and_still_shown() {
        let long = "x".repeat(64);
        let merged = merge(&router(&["a"]), &[listing("a", std::slice::from_ref(&long))]);
        assert_eq!(merged.reports[0].long_names, [format!("a___{long}")]);
        assert_eq!(names(&merged.page(None, 0).unwrap()).0.len(), 1);
    }

    #[test]
    fn a_gateway_without_targets_has_one_empty_page() {
        assert_eq!(Merged::default().page(None, 0).unwrap().as_ref(), br#"{"tools":[]}"#);
    }
}
