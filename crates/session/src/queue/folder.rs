//! The folder of one runner: files appear whole, and a request belongs to whoever renamed it.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde::{Serialize, de::DeserializeOwned};

use super::message::{Heartbeat, Request, Response};
use crate::tree::fresh_id;

/// Bytes of the largest message.
const MAX_MESSAGE: u64 = 512 << 20;

/// A request that cannot be read may still be being written for this long.
const HALF_WRITTEN: Duration = Duration::from_secs(2);

/// Responses that nobody fetched are removed after this time.
const UNFETCHED: Duration = Duration::from_secs(3600);

/// `QUEUE/runner-ID`.
#[derive(Clone, Debug)]
pub(crate) struct RunnerFolder {
    pub(crate) path: PathBuf,
}

/// A request that this runner alone may answer.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// What its response is called.
    stem: String,
    file: PathBuf,
}

impl RunnerFolder {
    pub(crate) fn new(queue: &Path, id: u32) -> Self {
        Self {
            path: queue.join(format!("runner-{id}")),
        }
    }

    /// The runners that have a folder, by number.
    pub(crate) fn all(queue: &Path) -> Vec<u32> {
        let mut found: Vec<u32> = fs::read_dir(queue)
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let name = entry.ok()?.file_name();
                name.to_str()?.strip_prefix("runner-")?.parse().ok()
            })
            .collect();
        found.sort_unstable();
        found
    }

    pub(crate) fn make(&self) -> io::Result<()> {
        for name in ["in", "out", "claimed", "quarantine"] {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(self.path.join(name))?;
        }
        Ok(())
    }

    pub(crate) fn heartbeat(&self) -> Option<Heartbeat> {
        read_message(&self.path.join("heartbeat.json")).ok()
    }

    /// Since the last sign of life; `None` when there never was one. By the clock of the file system
    /// alone, so that the clocks of two machines need not agree.
    pub(crate) fn silence(&self) -> Option<Duration> {
        let last = self.last_beat()?;
        Some(self.now()?.duration_since(last).unwrap_or_default())
    }

    /// When the last sign of life was given, by the clock of the file system.
    pub(crate) fn last_beat(&self) -> Option<SystemTime> {
        modified(&self.path.join("heartbeat.json"))
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.path.join("ready.json").is_file()
    }

    pub(crate) fn write_heartbeat(&self, heartbeat: &Heartbeat) -> io::Result<()> {
        write_message(&self.path.join("heartbeat.json"), heartbeat)
    }

    pub(crate) fn write_ready(&self, heartbeat: &Heartbeat) -> io::Result<()> {
        write_message(&self.path.join("ready.json"), heartbeat)
    }

    /// Takes back what says that a runner is here.
    pub(crate) fn leave(&self) {
        for name in ["ready.json", "heartbeat.json"] {
            let _ = fs::remove_file(self.path.join(name));
        }
    }

    pub(crate) fn send(&self, request: &Request) -> io::Result<()> {
        write_message(&self.request(&request.req_id), request)
    }

    /// The response, once it is there; it is removed.
    pub(crate) fn fetch(&self, id: &str) -> io::Result<Option<Response>> {
        let file = self.path.join("out").join(format!("{id}.json"));
        match read_message(&file) {
            Ok(response) => fs::remove_file(&file).map(|()| Some(response)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Forgets a request that nobody waits for, wherever it is.
    pub(crate) fn withdraw(&self, id: &str) {
        let _ = fs::remove_file(self.request(id));
        let _ = fs::remove_file(self.path.join("out").join(format!("{id}.json")));
    }

    /// The oldest waiting request, taken by rename: of several runners, one has it. What cannot be
    /// understood is put aside and answered.
    pub(crate) fn claim(&self, token: &str) -> io::Result<Option<(Claim, Request)>> {
        for file in self.waiting()? {
            let Some(stem) = stem(&file) else {
                self.quarantine(&file, "its name is no request's")?;
                continue;
            };
            let claimed = self
                .path
                .join("claimed")
                .join(format!("{stem}.{token}.json"));
            let young = || {
                let age = self.now()?.duration_since(modified(&file)?);
                Some(age.unwrap_or_default() < HALF_WRITTEN)
            };
            let readable = read_message::<Request>(&file);
            if readable.is_err() && young() == Some(true) {
                continue;
            }
            if fs::rename(&file, &claimed).is_err() {
                continue;
            }
            let claim = Claim {
                stem,
                file: claimed,
            };
            // What counts is what was claimed.
            match read_message::<Request>(&claim.file) {
                Ok(mut request) => {
                    if request.req_id.is_empty() {
                        request.req_id.clone_from(&claim.stem);
                    }
                    return Ok(Some((claim, request)));
                }
                Err(error) => {
                    let reason = format!("it cannot be read: {error}");
                    self.quarantine(&claim.file, &reason)?;
                    let response = Response {
                        req_id: claim.stem.clone(),
                        error: Some(format!("the request is malformed: {error}")),
                        ..Response::default()
                    };
                    write_message(&self.response(&claim.stem), &response)?;
                }
            }
        }
        Ok(None)
    }

    /// Publishes the response unless the claim was taken away meanwhile; says whether it did.
    pub(crate) fn answer(&self, claim: &Claim, response: Option<&Response>) -> io::Result<bool> {
        if fs::remove_file(&claim.file).is_err() {
            return Ok(false);
        }
        match response {
            Some(response) => write_message(&self.response(&claim.stem), response).map(|()| true),
            None => Ok(true),
        }
    }

    /// Puts a claimed request back in line.
    pub(crate) fn requeue(&self, claim: &Claim, request: &Request) -> io::Result<()> {
        write_message(&self.request(&claim.stem), request)?;
        fs::remove_file(&claim.file)
    }

    /// Takes over what runners before this one were working on.
    pub(crate) fn recover(&self, token: &str) -> io::Result<Vec<(Claim, Request)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.path.join("claimed"))? {
            let file = entry?.path();
            let name = file.file_name().and_then(|name| name.to_str());
            let Some((stem, _)) = name.and_then(|name| name.split_once('.')) else {
                continue;
            };
            let taken = self
                .path
                .join("claimed")
                .join(format!("{stem}.{token}.json"));
            if fs::rename(&file, &taken).is_err() {
                continue;
            }
            match read_message(&taken) {
                Ok(request) => found.push((
                    Claim {
                        stem: stem.to_owned(),
                        file: taken,
                    },
                    request,
                )),
                Err(error) => self.quarantine(&taken, &format!("it cannot be read: {error}"))?,
            }
        }
        Ok(found)
    }

    /// Removes responses that nobody fetched and what a crash left half written.
    pub(crate) fn sweep(&self) {
        let Some(now) = self.now() else {
            return;
        };
        for entry in ["in", "out"]
            .iter()
            .filter_map(|name| fs::read_dir(self.path.join(name)).ok())
        {
            for file in entry.flatten().map(|entry| entry.path()) {
                let own = stem(&file).is_none() || file.starts_with(self.path.join("out"));
                let age = modified(&file).and_then(|then| now.duration_since(then).ok());
                if own && age.is_some_and(|age| age > UNFETCHED) {
                    let _ = fs::remove_file(&file);
                }
            }
        }
    }

    /// The clock of the file system.
    fn now(&self) -> Option<SystemTime> {
        let probe = self.path.join(format!(".{}.probe", fresh_id()));
        fs::write(&probe, []).ok()?;
        let now = modified(&probe);
        let _ = fs::remove_file(&probe);
        now
    }

    fn request(&self, id: &str) -> PathBuf {
        self.path.join("in").join(format!("{id}.json"))
    }

    fn response(&self, stem: &str) -> PathBuf {
        self.path.join("out").join(format!("{stem}.json"))
    }

    /// Oldest first.
    fn waiting(&self) -> io::Result<Vec<PathBuf>> {
        let mut files: Vec<(Option<SystemTime>, PathBuf)> = fs::read_dir(self.path.join("in"))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|file| {
                let name = file.file_name().and_then(|name| name.to_str());
                name.is_none_or(|name| !name.starts_with('.'))
            })
            .map(|file| (modified(&file), file))
            .collect();
        files.sort();
        Ok(files.into_iter().map(|(_, file)| file).collect())
    }

    fn quarantine(&self, file: &Path, reason: &str) -> io::Result<()> {
        let folder = self.path.join("quarantine");
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let kept = format!("{}.{name}", fresh_id());
        fs::rename(file, folder.join(&kept))?;
        fs::write(folder.join(format!("{kept}.reason")), format!("{reason}\n"))
    }
}

