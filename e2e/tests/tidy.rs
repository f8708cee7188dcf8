//! Rules of this repository that no compiler knows: what is written of files in ARCHITECTURE.md holds of the files.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const LONGEST: usize = 400;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
}

/// Every Rust file of the workspace, with its path below the root and its text.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for member in ["crds", "runtime", "operator", "daemon", "e2e", "fuzz", "e2e/clients/rust"] {
        for folder in ["src", "tests", "benches", "fuzz_targets"] {
            let folder = root().join(member).join(folder);
            if folder.is_dir() {
                walk(&folder, &mut found);
            }
        }
    }
    let below = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    found.iter().map(|path| (below(path), fs::read_to_string(path).unwrap())).collect()
}

fn assert_none(offenders: &[String], rule: &str) {
    assert!(offenders.is_empty(), "{rule}:\n  {}", offenders.join("\n  "));
}

#[test]
fn every_file_begins_with_what_it_is_for() {
    let offenders: Vec<String> =
        sources().into_iter().filter(|(_, text)| !text.starts_with("//! ")).map(|(path, _)| path).collect();
    assert_none(&offenders, "these files do not begin with `//! `");
}

#[test]
fn no_file_is_longer_than_400_lines() {
    let long = |(path, text): (String, String)| {
        let lines = text.lines().count();
        (lines > LONGEST).then(|| format!("{path} ({lines})"))
    };
    let offenders: Vec<String> = sources().into_iter().filter_map(long).collect();
    assert_none(&offenders, "these files are too long");
}

#[test]
fn a_file_that_says_it_is_pure_has_no_io_no_clock_and_no_task() {
    let forbidden = [
        "async fn",
        "async move",
        ".await",
        "Instant::now",
        "SystemTime",
        "Clock",
        ".spawn(",
        "kube::Client",
        "std::fs",
        "tokio::net",
    ];
    let mut offenders = Vec::new();
    let mut pure = 0;
    for (path, text) in sources() {
        if !text.starts_with("//! Pure") {
            continue;
        }
        pure += 1;
        // Tests may do what they must.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        for (number, line) in code.enumerate() {
            for word in forbidden.iter().filter(|word| line.contains(**word)) {
                offenders.push(format!("{path}: line of code {}: {word}", number + 1));
            }
        }
    }
    assert!(pure > 10, "the marker is `//! Pure`, and many files have it");
    assert_none(&offenders, "these files say that they are pure and are not");
}

#[test]
fn no_file_is_left_out_of_the_build() {
    let sources = sources();
    let mut named = BTreeSet::new();
    for (path, text) in &sources {
        let path = Path::new(path);
        let (folder, stem) = (path.parent().unwrap(), path.file_stem().unwrap().to_str().unwrap());
        let is_root = matches!(stem, "lib" | "main")
            || ["tests", "benches", "bin", "fuzz_targets"].iter().any(|root| folder.ends_with(root));
        let children = if is_root { folder.to_owned() } else { folder.join(stem) };
        for line in text.lines().map(str::trim_start) {
            if let Some(given) = line.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix(".rs\"]"))
            {
                named.insert(folder.join(given));
            }
            let line = line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) ")).unwrap_or(line);
            if let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
                named.insert(children.join(name));
                named.insert(children.join(stem).join(name));
            }
        }
    }
    let is_target = |path: &Path| {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let parent = path.parent().unwrap();
        matches!(stem, "lib" | "main")
            || ["tests", "benches", "bin", "fuzz_targets"].iter().any(|root| parent.ends_with(root))
    };
    let orphan = |(path, _): &(String, String)| {
        let path = Path::new(path);
        let known = is_target(path) || named.contains(&path.with_extension(""));
        (!known).then(|| path.display().to_string())
    };
    let offenders: Vec<String> = sources.iter().filter_map(orphan).collect();
    assert_none(&offenders, "nothing names these files in a `mod`");
}

#[test]
fn every_path_that_the_architecture_names_is_there() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let offenders: Vec<String> = text
        .split('`')
        .skip(1)
        .step_by(2)
        .flat_map(expand)
        .filter(|word| {
            word.contains('/') && (word.ends_with('/') || Path::new(word).extension() == Some("rs".as_ref()))
        })
        .filter(|word| !root().join(word).exists() && !root().join("daemon/src").join(word).exists())
        .collect();
    assert_none(&offenders, "ARCHITECTURE.md names what is not there");
}

/// `a/{b,c}.rs` as the two paths that it stands for.
fn expand(word: &str) -> Vec<String> {
    let Some((before, rest)) = word.split_once('{') else { return vec![word.to_owned()] };
    let Some((names, after)) = rest.split_once('}') else { return vec![word.to_owned()] };
    names.split(',').map(|name| format!("{before}{name}{after}")).collect()
}
