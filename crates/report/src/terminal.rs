//! The end of a run as plain text.

use crate::{comparison::Cell, gates::Verdict, page::Page, run_view::RunView, study};

/// Characters of a line of a table or a paragraph, at most.
const WIDTH: usize = 100;
/// Between two columns.
const GAP: &str = "  ";

/// Up to `n` samples of what was evaluated, before and after; empty when no evaluation kept its episodes.
pub fn samples_text(run: &RunView, n: usize) -> String {
    study::of(&run.replay).samples_text(run, n)
}

/// The result, the evaluations, the gates and the times as plain text.
pub fn summary_text(run: &RunView) -> String {
    let page = Page::of(run);
    let mut out = vec![format!("{} ({})", page.title, page.status)];
    out.extend(wrapped(&page.headline, 96));
    out.extend(
        page.gate_warning
            .iter()
            .flat_map(|warning| wrapped(warning, 96)),
    );
    out.extend(page.problems.iter().map(|problem| format!("! {problem}")));
    if !page.comparison.rows.is_empty() {
        out.push(String::new());
        out.extend(aligned(&evaluation_rows(&page)));
    }
    for table in study::of(&run.replay).tables(run) {
        out.push(String::new());
        out.extend(aligned(&table));
    }
    if !page.gates.is_empty() {
        out.push(String::new());
        let rows = page.gates.iter().map(|gate| {
            let verdict = match gate.verdict {
                Verdict::Met => "met",
                Verdict::MetNarrowly => "met, its interval reaches beyond",
                Verdict::Broken => "NOT MET",
                Verdict::NoLimit => "",
            };
            vec![
                format!("gate {}", gate.name),
                format!("{} {}", gate.metric, gate.cell.said()),
                gate.limit.clone(),
                verdict.to_owned(),
            ]
        });
        out.extend(aligned(&rows.collect::<Vec<_>>()));
    }
    if !page.phases.is_empty() {
        out.push(String::new());
        let rows = page.phases.iter().map(|bar| {
            vec![
                bar.name.clone(),
                bar.seconds.clone(),
                bar.share.clone(),
                bar.detail.clone(),
            ]
        });
        out.extend(aligned(&rows.collect::<Vec<_>>()));
    }
    out.join("\n") + "\n"
}

fn evaluation_rows(page: &Page) -> Vec<Vec<String>> {
    let comparison = &page.comparison;
    let mut heading = vec![String::new()];
    heading.extend(comparison.columns.iter().map(|column| column.name.clone()));
    heading.extend(comparison.change_heading.clone());
    let mut rows = vec![heading];
    for row in &comparison.rows {
        let mut cells = vec![row.label.clone()];
        cells.extend(
            row.cells
                .iter()
                .map(|cell| cell.as_ref().map_or("–".to_owned(), Cell::said)),
        );
        if let Some(change) = &row.change {
            cells.push(format!("{}, {}", change.difference, change.overlap));
        }
        rows.push(cells);
    }
    rows
}

/// Columns padded to their widest cell. Those that do not fit into [`WIDTH`] beside the others follow below, an
/// empty line between, behind the first column again.
pub(crate) fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width_of = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..n_columns).map(width_of).collect();
    let first = widths.first().copied().unwrap_or(0);
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    let mut taken = usize::MAX;
    for (column, width) in widths.iter().enumerate().skip(1) {
        if taken.saturating_add(GAP.len() + width) > WIDTH || blocks.is_empty() {
            blocks.push(vec![0]);
            taken = first;
        }
        if let Some(block) = blocks.last_mut() {
            block.push(column);
            taken += GAP.len() + width;
        }
    }
    if blocks.is_empty() && n_columns > 0 {
        blocks.push(vec![0]);
    }
    let line = |row: &Vec<String>, block: &[usize]| {
        let cell = |&column: &usize| {
            let cell = row.get(column)?;
            Some(cell.clone() + &" ".repeat(widths[column] - cell.chars().count()))
        };
        let cells: Vec<String> = block.iter().filter_map(cell).collect();
        cells.join(GAP).trim_end().to_owned()
    };
    let blocks = blocks.iter().map(|block| {
        let lines = rows.iter().map(|row| line(row, block));
        lines.collect::<Vec<_>>()
    });
    blocks.collect::<Vec<_>>().join(&String::new())
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.len() - 1;
        let length = lines[line].chars().count();
        if length > 0 && length + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            let space = if length > 0 { " " } else { "" };
            lines[line].push_str(space);
            lines[line].push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::aligned;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn tables_that_fit_are_one_block() {
        let rows = [row(&["", "before", "after"]), row(&["F1", "1 %"])];
        assert_eq!(aligned(&rows), ["    before  after", "F1  1 %"]);
        assert_eq!(aligned(&[row(&["alone"])]), ["alone"]);
        assert_eq!(aligned(&[]), [""; 0]);
    }

    #[test]
    fn wide_tables_go_on_below_behind_their_first_column() {
        let wide = "x".repeat(46);
        let rows = [
            row(&["of", &wide, &wide, "c", "d"]),
            row(&["me", "1", "2", "3", "4"]),
        ];
        let pad = " ".repeat(45);
        let expected = [
            format!("of  {wide}  {wide}"),
            format!("me  1{pad}  2"),
            String::new(),
            "of  c  d".to_owned(),
            "me  3  4".to_owned(),
        ];
        assert_eq!(aligned(&rows), expected);
        // What is wider than a line by itself has one for itself.
        let rows = [row(&["of", &"y".repeat(120), "z"])];
        assert_eq!(aligned(&rows).len(), 3);
    }
}
