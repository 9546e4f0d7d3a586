//! One container of a session: making it, and keeping it quiet between commands.

use std::collections::HashMap;

use bollard::{
    errors::Error,
    models::{ContainerCreateBody, ContainerUpdateBody, HostConfig, ResourcesUlimits},
    query_parameters::{
        CreateContainerOptionsBuilder, RestartContainerOptionsBuilder, TopOptionsBuilder,
    },
};

use super::{
    Inner,
    engine::{LEASE_LABEL, OWNER_LABEL},
    unavailable,
    usage::Groups,
};
use crate::{Image, SessionError};

/// The first process: waits for input that never comes. It starts nothing, so whatever else runs
/// belongs to a command.
const KEEPER: &str = "while read -r _; do :; done";

/// Kills all processes that the container's user may kill but the first one and itself.
const KILL_ALL: &str = "kill -9 -1";

/// How often the rest is killed from within before the container is started anew.
const KILL_ROUNDS: usize = 2;

struct Processes {
    running: usize,
    /// Not yet collected.
    ended: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Container {
    pub(super) name: String,
    /// Whom commands run as.
    pub(super) user: (u64, u64),
    pub(super) groups: Option<Groups>,
    /// Processes that ended in earlier commands and that nobody has collected: they count against the
    /// kernel's limit.
    pub(super) ended: usize,
}

impl Inner {
    /// Makes and starts the container `name` of a lease from an image.
    pub(super) async fn make(
        &self,
        name: &str,
        lease: &str,
        image_name: &str,
        image: &Image,
    ) -> Result<Container, SessionError> {
        let client = self.engine.client();
        let refused = |detail: String| SessionError::Image {
            image: image_name.to_owned(),
            detail,
        };
        let options = CreateContainerOptionsBuilder::new().name(name).build();
        let body = self.body(lease, image_name, image)?;
        match client.create_container(Some(options), body).await {
            Ok(_) => {}
            Err(Error::DockerResponseServerError {
                status_code: 404, ..
            }) => {
                return Err(refused(
                    "the engine has no such image; pull or build it first".to_owned(),
                ));
            }
            Err(Error::DockerResponseServerError {
                status_code: 400..=499,
                message,
            }) => return Err(refused(message)),
            Err(error) => return Err(unavailable(error.to_string())),
        }
        if let Err(error) = client.start_container(name, None).await {
            let text = error.to_string();
            let lower = text.to_lowercase();
            let no_shell = ["executable file", "no such file", "not found"];
            if no_shell.iter().any(|sign| lower.contains(sign)) {
                return Err(refused(format!(
                    "it has no /bin/sh, which every command is started with: {text}"
                )));
            }
            return Err(unavailable(text));
        }
        self.look_at(name).await?.ok_or_else(|| {
            refused("its /bin/sh ended at once; it is not a shell that can wait".to_owned())
        })
    }

    fn body(
        &self,
        lease: &str,
        image_name: &str,
        image: &Image,
    ) -> Result<ContainerCreateBody, SessionError> {
        let config = &self.config;
        let info = self.engine.info();
        let owner = serde_json::to_string(config.leases.owner())
            .map_err(|error| unavailable(error.to_string()))?;
        let labels = [(LEASE_LABEL, lease.to_owned()), (OWNER_LABEL, owner)];
        let user_limit = |name: &str| ResourcesUlimits {
            name: Some(name.to_owned()),
            soft: Some(config.user_limit.into()),
            hard: Some(config.user_limit.into()),
        };
        let memory = i64::try_from(config.memory).unwrap_or(i64::MAX);
        let host = HostConfig {
            network_mode: (!config.network).then(|| "none".to_owned()),
            memory: info.memory.then_some(memory),
            memory_swap: (info.memory && info.swap).then_some(memory),
            pids_limit: info.processes.then_some(config.processes.into()),
            nano_cpus: config.cpus.map(|cores| (cores * 1e9) as i64),
            cap_drop: (!config.keep_capabilities).then(|| vec!["ALL".to_owned()]),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            ulimits: Some(vec![user_limit("nofile"), user_limit("nproc")]),
            ..HostConfig::default()
        };
        Ok(ContainerCreateBody {
            image: Some(image_name.to_owned()),
            entrypoint: Some(vec!["/bin/sh".to_owned()]),
            cmd: Some(vec!["-c".to_owned(), KEEPER.to_owned()]),
            env: Some(environment(&image.env)?),
            labels: Some(labels.map(|(name, value)| (name.to_owned(), value)).into()),
            open_stdin: Some(true),
            // The image's own check would be one more process.
            healthcheck: Some(bollard::models::HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..Default::default()
            }),
            host_config: Some(host),
            ..ContainerCreateBody::default()
        })
    }

