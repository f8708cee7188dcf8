//! Pure: the tools of one target, as it listed them: raw, with only their names read.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonrpc::envelope::text;

/// The most tools that one target may list; what is beyond is cut off, and said in the log.
pub const MOST_TOOLS: usize = 10_000;

/// One tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Its own name, unescaped.
    pub name: String,
    /// The tool as the target wrote it.
    raw: Box<str>,
    /// Where in `raw` the name stands, with its quotes.
    name_at: Range<usize>,
}

/// A page of `tools/list`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page {
    tools: Vec<Box<RawValue>>,
    /// Where to go on, raw.
    #[serde(default)]
    pub next_cursor: Option<Box<RawValue>>,
}

impl Page {
    /// Reads a `result`.
    ///
    /// # Errors
    /// Where it is no list of tools.
    pub fn parse(result: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(result)
    }

    /// Its tools; one without a name is no tool and left out.
    pub fn tools(self) -> impl Iterator<Item = Tool> {
        self.tools.into_iter().filter_map(|raw| Tool::read(raw.get().into()))
    }
}

impl Tool {
    /// Reads one tool.
    pub fn read(raw: Box<str>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Named<'a> {
            #[serde(borrow)]
            name: &'a RawValue,
        }
        if !raw.trim_ascii_start().starts_with('{') {
            return None;
        }
        let Named { name } = serde_json::from_str(&raw).ok()?;
        let start = name.get().as_ptr().addr() - raw.as_ptr().addr();
        let name_at = start..start + name.get().len();
        let name = text(name.get().as_bytes()).ok()?.into_owned();
        if name.is_empty() { None } else { Some(Self { name, raw, name_at }) }
    }

    /// Writes the tool under another name, everything else as it came.
    pub fn write_as(&self, exposed: &str, out: &mut String) {
        let (before, after) = (self.raw.get(..self.name_at.start), self.raw.get(self.name_at.end..));
        out.push_str(before.unwrap_or_default());
        out.push_str(&serde_json::Value::from(exposed).to_string());
        out.push_str(after.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renaming_a_tool_leaves_everything_else_as_the_target_wrote_it() {
        let raw = r#"{ "x-new": {"name":"inner"}, "name" : "get\u002dsum", "inputSchema":{"n":1.0e2}, "name2":"get-sum" }"#;
        let tool = Tool::read(raw.into()).unwrap();
        assert_eq!(tool.name, "get-sum");
        let mut out = String::new();
        tool.write_as("a___get-sum", &mut out);
        assert_eq!(out, raw.replace(r#""get\u002dsum""#, r#""a___get-sum""#));
    }

    #[test]
    fn what_has_no_name_is_no_tool() {
        for raw in ["{}", r#"{"name":""}"#, r#"{"name":1}"#, r#"["name"]"#, "null"] {
            assert_eq!(Tool::read(raw.into()), None, "{raw}");
        }
        let page = Page::parse(r#"{"tools":[{"name":"a"},{},{"name":"b"}],"nextCursor":"x"}"#).unwrap();
        assert_eq!(page.next_cursor.as_ref().map(|cursor| cursor.get()), Some(r#""x""#));
        assert_eq!(page.tools().map(|tool| tool.name).collect::<Vec<_>>(), ["a", "b"]);
    }
}
