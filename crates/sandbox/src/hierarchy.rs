//! Where control groups can be made: the folders of this process's own groups.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A folder in which groups are made, and what they count there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    pub(crate) folder: PathBuf,
    /// Version 2, where all controllers share one hierarchy.
    pub(crate) unified: bool,
    pub(crate) memory: bool,
    pub(crate) processes: bool,
    pub(crate) cpu: bool,
}

impl Hierarchy {
    /// Those in which this process might make groups; a controller is in one of them only.
    pub(crate) fn all_writable() -> Vec<Self> {
        let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}"));
        let (Ok(mounts), Ok(own)) = (read("mountinfo"), read("cgroup")) else {
            return Vec::new();
        };
        let mut found: Vec<Self> = mounts
            .lines()
            .filter_map(|mount| of_mount(mount, &own))
            .collect();
        // Version 2 first: a controller cannot be in both.
        found.sort_by_key(|hierarchy| !hierarchy.unified);
        found.into_iter().filter_map(Self::enabled).collect()
    }

    /// With the controllers that groups in the folder have, or those in the folder above it.
    fn enabled(self) -> Option<Self> {
        if !self.unified {
            return Some(self);
        }
        // Processes and controlled groups may not be in the same folder, except at the very top; so
        // ours is next to the one we are in, where that was delegated to us.
        let above = self.folder.parent().map(Path::to_owned);
        [Some(self.folder), above]
            .into_iter()
            .flatten()
            .find_map(|folder| {
                let control = folder.join("cgroup.subtree_control");
                let _ = ["+memory", "+pids"].map(|controller| fs::write(&control, controller));
                let enabled = fs::read_to_string(control).ok()?;
                let has = |wanted: &str| enabled.split_whitespace().any(|name| name == wanted);
                let (memory, processes) = (has("memory"), has("pids"));
                // CPU time is counted without a controller.
                let found = Self {
                    folder,
                    unified: true,
                    memory,
                    processes,
                    cpu: true,
                };
                (memory || processes).then_some(found)
            })
    }
}

/// This process's own folder in the hierarchy that one line of `mountinfo` mounts. `own` is the text
/// of `/proc/self/cgroup`.
fn of_mount(line: &str, own: &str) -> Option<Hierarchy> {
    let (place, kind) = line.split_once(" - ")?;
    let (root, mounted) = {
        let mut fields = place.split(' ').skip(3);
        (fields.next()?, fields.next()?)
    };
    let mut fields = kind.split(' ');
    let (kind, options) = (fields.next()?, fields.nth(1)?);
    let unified = kind == "cgroup2";
    if !unified && kind != "cgroup" {
        return None;
    }
    let has = |wanted: &str| !unified && options.split(',').any(|option| option == wanted);
    let (memory, processes, cpu) = (has("memory"), has("pids"), has("cpuacct"));
    if !(unified || memory || processes || cpu) {
        return None;
    }
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let mut controllers = controllers.split(',');
        let ours = match unified {
            true => controllers.next() == Some(""),
            false => controllers.any(|name| has(name) && !name.is_empty()),
        };
        ours.then_some(path)
    })?;
    // In a container, the mount may begin below the top.
    let below = Path::new(path).strip_prefix(root).ok()?;
    let folder = Path::new(mounted).join(below);
    Some(Hierarchy {
        folder,
        unified,
        memory,
        processes,
        cpu,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str =
        "9:name=systemd:/\n8:pids:/a\n4:memory:/a/b\n3:cpu,cpuacct:/\n0::/user/x.scope\n";

    #[test]
    fn own_folders_are_found_in_mounts() {
        let check = |line: &str, expected: Option<(&str, [bool; 4])>| {
            let found = of_mount(line, OWN).map(|found| {
                let Hierarchy {
                    folder,
                    unified,
                    memory,
                    processes,
                    cpu,
                } = found;
                (
                    folder.to_str().unwrap().to_owned(),
                    [unified, memory, processes, cpu],
                )
            });
            let expected = expected.map(|(folder, flags)| (folder.to_owned(), flags));
            assert_eq!(found, expected, "{line}");
        };
        let memory = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory";
        check(
            memory,
            Some(("/sys/fs/cgroup/memory/a/b", [false, true, false, false])),
        );
        let bound = "35 31 0:32 /a /x rw shared:1 - cgroup cgroup rw,memory";
        check(bound, Some(("/x/b", [false, true, false, false])));
        let elsewhere = "35 31 0:32 /other /x rw - cgroup cgroup rw,memory";
        check(elsewhere, None);
        let pids = "39 31 0:36 / /g/pids rw - cgroup cgroup rw,pids";
        check(pids, Some(("/g/pids/a", [false, false, true, false])));
        let cpu = "32 31 0:29 / /g/cpu rw - cgroup cgroup rw,cpu,cpuacct";
        check(cpu, Some(("/g/cpu/", [false, false, false, true])));
        let unified = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate";
        check(
            unified,
            Some(("/sys/fs/cgroup/user/x.scope", [true, false, false, false])),
        );
        check(
            "40 31 0:37 / /g/systemd rw - cgroup cgroup rw,name=systemd",
            None,
        );
        check("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw", None);
        check("nonsense", None);
    }
}
