//! The process's log: one JSON object a line on standard output, or text where a person reads.

use std::io::IsTerminal;

use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// A log filter that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the log filter {filter:?} cannot be read: {source}")]
pub struct BadFilter {
    filter: String,
    source: tracing_subscriber::filter::ParseError,
}

/// Starts logging with `filter`, such as `info` or `moored=debug,info`.
///
/// # Errors
/// Where `filter` cannot be read.
pub fn start(filter: &str, format: LogFormat) -> Result<(), BadFilter> {
    let parsed =
        EnvFilter::try_new(filter).map_err(|source| BadFilter { filter: filter.to_owned(), source })?;
    let text = match format {
        LogFormat::Text => true,
        LogFormat::Json => false,
        LogFormat::Auto => std::io::stdout().is_terminal(),
    };
    let registry = tracing_subscriber::registry().with(parsed);
    if text {
        registry.with(fmt::layer().with_target(false)).init();
    } else {
        registry
            .with(fmt::layer().json().flatten_event(true).with_current_span(false).with_span_list(false))
            .init();
    }
    Ok(())
}
