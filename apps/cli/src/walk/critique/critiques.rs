//! Supervised rows of the critic from a file of critiques that somebody wrote.

use std::path::Path;

use anyhow::{Context, anyhow};
use chat::Chat;
use critique::{CRITIC, CriticLesson, lesson_order};
use record::{Datum, Seed};

use super::recipe::{OverLong, Recipe};
use crate::{
    failure::{Classify, Failure, Outcome},
    screen::{Screen, count_of},
    walk::supervise::lesson_rows,
};

/// Every row of a file, in an order of the stage's own; when all have come they come again in another order, until
/// there are `n`. Rows that the critic's context does not hold are refused, or left out and counted, as
/// `prompts.over_long` says.
pub(super) fn written_rows(
    recipe: &Recipe,
    chat: &Chat,
    file: &Path,
    stage: u64,
    n: usize,
) -> Outcome<Vec<Datum>> {
    let common = recipe.common();
    let context = common
        .policy(CRITIC)?
        .config(common.tokenizer)
        .asked()?
        .context;
    let lessons: Vec<CriticLesson> = dataset::read(file).asked()?;
    let seed = Seed(recipe.seed).stream("written-rows", stage);
    let mut rows = Vec::new();
    let mut left_out = 0;
    for epoch in 0.. {
        let order = lesson_order(lessons.len(), seed, epoch);
        let mut fitting = 0;
        for wanted in order.chunks(CHUNK) {
            let found = lesson_rows(chat, wanted.iter().map(|&index| lessons[index].lesson()))?;
            let held: Vec<Datum> = found
                .into_iter()
                .filter(|row| row.tokens.len() <= context)
                .collect();
            fitting += held.len();
            if epoch == 0 {
                left_out += wanted.len() - held.len();
            }
            rows.extend(held);
            if rows.len() >= n {
                break;
            }
        }
        if left_out > 0 && recipe.prompts.over_long == OverLong::Refuse {
            return Err(Failure::Asked(anyhow!(
                "{}: {} of more tokens than the {context} of critic.model; leave them out with \
                 prompts.over_long = \"leave-out\", or give the model a longer context",
                file.display(),
                count_of(left_out, "row"),
            )));
        }
        if fitting == 0 {
            return Err(anyhow!(
                "none of its rows fits into the context of critic.model"
            ))
            .with_context(|| file.display().to_string())
            .asked();
        }
        if rows.len() >= n {
            break;
        }
    }
    if left_out > 0 {
        Screen::new().say(format!(
            "  {}: {} left out, longer than the context of critic.model",
            file.display(),
            count_of(left_out, "row")
        ));
    }
    rows.truncate(n);
    Ok(rows)
}

/// Rows that are made tokens at a time.
const CHUNK: usize = 4096;

/// Reads a file that a recipe names.
pub(super) fn check_file(file: &Path) -> Outcome<()> {
    let rows: Vec<CriticLesson> = dataset::read(file).asked()?;
    match rows.iter().position(|row| row.critique.trim().is_empty()) {
        None => Ok(()),
        Some(index) => Err(Failure::Asked(anyhow!(
            "{}, row {}: `critique` is empty",
            file.display(),
            index + 1
        ))),
    }
}
