//! Rows as padded matrices, for export and for peers, with what belongs to steps kept beside them by key.
//!
//! Reading order: [`rows_of`] → [`pack`] → [`Packed`]; [`events_of`] → [`Sidecar`] → [`Sidecar::check_alignment`];
//! [`Packed::to_safetensors`] and [`Packed::to_json`]. Source: spec of the recall study, sections 1.9 and 1.10.

mod export;
mod layout;
mod matrix;
mod row;
mod sidecar;

pub use export::ExportError;
pub use layout::{Layout, PackOptions, Packed, RowInfo, concat, pack};
pub use matrix::Matrix;
pub use row::{Row, rows_of};
pub use sidecar::{AlignmentError, Event, EventReward, Sidecar, events_of};
