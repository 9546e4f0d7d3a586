//! One line of JSON a request, one a response.

use code::RelativePath;
use serde::{Deserialize, Serialize};

use crate::{
    Capabilities, Image, SnapshotId,
    wire::{Bytes, Fault, WireCommand, WireOutcome},
};

/// Both sides must speak the same; raised when a message changes its meaning.
pub(crate) const PROTOCOL: u32 = 1;

/// What the remote side says first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) etude: String,
    pub(crate) protocol: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) id: u64,
    #[serde(flatten)]
    pub(crate) op: Op,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(crate) enum Op {
    /// Changes nothing; tells the remote side that somebody is there.
    Ping,
    Start {
        image: Image,
    },
    Exec {
        command: WireCommand,
    },
    Read {
        path: RelativePath,
        max_bytes: u64,
    },
    Write {
        path: RelativePath,
        content: Bytes,
        mode: u32,
    },
    Remove {
        path: RelativePath,
    },
    Snapshot,
    Restore {
        snapshot: SnapshotId,
    },
    Stop,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Response {
    /// Of the request; 0 for a line that was none.
    pub(crate) id: u64,
    #[serde(flatten)]
    pub(crate) answer: Answer,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Answer {
    Done,
    Started {
        session: String,
        capabilities: Capabilities,
    },
    Outcome {
        outcome: WireOutcome,
    },
    Content {
        content: Bytes,
    },
    Snapshot {
        snapshot: SnapshotId,
    },
    Failed {
        fault: Fault,
        text: String,
    },
}
