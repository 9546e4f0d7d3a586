//! Growable `f32` storage aligned to cache lines, reused between passes.

use bytemuck::{Pod, Zeroable};

/// Floats whose first element lies on a 64-byte boundary, so that full-width vector loads never
/// straddle cache lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffer {
    lines: Vec<Line>,
    len: usize,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([f32; 16]);

impl Buffer {
    pub(crate) fn zeroed(len: usize) -> Self {
        let mut buffer = Self::default();
        buffer.set_len(len);
        buffer
    }

    /// Makes the buffer `len` floats long. What it holds afterwards is unspecified (old contents or
    /// zeros): callers overwrite it.
    pub(crate) fn set_len(&mut self, len: usize) {
        let lines = len.div_ceil(16);
        if lines > self.lines.len() {
            self.lines.resize(lines, Line([0.0; 16]));
        }
        self.len = len;
    }

    /// [`Self::set_len`], then the contents.
    pub(crate) fn sized(&mut self, len: usize) -> &mut [f32] {
        self.set_len(len);
        self
    }

    /// [`Self::set_len`], then zeros.
    pub(crate) fn sized_zeroed(&mut self, len: usize) -> &mut [f32] {
        self.set_len(len);
        self.fill(0.0);
        self
    }
}

impl From<&[f32]> for Buffer {
    fn from(values: &[f32]) -> Self {
        let mut buffer = Self::default();
        buffer.sized(values.len()).copy_from_slice(values);
        buffer
    }
}

impl std::ops::Deref for Buffer {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}
