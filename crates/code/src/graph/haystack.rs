//! Many short texts in one row: a search goes through all of them at the speed of memory.

use memchr::memmem::Finder;

/// Texts by their number, the first being 0.
#[derive(Debug, Default)]
pub(super) struct Haystack {
    text: String,
    /// Where each text ends, and the next begins.
    ends: Vec<u32>,
    /// Which ASCII characters are in each text, a bit each.
    letters: Vec<u128>,
}

impl Haystack {
    pub(super) fn push(&mut self, text: &str) {
        self.text += text;
        self.ends.push(self.text.len() as u32);
        let letters = text.bytes().filter(u8::is_ascii);
        self.letters
            .push(letters.fold(0, |letters, letter| letters | 1 << letter));
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn piece(&self, number: u32) -> &str {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[number] as usize]
    }

    /// Tells `found` the numbers of the texts with `needle` in them, in order. Nothing is in none.
    pub(super) fn each_with(&self, needle: &str, mut found: impl FnMut(u32)) {
        match *needle.as_bytes() {
            [] => {}
            // Most texts have it, and where a search ends at once, beginning it is all that it takes.
            [letter] => {
                let numbered = (0..).zip(&self.letters);
                let with_it = numbered.filter(|(_, letters)| *letters >> letter & 1 == 1);
                with_it.for_each(|(number, _)| found(number));
            }
            _ => self.each_with_many(needle, found),
        }
    }

    fn each_with_many(&self, needle: &str, mut found: impl FnMut(u32)) {
        let finder = Finder::new(needle);
        let (mut at, mut number) = (0, 0);
        while let Some(ahead) = finder.find(&self.text.as_bytes()[at..]) {
            let place = at + ahead;
            number += self.ends_until(number, place);
            // What reaches over the end of a text is in none, and so is what begins later in it.
            at = self.ends[number] as usize;
            if place + needle.len() <= at {
                found(number as u32);
            }
            number += 1;
        }
    }

    /// Which texts have `needle` in them.
    pub(super) fn marked(&self, needle: &str) -> Vec<bool> {
        let mut marked = vec![false; self.ends.len()];
        self.each_with(needle, |number| marked[number as usize] = true);
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
                haystack.push(piece);
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
        haystack.push("ab");
        assert_eq!(haystack.marked(""), [false]);
    }
}
