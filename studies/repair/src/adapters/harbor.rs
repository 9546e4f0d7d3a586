//! Harbor's task directories to tasks: `task.toml`, `instruction.md`, `environment/`, `tests/`, `solution/`.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use dataset::{DatasetError, RowError};
use serde_json::{Map, Value};

use super::{Options, swe_bench};
use crate::{
    Checks, Facts, Gold, Place, Public, Task, TestFramework,
    grading::{Grader, HarborGrader},
};

const SETTINGS: &str = "task.toml";
const INSTRUCTION: &str = "instruction.md";
const TESTS: &str = "tests/test.sh";
/// Of the largest file of a task.
const MOST: u64 = 16 << 20;

/// The task directories at `path`: itself, or those in it, by name. Also those that lack something.
///
/// # Errors
/// A folder that cannot be read, or has no task.
pub(super) fn directories(path: &Path) -> Result<Vec<PathBuf>, DatasetError> {
    let is_task = |folder: &Path| {
        [SETTINGS, INSTRUCTION]
            .iter()
            .any(|file| folder.join(file).is_file())
    };
    if is_task(path) {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |source| DatasetError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let folder = entry.map_err(unreadable)?.path();
        if is_task(&folder) {
            found.push(folder);
        }
    }
    found.sort();
    match found.is_empty() {
        true => Err(DatasetError::Format {
            path: path.to_owned(),
            message: format!(
                "no task of Harbor's: neither the folder nor one in it has {SETTINGS} and {INSTRUCTION}"
            ),
        }),
        false => Ok(found),
    }
}

/// `number` counts task directories from 1.
pub(super) fn read(folder: &Path, number: u64, options: &Options) -> Result<Task, RowError> {
    let at = At { folder, number };
    let needed = [SETTINGS, INSTRUCTION, TESTS];
    let missing = needed
        .into_iter()
        .filter(|file| !folder.join(file).is_file());
    let missing: Vec<&str> = missing.collect();
    if !missing.is_empty() {
        let message = format!(
            "no task of Harbor's, for it lacks {}",
            missing.join(" and ")
        );
        return Err(at.error("", "", message));
    }
    let settings = at.text(SETTINGS)?;
    let settings: toml::Table = settings
        .parse()
        .map_err(|error: toml::de::Error| at.error(SETTINGS, "", error.message().to_owned()))?;
    let settings = match serde_json::to_value(settings) {
        Ok(Value::Object(settings)) => settings,
        _ => Map::new(),
    };
    let instruction = at.text(INSTRUCTION)?;
    if instruction.trim().is_empty() {
        return Err(at.error(INSTRUCTION, "", "the task asks for nothing"));
    }
    let test_files = at.texts("tests")?;
    let folder_name = folder.file_name().unwrap_or_default().to_string_lossy();
    let name = string(&settings, "task", "name").unwrap_or(&folder_name);
    let mut metadata = Map::new();
    let image = match string(&settings, "environment", "docker_image") {
        Some(image) => image.to_owned(),
        None if folder.join("environment/Dockerfile").is_file() => {
            // Whoever builds the image may do so from elsewhere.
            let environment = folder.join("environment");
            let environment = std::path::absolute(&environment).unwrap_or(environment);
            metadata.insert("requires_build".to_owned(), true.into());
            metadata.insert(
                "environment".to_owned(),
                environment.display().to_string().into(),
            );
            format!("hb__{}", name.replace('/', "__")).to_lowercase()
        }
        None => {
            let message = "names no image, and there is no environment/Dockerfile";
            return Err(at.error(SETTINGS, "environment.docker_image", message));
        }
    };
    let source = options.source("harbor");
    let title = instruction.trim_start_matches(['#', ' ', '\n']);
    Ok(Task {
        id: options.id(source, name),
        public: Public {
            repo: name.to_owned(),
            base_commit: None,
            issue: swe_bench::issue(title, Some(name.to_owned())),
            framework: TestFramework::Pytest,
            max_steps: None,
        },
        place: Place::Image {
            name: image,
            work_tree: at.work_tree()?,
        },
        checks: Checks::default(),
        facts: Facts {
            data_source: source.to_owned(),
            split: options.split.clone(),
            family: None,
            metadata,
        },
        gold: Gold {
            test_files,
            grader: Some(Grader::Harbor(Box::new(HarborGrader {
                settings,
                solution: at.texts("solution")?,
            }))),
            ..Gold::default()
        },
    })
}

fn string<'a>(settings: &'a Map<String, Value>, table: &str, key: &str) -> Option<&'a str> {
    settings.get(table)?.get(key)?.as_str()
}

/// One task directory, and the names that errors have for its files.
struct At<'a> {
    folder: &'a Path,
    number: u64,
}

impl At<'_> {
    fn error(&self, file: &str, field: &str, message: impl Into<String>) -> RowError {
        let path = match file {
            "" => self.folder.to_owned(),
            file => self.folder.join(file),
        };
        RowError {
            path,
            place: dataset::Place::Row(self.number),
            field: field.to_owned(),
            message: message.into(),
        }
    }

    fn text(&self, file: &str) -> Result<String, RowError> {
        let path = self.folder.join(file);
        let size = fs::metadata(&path).map(|found| found.len());
        if size.is_ok_and(|size| size > MOST) {
            return Err(self.error(file, "", format!("larger than {MOST} bytes")));
        }
        fs::read_to_string(&path).map_err(|error| {
            let message = match error.kind() {
                io::ErrorKind::NotFound => "missing".to_owned(),
                io::ErrorKind::InvalidData => "not a text of UTF-8".to_owned(),
                _ => error.to_string(),
            };
            self.error(file, "", message)
        })
    }

    /// All files below a folder, by path from the task's; none where there is no such folder.
    fn texts(&self, below: &str) -> Result<BTreeMap<String, String>, RowError> {
        let mut texts = BTreeMap::new();
        let mut folders = vec![below.to_owned()];
        while let Some(below) = folders.pop() {
            let entries = match fs::read_dir(self.folder.join(&below)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries.map_err(|error| self.error(&below, "", error.to_string()))?,
            };
            for entry in entries {
                let entry = entry.map_err(|error| self.error(&below, "", error.to_string()))?;
                let name = format!("{below}/{}", entry.file_name().to_string_lossy());
                if entry.path().is_dir() {
                    folders.push(name);
                } else {
                    texts.insert(name.clone(), self.text(&name)?);
                }
            }
        }
        Ok(texts)
    }

    /// The last `WORKDIR` of the Dockerfile; without one, where Harbor's own images work.
    fn work_tree(&self) -> Result<String, RowError> {
        let file = "environment/Dockerfile";
        if !self.folder.join(file).is_file() {
            return Ok("/app".to_owned());
        }
        let text = self.text(file)?;
        let folders = text.lines().filter_map(|line| {
            let (word, folder) = line.trim().split_once(char::is_whitespace)?;
            word.eq_ignore_ascii_case("WORKDIR").then(|| folder.trim())
        });
        let last = folders.rev().find(|folder| folder.starts_with('/'));
        Ok(last.unwrap_or("/app").to_owned())
    }
}
