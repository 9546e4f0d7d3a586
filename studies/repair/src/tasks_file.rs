//! Files of tasks: JSON Lines whose relative folders stand below the file's own.

use std::{
    collections::HashMap,
    path::{Component, Path, PathBuf},
};

use code::Patch;
use dataset::{DatasetError, JsonlWriter, Row, RowError, Rows};

use crate::{Place, Task, adapters::Format};

/// Reads the tasks of a file. Folders in them are as this process can open them.
///
/// # Errors
/// The first row that is wrong, named by file, line and field: not a task, an id that an earlier row has, a folder
/// that is not there, a patch that cannot be read.
pub fn read_tasks(path: &Path) -> Result<Vec<Task>, DatasetError> {
    let mut ids = HashMap::new();
    let mut tasks = Vec::new();
    for row in Rows::open(path)? {
        let row = row?;
        let task = task_of_row(&row)?;
        if let Some(before) = ids.insert(task.id.0.clone(), row.place()) {
            let message = format!("{} has the id `{}` already", before, task.id.0);
            return Err(row.error("id", message).into());
        }
        tasks.push(task);
    }
    if tasks.is_empty() {
        return Err(DatasetError::Empty {
            path: path.to_owned(),
        });
    }
    Ok(tasks)
}

/// The task of a row. Its folder is as this process can open it.
///
/// # Errors
/// What is wrong with it, by field.
pub fn task_of_row(row: &Row) -> Result<Task, RowError> {
    let mut task: Task = row.parse().map_err(|error| match of_another(row) {
        Some(format) => row.error(
            "",
            format!(
                "no task of ours but a row of {format}; `etude data prepare repair --format {format}` makes \
                 tasks of such files"
            ),
        ),
        None => error,
    })?;
    resolve(&mut task.place, row.path(), row)?;
    Ok(task)
}

fn of_another(row: &Row) -> Option<Format> {
    Format::of_columns(&row.object().ok()?)
}

