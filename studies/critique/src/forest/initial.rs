//! Initial programs out of the file of another forest: its generations, as tasks of their own.

use std::{collections::BTreeMap, sync::Arc};

use code::{Fence, extract_python};
use record::TaskId;

use super::line::{ForestError, Line, NodeType};
use crate::task::Task;

/// Every generation of `lines` as a program of the task that its `task_id` names: by the task's id, by its problem, or
/// by the part of the problem's name behind the dataset's. Critiques and revisions in the file stay out.
///
/// # Errors
/// [`ForestError::NoTask`] for the first generation of a problem that `tasks` lack, [`ForestError::Ambiguous`] for one
/// whose name fits several problems, [`ForestError::NoProgram`] for a file without generations.
pub fn initial_programs(
    lines: &[Line],
    tasks: &[Arc<Task>],
) -> Result<Vec<Arc<Task>>, ForestError> {
    let mut known: BTreeMap<&str, &Arc<Task>> = BTreeMap::new();
    let mut ambiguous: BTreeMap<&str, &str> = BTreeMap::new();
    for task in tasks {
        let problem = task.facts.function.as_str();
        let short = problem.rsplit('/').next().unwrap_or(problem);
        for name in [task.id.0.as_str(), problem, short] {
            let first = known.entry(name).or_insert(task);
            if first.facts.function != problem {
                ambiguous.entry(name).or_insert(problem);
            }
        }
    }
    let generations = lines
        .iter()
        .filter(|line| line.node_type == NodeType::Generation);
    let programs = generations.map(|line| {
        let task = known.get(line.task_id.as_str());
        let task = task.ok_or_else(|| ForestError::NoTask {
            task_id: line.task_id.clone(),
        })?;
        if let Some(second) = ambiguous.get(line.task_id.as_str()) {
            return Err(ForestError::Ambiguous {
                task_id: line.task_id.clone(),
                first: task.facts.function.clone(),
                second: (*second).to_owned(),
            });
        }
        let solution = line.solution.as_deref().unwrap_or_default();
        let program = extract_python(solution, Fence::First).program.to_owned();
        let id = TaskId(format!("{}/{}", line.task_id, line.hash));
        Ok(Arc::new(task.with_program(
            id,
            program,
            line.success == Some(1.0),
        )))
    });
    let programs: Vec<Arc<Task>> = programs.collect::<Result<_, ForestError>>()?;
    if programs.is_empty() {
        return Err(ForestError::NoProgram);
    }
    Ok(programs)
}
