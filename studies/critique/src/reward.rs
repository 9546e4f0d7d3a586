//! What an episode is paid: the verdict of the tests, and terms that a recipe may add.

use record::Reward;
use serde::{Deserialize, Serialize};

use crate::{
    format::{Gate, Judgment},
    play::Notes,
};

/// How an episode is rewarded: `pass + judgment · true judgment - regression · broken program`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RewardConfig {
    /// What the tests' verdict is worth.
    pub form: RewardForm,
    /// Which critiques are read at all; the others earn 0.
    pub gate: Gate,
    /// Whether a critique must lead to what it says: "Incorrect" to a changed program, "Correct" to
    /// an unchanged one. Otherwise its verdict earns 0. Without this, finding fault with a right program and
    /// suggesting nothing is as good as finding it right.
    pub consistent: bool,
    /// Added where the judgment is true of the program as it stands, whatever the revision: the original pays
    /// for judgments by what they lead to alone (spec of the critique study, section 8, point 2).
    #[serde(skip_serializing_if = "is_zero")]
    pub judgment: f64,
    /// Taken off where a right program is revised into a wrong one (there, points 2 and 3).
    #[serde(skip_serializing_if = "is_zero")]
    pub regression: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewardForm {
    /// 1 if the revision passes every test, else 0.
    AllPass,
    /// The share of tests that the revision passes.
    PassRate,
}

impl Default for RewardConfig {
    fn default() -> Self {
        Self {
            form: RewardForm::AllPass,
            gate: Gate::Strict,
            consistent: false,
            judgment: 0.0,
            regression: 0.0,
        }
    }
}

/// Left out of recipes, so that those without the term keep their hash.
fn is_zero(weight: &f64) -> bool {
    *weight == 0.0
}

impl RewardConfig {
    /// # Errors
    /// The weight that is no finite number of at least 0, in words.
    pub fn check(&self) -> Result<(), String> {
        for (name, weight) in [("judgment", self.judgment), ("regression", self.regression)] {
            if !(weight.is_finite() && weight >= 0.0) {
                return Err(format!(
                    "{name} is {weight}; a weight is a finite number of at least 0"
                ));
            }
        }
        Ok(())
    }
}

/// The reward of an episode: a function of its notes alone. The gate and, if asked for, consistency
/// decide whether the verdict counts. Every term is recorded as a component without its weight, `pass`, `judgment`
/// and `consistent` always, `regression` where it is paid for.
pub(crate) fn rewarded(config: &RewardConfig, notes: &Notes) -> Reward {
    let pass = match (&notes.verdict, config.form) {
        (Some(verdict), RewardForm::AllPass) => f64::from(verdict.passed),
        (Some(verdict), RewardForm::PassRate) => {
            verdict.n_passed as f64 / verdict.n_tests.max(1) as f64
        }
        (None, _) => 0.0,
    };
    let judged_right = notes.judgment.map(|judgment| judgment == Judgment::Correct);
    let truth = f64::from(judged_right == Some(notes.initially_right));
    let mut reward = Reward::of("pass", pass);
    let mut component = |name: &str, value: f64| reward.components.insert(name.to_owned(), value);
    component("judgment", truth);
    component("consistent", f64::from(notes.consistent));
    // Who is not read has neither judged nor broken anything.
    let broken = notes.gate_ok && notes.initially_right && notes.verdict.is_some() && !notes.passed;
    if config.regression > 0.0 {
        component("regression", f64::from(broken));
    }
    let counts = notes.gate_ok && (notes.consistent || !config.consistent);
    reward.total = if counts { pass } else { 0.0 };
    reward.total += config.judgment * truth - config.regression * f64::from(broken);
    reward
}

#[cfg(test)]
mod tests {
    use judge::Verdict;

    use super::*;

