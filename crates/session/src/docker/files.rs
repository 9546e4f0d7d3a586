//! Files of a container, through the engine. No link is followed: every folder on the way is looked
//! at first, and between commands nothing runs that could change it.

use std::path::Path;

use bollard::{
    body_full, body_try_stream,
    errors::Error,
    query_parameters::{
        ContainerArchiveInfoOptionsBuilder, DownloadFromContainerOptionsBuilder,
        UploadToContainerOptionsBuilder,
    },
};
use code::RelativePath;
use futures::{StreamExt, future::try_join_all, stream};

use super::{Inner, archive, container::Container};
use crate::SessionError;

/// Bytes of an archive besides the file in it.
const ARCHIVE_ROOM: u64 = 64 << 10;

/// What a path of a container is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File { bytes: u64 },
    Folder,
    Other(&'static str),
}

/// Why a file was not moved.
pub(super) enum Trouble {
    /// The request is refused; the session goes on.
    Refused(SessionError),
    /// The engine failed.
    Lost(String),
}

impl From<String> for Trouble {
    fn from(detail: String) -> Self {
        Self::Lost(detail)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Lost(error.to_string())
    }
}

impl Inner {
    pub(super) async fn read(
        &self,
        container: &Container,
        tree: &str,
        path: &RelativePath,
        max_bytes: u64,
    ) -> Result<Vec<u8>, Trouble> {
        match self.walk(container, tree, path).await?.1 {
            None => Err(missing(path)),
            Some(Kind::File { bytes }) if bytes > max_bytes => {
                Err(Trouble::Refused(SessionError::FileTooLarge {
                    path: path.clone(),
                    bytes,
                    limit: max_bytes,
                }))
            }
            Some(Kind::File { .. }) => {
                let full = format!("{tree}/{path}");
                let bytes = self.download(container, &full, max_bytes).await?;
                archive::only_file(&bytes).map_err(|error| Trouble::Lost(error.to_string()))
            }
            Some(kind) => Err(not_a_file(path, kind)),
        }
    }

    pub(super) async fn write(
        &self,
        container: &Container,
        tree: &str,
        path: &RelativePath,
        content: &[u8],
        mode: u32,
    ) -> Result<(), Trouble> {
        let (present, leaf) = self.walk(container, tree, path).await?;
        match leaf {
            Some(kind @ Kind::Folder) => return Err(not_a_file(path, kind)),
            // Not every engine replaces what is no file.
            Some(Kind::Other(_)) => self.remove(container, tree, path).await?,
            _ => {}
        }
        let parts: Vec<&str> = path.parts().collect();
        let base = [&[tree], &parts[..present]].concat().join("/");
        let rest = &parts[present..];
        let folders: Vec<String> = (1..rest.len()).map(|end| rest[..end].join("/")).collect();
        let bytes = archive::of_file(&folders, &rest.join("/"), content, mode, container.user);
        let bytes = bytes.map_err(|error| Trouble::Lost(error.to_string()))?;
        let options = UploadToContainerOptionsBuilder::new().path(&base).build();
        let client = self.engine.client();
        let body = body_full(bytes.into());
        Ok(client
            .upload_to_container(&container.name, Some(options), body)
            .await?)
    }

