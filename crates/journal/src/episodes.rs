//! Files of episodes: one group a line as JSON, compressed by zstd.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, BufWriter, Write},
    path::Path,
};

use record::{Episode, Group, Outcome};

use crate::{
    entry::EpisodesRef,
    error::{Error, IoContext, Result},
    files,
};

/// Name of the directory inside a run.
pub(crate) const DIRECTORY: &str = "episodes";

/// Fast, and within a few percent of the default on token ids.
const COMPRESSION_LEVEL: i32 = 3;

/// Writes the groups to `root/file`; they are whole and on disk when this returns.
///
/// # Errors
/// [`Error::NotFinite`] when a log-prob or a reward is no finite number.
pub(crate) fn write(root: &Path, file: String, groups: &[Group]) -> Result<EpisodesRef> {
    groups
        .iter()
        .flat_map(|group| &group.episodes)
        .try_for_each(check_finite)?;
    let path = root.join(&file);
    if let Some(parent) = path.parent() {
        files::create_directory(parent)?;
    }
    let unfinished = files::unfinished(&path);
    let bytes = compress(groups).at(&unfinished, "compress")?;
    let mut out = File::create(&unfinished).at(&unfinished, "create")?;
    out.write_all(&bytes).at(&unfinished, "write")?;
    out.sync_all().at(&unfinished, "sync")?;
    files::rename(&unfinished, &path)?;
    Ok(EpisodesRef {
        file,
        digest: blake3::hash(&bytes).to_hex().to_string(),
        groups: groups.len() as u64,
        episodes: groups.iter().map(|group| group.episodes.len() as u64).sum(),
    })
}

/// Reads groups back, bit for bit as they were committed.
pub(crate) fn read(root: &Path, reference: &EpisodesRef) -> Result<Vec<Group>> {
    let path = root.join(&reference.file);
    let bytes = fs::read(&path).at(&path, "read")?;
    let found = blake3::hash(&bytes).to_hex().to_string();
    if found != reference.digest {
        return Err(Error::Digest {
            path,
            expected: reference.digest.clone(),
            found,
        });
    }
    let lines = zstd::Decoder::new(bytes.as_slice()).at(&path, "decompress")?;
    BufReader::new(lines)
        .lines()
        .enumerate()
        .map(|(index, line)| {
            let line = line.at(&path, "decompress")?;
            serde_json::from_str(&line).map_err(|error| Error::Content {
                path: path.clone(),
                reason: format!("line {}: {error}", index + 1),
            })
        })
        .collect()
}

fn compress(groups: &[Group]) -> std::io::Result<Vec<u8>> {
    let mut lines = BufWriter::new(zstd::Encoder::new(Vec::new(), COMPRESSION_LEVEL)?);
    for group in groups {
        serde_json::to_writer(&mut lines, group)?;
        lines.write_all(b"\n")?;
    }
    lines.into_inner()?.finish()
}

pub(crate) fn check_finite(episode: &Episode) -> Result<()> {
    let not_finite = |name: String, value: f64| {
        Err(Error::NotFinite {
            place: format!("episode {}", episode.id),
            name,
            value,
        })
    };
    for (index, call) in episode.calls.iter().enumerate() {
        if let Some(logprob) = call
            .completion
            .logprobs
            .iter()
            .find(|value| !value.is_finite())
        {
            return not_finite(
                format!("a log-prob of call {index} ({})", call.role),
                f64::from(*logprob),
            );
        }
    }
    if let Outcome::Graded { reward } = &episode.outcome {
        let parts = reward
            .components
            .iter()
            .map(|(name, value)| (name.as_str(), *value));
        for (name, value) in parts.chain([("reward", reward.total)]) {
            if !value.is_finite() {
                return not_finite(name.to_owned(), value);
            }
        }
    }
    Ok(())
}
