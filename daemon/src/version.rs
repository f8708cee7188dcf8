//! Pure: the MCP versions that this daemon speaks, and which one a session gets.

/// A released version of the legacy era: one that begins with `initialize` (facts of the protocol's §1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// Without structured results; no version header.
    V2024_11_05,
    /// Streamable HTTP and session ids.
    V2025_03_26,
    /// The version header, elicitation.
    V2025_06_18,
    /// The newest with sessions.
    V2025_11_25,
}

/// All of them, oldest first.
pub const VERSIONS: [Version; 4] =
    [Version::V2024_11_05, Version::V2025_03_26, Version::V2025_06_18, Version::V2025_11_25];

/// What a client that asks for an unknown or newer version is answered.
pub const LATEST: Version = Version::V2025_11_25;

impl Version {
    /// As it stands in messages and headers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }

    /// The version of that name, where we speak it.
    pub fn parse(text: &str) -> Option<Self> {
        VERSIONS.into_iter().find(|version| version.as_str() == text)
    }

    /// What a client that asks for `requested` gets (2025-11-25, lifecycle, version negotiation).
    pub fn negotiate(requested: &str) -> Self {
        Self::parse(requested).unwrap_or(LATEST)
    }
}

/// The names of all of them, for people.
pub fn list() -> String {
    VERSIONS.map(Version::as_str).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_version_is_kept_and_any_other_becomes_the_newest_with_sessions() {
        for version in VERSIONS {
            assert_eq!(Version::negotiate(version.as_str()), version);
        }
        for other in ["2026-07-28", "1900-01-01", "", "not-a-version"] {
            assert_eq!(Version::negotiate(other), LATEST, "{other}");
        }
    }
}
