//! A few critiques to read in the terminal, before and after, side by side.

use super::{
    diff::Kind,
    samples::{Sample, Side, samples},
};
use crate::run_view::RunView;

/// Columns of one side.
const WIDTH: usize = 58;

/// Up to `n` tasks with the critiques of two evaluations and what the reviser made of them; empty
/// when no evaluation kept its episodes.
pub(super) fn critiques_text(run: &RunView, n: usize) -> String {
    let texts: Vec<String> = samples(run).iter().take(n).map(text_of).collect();
    texts.join("\n")
}

fn text_of(sample: &Sample) -> String {
    let known = match sample.initially_right {
        Some(true) => "the program is right".to_owned(),
        Some(false) => format!("the program is wrong: {}", sample.bug),
        None => String::new(),
    };
    let mut text = format!("{}\n  {}  ({known})\n", sample.heading, sample.statement);
    for line in sample.program.lines() {
        text += &format!("    {line}\n");
    }
    let columns: Vec<Vec<String>> = sample.sides.iter().map(column_of).collect();
    let height = columns.iter().map(Vec::len).max().unwrap_or(0);
    for row in 0..height {
        let cells: Vec<String> = columns
            .iter()
            .map(|column| format!("{:<WIDTH$}", column.get(row).map_or("", String::as_str)))
            .collect();
        text += &format!("  {}\n", cells.join(" │ ").trim_end());
    }
    text
}

fn column_of(side: &Side) -> Vec<String> {
    let verdict = match side.passed {
        Some(true) => "the revision passes",
        Some(false) => "the revision fails",
        None => "no revision",
    };
    let mut column = vec![format!("{}: {verdict}", side.name)];
    column.extend(side.critique.lines().flat_map(wrapped));
    match &side.revision {
        Some(_) if side.unchanged => column.push("(program unchanged)".to_owned()),
        Some(lines) => {
            let changed = lines.iter().filter(|line| line.kind != Kind::Same);
            column.extend(changed.flat_map(|line| {
                let sign = if line.kind == Kind::Added { '+' } else { '-' };
                wrapped(&format!("{sign} {}", line.text))
            }));
        }
        None => {}
    }
    column
}

/// A line in pieces of at most [`WIDTH`] characters, broken at spaces where there are any.
fn wrapped(line: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for word in line.split_inclusive(' ') {
        let last = pieces.len() - 1;
        let piece = &mut pieces[last];
        if piece.is_empty() || piece.chars().count() + word.trim_end().chars().count() <= WIDTH {
            piece.push_str(word);
        } else {
            pieces.push(word.to_owned());
        }
    }
    let cut = |piece: String| piece.trim_end().chars().take(WIDTH).collect();
    pieces.into_iter().map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces_and_never_too_long() {
        let long = "word ".repeat(40);
        let pieces = wrapped(&long);
        assert!(pieces.len() > 2);
        assert!(pieces.iter().all(|piece| piece.chars().count() <= WIDTH));
        assert_eq!(pieces.join(" ").trim(), long.trim());
        assert_eq!(wrapped(&"x".repeat(90)), ["x".repeat(WIDTH)]);
        assert_eq!(wrapped(""), [""]);
    }
}
