//! Pairs of a right and a wrong answer, which critics tell apart by judging each several times.

use std::sync::Arc;

use critique::{
    CRITIC, Prompter, Task,
    judging::{JudgeBenchRow, Judging, pairs_of},
};
use dataset::Rows;
use eval::Evaluated;
use rollout::Roles;

use super::{
    CritiqueRun, contenders::Voice, eval_settings::Pairs, recipe::Recipe, tasks::SHOWN_ERRORS,
};
use crate::{
    failure::{Classify, Outcome},
    walk::evaluate::{Played, faults, share},
};

impl CritiqueRun<'_> {
    /// What a critic that is a model makes of the pairs, if the recipe has any; below the evaluation of this name.
    pub(super) fn pairs(&self, name: &str, critic: &Voice, tasks: &[Arc<Task>]) -> Outcome<()> {
        let (Some(pairs), Voice::Model { answers, sampling }) = (&self.recipe.eval.pairs, critic)
        else {
            return Ok(());
        };
        let tasks = answers_of(pairs, tasks)?;
        if tasks.is_empty() {
            self.frame.screen.say(
                "  no problem has a right and a wrong program among the evaluation tasks: no pairs to judge",
            );
            return Ok(());
        }
        let gate = self.recipe.reward.gate;
        let suite = Played {
            name: &format!("{name}/pairs"),
            policy: name,
            study: Arc::new(Judging { gate }),
            roles: Roles::default().bind_answers(CRITIC, answers.clone(), sampling.clone()),
            tasks: &tasks,
            samples: pairs.votes,
            seed: self.frame.seed.stream("pairs", 0),
            rollout: &self.recipe.rollout,
            keeps: true,
        };
        self.frame.suite(&suite, |evaluated| line(evaluated, pairs))
    }
}

/// Reads the file of pairs that a recipe names.
pub(super) fn check_file(recipe: &Recipe) -> Outcome<()> {
    let pairs = recipe.eval.pairs.as_ref();
    match pairs.filter(|pairs| pairs.file.is_some()) {
        Some(pairs) => answers_of(pairs, &[]).map(drop),
        None => Ok(()),
    }
}

/// All answers, two of a pair side by side.
fn answers_of(pairs: &Pairs, tasks: &[Arc<Task>]) -> Outcome<Vec<Arc<Task>>> {
    let Some(path) = &pairs.file else {
        return Ok(pairs_of(tasks));
    };
    let rows = Rows::open(path).asked()?;
    let rows: Vec<JudgeBenchRow> = rows.read_reporting(SHOWN_ERRORS).asked()?;
    let prompter = pairs.prompter.unwrap_or(Prompter::CodeContests);
    let answers = rows.iter().flat_map(|row| row.tasks(prompter));
    Ok(answers.map(Arc::new).collect())
}

fn line(evaluated: &Evaluated, pairs: &Pairs) -> String {
    let of = |metric: &str| share(evaluated, &format!("{metric}/votes-{}", pairs.votes));
    format!(
        "{:<12} tells {} of {} pairs apart with {} judgments of each answer, ties {}{}",
        evaluated.name,
        of("pair_accuracy"),
        evaluated.n_tasks / 2,
        pairs.votes,
        of("pair_ties"),
        faults(evaluated),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_file_are_asked_about_with_the_published_prompt_and_all_bad_ones_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("judge-bench.jsonl");
        let row = r#"{"pair_id": "p", "question": "2+2?", "response_A": "4", "response_B": "5", "label": "A>B"}"#;
        let of = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let pairs = Pairs {
                votes: 1,
                file: Some(path.clone()),
                prompter: None,
            };
            answers_of(&pairs, &[])
        };
        let answers = of(row).unwrap();
        assert_eq!(answers.len(), 2);
        assert!(
            answers
                .iter()
                .all(|task| task.public.prompter == Prompter::CodeContests)
        );
        let error = of(&format!("{{}}\n{row}\n{{\"pair_id\": 3}}"))
            .err()
            .unwrap();
        let said = format!("{error:?}");
        assert!(said.contains("line 1") && said.contains("line 3"), "{said}");
    }
}
