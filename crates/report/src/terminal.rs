//! The end of a run as plain text.

use crate::{gates::Verdict, page::Page, run_view::RunView, study};

/// Up to `n` samples of what was evaluated, before and after; empty when no evaluation kept its episodes.
pub fn samples_text(run: &RunView, n: usize) -> String {
    study::of(&run.replay).samples_text(run, n)
}

/// The result, the evaluations, the gates and the times as plain text; tables are as wide as their
/// cells.
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
                format!("{} {} ({})", gate.metric, gate.cell.value, gate.cell.bounds),
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
        cells.extend(row.cells.iter().map(|cell| {
            cell.as_ref().map_or("–".to_owned(), |cell| {
                format!("{} ({})", cell.value, cell.bounds)
            })
        }));
        if let Some(change) = &row.change {
            cells.push(format!("{}, {}", change.difference, change.overlap));
        }
        rows.push(cells);
    }
    rows
}

/// Columns padded to their widest cell.
pub(crate) fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width_of = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..n_columns).filter_map(width_of).collect();
    rows.iter()
        .map(|row| {
            let cells = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| cell.clone() + &" ".repeat(width - cell.chars().count()));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        })
        .collect()
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
