//! Tasks as verl's rows, which register a dataset for training elsewhere (spec of the repair study, section 7.3).

use serde_json::{Map, Value, json};

use super::{graph_planner_id, graph_planner_row};
use crate::Task;

/// The row of a task: the issue as a user's message, and what Graph Planner's environment is made from as
/// JSON text. `None` of a task that is not in a container.
pub fn verl_row(task: &Task) -> Option<Map<String, Value>> {
    let row = graph_planner_row(task)?;
    let issue = &task.public.issue;
    let content = match issue.body.trim() {
        "" => issue.title.clone(),
        _ => format!("{}\n\n{}", issue.title, issue.body.trim_end()),
    };
    let extra = json!({
        "sandbox": row.get("sandbox"),
        "repo": task.public.repo,
        "issue_id": issue.id.clone().unwrap_or_else(|| graph_planner_id(task)),
        "issue_title": issue.title,
    });
    let mut row = Map::new();
    row.insert(
        "prompt".to_owned(),
        json!([{ "role": "user", "content": content }]),
    );
    row.insert("extra_info".to_owned(), extra.to_string().into());
    Some(row)
}