    pub(super) async fn remove(
        &self,
        container: &Container,
        tree: &str,
        path: &RelativePath,
    ) -> Result<(), Trouble> {
        match self.walk(container, tree, path).await?.1 {
            None => return Err(missing(path)),
            Some(kind @ Kind::Folder) => return Err(not_a_file(path, kind)),
            Some(_) => {}
        }
        let full = format!("{tree}/{path}");
        self.shell(&container.name, r#"exec rm -f -- "$1""#, &[&full])
            .await?;
        match self.look(container, &full).await? {
            None => Ok(()),
            Some(_) => Err(Trouble::Lost(format!("{full} could not be removed"))),
        }
    }

    /// Makes `tree` a copy of `folder`, or an empty folder where there is none yet.
    pub(super) async fn upload(
        &self,
        container: &Container,
        tree: &str,
        folder: Option<&Path>,
    ) -> Result<(), Trouble> {
        let present = self.look(container, tree).await?;
        let Some(folder) = folder else {
            return match present {
                Some(Kind::Folder) => Ok(()),
                Some(_) => Err(Trouble::Lost(format!("{tree} of the image is no folder"))),
                None => self.send(container, tree, None).await,
            };
        };
        if present.is_some() {
            let script = r#"cd "$1" && rm -rf -- ..?* .[!.]* *"#;
            let (code, _) = self.shell(&container.name, script, &[tree]).await?;
            if code != 0 {
                let detail = format!("{tree} of the image cannot be emptied for the checkout");
                return Err(Trouble::Lost(detail));
            }
        }
        self.send(container, tree, Some(folder)).await
    }

    /// Sends the content of `folder`, or no content, to be the folder `tree`.
    async fn send(
        &self,
        container: &Container,
        tree: &str,
        folder: Option<&Path>,
    ) -> Result<(), Trouble> {
        let options = UploadToContainerOptionsBuilder::new().path("/").build();
        let client = self.engine.client();
        let target = tree.trim_start_matches('/').to_owned();
        let user = container.user;
        let (sender, receiver) = tokio::sync::mpsc::channel(8);
        let folder = folder.map(Path::to_owned);
        let writer = tokio::task::spawn_blocking(move || {
            archive::of_tree(folder.as_deref(), &target, user, &sender);
        });
        let failed = std::sync::Arc::new(std::sync::Mutex::new(None));
        let note = std::sync::Arc::clone(&failed);
        let body = stream::unfold(receiver, |mut receiver| async {
            let chunk: Option<std::io::Result<Vec<u8>>> = receiver.recv().await;
            chunk.map(|chunk| (chunk, receiver))
        });
        let body = body.map(move |chunk| {
            chunk.map(Into::into).inspect_err(|error| {
                if let Ok(mut note) = note.lock() {
                    *note = Some(error.to_string());
                }
            })
        });
        let sent =
            client.upload_to_container(&container.name, Some(options), body_try_stream(body));
        let sent = sent.await;
        let ended = writer.await;
        let failed = failed.lock().ok().and_then(|mut failed| failed.take());
        if let Some(detail) = failed {
            return Err(Trouble::Refused(SessionError::Image {
                image: "the checkout".to_owned(),
                detail,
            }));
        }
        ended.map_err(|error| Trouble::Lost(error.to_string()))?;
        Ok(sent?)
    }

    async fn download(
        &self,
        container: &Container,
        path: &str,
        max_bytes: u64,
    ) -> Result<Vec<u8>, Trouble> {
        let options = DownloadFromContainerOptionsBuilder::new()
            .path(path)
            .build();
        let client = self.engine.client();
        let parts = client.download_from_container(&container.name, Some(options));
        let mut parts = std::pin::pin!(parts);
        let mut bytes = Vec::new();
        while let Some(part) = parts.next().await {
            bytes.extend_from_slice(&part?);
            if bytes.len() as u64 > max_bytes + ARCHIVE_ROOM {
                return Err(Trouble::Lost(format!("{path} grew while it was read")));
            }
        }
        Ok(bytes)
    }

    /// How many folders of `path` are there, and what its last part is. A link or file among the
    /// folders is refused.
    async fn walk(
        &self,
        container: &Container,
        tree: &str,
        path: &RelativePath,
    ) -> Result<(usize, Option<Kind>), Trouble> {
        // Some engines take these for patterns, and answer with another file.
        if path.as_str().contains(['*', '?', '[', '\\']) {
            return Err(Trouble::Refused(SessionError::Unsupported {
                backend: "docker",
                detail: format!("{path}: names with * ? [ or \\ go through commands only"),
            }));
        }
        let parts: Vec<&str> = path.parts().collect();
        let prefixes = (1..=parts.len()).map(|end| format!("{tree}/{}", parts[..end].join("/")));
        let looks = prefixes.map(async |prefix| self.look(container, &prefix).await);
        let kinds = try_join_all(looks).await?;
        let (leaf, folders) = match kinds.split_last() {
            Some((leaf, folders)) => (*leaf, folders),
            None => return Ok((0, None)),
        };
        for (index, kind) in folders.iter().enumerate() {
            match kind {
                Some(Kind::Folder) => {}
                // Without a folder there is nothing below, whatever a look through it says.
                None => return Ok((index, None)),
                Some(kind) => {
                    let parent = RelativePath::new(parts[..=index].join("/"));
                    let parent = parent.unwrap_or_else(|_| path.clone());
                    return Err(not_a_file(&parent, *kind));
                }
            }
        }
        Ok((folders.len(), leaf))
    }

    /// What an absolute path is, not following a link at its end.
    pub(super) async fn look(
        &self,
        container: &Container,
        path: &str,
    ) -> Result<Option<Kind>, Trouble> {
        let options = ContainerArchiveInfoOptionsBuilder::new().path(path).build();
        let client = self.engine.client();
        let found = client.get_container_archive_info(&container.name, Some(options));
        match found.await {
            Ok(found) => Ok(Some(kind(found.file_mode, found.size))),
            // Podman does not see links that lead nowhere, and spells what it tells of some names in
            // another alphabet of base64 than the client reads. Docker fails on paths through files.
            Err(
                Error::DockerResponseServerError {
                    status_code: 404 | 500,
                    ..
                }
                | Error::Base64DecodeError { .. },
            ) => self.look_inside(container, path).await,
            Err(error) => Err(error.into()),
        }
    }
}

impl Inner {
    /// The same by the container's shell.
    async fn look_inside(
        &self,
        container: &Container,
        path: &str,
    ) -> Result<Option<Kind>, Trouble> {
        const LOOK: &str = r#"if [ -L "$1" ]; then echo link; elif [ -d "$1" ]; then echo folder; elif [ -f "$1" ]
            then wc -c < "$1"; elif [ -e "$1" ]; then echo other; else echo none; fi"#;
        let (_, told) = self.shell(&container.name, LOOK, &[path]).await?;
        let told = String::from_utf8_lossy(&told);
        match told.trim() {
            "none" => Ok(None),
            "folder" => Ok(Some(Kind::Folder)),
            "link" => Ok(Some(Kind::Other("a symbolic link"))),
            "other" => Ok(Some(Kind::Other("no regular file"))),
            size => match size.parse() {
                Ok(bytes) => Ok(Some(Kind::File { bytes })),
                Err(_) => Err(Trouble::Lost(format!("{path} cannot be looked at"))),
            },
        }
    }
}

/// From the mode bits of the Go language, in which engines tell them.
fn kind(mode: u32, size: i64) -> Kind {
    const FOLDER: u32 = 1 << 31;
    const LINK: u32 = 1 << 27;
    const DEVICE: u32 = 1 << 26;
    const PIPE: u32 = 1 << 25;
    const SOCKET: u32 = 1 << 24;
    const OTHER: u32 = 1 << 19;
    match mode {
        mode if mode & FOLDER != 0 => Kind::Folder,
        mode if mode & LINK != 0 => Kind::Other("a symbolic link"),
        mode if mode & DEVICE != 0 => Kind::Other("a device"),
        mode if mode & PIPE != 0 => Kind::Other("a pipe"),
        mode if mode & SOCKET != 0 => Kind::Other("a socket"),
        mode if mode & OTHER != 0 => Kind::Other("of an unknown kind"),
        _ => Kind::File {
            bytes: size.max(0).cast_unsigned(),
        },
    }
}

fn missing(path: &RelativePath) -> Trouble {
    Trouble::Refused(SessionError::NotFound { path: path.clone() })
}

fn not_a_file(path: &RelativePath, kind: Kind) -> Trouble {
    let found = match kind {
        Kind::File { .. } => "a file",
        Kind::Folder => "a folder",
        Kind::Other(found) => found,
    };
    Trouble::Refused(SessionError::NotAFile {
        path: path.clone(),
        found: found.to_owned(),
    })
}
