//! Repair tasks out of any Python repository with tests: bugs are planted, and the tests say which of them matter.
//!
//! The tests run once with traces and twice without; tests that do not pass every time are left out. Bugs of the
//! catalogue are tried on the lines that the others run, spread over functions and families in an order of the
//! seed. One is kept when the same tests fail each time it is measured, at most half of all. The checkout of a
//! task is the repository's files, without their history, and the patch that plants the bug.

mod bugs;
mod choice;
mod framework;
mod issue;
mod measure;
mod notes;
mod one_hunk;
mod scene;
mod survey;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use code::{
    RelativePath,
    sites::{ScopeKind, Sites, Source},
};
use record::{Fault, Seed, TaskId};
use serde::Serialize;
use serde_json::{Map, json};

use crate::{
    Checks, Facts, Gold, KeptSources, Place, Public, Task, TestFramework,
    test_files::files_of,
    workplace::{Failure, Testbed, Workplace},
};

pub use bugs::{Bug, Family, bugs};
pub use framework::framework_of;
pub use issue::Style;
pub use survey::LeftOut;

use choice::{Candidate, Choice};
use issue::Report;
use measure::{Fate, Noticed};
use notes::Notes;
use one_hunk::one_hunk;
use survey::Survey;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Tasks to make.
    pub count: usize,
    pub seed: Seed,
    pub style: Style,
    /// What the repository is called; a part of every task's id.
    pub name: String,
    /// Where the fates of bugs are written down while the work goes on.
    pub notes: PathBuf,
}

/// How far the work is.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// What the tests do without bugs.
    Surveyed {
        tests: usize,
        left_out: &'a [LeftOut],
        seconds: f64,
        candidates: usize,
        /// Bugs that were measured before the work was interrupted.
        known: usize,
    },
    Tried {
        tally: &'a Tally,
    },
}

/// What became of the bugs that were tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub tried: usize,
    pub kept: usize,
    /// No test notices.
    pub unnoticed: usize,
    pub timed_out: usize,
    /// The interpreter ended.
    pub crashed: usize,
    /// More than half of the tests failed.
    pub too_much: usize,
    /// Other tests failed the second time.
    pub unsteady: usize,
}

/// Tasks of one repository.
#[derive(Clone, Debug)]
pub struct Mutated {
    pub tasks: Vec<Task>,
    pub tally: Tally,
    /// Tests that pass every time without bugs.
    pub tests: usize,
    /// Tests that do not.
    pub left_out: Vec<LeftOut>,
}

/// Why no tasks can be made.
#[derive(Debug, thiserror::Error)]
pub enum MutateError {
    #[error("{path}: {error}")]
    File { path: PathBuf, error: io::Error },
    #[error(
        "no tests were found in {name}: {} finds none; are they there, and is it the right framework (--framework)?{}",
        framework_name(*framework),
        behind(output)
    )]
    NoTests {
        name: String,
        framework: TestFramework,
        output: String,
    },
    #[error(
        "none of the {tests} tests of {name} passes as it is, so no bug can be told from what is wrong already; \
         is everything installed for the interpreter (--python)? The first says: {first}"
    )]
    NonePass {
        name: String,
        tests: usize,
        first: String,
    },
    #[error(
        "only one test of {name} passes every time, {test}: a bug has to leave as many tests that pass as it makes \
         fail, so that two are the fewest{}",
        left_out.first().map_or(String::new(), |one| format!("; {} is left out, for {}", one.test, one.why))
    )]
    OnePasses {
        name: String,
        test: String,
        left_out: Vec<LeftOut>,
    },
    #[error("the tests of {name} {how}{}", behind(output))]
    Unfinished {
        name: String,
        how: &'static str,
        output: String,
    },
    #[error(
        "the {tests} tests of {name} that pass run no line of a function outside of tests in which a bug could be \
         planted{}", unread.iter().map(|(path, why)| format!("\n{path}: left out, {why}")).collect::<String>()
    )]
    NothingCovered {
        name: String,
        tests: usize,
        /// Files that no bug is planted in, and why.
        unread: Vec<(RelativePath, String)>,
    },
    #[error("{}", _0.message)]
    Fault(Fault),
}

impl From<Fault> for MutateError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Bugs that are measured together. A part of what makes a seed's tasks what they are.
const BATCH: usize = 8;

