//! Pure: what a daemon tells the operator of its targets.

use mooring_crds::config::{Report, TargetReport};

use super::{
    kind::Kind,
    merge::{Findings, Merged},
};

/// The report of a merged list under the configuration of this digest.
pub fn report(digest: &str, merged: &Merged) -> Report {
    let targets = merged.listings.iter().zip(&merged.reports).map(|(listing, findings)| {
        let Findings { long_names, collisions } = findings.clone();
        TargetReport {
            uid: listing.uid().to_owned(),
            state: listing.state(),
            protocol_version: listing.version().map(|version| version.as_str().to_owned()),
            tools: i32::try_from(listing.items(Kind::Tools).len()).unwrap_or(i32::MAX),
            message: listing.message(),
            long_names,
            collisions,
        }
    });
    Report { config: digest.to_owned(), targets: targets.collect() }
}
