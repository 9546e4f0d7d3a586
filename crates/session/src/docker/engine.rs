//! A container engine: reaching it, what it can do, and what dead owners left in it.

use std::{collections::HashMap, path::Path};

use async_trait::async_trait;
use bollard::{
    API_DEFAULT_VERSION, Docker,
    errors::Error,
    models::{ContainerSummary, ContainerUpdateBody},
    query_parameters::{
        ListContainersOptionsBuilder, ListImagesOptionsBuilder, RemoveContainerOptionsBuilder,
        RemoveImageOptionsBuilder,
    },
};

use serde::Deserialize;

use super::{unavailable, usage};
use crate::{
    SessionError,
    lease::{Failed, Held, Owners, ReapReport, Reclaimer, Removed},
};

/// The label with the id of the lease.
pub(super) const LEASE_LABEL: &str = "etude.lease";
/// The label with the owner as JSON, for when the lease is lost.
pub(super) const OWNER_LABEL: &str = "etude.owner";

/// Seconds that one request may take. Commits and archives of large work trees take long.
const REQUEST_TIMEOUT: u64 = 600;

/// A reachable engine.
#[derive(Clone, Debug)]
pub struct Engine {
    address: String,
    client: Docker,
    info: Info,
}

/// What an engine can do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Info {
    pub(super) podman: bool,
    pub(super) memory: bool,
    pub(super) swap: bool,
    pub(super) processes: bool,
    /// Limits of running containers can be changed.
    pub(super) updates: bool,
    /// Control groups of containers are visible to this process.
    pub(super) sees_groups: bool,
}

/// Where an engine may listen, most particular first: what the user said, then the usual sockets of
/// Docker and Podman that exist. `docker_host` is the content of `DOCKER_HOST`, `runtime_folder` that of `XDG_RUNTIME_DIR`.
pub fn candidates(docker_host: Option<&str>, runtime_folder: Option<&Path>) -> Vec<String> {
    let user = runtime_folder.map(|folder| {
        let names = ["docker.sock", "podman/podman.sock"];
        names.map(|name| folder.join(name))
    });
    let system = ["/var/run/docker.sock", "/run/podman/podman.sock"];
    let sockets = user
        .into_iter()
        .flatten()
        .chain(system.map(Into::into))
        .filter(|path| path.exists())
        .map(|path| format!("unix://{}", path.display()));
    let said = docker_host.filter(|said| !said.is_empty());
    said.map(canonical).into_iter().chain(sockets).collect()
}

fn canonical(address: &str) -> String {
    match address.starts_with('/') {
        true => format!("unix://{address}"),
        false => address.to_owned(),
    }
}

impl Engine {
    /// # Errors
    /// [`SessionError::Unavailable`].
    pub async fn connect(address: &str) -> Result<Self, SessionError> {
        let address = canonical(address);
        let unreached = |error: Error| {
            let hint = "start Docker or `podman system service`, or name another address";
            unavailable(format!(
                "no engine answers at {address}: {error}\nhint: {hint}"
            ))
        };
        let client = if address.starts_with("unix://") {
            Docker::connect_with_unix(&address, REQUEST_TIMEOUT, API_DEFAULT_VERSION)
        } else {
            Docker::connect_with_host(&address)
                .map(|client| client.with_timeout(std::time::Duration::from_secs(REQUEST_TIMEOUT)))
        };
        let client = client.map_err(unreached)?;
        let client = client.negotiate_version().await.map_err(unreached)?;
        let system = client.info().await.map_err(unreached)?;
        // An engine that can update containers says that there is no such container.
        let nobody = ContainerUpdateBody {
            memory: Some(64 << 20),
            ..ContainerUpdateBody::default()
        };
        let update = client.update_container("etude-none", nobody).await;
        let updates = matches!(
            update,
            Err(Error::DockerResponseServerError { status_code: 404, message })
                if message.to_lowercase().contains("no such container")
        );
        let version = client.version().await.map_err(unreached)?;
        let parts = version.components.unwrap_or_default();
        let info = Info {
            podman: parts.iter().any(|part| part.name.contains("Podman")),
            memory: system.memory_limit.unwrap_or(false),
            swap: system.swap_limit.unwrap_or(false),
            processes: system.pids_limit.unwrap_or(false),
            updates,
            sees_groups: address.starts_with("unix://") && usage::groups_are_visible(),
        };
        Ok(Self {
            address,
            client,
            info,
        })
    }

