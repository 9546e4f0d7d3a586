//! What a patch may touch: the lines that the plan is about, so many of them, and nothing that decides
//! whether tests pass (spec of the repair study, section 4.3).

use std::collections::BTreeSet;

use code::{RelativePath, graph::is_test_path};
use judge::pytest::STEERING;

use super::prepare::{Changed, Refused};
use crate::patch_model::PatchRequest;

/// Refuses files of tests and files that steer how tests are run.
pub(super) fn guard_paths(
    paths: &BTreeSet<RelativePath>,
    of_tests: &BTreeSet<String>,
) -> Result<(), Refused> {
    for path in paths {
        if STEERING.contains(&path.file_name()) {
            let detail = format!("{path} steers how tests are run and may not be changed");
            return Err(Refused::new("guarded-file", detail));
        }
        if is_test_path(path.as_str()) || of_tests.contains(path.as_str()) {
            let detail = format!("{path} is a test and may not be changed; repair what it tests");
            return Err(Refused::new("guarded-test", detail));
        }
    }
    Ok(())
}

/// Refuses more changes than the constraints allow, and those outside of the plan's targets, up to `around`
/// lines; with `None` a patch may change any lines. Imports may be added anywhere in a file that the plan is about:
/// a repair may need a name.
pub(super) fn guard_lines(
    changed: &[Changed<'_>],
    request: &PatchRequest,
    around: Option<u32>,
) -> Result<(), Refused> {
    let constraints = request.constraints;
    let edits: usize = changed.iter().map(|file| file.lines.len()).sum();
    if edits > constraints.max_edits {
        let detail = format!(
            "{edits} places are changed, more than the {} allowed",
            constraints.max_edits
        );
        return Err(Refused::new("too-many-edits", detail));
    }
    for file in changed {
        if let Some(lines) = file
            .lines
            .iter()
            .find(|lines| lines.old.len() > constraints.max_lines_per_edit)
        {
            let detail = format!(
                "{}: {} lines are replaced at once, more than the {} allowed",
                file.path,
                lines.old.len(),
                constraints.max_lines_per_edit
            );
            return Err(Refused::new("edit-too-long", detail));
        }
        if let Some(around) = around {
            guard_targets(file, request, around)?;
        }
    }
    Ok(())
}

fn guard_targets(file: &Changed<'_>, request: &PatchRequest, around: u32) -> Result<(), Refused> {
    let windows: Vec<(usize, usize)> = request
        .targets
        .iter()
        .filter(|target| target.path == file.path.as_str())
        // Counted from 0, the end not included.
        .map(|target| {
            let start = target.start.saturating_sub(around + 1);
            (start as usize, target.end.saturating_add(around) as usize)
        })
        .collect();
    if windows.is_empty() {
        let detail = format!("{} is not in the plan", file.path);
        return Err(Refused::new("outside-targets", detail));
    }
    let after: Vec<&str> = file.after.unwrap_or_default().lines().collect();
    for lines in &file.lines {
        let inside =
            |(start, end): &(usize, usize)| lines.old.start >= *start && lines.old.end <= *end;
        let imports = lines.old.is_empty() && after[lines.new.clone()].iter().all(is_import);
        if !imports && !windows.iter().any(inside) {
            let detail = format!(
                "{}: lines {} to {} are outside of the plan's targets",
                file.path,
                lines.old.start + 1,
                lines.old.end.max(lines.old.start + 1)
            );
            return Err(Refused::new("outside-targets", detail));
        }
    }
    Ok(())
}

fn is_import(line: &&str) -> bool {
    line.is_empty() || line.starts_with("import ") || line.starts_with("from ")
}
