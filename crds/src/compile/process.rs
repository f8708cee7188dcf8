//! Pure: a container's command as a process of this machine, with the variables that a kubelet would expand in it.

use std::collections::BTreeMap;

use crate::config::{CommandConfig, Isolation};
use crate::server::{self, ContainerServer};

/// The process of a container; `accept_target` has seen that nothing is written that it cannot have.
pub(super) fn command(container: &ContainerServer) -> CommandConfig {
    let mut env = BTreeMap::new();
    // In order: a value may refer to variables above it.
    for variable in &container.env {
        let value = expand(variable.value.as_deref().unwrap_or_default(), &env);
        env.insert(variable.name.clone(), value);
    }
    let words = container.command.iter().chain(&container.args);
    CommandConfig {
        command: words.map(|word| expand(word, &env)).collect(),
        isolation: match container.isolation {
            None | Some(server::Isolation::PerSession) => Isolation::PerSession,
            Some(server::Isolation::Shared) => Isolation::Shared,
        },
        env,
    }
}

/// `$(NAME)` is the variable's value, and stays as it is where there is none; `$$` is one dollar (core/v1, Container).
fn expand(text: &str, env: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let reference = after.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        rest = if let Some(escaped) = after.strip_prefix('$') {
            out.push('$');
            escaped
        } else if let Some((value, behind)) =
            reference.and_then(|(name, behind)| Some((env.get(name)?, behind)))
        {
            out.push_str(value);
            behind
        } else {
            out.push('$');
            after
        };
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_as_in_a_pod() {
        let env = BTreeMap::from([("A".to_owned(), "1$(A)".to_owned())]);
        for (text, expanded) in [
            ("plain", "plain"),
            ("x$(A)y", "x1$(A)y"),
            ("$(B)", "$(B)"),
            ("$$(A)", "$(A)"),
            ("$A $", "$A $"),
            ("$(A", "$(A"),
            ("$$$(A)", "$1$(A)"),
        ] {
            assert_eq!(expand(text, &env), expanded, "{text}");
        }
    }
}
