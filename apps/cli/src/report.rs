//! `etude report`: rebuild what a person reads of a run.

use std::path::Path;

use journal::RunReader;
use report::RunView;

use crate::{
    args::ReportArgs,
    failure::{Classify, Outcome},
    screen::Screen,
};

/// Tasks whose episodes are printed at the end of a run.
const SHOWN_SAMPLES: usize = 2;

pub(crate) fn run(args: &ReportArgs, screen: Screen) -> Outcome<()> {
    if let [directory] = args.runs.as_slice() {
        report::write(directory).asked()?;
        return print_result(directory, args.json, screen);
    }
    let runs: Vec<RunView> = args
        .runs
        .iter()
        .map(|path| RunView::load(path))
        .collect::<Result<_, _>>()
        .asked()?;
    let seeds = report::Seeds::of(&runs).asked()?;
    if args.json {
        print_json(&seeds)
    } else {
        print_text(&seeds.text())
    }
}

/// The end of a run: a few lines for people, or its summary as JSON on stdout.
pub(crate) fn print_result(directory: &Path, json: bool, screen: Screen) -> Outcome<()> {
    if json {
        let reader = RunReader::open(directory).asked()?;
        return print_json(&reader.replay().summary());
    }
    let view = RunView::load(directory).asked()?;
    screen.say("");
    print_text(&report::summary_text(&view))?;
    let samples = report::samples_text(&view, SHOWN_SAMPLES);
    if !samples.is_empty() {
        print_text(&format!("\n{samples}"))?;
    }
    screen.say(format!(
        "report: {}",
        directory.join("report.html").display()
    ));
    Ok(())
}

pub(crate) fn print_json(value: &impl serde::Serialize) -> Outcome<()> {
    print_text(&serde_json::to_string(value).failed()?)
}

/// One text on stdout; a reader that has gone away is no failure.
pub(crate) fn print_text(text: &str) -> Outcome<()> {
    use std::io::Write;
    match writeln!(std::io::stdout().lock(), "{}", text.trim_end()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).failed(),
        _ => Ok(()),
    }
}
