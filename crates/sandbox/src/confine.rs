//! The walls of the weaker tiers: a Landlock ruleset over the host's own file system, and a working
//! folder that is emptied between runs.

use std::{
    fs, io,
    os::{
        fd::OwnedFd,
        unix::fs::{PermissionsExt, chown},
    },
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, Scope,
};

/// The folder in which runs of one slot work. Removed with this value.
pub(crate) struct Scratch {
    root: PathBuf,
}

impl Scratch {
    /// A new folder below `parent` that belongs to `user` and `group`.
    pub(crate) fn new(parent: &Path, slot: usize, user: u32, group: u32) -> io::Result<Self> {
        let root = parent.join(format!("{}{slot}", prefix(std::process::id())));
        fs::create_dir(&root)?;
        let scratch = Self { root };
        fs::create_dir(scratch.home())?;
        fs::set_permissions(&scratch.root, fs::Permissions::from_mode(0o700))?;
        for folder in [scratch.root.clone(), scratch.home()] {
            chown(folder, Some(user), Some(group))?;
        }
        Ok(scratch)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("box")
    }

    /// Removes what a run left behind. Links are removed, never followed.
    pub(crate) fn empty(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.home())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Removes the folders of a supervisor that was killed before it could do so.
pub(crate) fn remove_scratch_of(supervisor: u32, parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with(&prefix(supervisor))
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn prefix(supervisor: u32) -> String {
    format!("sandbox-{supervisor}-")
}

/// A ruleset that lets its subjects read the system and the interpreter, write in `home` only, and
/// reach no network and no other process; an error when the kernel knows no Landlock.
pub(crate) fn landlock_rules(readable: &[PathBuf], home: &Path) -> io::Result<OwnedFd> {
    // The newest rules that the kernel knows; the oldest version knows files at least.
    const NEWEST: ABI = ABI::V6;
    let read = AccessFs::from_read(NEWEST);
    let system = [
        "/usr",
        "/lib",
        "/lib64",
        "/bin",
        "/etc/ld.so.cache",
        "/etc/alternatives",
    ];
    let devices = [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
    ];
    let build = || -> Result<Option<OwnedFd>, Box<dyn std::error::Error>> {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI::V1))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))?
            .handle_access(AccessNet::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?
            .create()?;
        let readable = readable
            .iter()
            .map(PathBuf::as_path)
            .chain(system.map(Path::new));
        for path in readable.filter(|path| path.exists()) {
            rules = rules.add_rule(PathBeneath::new(PathFd::new(path)?, read))?;
        }
        for path in devices {
            let access = AccessFs::ReadFile | AccessFs::WriteFile;
            rules = rules.add_rule(PathBeneath::new(PathFd::new(path)?, access))?;
        }
        rules = rules.add_rule(PathBeneath::new(
            PathFd::new(home)?,
            AccessFs::from_all(NEWEST),
        ))?;
        Ok(rules.into())
    };
    match build() {
        Ok(Some(rules)) => Ok(rules),
        Ok(None) => Err(io::Error::other("the kernel has no Landlock")),
        Err(error) => Err(io::Error::other(error.to_string())),
    }
}
