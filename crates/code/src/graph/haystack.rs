//! Many short texts in one row: a search goes through all of them at the speed of memory.

use memchr::memmem::Finder;

/// Texts by their number, the first being 0.
#[derive(Debug, Default)]
pub(super) struct Haystack {
    text: String,
    /// Where each text ends, and the next begins.
    ends: Vec<u32>,
}

impl Haystack {
    /// Adds a text: its parts, one after the other.
    pub(super) fn push<const PARTS: usize>(&mut self, parts: [&str; PARTS]) {
        for part in parts {
            self.text += part;
        }
        self.ends.push(self.text.len() as u32);
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn piece(&self, number: u32) -> &str {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[number] as usize]
    }

    /// The numbers of the texts with `needle` in them, in order. Nothing is in none.
    pub(super) fn pieces_with<'a>(&'a self, needle: &'a str) -> impl Iterator<Item = u32> + 'a {
        let finder = Finder::new(needle);
        let (mut at, mut number) = (0, 0);
        std::iter::from_fn(move || {
            while !needle.is_empty() {
                let found = at + finder.find(&self.text.as_bytes()[at..])?;
                number += self.ends_until(number, found);
                let end = *self.ends.get(number)? as usize;
                // What reaches over the end of a text is in none, and so is what begins later in it.
                at = end;
                number += 1;
                if found + needle.len() <= end {
                    return Some(number as u32 - 1);
                }
            }
            None
        })
    }

    /// Which texts have `needle` in them.
    pub(super) fn marked(&self, needle: &str) -> Vec<bool> {
        let mut marked = vec![false; self.ends.len()];
        for number in self.pieces_with(needle) {
            marked[number as usize] = true;
        }
        marked
    }

    /// How many texts from `number` on end at or before `offset`; mostly few.
    fn ends_until(&self, number: usize, offset: usize) -> usize {
        let ends = &self.ends[number..];
        let is_before = |end: &u32| *end as usize <= offset;
        if !ends.first().is_some_and(is_before) {
            return 0;
        }
        let mut width = 4;
        while width < ends.len() && is_before(&ends[width]) {
            width *= 4;
        }
        ends[..ends.len().min(width + 1)].partition_point(is_before)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_search_in_the_row_finds_what_a_search_in_each_text_does(
            pieces in prop::collection::vec("[ab]{0,4}", 0..40),
            needle in "[ab]{1,3}",
        ) {
            let mut haystack = Haystack::default();
            for piece in &pieces {
                haystack.push([piece]);
            }
            let one_by_one: Vec<bool> = pieces.iter().map(|it| it.contains(&needle)).collect();
            prop_assert_eq!(haystack.marked(&needle), one_by_one);
            for (number, piece) in pieces.iter().enumerate() {
                prop_assert_eq!(haystack.piece(number as u32), piece);
            }
        }
    }

    #[test]
    fn nothing_is_in_no_text() {
        let mut haystack = Haystack::default();
        haystack.push(["a", "b"]);
        assert_eq!(haystack.marked(""), [false]);
    }
}