    /// A revision that passes `n_passed` of four tests.
    fn verdict(n_passed: usize) -> Verdict {
        let passed = n_passed == 4;
        serde_json::from_value(serde_json::json!({
            "passed": passed, "n_passed": n_passed, "n_tests": 4, "cases": [],
            "status": if passed { "passed" } else { "wrong" }, "message": null,
            "key": "00".repeat(32), "cached": false, "wall_ms": 0.0, "cpu_ms": 0.0,
            "tier": "namespaces",
        }))
        .unwrap()
    }

    fn notes(initially_right: bool, judgment: Option<Judgment>, n_passed: Option<usize>) -> Notes {
        Notes {
            problem: None,
            statement: String::new(),
            program: String::new(),
            initially_right,
            family: String::new(),
            bug: None,
            critique: String::new(),
            votes: None,
            judgment,
            gate_ok: judgment.is_some(),
            exact: None,
            revision: None,
            consistent: judgment == Some(Judgment::Incorrect),
            passed: n_passed == Some(4),
            status: String::new(),
            verdict: n_passed.map(verdict),
        }
    }

    use Judgment::{Correct, Incorrect};

    #[test]
    fn terms_are_added_by_their_weights() {
        let config = RewardConfig {
            judgment: 0.25,
            regression: 0.5,
            ..RewardConfig::default()
        };
        let cases = [
            // A wrong program that is found wrong and mended; found right and mended all the same.
            (false, Some(Incorrect), Some(4), 1.25),
            (false, Some(Correct), Some(4), 1.0),
            // A right program that stays so, under either judgment, and one that is broken.
            (true, Some(Correct), Some(4), 1.25),
            (true, Some(Incorrect), Some(4), 1.0),
            (true, Some(Incorrect), Some(3), -0.5),
            (true, Some(Correct), Some(3), -0.25),
            // What was wrong and stays so breaks nothing.
            (false, Some(Incorrect), Some(3), 0.25),
            // Nothing that can be read: not revised in training, revised in measuring.
            (true, None, None, 0.0),
            (true, None, Some(3), 0.0),
            (false, None, Some(4), 0.0),
        ];
        for (initially_right, judgment, n_passed, total) in cases {
            let notes = notes(initially_right, judgment, n_passed);
            let reward = rewarded(&config, &notes);
            assert_eq!(reward.total, total, "{notes:?}");
            let broken = initially_right && judgment.is_some() && n_passed == Some(3);
            assert_eq!(reward.components["regression"], f64::from(broken));
        }
    }

    #[test]
    fn without_weights_the_reward_is_what_it_was() {
        let config = RewardConfig::default();
        let broken = rewarded(&config, &notes(true, Some(Incorrect), Some(3)));
        assert_eq!(broken.total, 0.0);
        let names: Vec<&str> = broken.components.keys().map(String::as_str).collect();
        assert_eq!(names, ["consistent", "judgment", "pass"]);
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(
            text,
            r#"{"form":"all-pass","gate":"strict","consistent":false}"#
        );
        let rate = RewardConfig {
            form: RewardForm::PassRate,
            ..config
        };
        assert_eq!(
            rewarded(&rate, &notes(false, Some(Incorrect), Some(3))).total,
            0.75
        );
    }

    #[test]
    fn consistency_takes_the_verdict_and_leaves_the_terms() {
        let config = RewardConfig {
            consistent: true,
            judgment: 0.5,
            ..RewardConfig::default()
        };
        let notes = notes(false, Some(Correct), Some(4));
        assert_eq!(rewarded(&config, &notes).total, 0.0);
        let told = Notes {
            judgment: Some(Incorrect),
            consistent: false,
            ..notes
        };
        assert_eq!(rewarded(&config, &told).total, 0.5);
    }

    #[test]
    fn weights_are_finite_and_not_negative() {
        for weight in [f64::NAN, f64::INFINITY, -0.1] {
            let config = RewardConfig {
                regression: weight,
                ..RewardConfig::default()
            };
            assert!(config.check().unwrap_err().starts_with("regression is"));
        }
        RewardConfig::default().check().unwrap();
    }
}