    /// A running container; `None` when it does not run.
    async fn look_at(&self, name: &str) -> Result<Option<Container>, SessionError> {
        let client = self.engine.client();
        let found = client.inspect_container(name, None).await;
        let found = found.map_err(|error| unavailable(error.to_string()))?;
        let state = found.state.unwrap_or_default();
        if state.running != Some(true) {
            return Ok(None);
        }
        let groups = match (self.engine.info().sees_groups, state.pid, &found.id) {
            (true, Some(pid), Some(id)) => Groups::of(pid, id),
            _ => None,
        };
        let user = found.config.and_then(|config| config.user);
        let user = match user.as_deref() {
            None | Some("" | "0" | "root" | "0:0" | "root:root") => (0, 0),
            Some(_) => self.user_of(name).await?,
        };
        Ok(Some(Container {
            name: name.to_owned(),
            user,
            groups,
            ended: 0,
        }))
    }

    /// The user and group of commands, as the kernel tells them to the container's shell.
    async fn user_of(&self, name: &str) -> Result<(u64, u64), SessionError> {
        let script = "while read -r name id _; do case $name in Uid:|Gid:) echo $id;; esac; \
                      done < /proc/self/status";
        let (_, output) = self.shell(name, script, &[]).await.map_err(unavailable)?;
        let text = String::from_utf8_lossy(&output);
        let mut ids = text.lines().filter_map(|line| line.trim().parse().ok());
        match (ids.next(), ids.next()) {
            (Some(user), Some(group)) => Ok((user, group)),
            _ => Err(unavailable("the container's user cannot be told")),
        }
    }

    /// Ends every process of the container but its first; the engine's word counts, not the container's.
    pub(super) async fn quiet(&self, container: &mut Container) -> Result<(), String> {
        // Ended orphans that the first process does not collect still count against the limit.
        let many = self.config.processes as usize / 4;
        for _ in 0..KILL_ROUNDS {
            match self.processes(container).await? {
                found if found.running <= 1 && found.ended <= many => {
                    container.ended = found.ended;
                    return Ok(());
                }
                found if found.running <= 1 => break,
                // What it says does not count: its shell may be another one by now.
                _ => drop(self.shell(&container.name, KILL_ALL, &[]).await),
            }
        }
        let found = self.processes(container).await?;
        if found.running <= 1 && found.ended <= many {
            container.ended = found.ended;
            return Ok(());
        }
        // Killed from outside, with all it started.
        let options = RestartContainerOptionsBuilder::new().t(0).build();
        let client = self.engine.client();
        let restarted = client.restart_container(&container.name, Some(options));
        restarted.await.map_err(|error| error.to_string())?;
        let again = self.look_at(&container.name).await;
        match again.map_err(|error| error.to_string())? {
            Some(again) => *container = again,
            None => return Err("the container could not be started anew".to_owned()),
        }
        match self.processes(container).await?.running {
            0 | 1 => Ok(()),
            count => Err(format!("{count} processes cannot be ended")),
        }
    }

    /// The processes of the container, as the engine sees them.
    async fn processes(&self, container: &Container) -> Result<Processes, String> {
        // Podman reads these from outside; anything that begins with `-` it hands to the
        // container's own `ps`. Docker hands all of it to the machine's.
        let columns = match self.engine.info().podman {
            true => "pid,state",
            false => "-eo pid,stat",
        };
        let options = TopOptionsBuilder::new().ps_args(columns).build();
        let client = self.engine.client();
        let top = client.top_processes(&container.name, Some(options)).await;
        let top = top.map_err(|error| error.to_string())?;
        let rows = top.processes.ok_or("the engine lists no processes")?;
        let ended = |row: &&Vec<String>| {
            let state = row.last().map(|state| state.trim_start());
            state.is_some_and(|state| state.starts_with(['Z', 'X']))
        };
        let listed = rows.iter().filter(ended).count();
        let running = rows.len() - listed;
        // Docker lists none that has ended.
        let counted = container.groups.as_ref().and_then(Groups::tasks);
        let counted = counted.map_or(0, |tasks| tasks.saturating_sub(running));
        Ok(Processes {
            running,
            ended: listed.max(counted),
        })
    }

    /// Sets the kernel's limits of a running container, where the engine can.
    pub(super) async fn limit(
        &self,
        container: &Container,
        memory: u64,
        processes: u32,
    ) -> Result<(), String> {
        let info = self.engine.info();
        let memory = i64::try_from(memory.min(self.config.memory)).unwrap_or(i64::MAX);
        let body = ContainerUpdateBody {
            memory: info.memory.then_some(memory),
            memory_swap: (info.memory && info.swap).then_some(memory),
            pids_limit: info
                .processes
                .then_some(processes.min(self.config.processes).into()),
            ..ContainerUpdateBody::default()
        };
        let client = self.engine.client();
        let updated = client.update_container(&container.name, body).await;
        updated.map_err(|error| error.to_string())
    }
}

/// `NAME=value`, as engines take them.
pub(super) fn environment(variables: &[(String, String)]) -> Result<Vec<String>, SessionError> {
    let mut seen = HashMap::new();
    for (name, value) in variables {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(super::unsupported(format!(
                "{name:?} cannot be an environment variable with that value"
            )));
        }
        seen.insert(name, value);
    }
    let mut lines: Vec<String> = seen
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    lines.sort();
    Ok(lines)
}
