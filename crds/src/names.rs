//! Pure names of a gateway's children. No two gateways of a namespace share a child, whatever they are called.

/// A workload's longest name: a Deployment's pods add 17 characters to it, and 63 is the limit of a label.
const WORKLOAD_MAX: usize = 52;
/// The longest value of a label.
const LABEL_MAX: usize = 63;
/// `-` and eight hexadecimal digits.
const HASH_LENGTH: usize = 9;

/// The names of a gateway's children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayNames {
    /// Deployment, Service, ServiceAccount, Role, RoleBinding and PodDisruptionBudget: a DNS-1035 label.
    pub workload: String,
    /// The ConfigMap of the daemons' configuration.
    pub config: String,
    /// The ConfigMap the daemons report in.
    pub report: String,
    /// The Secret with the values that the configuration names by key.
    pub credentials: String,
}

/// The names of the children of the gateway called `name`.
pub fn gateway(name: &str) -> GatewayNames {
    let workload = workload(name, "-mcp");
    GatewayNames {
        config: format!("{workload}-config"),
        report: format!("{workload}-report"),
        credentials: format!("{workload}-credentials"),
        workload,
    }
}

/// `name` as the value of the label `app.kubernetes.io/instance`: itself, or shortened with a hash.
pub fn instance(name: &str) -> String {
    let distinct = name.len() < LABEL_MAX || (name.len() == LABEL_MAX && !ends_like_hash(name));
    if distinct { name.to_owned() } else { with_hash(name, name, LABEL_MAX) }
}

/// `name` followed by `suffix` where that is a label and cannot be another name's hashed form; else the hashed form.
fn workload(name: &str, suffix: &str) -> String {
    let room = WORKLOAD_MAX - suffix.len();
    let stem = if is_label(name) && name.len() <= room && !ends_like_hash(name) {
        name.to_owned()
    } else {
        with_hash(&sanitised(name), name, room)
    };
    format!("{stem}{suffix}")
}

/// DNS-1035: lower-case letters, digits and `-`, a letter first, no `-` last.
fn is_label(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Whether `name` could be what [`with_hash`] makes of another name.
fn ends_like_hash(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(_, tail)| {
        tail.len() == HASH_LENGTH - 1 && tail.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
    })
}

/// `name` with all that a DNS-1035 label may not hold replaced.
fn sanitised(name: &str) -> String {
    let label = name.chars().map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' });
    let first_is_letter = name.starts_with(|c: char| c.is_ascii_lowercase());
    if first_is_letter { label.collect() } else { "g-".chars().chain(label).collect() }
}

/// `stem` cut so that a hash of all of `name` fits into `max` behind it. Nothing else is cut: that a long name's form has
/// exactly `max` characters is what keeps [`instance`]s apart.
fn with_hash(stem: &str, name: &str, max: usize) -> String {
    let cut: String = stem.chars().take(max - HASH_LENGTH).collect();
    format!("{cut}-{:08x}", hash(name))
}

/// FNV-1a of the name, folded to 32 bits. Stable over versions: children are found again by it.
fn hash(name: &str) -> u64 {
    let wide = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (wide ^ (wide >> 32)) & 0xffff_ffff
}
