//! Flags of `etude eval` that go by the names of the repair study's predecessor (spec of the repair study, section
//! 7.1): each stands for keys of the recipe, and `--set` has the last word.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Of repair recipes, each short for --set")]
pub(crate) struct EvaluatorFlags {
    /// tasks.eval
    #[arg(long, value_name = "FILE")]
    dataset: Option<PathBuf>,
    /// tasks.limit
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// environment.end.max_steps
    #[arg(long, value_name = "N")]
    max_steps: Option<u32>,
    /// rollout.concurrency
    #[arg(long, value_name = "N")]
    parallel: Option<usize>,
    /// Plan with this model behind an endpoint: planner.kind and policies.planner
    #[arg(long, value_name = "NAME")]
    planner_model: Option<String>,
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://localhost:30000/v1",
        requires = "planner_model"
    )]
    planner_base_url: String,
    /// The variable that holds the planner's key
    #[arg(long, value_name = "NAME", requires = "planner_model")]
    planner_api_key_env: Option<String>,
    #[arg(
        long,
        value_name = "T",
        default_value_t = 0.0,
        requires = "planner_model"
    )]
    planner_temperature: f64,
    #[arg(
        long,
        value_name = "P",
        default_value_t = 0.95,
        requires = "planner_model"
    )]
    planner_top_p: f64,
    /// Seconds of one answer
    #[arg(
        long,
        value_name = "S",
        default_value_t = 120.0,
        requires = "planner_model"
    )]
    planner_timeout: f64,
    /// Tokens of one answer of the planner
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1024,
        requires = "planner_model"
    )]
    max_output_tokens: usize,
    /// environment.observation.tokens
    #[arg(long, value_name = "N")]
    max_prompt_tokens: Option<usize>,
    /// Let the rules choose where a reply is no action: planner.rule_fallback
    #[arg(long)]
    enable_rule_fallback: bool,
    /// Have patches written by CodeFuse's service: patcher
    #[arg(long, value_name = "URL")]
    cgm_endpoint: Option<String>,
    #[arg(long, value_name = "NAME", requires = "cgm_endpoint")]
    cgm_model: Option<String>,
    /// The variable that holds the service's key
    #[arg(long, value_name = "NAME", requires = "cgm_endpoint")]
    cgm_api_key_env: Option<String>,
    /// Seconds of one answer
    #[arg(long, value_name = "S", requires = "cgm_endpoint")]
    cgm_timeout: Option<f64>,
    /// environment.rewards.scale
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    reward_scale: Option<f64>,
    /// A magnitude, taken off: environment.rewards.failure
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    failure_penalty: Option<f64>,
    /// A magnitude, taken off: environment.rewards.step
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    step_penalty: Option<f64>,
    /// A magnitude, taken off: environment.rewards.timeout
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    timeout_penalty: Option<f64>,
    /// environment.end.repository_operations
    #[arg(long, value_name = "N")]
    repo_op_limit: Option<u32>,
    /// rollout.retries
    #[arg(long, value_name = "N")]
    retry_limit: Option<u32>,
    /// Seconds of an episode before it has failed: environment.end.max_seconds
    #[arg(long, value_name = "S")]
    trajectory_timeout: Option<f64>,
    /// sandbox.backend: local or docker
    #[arg(long, value_name = "NAME")]
    sandbox_backend: Option<String>,
}

impl EvaluatorFlags {
    /// The keys and values that the flags stand for, as `--set` takes them.
    pub(crate) fn sets(&self) -> Vec<String> {
        let mut sets = Vec::new();
        let mut set = |key: &str, value: Option<String>| {
            sets.extend(value.map(|value| format!("{key}={value}")));
        };
        let dataset = self.dataset.as_ref().map(|it| it.display().to_string());
        set("tasks.eval", dataset.as_deref().map(quoted));
        set("tasks.limit", written(self.limit));
        set("environment.end.max_steps", written(self.max_steps));
        set("rollout.concurrency", written(self.parallel));
        set(
            "environment.observation.tokens",
            written(self.max_prompt_tokens),
        );
        set("environment.rewards.scale", written(self.reward_scale));
        set("environment.rewards.failure", written(self.failure_penalty));
        set("environment.rewards.step", written(self.step_penalty));
        set("environment.rewards.timeout", written(self.timeout_penalty));
        set(
            "environment.end.repository_operations",
            written(self.repo_op_limit),
        );
        set("rollout.retries", written(self.retry_limit));
        set(
            "environment.end.max_seconds",
            written(self.trajectory_timeout),
        );
        set(
            "sandbox.backend",
            self.sandbox_backend.as_deref().map(quoted),
        );
        let fallback = self.enable_rule_fallback.then(|| "true".to_owned());
        set("planner.rule_fallback", fallback);
        if let Some(model) = &self.planner_model {
            let endpoint = format!("openai:{}#{model}", self.planner_base_url);
            set("planner.kind", Some(quoted("model")));
            set("policies.planner.model", Some(quoted(&endpoint)));
            let key = self.planner_api_key_env.as_deref().map(quoted);
            set("policies.planner.api_key_env", key);
            set(
                "policies.planner.timeout_s",
                written(Some(self.planner_timeout)),
            );
            let sampling = format!(
                "{{ temperature = {:?}, top_p = {:?}, max_tokens = {} }}",
                self.planner_temperature, self.planner_top_p, self.max_output_tokens
            );
            set("policies.planner.roles.planner", Some(sampling));
        }
        if let Some(url) = &self.cgm_endpoint {
            let mut keys = vec![
                "kind = \"generate\"".to_owned(),
                format!("url = {}", quoted(url)),
            ];
            let texts = [
                ("model", &self.cgm_model),
                ("api_key_env", &self.cgm_api_key_env),
            ];
            for (key, value) in texts {
                keys.extend(value.as_deref().map(|it| format!("{key} = {}", quoted(it))));
            }
            keys.extend(written(self.cgm_timeout).map(|it| format!("timeout_s = {it}")));
            set("patcher", Some(format!("{{ {} }}", keys.join(", "))));
        }
        sets
    }
}

/// A number as TOML has it.
fn written<T: std::fmt::Debug>(value: Option<T>) -> Option<String> {
    value.map(|value| format!("{value:?}"))
}

/// A text as TOML and JSON have it.
fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::EvaluatorFlags;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: EvaluatorFlags,
    }

    fn sets(line: &[&str]) -> Vec<String> {
        let line = [&["eval"], line].concat();
        Line::try_parse_from(line).unwrap().flags.sets()
    }

    #[test]
    fn flags_stand_for_keys_of_the_recipe() {
        assert_eq!(sets(&[]), Vec::<String>::new());
        let found = sets(&[
            "--limit",
            "3",
            "--failure-penalty",
            "0.5",
            "--dataset",
            "a b.jsonl",
            "--trajectory-timeout",
            "30",
        ]);
        let expected = [
            "tasks.eval=\"a b.jsonl\"",
            "tasks.limit=3",
            "environment.rewards.failure=0.5",
            "environment.end.max_seconds=30.0",
        ];
        assert_eq!(found, expected);
        let planner = sets(&["--planner-model", "m", "--planner-temperature", "1"]);
        assert!(
            planner.contains(
                &"policies.planner.model=\"openai:http://localhost:30000/v1#m\"".to_owned()
            ),
            "{planner:?}"
        );
        let patcher = sets(&["--cgm-endpoint", "http://h:1", "--cgm-timeout", "9"]);
        assert_eq!(
            patcher,
            ["patcher={ kind = \"generate\", url = \"http://h:1\", timeout_s = 9.0 }"]
        );
    }
}
