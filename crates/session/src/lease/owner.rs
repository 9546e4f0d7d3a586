//! Who owns a lease, and whether it still lives.

use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::process;

/// A process, told apart from every other one that ever had its number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Owner {
    pub pid: u32,
    /// Clock ticks between the boot and the start of the process.
    pub started: u64,
    pub host: String,
    /// The kernel's id of this boot.
    pub boot: String,
    /// The process namespace that `pid` is counted in.
    pub namespace: String,
}

/// What can be said of an owner from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Alive,
    Dead,
    /// In another process namespace of this boot: only its renewals tell.
    Unseen,
    /// On another machine: none of what it holds is of this one.
    Elsewhere,
}

impl Owner {
    pub fn this_process() -> io::Result<Self> {
        let pid = std::process::id();
        let started = match process::find(pid)? {
            Some((started, _)) => started,
            None => return Err(io::Error::other("this process is not in /proc")),
        };
        let line = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned());
        Ok(Self {
            pid,
            started,
            host: line("/proc/sys/kernel/hostname")?,
            boot: line("/proc/sys/kernel/random/boot_id")?,
            namespace: fs::read_link("/proc/self/ns/pid")?
                .to_string_lossy()
                .into_owned(),
        })
    }

    /// How this owner stands, seen by `observer`, a process that runs now.
    pub fn standing(&self, observer: &Self) -> Standing {
        if self.boot != observer.boot {
            // The same machine was started anew, and every process ended.
            return if self.host == observer.host {
                Standing::Dead
            } else {
                Standing::Elsewhere
            };
        }
        if self.namespace != observer.namespace {
            return Standing::Unseen;
        }
        match process::find(self.pid) {
            Ok(Some((started, ended))) if started == self.started && !ended => Standing::Alive,
            Ok(_) => Standing::Dead,
            // What cannot be looked at is left alone.
            Err(_) => Standing::Alive,
        }
    }

    /// Twelve hexadecimal digits that no other process of any machine is likely to have.
    pub(super) fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in [
            &self.boot,
            &self.namespace,
            &self.pid.to_string(),
            &self.started.to_string(),
        ] {
            hasher.update(part.as_bytes()).update(&[0]);
        }
        hasher.finalize().to_hex()[..12].to_owned()
    }
}

/// Seconds since the boot, sleep included.
pub(super) fn since_boot() -> io::Result<f64> {
    let text = fs::read_to_string("/proc/uptime")?;
    text.split_whitespace()
        .next()
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| io::Error::other("unreadable /proc/uptime"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_one_process_of_one_boot() {
        let here = Owner::this_process().unwrap();
        assert_eq!(here.standing(&here), Standing::Alive);
        let successor = Owner {
            started: here.started + 1,
            ..here.clone()
        };
        assert_eq!(successor.standing(&here), Standing::Dead);
        let before_the_boot = Owner {
            boot: "another".to_owned(),
            ..here.clone()
        };
        assert_eq!(before_the_boot.standing(&here), Standing::Dead);
        let elsewhere = Owner {
            host: "another".to_owned(),
            ..before_the_boot
        };
        assert_eq!(elsewhere.standing(&here), Standing::Elsewhere);
        let contained = Owner {
            namespace: "pid:[1]".to_owned(),
            ..here.clone()
        };
        assert_eq!(contained.standing(&here), Standing::Unseen);
        assert_ne!(successor.digest(), here.digest());
    }
}
