//! Pure: what a caller sees and may call (`spec.access`). Where there is any rule, what none allows does not exist.

use mooring_crds::config::AccessRule;

use crate::{auth::Caller, catalog::kind::Kind, glob};

/// What one caller sees and may call, by the rules of one configuration.
#[derive(Debug, Clone)]
pub struct Access<'r> {
    /// The rules that are for this caller; none where there are no rules at all.
    granted: Option<Vec<&'r AccessRule>>,
}

impl<'r> Access<'r> {
    /// What `caller` gets of `rules`.
    pub fn of(rules: &'r [AccessRule], caller: &Caller) -> Self {
        let granted = || rules.iter().filter(|rule| is_for(rule, caller)).collect();
        Self { granted: (!rules.is_empty()).then(granted) }
    }

    /// Whether nothing is hidden from the caller, since there are no rules.
    pub fn is_unlimited(&self) -> bool {
        self.granted.is_none()
    }

    /// Whether the caller sees the target of this alias: its prompts and resources, and those of its tools that
    /// [`Self::allows_tool`] allows.
    pub fn sees_target(&self, alias: &str) -> bool {
        self.rules_of(alias).next().is_some()
    }

    /// Whether the caller may call the tool that the target of this alias calls `own`, and sees it listed.
    pub fn allows_tool(&self, alias: &str, own: &str) -> bool {
        self.rules_of(alias)
            .any(|rule| rule.is_none_or(|rule| rule.tools.is_empty() || glob::any(&rule.tools, own)))
    }

    /// The rules that grant something of a target; without any rule at all, one that grants everything.
    fn rules_of<'a>(&'a self, alias: &'a str) -> impl Iterator<Item = Option<&'r AccessRule>> + 'a {
        let names = move |rule: &&AccessRule| {
            rule.targets.is_empty() || rule.targets.iter().any(|target| target == alias)
        };
        let unlimited = self.is_unlimited().then_some(None);
        unlimited.into_iter().chain(self.granted.iter().flatten().copied().filter(names).map(Some))
    }
}

/// What of the catalogue's lists a caller of this access sees: tools by the target's own names, all else by target.
pub fn sees(access: Access<'_>) -> impl Fn(Kind, &str, &str) -> bool + Send + Sync {
    move |kind, alias, own| match kind {
        Kind::Tools => access.allows_tool(alias, own),
        Kind::Prompts | Kind::Resources | Kind::Templates => access.sees_target(alias),
    }
}

/// Whether a rule is for a caller: by subject, and by claims, all of them.
fn is_for(rule: &AccessRule, caller: &Caller) -> bool {
    let AccessRule { subjects, claims, targets: _, tools: _ } = rule;
    let named = || caller.subject().is_some_and(|subject| subjects.iter().any(|named| named == subject));
    (subjects.is_empty() || named()) && claims.iter().all(|wanted| caller.claims.has(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{auth::Claims, session::record::Principal};
    use mooring_crds::config::ClaimValues;
    use serde_json::{Value, json};

    fn caller(claims: Value) -> Caller {
        let Value::Object(claims) = claims else { panic!("no object") };
        Caller {
            principal: Principal::Oidc { issuer: "i".into(), subject: "s".into() },
            claims: Claims::from(claims),
            token: None,
        }
    }

    fn rule(subjects: &[&str], groups: &[&str], targets: &[&str], tools: &[&str]) -> AccessRule {
        let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let claim = ClaimValues { claim: "groups".to_owned(), values: own(groups) };
        AccessRule {
            subjects: own(subjects),
            claims: if groups.is_empty() { Vec::new() } else { vec![claim] },
            targets: own(targets),
            tools: own(tools),
        }
    }

    #[test]
    fn without_rules_everything_is_seen_and_with_any_rule_only_what_one_allows() {
        let alice = caller(json!({"sub": "alice"}));
        let all = Access::of(&[], &alice);
        assert!(all.is_unlimited() && all.sees_target("a") && all.allows_tool("a", "x"));
        let rules = [rule(&["bob"], &[], &[], &[])];
        let none = Access::of(&rules, &alice);
        assert!(!none.is_unlimited() && !none.sees_target("a") && !none.allows_tool("a", "x"));
        let open = [rule(&[], &[], &[], &[])];
        assert!(Access::of(&open, &alice).allows_tool("a", "x"));
    }

    #[test]
    fn a_rule_is_for_those_whom_it_names_and_who_have_all_its_claims() {
        let rules = [rule(&["alice", "bob"], &["dev"], &["a"], &[])];
        let sees = |claims| Access::of(&rules, &caller(claims)).sees_target("a");
        assert!(sees(json!({"sub": "bob", "groups": ["ops", "dev"]})));
        assert!(!sees(json!({"sub": "bob", "groups": ["ops"]})));
        assert!(!sees(json!({"sub": "carol", "groups": ["dev"]})));
        assert!(!sees(json!({"groups": ["dev"]})));
        let nobody = Caller::anonymous();
        assert!(!Access::of(&rules, &nobody).sees_target("a"));
        let open = [rule(&[], &[], &["a"], &[])];
        assert!(Access::of(&open, &nobody).sees_target("a"));
    }

    #[test]
    fn rules_add_up_and_patterns_limit_tools_of_the_rules_own_targets_alone() {
        let rules = [rule(&[], &[], &["a"], &["get_*"]), rule(&[], &[], &["b"], &[])];
        let anybody = caller(json!({}));
        let access = Access::of(&rules, &anybody);
        assert!(access.sees_target("a") && access.sees_target("b") && !access.sees_target("c"));
        assert!(access.allows_tool("a", "get_sum") && !access.allows_tool("a", "delete_sum"));
        assert!(access.allows_tool("b", "delete_sum"));
        assert!(!access.allows_tool("c", "get_sum"));
    }
}
