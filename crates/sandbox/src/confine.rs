//! The walls of tier T2: a Landlock ruleset over the host's own file system.

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, Scope,
};

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