/// Makes tasks of the sources that `testbed` opens. As many as can be made where not all can.
///
/// # Errors
/// Tests that cannot be run or all fail, files that cannot be read or written, infrastructure faults.
pub async fn mutate(
    testbed: &Testbed,
    sources: &KeptSources,
    options: &Options,
    mut progress: impl FnMut(Progress<'_>),
) -> Result<Mutated, MutateError> {
    let mut workplaces = Vec::new();
    for _ in 0..testbed.slots.max(1) {
        workplaces.push(testbed.open().await?);
    }
    let done = make(testbed, &mut workplaces, sources, options, &mut progress).await;
    for workplace in workplaces {
        workplace.close().await?;
    }
    done
}

async fn make(
    testbed: &Testbed,
    workplaces: &mut [Workplace],
    sources: &KeptSources,
    options: &Options,
    progress: &mut impl FnMut(Progress<'_>),
) -> Result<Mutated, MutateError> {
    let survey = Survey::of(testbed, &mut workplaces[0], &options.name).await?;
    let files = Files::read(sources)?;
    let candidates = files.candidates(&survey, testbed.framework);
    if candidates.is_empty() {
        return Err(MutateError::NothingCovered {
            name: options.name.clone(),
            tests: survey.tests.len(),
            unread: files.unread,
        });
    }
    let at_notes = |error| MutateError::File {
        path: options.notes.clone(),
        error,
    };
    let mut notes =
        Notes::open(&options.notes, &digest(testbed, sources, &survey)).map_err(at_notes)?;
    progress(Progress::Surveyed {
        tests: survey.tests.len(),
        left_out: &survey.left_out,
        seconds: survey.seconds,
        candidates: candidates.len(),
        known: notes.count(),
    });
    let mut choice = Choice::new(candidates, options.seed);
    let mut made = Mutated {
        tasks: Vec::new(),
        tally: Tally::default(),
        tests: survey.tests.len(),
        left_out: survey.left_out.clone(),
    };
    while made.tasks.len() < options.count {
        let batch = choice.next(BATCH);
        if batch.is_empty() {
            break;
        }
        let unknown: Vec<(&Candidate, String)> = batch
            .iter()
            .filter(|candidate| notes.fate(&candidate.key).is_none())
            .map(|candidate| (candidate, files.planted(candidate)))
            .collect();
        let found = measure::fates(workplaces, &survey, &unknown).await?;
        for ((candidate, _), fate) in unknown.iter().zip(&found) {
            notes.write(&candidate.key, fate).map_err(at_notes)?;
        }
        for candidate in &batch {
            if made.tasks.len() == options.count {
                break;
            }
            let Some(fate) = notes.fate(&candidate.key) else {
                continue;
            };
            made.tally.count(fate);
            if let Fate::Noticed(noticed) = fate {
                choice.keep(candidate);
                let task = files.task(testbed, sources, options, &survey, candidate, noticed);
                made.tasks.push(task);
            }
        }
        progress(Progress::Tried { tally: &made.tally });
    }
    notes.remove().map_err(at_notes)?;
    Ok(made)
}

impl Tally {
    fn count(&mut self, fate: &Fate) {
        self.tried += 1;
        let counted = match fate {
            Fate::Unnoticed => &mut self.unnoticed,
            Fate::TimedOut => &mut self.timed_out,
            Fate::Crashed => &mut self.crashed,
            Fate::BreaksTooMuch => &mut self.too_much,
            Fate::Unsteady => &mut self.unsteady,
            Fate::Noticed(_) => &mut self.kept,
        };
        *counted += 1;
    }
}

/// With a byte order mark or other line ends, what is written would not be what is read.
fn is_written_otherwise(text: &str) -> bool {
    text.starts_with('\u{feff}') || text.contains('\r')
}

/// The Python files of a repository.
struct Files {
    texts: BTreeMap<RelativePath, String>,
    /// Of functions and classes outside of tests.
    names: BTreeSet<String>,
    /// Outside of tests, where no bug is planted, and why.
    unread: Vec<(RelativePath, String)>,
}

impl Files {
    /// Files that are not UTF-8 have no bugs planted.
    fn read(sources: &KeptSources) -> Result<Self, MutateError> {
        let mut texts = BTreeMap::new();
        let mut names = BTreeSet::new();
        let mut unread = Vec::new();
        for path in sources
            .files
            .iter()
            .filter(|path| path.as_str().ends_with(".py"))
        {
            let file = sources.folder.join(path.as_str());
            let bytes = fs::read(&file).map_err(|error| MutateError::File { path: file, error })?;
            let is_aside = framework::is_aside(path);
            let mut leave_out = |why: String| {
                if !is_aside {
                    unread.push((path.clone(), why));
                }
            };
            let Ok(text) = String::from_utf8(bytes) else {
                leave_out("it is no UTF-8 text".to_owned());
                continue;
            };
            match Source::parse(text.as_str()) {
                Ok(source) if !is_aside => {
                    for (_, scope) in Sites::of(&source).scopes() {
                        if matches!(scope.kind, ScopeKind::Function(_) | ScopeKind::Class(_)) {
                            let name = scope.qualified_name.rsplit('.').next();
                            names.extend(name.map(str::to_owned));
                        }
                    }
                }
                Ok(_) => {}
                Err(fault) => leave_out(fault.to_string()),
            }
            if is_written_otherwise(&text) {
                leave_out("it has a byte order mark or carriage returns".to_owned());
            }
            texts.insert(path.clone(), text);
        }
        Ok(Self {
            texts,
            names,
            unread,
        })
    }

    /// Bugs of sources that tests run. No test is a source, whatever its file is called.
    fn candidates(&self, survey: &Survey, framework: TestFramework) -> Vec<Candidate> {
        let known = self.texts.keys().map(RelativePath::as_str).collect();
        let of_tests = files_of(&survey.tests, framework, &known);
        let mut candidates = Vec::new();
        for (path, text) in &self.texts {
            let is_aside = framework::is_aside(path) || of_tests.contains(path.as_str());
            if is_aside || !survey.lines.contains_key(path.as_str()) {
                continue;
            }
            let Ok(source) = Source::parse(text.as_str()) else {
                continue;
            };
            if is_written_otherwise(text) {
                continue;
            }
            for bug in bugs(&source) {
                let tests = survey.covering(path, bug.lines);
                if !tests.is_empty() {
                    let key = key(path, &bug);
                    candidates.push(Candidate {
                        path: path.clone(),
                        bug,
                        tests,
                        key,
                    });
                }
            }
        }
        candidates
    }

    fn planted(&self, candidate: &Candidate) -> String {
        let text = self.texts.get(&candidate.path);
        text.map_or_else(String::new, |text| candidate.bug.edit.apply(text))
    }

    fn task(
        &self,
        testbed: &Testbed,
        sources: &KeptSources,
        options: &Options,
        survey: &Survey,
        candidate: &Candidate,
        noticed: &Noticed,
    ) -> Task {
        let Candidate { path, bug, key, .. } = candidate;
        let (right, wrong) = (
            self.texts.get(path).cloned().unwrap_or_default(),
            self.planted(candidate),
        );
        let gold = one_hunk(path.as_str(), &wrong, &right);
        let secret: Vec<String> = gold
            .lines()
            .filter_map(|line| {
                line.strip_prefix('+')
                    .filter(|line| !line.starts_with("++"))
            })
            .map(|line| line.trim().to_owned())
            .collect();
        let fails: BTreeSet<&String> = noticed.fails.iter().collect();
        let passes: Vec<String> = survey
            .tests
            .iter()
            .filter(|id| !fails.contains(id))
            .cloned()
            .collect();
        let silent = Failure {
            kind: "Error".to_owned(),
            message: "the test could not be run".to_owned(),
            frames: Vec::new(),
        };
        let first = noticed.failures.iter().next();
        let (test, failure) =
            first.map_or((&noticed.fails[0], &silent), |(id, failure)| (id, failure));
        let report = Report {
            name: &options.name,
            test,
            failure,
            counts: (noticed.fails.len(), passes.len()),
            names: &self.names,
            secret: &secret,
        };
        let seed = options.seed.stream(key, 0);
        let mut issue = report.issue(options.style, seed, |asked| match asked == path {
            true => Some(wrong.clone()),
            false => self.texts.get(asked).cloned(),
        });
        let id = format!("{}__{}-{}", options.name, bug.family.name(), &key[..8]);
        issue.id = Some(id.clone());
        let line = right[..bug.edit.start].matches('\n').count() + 1;
        let metadata: Map<String, serde_json::Value> = [
            ("package", json!(options.name)),
            ("file", json!(path)),
            ("function", json!(bug.function)),
            ("line", json!(line)),
            ("style", json!(options.style)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect();
        Task {
            id: TaskId(id),
            public: Public {
                repo: options.name.clone(),
                base_commit: None,
                issue,
                framework: testbed.framework,
                max_steps: None,
            },
            place: Place::Patched {
                folder: sources.folder.clone(),
                patch: one_hunk(path.as_str(), &right, &wrong),
            },
            checks: Checks {
                fail_to_pass: noticed.fails.clone(),
                pass_to_pass: passes,
            },
            facts: Facts {
                data_source: "mutated".to_owned(),
                split: String::new(),
                family: Some(bug.family.name().to_owned()),
                metadata,
            },
            gold: Gold {
                patch: gold,
                ..Gold::default()
            },
        }
    }
}

/// Tells a bug from all others of the repository.
fn key(path: &RelativePath, bug: &Bug) -> String {
    let mut hasher = blake3::Hasher::new();
    let edit = &bug.edit;
    for part in [
        path.as_str().as_bytes(),
        &(edit.start as u64).to_le_bytes(),
        &(edit.end as u64).to_le_bytes(),
        edit.replacement.as_bytes(),
    ] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// Of all that fates depend on.
fn digest(testbed: &Testbed, sources: &KeptSources, survey: &Survey) -> String {
    let mut hasher = blake3::Hasher::new();
    let framework = framework_name(testbed.framework);
    for part in [&*sources.digest, &*testbed.python, framework]
        .into_iter()
        .chain(survey.tests.iter().map(|id| &**id))
    {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

fn framework_name(framework: TestFramework) -> &'static str {
    match framework {
        TestFramework::Pytest => "pytest",
        TestFramework::Unittest => "unittest",
    }
}

/// What was printed, behind a message.
fn behind(output: &str) -> String {
    match output.trim() {
        "" => String::new(),
        output => format!("\n{output}"),
    }
}

/// Where the notes of a file of tasks are kept.
pub fn notes_beside(file: &Path) -> PathBuf {
    file.with_extension("unfinished.jsonl")
}
