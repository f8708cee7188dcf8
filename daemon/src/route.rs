//! Pure: from a tool's exposed name to a target and the tool's own name, and back.

use std::collections::HashMap;

use mooring_crds::config::Naming;

/// The longest exposed name that every client takes; longer ones are reported.
pub const LONGEST_NAME: usize = 64;

/// How names are read in one configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Router {
    naming: Naming,
    /// Alias to position in the configuration.
    aliases: HashMap<String, usize>,
}

/// Where a name leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route<'n> {
    /// To the target at this position, which calls the tool so.
    Target(usize, &'n str),
    /// To whichever target's catalogue lists it.
    Catalog(&'n str),
    /// Nowhere.
    None,
}

impl Router {
    /// A router for targets with these aliases, in the configuration's order.
    pub fn new(naming: Naming, aliases: impl IntoIterator<Item: Into<String>>) -> Self {
        let aliases = aliases.into_iter().enumerate().map(|(at, alias)| (alias.into(), at)).collect();
        Self { naming, aliases }
    }

    /// Reads an exposed name, which splits at its first separator: no alias holds one.
    pub fn route<'n>(&self, exposed: &'n str) -> Route<'n> {
        let separator = match &self.naming {
            Naming::Plain => return Route::Catalog(exposed),
            Naming::Prefixed { separator } => separator.as_str(),
        };
        let Some((alias, own)) = exposed.split_once(separator) else { return Route::None };
        self.aliases.get(alias).map_or(Route::None, |target| Route::Target(*target, own))
    }

    /// The name that clients see for a target's tool.
    pub fn expose(&self, alias: &str, own: &str) -> String {
        match &self.naming {
            Naming::Plain => own.to_owned(),
            Naming::Prefixed { separator } => format!("{alias}{separator}{own}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixed(separator: &str, aliases: &[&str]) -> Router {
        Router::new(Naming::Prefixed { separator: separator.to_owned() }, aliases.iter().copied())
    }

    #[test]
    fn an_exposed_name_leads_back_to_the_target_that_it_was_made_from() {
        let router = prefixed("___", &["weather", "a-b"]);
        for (at, alias) in ["weather", "a-b"].iter().enumerate() {
            for own in ["get", "with___separator", "", "_", "über"] {
                assert_eq!(router.route(&router.expose(alias, own)), Route::Target(at, own));
            }
        }
        assert_eq!(router.route("weather"), Route::None);
        assert_eq!(router.route("unknown___get"), Route::None);
    }

    #[test]
    fn a_name_splits_at_its_first_separator_even_where_a_tools_own_name_begins_with_an_alias() {
        let router = prefixed("-", &["a", "b"]);
        assert_eq!(router.route("a-b-c"), Route::Target(0, "b-c"));
        assert_eq!(router.route("c-a-b"), Route::None);
    }

    #[test]
    fn plain_names_are_looked_up_in_the_catalogue() {
        let router = Router::new(Naming::Plain, ["a"]);
        assert_eq!(router.route("a___x"), Route::Catalog("a___x"));
        assert_eq!(router.expose("a", "x"), "x");
    }
}
