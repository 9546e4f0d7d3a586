//! Failures that no edit of a line can mend: modules that are not installed, and sources that cannot be read.

use std::{collections::BTreeSet, path::Path};

use anyhow::anyhow;
use code::graph::is_test_path;
use judge::pytest::TestStatus;
use repair::{Checks, Place, Task, workplace::Failure as TestFailure};

use super::{RepairArgs, survey::Survey, uneditable::link_to_module};
use crate::{
    failure::{Failure, Outcome},
    screen::Screen,
};

impl Survey {
    /// Refuses what no edit of a line can mend, before anybody looks for one.
    pub(super) fn check_readable(
        &self,
        checks: &Checks,
        args: &RepairArgs,
        screen: Screen,
    ) -> Outcome<()> {
        let wanted = &checks.fail_to_pass;
        self.check_links(wanted, args)?;
        self.check_imports(args, screen)?;
        let absent: Vec<&str> = wanted
            .iter()
            .filter_map(|id| {
                let mut found = self.absent.iter().filter(|(test, _)| test == id);
                found.next().map(|(_, module)| module.as_str())
            })
            .collect();
        if absent.len() == wanted.len() {
            let modules: BTreeSet<&str> = absent.into_iter().collect();
            let modules: Vec<&str> = modules.into_iter().collect();
            return Err(Failure::Asked(anyhow!(
                "the failing tests cannot import {}, which neither {} nor the interpreter has; name one that has it \
                 with --python PROGRAM, such as that of a virtual environment",
                modules.join(", "),
                args.repo_name()
            )));
        }
        let unreadable: Vec<String> = wanted
            .iter()
            .filter_map(|id| syntax_error(self.run.failures.get(id)?))
            .collect();
        if args.patch_model.is_none() && unreadable.len() == wanted.len() {
            let failures = wanted.iter().filter_map(|id| self.run.failures.get(id));
            let last = failures.filter_map(|failure| failure.frames.last());
            let said = unreadable.first().map_or("", String::as_str);
            // Nobody's patches change tests.
            return Err(Failure::Asked(match last.map(|frame| &frame.path).next() {
                Some(path) if is_test_path(path) => {
                    anyhow!(
                        "{path} is a file of tests that Python cannot read: {said}; mend it by hand"
                    )
                }
                _ => anyhow!(
                    "the failing tests meet a source that Python cannot read, and a search edits none such: {said}; \
                     mend it by hand, or name a model with --patch-model"
                ),
            }));
        }
        Ok(())
    }

    /// Refuses when all that fails is imports of what lies behind links out of the repository.
    fn check_links(&self, wanted: &[String], args: &RepairArgs) -> Outcome<()> {
        let behind = |id: &String| {
            let module = whole_module(self.run.failures.get(id)?)?;
            Some((module, link_to_module(&args.repo, module)?))
        };
        let links: Option<Vec<_>> = wanted.iter().map(behind).collect();
        match links.unwrap_or_default().first() {
            None => Ok(()),
            Some((module, link)) => Err(Failure::Asked(anyhow!(
                "the failing tests cannot import {module}: {}, and tests see nothing outside of it; put what it points \
                 to in its place",
                link.in_words()
            ))),
        }
    }

    /// Refuses when no module of tests can be imported for want of others.
    fn check_imports(&self, args: &RepairArgs, screen: Screen) -> Outcome<()> {
        let run = &self.run;
        let is_module = |id: &str| is_file(&args.repo, id);
        let broken = run.statuses.iter().all(|(id, status)| match status {
            TestStatus::Skipped => true,
            status => *status == TestStatus::Error && is_module(id),
        });
        let modules = run.order.iter().filter(|id| is_module(id));
        let told: Vec<(&String, &TestFailure)> = modules
            .filter_map(|id| Some((id, run.failures.get(id)?)))
            .collect();
        let Some((id, failure)) = told.first().filter(|_| broken) else {
            return Ok(());
        };
        let said = format!(
            "no module of tests of {} can be imported ({} tried); the first, {id}, says {}: {}",
            args.repo_name(),
            told.len(),
            failure.kind,
            failure.message.trim(),
        );
        // An import of what the repository should have may be what is wrong, and a model can write another.
        let is_own =
            absent_module(failure).is_some() && !self.absent.iter().any(|(test, _)| test == *id);
        if not_installed(&failure.kind) && !(is_own && args.patch_model.is_some()) {
            let how = self.how_to_install(args);
            return Err(Failure::Asked(anyhow!("{said}\n{how}")));
        }
        screen.say(format!("note: {said}"));
        Ok(())
    }

    pub(super) fn how_to_install(&self, args: &RepairArgs) -> String {
        // Without a folder in it, a name would be that of a package of the registry.
        let repo = std::path::absolute(&args.repo).unwrap_or_else(|_| args.repo.clone());
        let repo = repo.display();
        format!(
            "{} has not what the tests need. Make an environment that has it, such as with\n  \
             python3 -m venv VENV && VENV/bin/pip install pytest {repo}\n\
             and what else they import, and name its interpreter: --python VENV/bin/python",
            self.python
        )
    }
}

/// Whether an error is that of a package that has to be installed: its modules are not there, or what was written
/// down of it when it was installed.
pub(super) fn not_installed(said: &str) -> bool {
    const KINDS: [&str; 3] = [
        "ModuleNotFoundError",
        "PackageNotFoundError",
        "DistributionNotFound",
    ];
    KINDS.iter().any(|kind| said.contains(kind))
}

/// Whether an id is that of a file of tests: its path, or its module's name.
fn is_file(folder: &Path, id: &str) -> bool {
    folder.join(id).is_file()
        || folder
            .join(format!("{}.py", id.replace('.', "/")))
            .is_file()
}

/// `x` of `No module named 'x.y'`.
pub(super) fn absent_module(failure: &TestFailure) -> Option<&str> {
    let name = whole_module(failure)?.split('.').next()?;
    (!name.is_empty()).then_some(name)
}

/// `x.y` of `No module named 'x.y'`.
fn whole_module(failure: &TestFailure) -> Option<&str> {
    let (_, rest) = failure.message.split_once("No module named '")?;
    rest.split('\'').next()
}

pub(super) fn is_of_the_repository(task: &Task, module: &str) -> bool {
    let (Place::Folder(folder) | Place::Patched { folder, .. }) = &task.place else {
        return true;
    };
    [folder.clone(), folder.join("src"), folder.join("tests")]
        .iter()
        .any(|above| above.join(module).is_dir() || above.join(format!("{module}.py")).is_file())
}

/// What Python says of a source that it cannot read.
fn syntax_error(failure: &TestFailure) -> Option<String> {
    const KINDS: [&str; 3] = ["SyntaxError", "IndentationError", "TabError"];
    if KINDS.contains(&failure.kind.as_str()) {
        return Some(format!("{}: {}", failure.kind, failure.message.trim()));
    }
    let mut lines = failure.message.lines().map(str::trim);
    let said = lines.find(|line| {
        let kind = line.split(':').next().unwrap_or_default();
        KINDS.contains(&kind.trim_start_matches("E ").trim())
    });
    said.map(str::to_owned)
}
