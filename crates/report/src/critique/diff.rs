//! Line differences between two short texts.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Same,
    Removed,
    Added,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

/// The most cells of the comparison table; longer texts are shown as all removed and all added.
const MOST_CELLS: usize = 4_000_000;

/// The lines of both texts, with a longest common subsequence kept in place.
pub(crate) fn lines(old: &str, new: &str) -> Vec<Line> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let line = |kind, text: &str| Line {
        kind,
        text: text.to_owned(),
    };
    if (old.len() + 1) * (new.len() + 1) > MOST_CELLS {
        let removed = old.iter().map(|text| line(Kind::Removed, text));
        return removed
            .chain(new.iter().map(|text| line(Kind::Added, text)))
            .collect();
    }
    let common = common_lengths(&old, &new);
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            out.push(line(Kind::Same, old[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || common[i + 1][j] >= common[i][j + 1]) {
            out.push(line(Kind::Removed, old[i]));
            i += 1;
        } else {
            out.push(line(Kind::Added, new[j]));
            j += 1;
        }
    }
    out
}

/// `[i][j]`: the length of a longest common subsequence of `old[i..]` and `new[j..]`.
fn common_lengths(old: &[&str], new: &[&str]) -> Vec<Vec<usize>> {
    let mut table = vec![vec![0; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            table[i][j] = if old[i] == new[j] {
                table[i + 1][j + 1] + 1
            } else {
                table[i + 1][j].max(table[i][j + 1])
            };
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn side(lines: &[Line], without: Kind) -> Vec<&str> {
        lines
            .iter()
            .filter(|line| line.kind != without)
            .map(|line| line.text.as_str())
            .collect()
    }

    #[test]
    fn a_changed_line_is_taken_out_and_put_in() {
        let kinds = |old, new| {
            lines(old, new)
                .iter()
                .map(|line| line.kind)
                .collect::<Vec<_>>()
        };
        use Kind::{Added, Removed, Same};
        assert_eq!(kinds("a\nb\nc", "a\nB\nc"), [Same, Removed, Added, Same]);
        assert_eq!(kinds("", "a"), [Added]);
        assert_eq!(kinds("a\nb", "a\nb"), [Same, Same]);
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_off(old in "[ab\n]{0,30}", new in "[ab\n]{0,30}") {
            let lines = lines(&old, &new);
            prop_assert_eq!(side(&lines, Kind::Added), old.lines().collect::<Vec<_>>());
            prop_assert_eq!(side(&lines, Kind::Removed), new.lines().collect::<Vec<_>>());
        }
    }
}