/// The name of a request, if its file may be one.
fn stem(file: &Path) -> Option<String> {
    let stem = file.file_name()?.to_str()?.strip_suffix(".json")?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    ((1..=128).contains(&stem.len()) && stem.chars().all(fits)).then(|| stem.to_owned())
}

fn modified(file: &Path) -> Option<SystemTime> {
    fs::symlink_metadata(file).ok()?.modified().ok()
}

fn read_message<T: DeserializeOwned>(file: &Path) -> io::Result<T> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(file)?;
    let found = file.metadata()?;
    if !found.is_file() || found.len() > MAX_MESSAGE {
        return Err(io::Error::other("it is not a regular file, or too large"));
    }
    let mut text = Vec::new();
    file.take(MAX_MESSAGE).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(io::Error::other)
}

/// Whole or not at all, for readers at any time.
fn write_message(file: &Path, message: &impl Serialize) -> io::Result<()> {
    let temporary = file.with_file_name(format!(".{}.part", fresh_id()));
    let text = serde_json::to_vec(message)?;
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut opened| opened.write_all(&text))
        .and_then(|()| fs::rename(&temporary, file));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration, time::SystemTime};

    use super::{Request, Response, RunnerFolder};

    fn folder(place: &tempfile::TempDir) -> RunnerFolder {
        let folder = RunnerFolder::new(place.path(), 3);
        folder.make().unwrap();
        folder
    }

    fn request(id: &str) -> Request {
        Request {
            req_id: id.to_owned(),
            kind: "noop".to_owned(),
            ..Request::default()
        }
    }

    #[test]
    fn one_runner_has_a_request_and_one_that_lost_it_cannot_answer() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&place);
        folder.send(&request("a1")).unwrap();
        let (claim, claimed) = folder.claim("first").unwrap().unwrap();
        assert_eq!(claimed.req_id, "a1");
        assert!(folder.claim("second").unwrap().is_none());

        let recovered = folder.recover("second").unwrap();
        assert_eq!(recovered.len(), 1);
        assert!(!folder.answer(&claim, Some(&Response::default())).unwrap());
        assert!(folder.fetch("a1").unwrap().is_none());
        assert!(
            folder
                .answer(&recovered[0].0, Some(&claimed.response()))
                .unwrap()
        );
        assert_eq!(folder.fetch("a1").unwrap().unwrap().req_id, "a1");
        assert!(folder.fetch("a1").unwrap().is_none());
        assert_eq!(
            fs::read_dir(folder.path.join("claimed")).unwrap().count(),
            0
        );
    }

    #[test]
    fn what_is_no_request_is_put_aside_with_a_reason() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(&place);
        let waiting = folder.path.join("in");
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        for (name, text) in [("half.json", "{\"req_id\": \"ha"), ("list.json", "[1]")] {
            fs::write(waiting.join(name), text).unwrap();
            let file = fs::File::options()
                .write(true)
                .open(waiting.join(name))
                .unwrap();
            file.set_modified(old).unwrap();
        }
        fs::write(waiting.join("no request"), "").unwrap();
        fs::create_dir(waiting.join("folder.json")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", waiting.join("link.json")).unwrap();
        folder.send(&request("good")).unwrap();
        // Half a request that is still being written.
        fs::write(waiting.join("young.json"), "{").unwrap();

        let (_, claimed) = folder.claim("t").unwrap().unwrap();
        assert_eq!(claimed.req_id, "good");
        let answered = folder.fetch("half").unwrap().unwrap();
        assert!(!answered.ok && answered.error.unwrap().contains("malformed"));
        assert!(folder.fetch("young").unwrap().is_none());
        assert!(waiting.join("young.json").exists());
        fs::write(waiting.join("young.json"), "{\"type\":\"noop\"}").unwrap();
        assert!(folder.claim("t").unwrap().is_some());
    }
}
