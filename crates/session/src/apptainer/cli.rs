//! The command line of apptainer: which arguments, and what its answers mean.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use sandbox::{
    Limits, Status,
    host::{HostCommand, HostError, HostOutcome},
};

use crate::{Command, SessionError};

/// The programs that an apptainer session is made of.
#[derive(Clone, Debug)]
pub(crate) struct Cli {
    pub(crate) program: PathBuf,
    /// The environment of apptainer itself, such as `PATH` and `HOME`; commands see none of it.
    pub(crate) env: Vec<(String, String)>,
}

/// What a container runs through: limits that the shell can set, then the command in its place.
/// `$1` to `$4` are seconds of CPU time, KiB of address space, blocks of 512 bytes of a file, and
/// open files. A limit above what is allowed stays as it is.
const LIMITED: &str = "\
ulimit -S -t \"$1\" 2>/dev/null; \
[ \"$2\" = - ] || ulimit -v \"$2\" 2>/dev/null; \
ulimit -f \"$3\" 2>/dev/null; \
ulimit -n \"$4\" 2>/dev/null; \
shift 4; exec \"$@\"";

/// The variable that tells the processes of one command from all others.
const MARKER: &str = "ETUDE_COMMAND";

/// What apptainer itself ends with when it fails.
const OWN_FAILURE: i32 = 255;

/// Where the shared folder is in a container.
const SHARE: &str = "/mnt/share";

impl Cli {
    /// Copies `work_tree` of the image to the host folder `tree`.
    pub(crate) fn copy_out(&self, sif: &Path, work_tree: &str, tree: &Path) -> HostCommand {
        let mut arguments = own(&["exec", "--cleanenv", "--containall"]);
        arguments.extend(bind(tree, "/mnt/tree"));
        arguments.push(sif.into());
        arguments.extend(own(&["cp", "-a"]));
        arguments.extend([format!("{work_tree}/.").into(), "/mnt/tree/".into()]);
        self.call(arguments, Duration::from_secs(600))
    }

    pub(crate) fn start(
        &self,
        sif: &Path,
        name: &str,
        tree: (&Path, &str),
        share: Option<&Path>,
    ) -> HostCommand {
        let mut arguments = own(&["instance", "start", "--cleanenv", "--containall"]);
        arguments.push("--writable-tmpfs".into());
        arguments.extend(bind(tree.0, tree.1));
        if let Some(share) = share {
            arguments.extend(bind(share, SHARE));
        }
        arguments.extend(["--pwd".into(), tree.1.into(), sif.into(), name.into()]);
        self.call(arguments, Duration::from_secs(300))
    }

    /// One command in the instance, in `folder`. `marker` is unlike any other command's.
    pub(crate) fn exec(
        &self,
        name: &str,
        folder: &str,
        env: &[(String, String)],
        command: &Command,
        marker: String,
    ) -> HostCommand {
        let limits = &command.limits;
        let mut arguments = own(&["exec", "--cleanenv", "--pwd", folder]);
        arguments.push(format!("instance://{name}").into());
        // The container's own `env`: apptainer's option of that name splits values at commas.
        arguments.push("env".into());
        for (variable, value) in env.iter().chain(&command.env) {
            arguments.push(format!("{variable}={value}").into());
        }
        arguments.push(format!("{MARKER}={marker}").into());
        arguments.extend(own(&["sh", "-c", LIMITED, "sh"]));
        arguments.extend(limited(limits));
        arguments.extend(command.argv.iter().map(OsString::from));
        HostCommand {
            stdin: command.stdin.clone(),
            output_keep: limits.output_keep,
            output_max: limits.output_max,
            marker: Some((MARKER.to_owned(), marker)),
            ..self.call(arguments, limits.wall)
        }
    }

    pub(crate) fn stop(&self, name: &str) -> HostCommand {
        let arguments = own(&["instance", "stop", "--timeout", "5", name]);
        self.call(arguments, Duration::from_secs(60))
    }

    /// Whether an instance of that name is there.
    pub(crate) async fn is_running(&self, name: &str) -> Result<bool, String> {
        let call = self.call(
            own(&["instance", "list", "--json"]),
            Duration::from_secs(60),
        );
        let listed = done(call.run().await)?;
        let listed: serde_json::Value = serde_json::from_slice(&listed.stdout.bytes())
            .map_err(|error| format!("apptainer instance list --json: {error}"))?;
        let instances = listed["instances"].as_array();
        Ok(instances.is_some_and(|all| all.iter().any(|one| one["instance"] == name)))
    }

