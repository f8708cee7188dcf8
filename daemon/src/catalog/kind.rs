//! Pure: the kinds of things that targets list, and what each is called in messages (2025-11-25, server features).

/// A kind of list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `tools/list`.
    Tools,
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
}

/// All of them.
pub const ALL: [Kind; 4] = [Kind::Tools, Kind::Prompts, Kind::Resources, Kind::Templates];

impl Kind {
    /// The kind that a method lists.
    pub fn of_method(method: &str) -> Option<Self> {
        ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// The method that lists it.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// The member of a result that holds the list.
    pub const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The capability that a target announces it by.
    pub const fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
        }
    }

    /// The notification that it has changed; resources and their templates share one.
    pub const fn notification(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources | Self::Templates => "notifications/resources/list_changed",
        }
    }

    /// What one item is called, to people.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Tools => "tool",
            Self::Prompts => "prompt",
            Self::Resources => "resource",
            Self::Templates => "resource template",
        }
    }

    /// Whether its items are exposed under a name that shows their target. URIs pass unchanged.
    pub const fn is_named(self) -> bool {
        match self {
            Self::Tools | Self::Prompts => true,
            Self::Resources | Self::Templates => false,
        }
    }
}

/// The kinds of lists that a notification says have changed; none where it is no such notification.
pub fn of_notification(method: &str) -> impl Iterator<Item = Kind> {
    ALL.into_iter().filter(move |kind| kind.notification() == method)
}

/// The notifications that tell of changes of these kinds, each once.
pub fn notifications(kinds: &[Kind]) -> Vec<&'static str> {
    let mut told: Vec<&'static str> = kinds.iter().map(|kind| kind.notification()).collect();
    told.dedup();
    told
}

/// One value for each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByKind<T> {
    tools: T,
    prompts: T,
    resources: T,
    templates: T,
}

impl<T> ByKind<T> {
    /// The value that `of` gives for each kind.
    pub fn new(mut of: impl FnMut(Kind) -> T) -> Self {
        Self {
            tools: of(Kind::Tools),
            prompts: of(Kind::Prompts),
            resources: of(Kind::Resources),
            templates: of(Kind::Templates),
        }
    }

    /// The value of one kind.
    pub const fn get(&self, kind: Kind) -> &T {
        match kind {
            Kind::Tools => &self.tools,
            Kind::Prompts => &self.prompts,
            Kind::Resources => &self.resources,
            Kind::Templates => &self.templates,
        }
    }

    /// Changes the value of one kind.
    pub fn set(&mut self, kind: Kind, value: T) {
        let slot = match kind {
            Kind::Tools => &mut self.tools,
            Kind::Prompts => &mut self.prompts,
            Kind::Resources => &mut self.resources,
            Kind::Templates => &mut self.templates,
        };
        *slot = value;
    }
}

impl ByKind<bool> {
    /// The kinds whose value is true.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        let all = *self;
        ALL.into_iter().filter(move |kind| *all.get(*kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_of_the_kind_that_it_lists_and_resources_share_a_notification() {
        for kind in ALL {
            assert_eq!(Kind::of_method(kind.method()), Some(kind));
        }
        assert_eq!(Kind::of_method("tools/call"), None);
        assert_eq!(
            notifications(&ALL),
            [
                "notifications/tools/list_changed",
                "notifications/prompts/list_changed",
                "notifications/resources/list_changed"
            ]
        );
    }

    #[test]
    fn each_kind_has_a_value_of_its_own() {
        let mut values = ByKind::new(|kind| kind == Kind::Prompts);
        values.set(Kind::Templates, true);
        assert_eq!(values.kinds().collect::<Vec<_>>(), [Kind::Prompts, Kind::Templates]);
    }
}