    /// As leases write it.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn client(&self) -> &Docker {
        &self.client
    }

    pub(super) fn info(&self) -> Info {
        self.info
    }

    /// Removes a container with its processes and volumes; one that is gone is as good.
    pub(super) async fn remove_container(&self, name: &str) -> Result<(), Error> {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true);
        let removed = self.client.remove_container(name, Some(options.build()));
        gone(removed.await)
    }

    pub(super) async fn remove_image(&self, name: &str) -> Result<(), Error> {
        let options = RemoveImageOptionsBuilder::new().force(true).build();
        let removed = self.client.remove_image(name, Some(options), None).await;
        gone(removed.map(|_| ()))
    }

    /// Ids (and names, of images) of what carries the mark of an owner who is dead.
    async fn marked(&self, owners: &Owners) -> Result<Vec<(String, Held)>, Error> {
        let filters = HashMap::from([("label", vec![LEASE_LABEL])]);
        let options = ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&filters);
        let listed = self.client.list_containers(Some(options.build())).await;
        let containers = match listed {
            Ok(listed) => listed.into_iter().map(Listed::from).collect(),
            Err(Error::JsonDataError { contents, .. }) => listed_text(&contents)?,
            Err(error) => return Err(error),
        };
        let options = ListImagesOptionsBuilder::new().filters(&filters).build();
        let images = self.client.list_images(Some(options)).await?;
        let engine = || self.address.clone();
        let containers = containers.into_iter().filter_map(|found| {
            let lease = dead_lease(&found.labels?, owners)?;
            let name = found.id;
            let engine = engine();
            Some((lease, Held::Container { engine, name }))
        });
        let images = images.into_iter().filter_map(|found| {
            let lease = dead_lease(&found.labels, owners)?;
            // Older Dockers give what has no name this one.
            let mut names = found
                .repo_tags
                .into_iter()
                .filter(|name| name != "<none>:<none>");
            let name = names.next().unwrap_or(found.id);
            let engine = engine();
            Some((lease, Held::ContainerImage { engine, name }))
        });
        Ok(containers.chain(images).collect())
    }
}

/// What counts of a container in a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    id: String,
    labels: Option<HashMap<String, String>>,
}

impl From<ContainerSummary> for Listed {
    fn from(found: ContainerSummary) -> Self {
        Self {
            id: found.id.unwrap_or_default(),
            labels: found.labels,
        }
    }
}

/// A list that the client cannot read: Podman names states that Docker's API does not have, such as
/// `stopped` for a container that has ended and is not cleaned up yet.
fn listed_text(text: &str) -> Result<Vec<Listed>, Error> {
    Ok(serde_json::from_str(text)?)
}

fn dead_lease(labels: &HashMap<String, String>, owners: &Owners) -> Option<String> {
    let lease = labels.get(LEASE_LABEL)?;
    let owner = serde_json::from_str(labels.get(OWNER_LABEL)?).ok()?;
    owners.is_dead(lease, &owner).then(|| lease.clone())
}

#[async_trait]
impl Reclaimer for Engine {
    async fn reclaim(&self, _id: &str, held: &Held) -> Option<Result<(), String>> {
        let result = match held {
            Held::Container { engine, name } if *engine == self.address => {
                self.remove_container(name).await
            }
            Held::ContainerImage { engine, name } if *engine == self.address => {
                self.remove_image(name).await
            }
            _ => return None,
        };
        Some(result.map_err(|error| error.to_string()))
    }

    async fn sweep(&self, owners: &Owners, report: &mut ReapReport) {
        let marked = match self.marked(owners).await {
            Ok(marked) => marked,
            Err(error) => {
                let held = Held::Container {
                    engine: self.address.clone(),
                    name: "*".to_owned(),
                };
                report.failed.push(Failed {
                    lease: String::new(),
                    held,
                    detail: format!("what is marked cannot be listed: {error}"),
                });
                return;
            }
        };
        for (lease, held) in marked {
            match self.reclaim(&lease, &held).await {
                Some(Err(detail)) => report.failed.push(Failed {
                    lease,
                    held,
                    detail,
                }),
                _ => report.removed.push(Removed { lease, held }),
            }
        }
    }
}

/// Removing what is not there, or what is being removed, is done.
fn gone(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(Error::DockerResponseServerError {
            status_code: 404, ..
        }) => Ok(()),
        Err(Error::DockerResponseServerError {
            status_code: 409,
            message,
        }) if message.contains("already in progress") => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_in_states_of_podman_alone_are_listed() {
        let text = r#"[{"Id":"4f","State":"stopped","Labels":{"etude.lease":"x"}},
                       {"Id":"5a","State":"running","Labels":null}]"#;
        assert!(serde_json::from_str::<Vec<ContainerSummary>>(text).is_err());
        let listed = listed_text(text).unwrap();
        let ids: Vec<_> = listed.iter().map(|found| found.id.as_str()).collect();
        assert_eq!(ids, ["4f", "5a"]);
        assert_eq!(listed[0].labels.as_ref().unwrap()["etude.lease"], "x");
    }
}