/// Writes tasks to a file, which is whole or not there; folders below the file's own become relative, so that both
/// can be moved together. How many there are.
///
/// # Errors
/// A place that cannot be written to.
pub fn write_tasks<'a>(
    path: &Path,
    tasks: impl IntoIterator<Item = &'a Task>,
) -> Result<u64, DatasetError> {
    let file = absolute(path);
    let above = folder_of(&file);
    let mut file = JsonlWriter::create(path)?;
    for task in tasks {
        let mut task = task.clone();
        if let Some(folder) = folder_mut(&mut task.place)
            && let Ok(below) = absolute(folder).strip_prefix(above)
        {
            *folder = below.to_owned();
        }
        file.write(&task)?;
    }
    file.finish()
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The folder that a file lies in.
fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

fn folder_mut(place: &mut Place) -> Option<&mut PathBuf> {
    match place {
        Place::Folder(folder) | Place::Patched { folder, .. } => Some(folder),
        Place::Image { .. } | Place::PatchedImage { .. } => None,
    }
}

fn resolve(place: &mut Place, file: &Path, row: &Row) -> Result<(), RowError> {
    let patch = match place {
        Place::Patched { patch, .. } => Some(("place.patched.patch", patch)),
        Place::PatchedImage { patch, .. } => Some(("place.patched_image.patch", patch)),
        Place::Folder(_) | Place::Image { .. } => None,
    };
    if let Some((field, patch)) = patch {
        let read = Patch::parse(patch.as_bytes());
        read.map_err(|error| row.error(field, error.to_string()))?;
    }
    let field = match place {
        Place::Folder(_) => "place.folder",
        _ => "place.patched.folder",
    };
    let Some(folder) = folder_mut(place) else {
        return Ok(());
    };
    if folder.is_relative() {
        if folder.components().any(|part| part == Component::ParentDir) {
            let message = format!(
                "{} leads above the file's own folder; write it as an absolute path",
                folder.display()
            );
            return Err(row.error(field, message));
        }
        // A run that goes on may do so from elsewhere.
        *folder = folder_of(&absolute(file)).join(&folder);
    }
    if !folder.is_dir() {
        let message = format!(
            "there is no folder {}; was it left behind when the file was moved?",
            folder.display()
        );
        return Err(row.error(field, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use record::TaskId;

    use super::*;
    use crate::{Checks, Facts, Gold, Issue, Public, TestFramework};

    const PATCH: &str = "--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n";

    fn task(id: &str, place: Place) -> Task {
        Task {
            id: TaskId(id.to_owned()),
            public: Public {
                repo: "shapes".to_owned(),
                base_commit: None,
                issue: Issue::default(),
                framework: TestFramework::Unittest,
                max_steps: None,
            },
            place,
            checks: Checks::default(),
            facts: Facts::default(),
            gold: Gold::default(),
        }
    }

    #[test]
    fn a_file_and_its_folders_can_be_moved_together() {
        let scratch = tempfile::tempdir().unwrap();
        let first = scratch.path().join("first");
        fs::create_dir_all(first.join("t.sources/shapes")).unwrap();
        let patched = |folder: PathBuf| Place::Patched {
            folder,
            patch: PATCH.to_owned(),
        };
        let image = Place::Image {
            name: "an/image".to_owned(),
            work_tree: "/testbed".to_owned(),
        };
        let tasks = [
            task("a", patched(first.join("t.sources/shapes"))),
            task("b", Place::Folder(scratch.path().to_owned())),
            task("c", image.clone()),
        ];
        assert_eq!(write_tasks(&first.join("t.jsonl"), &tasks).unwrap(), 3);
        assert_eq!(read_tasks(&first.join("t.jsonl")).unwrap(), tasks);
        let second = scratch.path().join("second");
        fs::rename(&first, &second).unwrap();
        let moved = read_tasks(&second.join("t.jsonl")).unwrap();
        assert_eq!(moved[0].place, patched(second.join("t.sources/shapes")));
        assert_eq!(moved[1].place, Place::Folder(scratch.path().to_owned()));
        assert_eq!(moved[2].place, image);
    }

    #[test]
    fn what_is_wrong_is_named_by_line_and_field() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("t.jsonl");
        let here = Place::Folder(scratch.path().to_owned());
        let good = serde_json::to_string(&task("a", here)).unwrap();
        let other = |from: &str, to: &str| good.replacen(from, to, 1);
        let place = serde_json::to_string(scratch.path()).unwrap();
        let cases = [
            (good.clone(), "line 3, field `id`: line 1 has the id `a`"),
            (other("\"a\"", "7"), "line 3, field `id`"),
            (other("\"repo\"", "\"rep\""), "line 3, field `public.rep`"),
            (
                other("\"a\"", "\"b\"").replace(&place, "\"gone\""),
                "line 3, field `place.folder`: there is no folder",
            ),
            (
                other("\"a\"", "\"b\"").replace(&place, "\"../gone\""),
                "line 3, field `place.folder`: ../gone leads above",
            ),
            (
                other("\"a\"", "\"b\"").replace(
                    &format!("{{\"folder\":{place}}}"),
                    &format!("{{\"patched\":{{\"folder\":{place},\"patch\":\"none\"}}}}"),
                ),
                "line 3, field `place.patched.patch`",
            ),
            (
                r#"{"instance_id":"a__b-1","repo":"a/b","base_commit":"c","FAIL_TO_PASS":[]}"#
                    .to_owned(),
                "line 3, the row: no task of ours but a row of swe-bench; `etude data prepare repair --format swe-bench`",
            ),
            (
                r#"{"a__b-1":{"instance_id":"a__b-1","repo":"a/b","base_commit":"c","FAIL_TO_PASS":[]}}"#
                    .to_owned(),
                "no task of ours but a row of swe-bench",
            ),
            (
                "nothing".to_owned(),
                "line 3, the row: not JSON: expected ident (column",
            ),
            (
                "{\"id\":".to_owned(),
                "line 3, field `id`: not JSON: it ends too early",
            ),
        ];
        for (row, expected) in cases {
            fs::write(&file, format!("{good}\n\n{row}\n")).unwrap();
            let error = read_tasks(&file).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}\nlacks: {expected}");
        }
        fs::write(&file, "\n").unwrap();
        let empty = read_tasks(&file).unwrap_err();
        assert!(matches!(empty, DatasetError::Empty { .. }));
    }
}