    /// Another program of this machine, such as `cp`.
    pub(crate) fn host<S: Into<OsString>>(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = S>,
    ) -> HostCommand {
        HostCommand {
            env: self.env.clone(),
            wall: Duration::from_secs(600),
            ..HostCommand::new(program, arguments)
        }
    }

    fn call(&self, arguments: Vec<OsString>, wall: Duration) -> HostCommand {
        HostCommand {
            env: self.env.clone(),
            wall,
            ..HostCommand::new(self.program.clone(), arguments)
        }
    }
}

/// The file that an image is kept in: what a file name cannot hold becomes `-`.
pub fn sif_name(image: &str) -> String {
    let name = image.replace(['/', ':', '@'], "-");
    format!("{name}.sif")
}

/// How a command ended. Apptainer passes exit codes on, and tells signals as shells do or by ending
/// with the same one.
pub(crate) fn status(outcome: &HostOutcome) -> Status {
    let signal = match outcome.status {
        Status::Signal(signal) => signal,
        Status::NonZero(code @ 129..=159) => code - 128,
        other => return other,
    };
    match signal {
        libc::SIGXCPU => Status::CpuTimeout,
        libc::SIGXFSZ => Status::Disk,
        _ => Status::Signal(signal),
    }
}

/// Whether it may have been apptainer that failed, not the command.
pub(crate) fn may_be_its_own(outcome: &HostOutcome) -> bool {
    outcome.status == Status::NonZero(OWN_FAILURE)
}

/// The outcome of a program that must succeed, or what it complained about.
pub(crate) fn done(ran: Result<HostOutcome, HostError>) -> Result<HostOutcome, String> {
    match ran {
        Ok(outcome) if outcome.status == Status::Ok => Ok(outcome),
        Ok(outcome) => Err(outcome.complaint()),
        Err(error) => Err(error.to_string()),
    }
}

/// What no shell and no `env` can be told.
pub(crate) fn check(env: &[(String, String)], command: &Command) -> Result<(), SessionError> {
    let refuse = |detail: String| {
        Err(SessionError::Unsupported {
            backend: super::NAME,
            detail,
        })
    };
    if command.argv.first().is_none_or(String::is_empty) {
        return refuse("a command needs a program".to_owned());
    }
    if command.argv.iter().any(|argument| argument.contains('\0')) {
        return refuse("an argument contains a NUL byte".to_owned());
    }
    for (name, value) in env.iter().chain(&command.env) {
        let mut letters = name.chars();
        let begins = letters
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !begins || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return refuse(format!("{name:?} is no name of a variable"));
        }
        if value.contains('\0') {
            return refuse(format!("the variable {name} contains a NUL byte"));
        }
    }
    Ok(())
}

fn limited(limits: &Limits) -> [OsString; 4] {
    let address_space = match limits.address_space {
        true => (limits.memory >> 10).max(1).to_string(),
        false => "-".to_owned(),
    };
    [
        limits.cpu.as_secs_f64().ceil().max(1.0).to_string().into(),
        address_space.into(),
        (limits.disk >> 9).max(1).to_string().into(),
        limits.files.to_string().into(),
    ]
}

fn own(arguments: &[&str]) -> Vec<OsString> {
    arguments.iter().map(OsString::from).collect()
}

fn bind(host: &Path, inside: &str) -> [OsString; 2] {
    let mut both = host.as_os_str().to_owned();
    both.push(":");
    both.push(inside);
    ["--bind".into(), both]
}

#[cfg(test)]
mod tests {
    use super::{check, sif_name};
    use crate::Command;
    use sandbox::Limits;

    #[test]
    fn images_are_files() {
        let image = "docker.io/owner/name:tag@sha256:ab";
        assert_eq!(sif_name(image), "docker.io-owner-name-tag-sha256-ab.sif");
    }

    #[test]
    fn what_no_environment_can_hold_is_refused() {
        let command = Command::new(["true"], Limits::SMALL);
        for (name, value) in [
            ("", "x"),
            ("A=B", "x"),
            ("-u", "x"),
            ("1A", "x"),
            ("A", "\0"),
        ] {
            let command = command.clone().with_env(name, value);
            assert!(check(&[], &command).is_err(), "{name:?}");
        }
        assert!(check(&[], &command.with_env("_a1", "x,y=\n")).is_ok());
        assert!(check(&[], &Command::new([""; 0], Limits::SMALL)).is_err());
    }
}
