//! Tables, plots and a self-contained HTML page from a run directory.
//!
//! [`RunView::load`] reads a run through `journal`; [`render_html`] and [`summary_text`] are functions
//! of that view alone. Everything that names a metric is a table; metrics that no table knows are
//! shown all the same, under their own names. Reading order: `page` puts together what the modules
//! after it compute, `study` says where studies differ, each in a module of its own, and
//! `templates/report.html` says how it looks.

mod chart;
mod comparison;
mod critique;
mod curves;
mod gates;
mod infrastructure;
mod page;
mod phases;
mod recall;
mod repair;
mod run_view;
mod seeds;
mod study;
mod terminal;
mod words;

use std::path::{Path, PathBuf};

use minijinja::{Environment, UndefinedBehavior, syntax::SyntaxConfig, value::Serde};

pub use run_view::RunView;
pub use seeds::{SeedResult, Seeds, SeedsError};
pub use terminal::{samples_text, summary_text};

/// A report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Run(#[from] journal::Error),
    #[error("the report's template does not fit the run, which is a defect of etude: {0:#}")]
    Template(#[from] minijinja::Error),
}

/// The whole report as one HTML file that loads nothing from anywhere.
pub fn render_html(run: &RunView) -> Result<String, Error> {
    let mut templates = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()?;
    templates.set_syntax(syntax);
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    // The names end in `.html`, so every value is escaped.
    templates.add_template("charts.html", include_str!("../templates/charts.html"))?;
    for (name, source) in [
        ("critique.html", include_str!("../templates/critique.html")),
        ("rounds.html", include_str!("../templates/rounds.html")),
        ("recall.html", include_str!("../templates/recall.html")),
        ("episodes.html", include_str!("../templates/episodes.html")),
        ("repair.html", include_str!("../templates/repair.html")),
        ("suspects.html", include_str!("../templates/suspects.html")),
        ("traces.html", include_str!("../templates/traces.html")),
    ] {
        templates.add_template(name, source)?;
    }
    templates.add_template("report.html", include_str!("../templates/report.html"))?;
    templates.add_template("style.css", include_str!("../templates/style.css"))?;
    Ok(templates
        .get_template("report.html")?
        .render(Serde(page::Page::of(run)))?)
}

/// Renders a run and writes its `report.html`.
pub fn write(run: &Path) -> Result<PathBuf, Error> {
    let html = render_html(&RunView::load(run)?)?;
    Ok(journal::write_report(run, &html)?)
}
