//! The processes of this machine, as the system lists them: zombies, too. Linux only, as what it watches is.

use std::fs;

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its id.
    pub pid: u32,
    /// Whose child it is.
    pub parent: u32,
    /// The id of its process group.
    pub group: u32,
    /// It has ended and nobody asked how.
    pub zombie: bool,
    /// Its command line, with spaces between words.
    pub command: String,
}

/// All of them, now.
pub fn all() -> Vec<Seen> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// Those whose command line holds this word.
pub fn marked(mark: &str) -> Vec<Seen> {
    all().into_iter().filter(|seen| seen.command.split(' ').any(|word| word == mark)).collect()
}

/// Those of any of these groups, zombies among them.
pub fn in_groups(groups: &[u32]) -> Vec<Seen> {
    all().into_iter().filter(|seen| groups.contains(&seen.group)).collect()
}

/// The zombies of this parent.
pub fn zombies_of(parent: u32) -> Vec<Seen> {
    all().into_iter().filter(|seen| seen.zombie && seen.parent == parent).collect()
}

/// None where it has ended in the meantime.
fn read(pid: u32) -> Option<Seen> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name, which may hold anything: state, parent, group.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let zombie = fields.next()? == "Z";
    let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    Some(Seen { pid, parent, group, zombie, command })
}
