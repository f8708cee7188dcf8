//! Names of children: valid, short enough, and nobody else's.

use std::collections::BTreeSet;

use mooring_crds::names::{GatewayNames, gateway, instance};

/// Names that a gateway may have: subdomains of up to 253 characters, chosen to be near each other.
fn tricky() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = [
        "a",
        "1",
        "123",
        "0a",
        "a-b",
        "a.b",
        "a--b",
        "a.-b",
        "a-b-c",
        "tools",
        "tools-mcp",
        "tools-mcp-config",
        "g-1",
        "g-123",
        "mooring-operator",
        "mooring-operator-mcp",
        "x-00000000",
        "x-deadbeef",
        "run-1a2b3c4d",
        "a.b.c",
    ]
    .map(str::to_owned)
    .into();
    for length in [30, 39, 40, 47, 48, 49, 52, 62, 63, 64, 65, 253] {
        for last in ["a", "b", "1"] {
            for middle in ["x", "1", "a.", "a-"] {
                let stem: String = middle.chars().cycle().take(length - 1).collect();
                names.insert(format!("{}{last}", stem.trim_end_matches(['.', '-'])));
            }
        }
    }
    // What one name is shortened to is another name too, and again.
    for _ in 0..3 {
        let made: Vec<_> = names.iter().map(|name| gateway(name).workload).collect();
        names.extend(made.iter().filter_map(|workload| workload.strip_suffix("-mcp").map(str::to_owned)));
        names.extend(made);
        let labels: Vec<_> = names.iter().map(|name| instance(name)).collect();
        names.extend(labels);
    }
    names
}

#[test]
fn a_plain_name_is_kept() {
    let names = GatewayNames {
        workload: "tools-mcp".to_owned(),
        config: "tools-mcp-config".to_owned(),
        report: "tools-mcp-report".to_owned(),
        credentials: "tools-mcp-credentials".to_owned(),
    };
    assert_eq!(gateway("tools"), names);
    assert_eq!(instance("tools.v1"), "tools.v1");
}

#[test]
fn a_shortened_name_is_the_same_in_every_version() {
    assert_eq!(gateway("tools.v1").workload, "tools-v1-ad48b699-mcp");
    assert_eq!(gateway("1").workload, "g-1-296236b0-mcp");
}

#[test]
fn no_two_gateways_share_a_child_or_a_label() {
    let names = tricky();
    let mut children = BTreeSet::new();
    let mut labels = BTreeSet::new();
    for name in &names {
        let GatewayNames { workload, config, report, credentials } = gateway(name);
        for child in [workload, config, report, credentials] {
            assert!(children.insert(child.clone()), "{name}: {child} is another's");
        }
        assert!(labels.insert(instance(name)), "{name}: {} is another's", instance(name));
    }
    assert!(names.len() > 200, "{}", names.len());
}

#[test]
fn every_name_is_one_that_its_object_may_have() {
    for name in tricky() {
        let GatewayNames { workload, config, report, credentials } = gateway(&name);
        assert!(workload.len() <= 52, "{name}: {workload}");
        for child in [&workload, &config, &report] {
            assert!(child.starts_with(|c: char| c.is_ascii_lowercase()), "{name}: {child}");
            assert!(
                child.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
                "{name}: {child}"
            );
            assert!(!child.ends_with('-') && child.len() <= 63, "{name}: {child}");
        }
        // A Secret's name is a subdomain, which may be longer than a label.
        assert_eq!(credentials, format!("{workload}-credentials"));
        let label = instance(&name);
        assert!(label.len() <= 63 && !label.ends_with(['-', '.', '_']), "{name}: {label}");
    }
}
