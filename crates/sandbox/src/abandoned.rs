//! What sandboxes left that were killed with their supervisors.

use std::path::{Path, PathBuf};

use crate::{groups, hierarchy::Hierarchy, scratch};

/// Removes the control groups of dead supervisors, and their working folders below `scratch`, with what
/// still runs in them. Every sandbox does so when it starts. Returns the paths of what it removed; what
/// it may not remove, such as another user's, is left.
pub fn remove_abandoned(scratch: &Path) -> Vec<PathBuf> {
    let hierarchies = Hierarchy::all_writable();
    let mut removed: Vec<PathBuf> = hierarchies
        .iter()
        .flat_map(|hierarchy| groups::remove_abandoned(&hierarchy.folder))
        .collect();
    removed.extend(scratch::remove_abandoned(scratch));
    removed
}
