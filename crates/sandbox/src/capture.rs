//! Keeps the beginning and the end of a stream of any length.

use std::collections::VecDeque;

use crate::Captured;

/// Collects a stream in bounded memory.
#[derive(Debug)]
pub struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half: usize,
    /// Bytes seen so far, kept or not.
    pub total: u64,
}

impl Capture {
    /// Keeps `keep` bytes: the first half and the last half.
    pub fn new(keep: usize) -> Self {
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            half: keep.div_ceil(2),
            total: 0,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = (self.half - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        let rest = &bytes[room..];
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    pub fn finish(self) -> Captured {
        let tail = Vec::from(self.tail);
        let truncated = self.total > (self.head.len() + tail.len()) as u64;
        Captured {
            head: self.head,
            tail,
            total: self.total,
            truncated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Capture;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_ends_of_any_stream_are_kept(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 0..9),
            keep in 0usize..20,
        ) {
            let mut capture = Capture::new(keep);
            chunks.iter().for_each(|chunk| capture.push(chunk));
            let all = chunks.concat();
            let kept = capture.finish();
            let half = keep.div_ceil(2);
            prop_assert_eq!(kept.total, all.len() as u64);
            prop_assert_eq!(kept.truncated, all.len() > 2 * half);
            prop_assert_eq!(&kept.head[..], &all[..all.len().min(half)]);
            prop_assert_eq!(kept.tail.len(), (all.len() - kept.head.len()).min(half));
            prop_assert!(all.ends_with(&kept.tail));
            if !kept.truncated {
                prop_assert_eq!(kept.bytes(), all);
            }
        }
    }
}
