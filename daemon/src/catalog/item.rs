//! Pure: what one target lists of one kind: raw items, as it wrote them, with only what names them read.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::kind::Kind;
use crate::jsonrpc::envelope::text;

/// The most items of one kind that one target may list; what is beyond is cut off, and said in the log.
pub const MOST_ITEMS: usize = 10_000;

/// A tool, a prompt, a resource or a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its own name, URI or URI template, unescaped.
    pub name: String,
    /// The item as the target wrote it.
    raw: Box<str>,
    /// Where in `raw` the name stands, with its quotes.
    name_at: Range<usize>,
}

/// A page of a list.
#[derive(Debug)]
pub struct Page {
    kind: Kind,
    items: Vec<Box<RawValue>>,
    /// Where to go on, raw.
    pub next_cursor: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    #[serde(default)]
    tools: Option<Vec<Box<RawValue>>>,
    #[serde(default)]
    prompts: Option<Vec<Box<RawValue>>>,
    #[serde(default)]
    resources: Option<Vec<Box<RawValue>>>,
    #[serde(default)]
    resource_templates: Option<Vec<Box<RawValue>>>,
    #[serde(default)]
    next_cursor: Option<Box<RawValue>>,
}

impl Page {
    /// Reads a `result`; none where it is no list of this kind.
    pub fn parse(kind: Kind, result: &str) -> Option<Self> {
        let Wire { tools, prompts, resources, resource_templates, next_cursor } =
            serde_json::from_str(result).ok()?;
        let items = match kind {
            Kind::Tools => tools,
            Kind::Prompts => prompts,
            Kind::Resources => resources,
            Kind::Templates => resource_templates,
        };
        Some(Self { kind, items: items?, next_cursor })
    }

    /// Its items; one without a name is none and left out.
    pub fn items(self) -> impl Iterator<Item = Item> {
        let kind = self.kind;
        self.items.into_iter().filter_map(move |raw| Item::read(kind, raw.get().into()))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri_template: Option<&'a RawValue>,
}

impl Item {
    /// Reads one item.
    pub fn read(kind: Kind, raw: Box<str>) -> Option<Self> {
        // serde would read a struct from an array, too.
        if !raw.trim_ascii_start().starts_with('{') {
            return None;
        }
        let Named { name, uri, uri_template } = serde_json::from_str(&raw).ok()?;
        let name = match kind {
            Kind::Tools | Kind::Prompts => name,
            Kind::Resources => uri,
            Kind::Templates => uri_template,
        }?;
        let start = name.get().as_ptr().addr() - raw.as_ptr().addr();
        let name_at = start..start + name.get().len();
        let name = text(name.get().as_bytes()).ok()?.into_owned();
        if name.is_empty() { None } else { Some(Self { name, raw, name_at }) }
    }

    /// Writes the item under another name, everything else as it came. Under its own it is not touched at all.
    pub fn write_as(&self, exposed: &str, out: &mut String) {
        if exposed == self.name {
            out.push_str(&self.raw);
            return;
        }
        let (before, after) = (self.raw.get(..self.name_at.start), self.raw.get(self.name_at.end..));
        out.push_str(before.unwrap_or_default());
        out.push_str(&serde_json::Value::from(exposed).to_string());
        out.push_str(after.unwrap_or_default());
    }

    /// As the target wrote it.
    pub fn raw(&self) -> &str {
        &self.raw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renaming_an_item_leaves_everything_else_as_the_target_wrote_it() {
        let raw = r#"{ "x-new": {"name":"inner"}, "name" : "get\u002dsum", "inputSchema":{"n":1.0e2}, "name2":"get-sum" }"#;
        let tool = Item::read(Kind::Tools, raw.into()).unwrap();
        assert_eq!(tool.name, "get-sum");
        let mut out = String::new();
        tool.write_as("a___get-sum", &mut out);
        assert_eq!(out, raw.replace(r#""get\u002dsum""#, r#""a___get-sum""#));
        out.clear();
        tool.write_as("get-sum", &mut out);
        assert_eq!(out, raw);
    }

    #[test]
    fn what_has_no_name_is_no_item() {
        for raw in ["{}", r#"{"name":""}"#, r#"{"name":1}"#, r#"["name"]"#, "null", r#"{"uri":"a:b"}"#] {
            assert_eq!(Item::read(Kind::Tools, raw.into()), None, "{raw}");
        }
        assert_eq!(Item::read(Kind::Resources, r#"{"name":"a"}"#.into()), None);
        let page = r#"{"tools":[{"name":"a"},{},{"name":"b"}],"nextCursor":"x"}"#;
        let page = Page::parse(Kind::Tools, page).unwrap();
        assert_eq!(page.next_cursor.as_ref().map(|cursor| cursor.get()), Some(r#""x""#));
        assert_eq!(page.items().map(|tool| tool.name).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn each_kind_is_named_by_a_field_of_its_own() {
        let both = r#"{"name":"n","uri":"a:b","uriTemplate":"a:{b}"}"#;
        let named = |kind| Item::read(kind, both.into()).unwrap().name;
        assert_eq!((named(Kind::Prompts), named(Kind::Resources)), ("n".to_owned(), "a:b".to_owned()));
        assert_eq!(named(Kind::Templates), "a:{b}");
        let templates = r#"{"resourceTemplates":[{"name":"t","uriTemplate":"a:{b}"}]}"#;
        assert!(Page::parse(Kind::Resources, templates).is_none(), "a list of another kind");
        assert_eq!(Page::parse(Kind::Templates, templates).unwrap().items().count(), 1);
    }
}
