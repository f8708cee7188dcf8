//! What the environment may say, read here and nowhere else.

use std::{env, ffi::OsString, path::PathBuf};

/// Where the `moored` binary is, or none if `MOORING_MOORED_BIN` says nothing and none lies beside this executable.
pub fn moored_binary() -> Option<PathBuf> {
    binary("MOORING_MOORED_BIN", "moored")
}

/// Where the `mooring-operator` binary is, by the same rule.
pub fn operator_binary() -> Option<PathBuf> {
    binary("MOORING_OPERATOR_BIN", "mooring-operator")
}

/// Where everything fetched or built for tests is kept: `MOORING_CACHE`, else `mooring` in the user's cache folder.
pub fn cache() -> PathBuf {
    let user = || set("XDG_CACHE_HOME").or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache").into()));
    set("MOORING_CACHE")
        .map_or_else(|| user().map_or_else(env::temp_dir, PathBuf::from).join("mooring"), PathBuf::from)
}

/// Where cargo builds: `CARGO_TARGET_DIR`, else `target` in the checkout.
pub fn target() -> PathBuf {
    set("CARGO_TARGET_DIR").map_or_else(|| checkout().join("target"), PathBuf::from)
}

/// The checkout that this works on. Cargo names it to what it runs; without Cargo it is the one that this was built
/// from, which is another one where two checkouts share a target folder.
pub fn checkout() -> PathBuf {
    let crate_folder =
        set("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    crate_folder.parent().map_or_else(|| crate_folder.clone(), ToOwned::to_owned)
}

/// The kubeconfig context that cluster tests use, if `MOORING_CONTEXT` names one.
pub fn context() -> Option<String> {
    set("MOORING_CONTEXT").and_then(|context| context.into_string().ok())
}

/// The seed of tests that go by chance, if `MOORING_SEED` says one: to repeat a run that printed it.
pub fn seed() -> Option<u64> {
    set("MOORING_SEED").and_then(|seed| seed.into_string().ok()?.parse().ok())
}

fn set(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// A binary that a variable names, else one beside this executable (tests lie one folder deeper, in `deps`).
fn binary(variable: &str, name: &str) -> Option<PathBuf> {
    let beside = || {
        let executable = env::current_exe().ok()?;
        executable.ancestors().skip(1).take(2).map(|folder| folder.join(name)).find(|path| path.is_file())
    };
    set(variable).map(PathBuf::from).or_else(beside)
}
