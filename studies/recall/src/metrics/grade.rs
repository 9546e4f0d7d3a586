//! One entry from a response to its grade: the metric of a benchmark, by name.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    benchmarks::{
        boxed_integer, hit_rate, keyword_recall, memory_agent_bench_answer,
        memory_agent_bench_readings, objectives_met, recall_at_k, recommended, ruler_hotpotqa,
        within_one_unit_of_time,
    },
    locomo,
    overlap::{bleu_1, rouge_l},
    text,
};
use crate::{
    answer::Reading,
    event::Grade,
    source_name::{SourceName, Suite},
    task::Task,
};

/// How answers to a benchmark's questions are scored. Where several gold answers are right the best counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    ExactMatch,
    /// Token F1 as for SQuAD and HotpotQA.
    #[default]
    F1,
    SubstringExactMatch,
    RougeLF1,
    RougeLRecall,
    #[serde(rename = "bleu_1")]
    Bleu1,
    /// Share of the keywords, the gold answers or comma-separated parts of a single one, that occur in the
    /// response (Mem-alpha's BookSum).
    KeywordRecall,
    /// Share of the semicolon-separated parts of a gold answer that occur (Mem-alpha's PerLTQA).
    HitRate,
    /// Mem-alpha's PubMed-RCT and in-context learning.
    BoxedInteger,
    /// By category.
    Locomo,
    /// By rule, without the benchmark's judge: the gold answer occurs in the answer, or for temporal
    /// questions is off by one unit of time; for preferences, whose gold is a rubric, ROUGE-L recall.
    #[serde(rename = "longmemeval")]
    LongMemEval,
    /// MemoryAgentBench, whole response or its parsed line: DetectiveQA.
    MemoryAgentBenchExactMatch,
    /// MemoryAgentBench, whole response or its parsed line: RULER's questions, FactConsolidation.
    MemoryAgentBenchSubstring,
    /// MemoryAgentBench, whole response or its parsed line: InfBench's summaries, without its judge.
    MemoryAgentBenchRougeL,
    /// MemoryAgentBench's in-context learning: exact match of the parsed line alone.
    InContextLearning,
    /// MemoryAgentBench's EventQA: 1 when every gold answer occurs in the response.
    EventQa,
    /// MemoryAgentBench's RULER needles: share of the gold answers that occur in the response.
    NeedleRecall,
    /// MemoryAgentBench's recommendations: share of the gold names among the first five.
    #[serde(rename = "recommendation_recall_at_5")]
    RecommendationRecallAt5,
    /// The last box within the final 300 characters (MemAgent).
    RulerHotpotqa,
    /// Share of MEM1's objectives that are met, which it counts; the k-th gold answer is the k-th objective's.
    MultiObjective,
}

/// What a response is graded against.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub question_type: &'a str,
    /// All that are right. Of a question without an answer it may hold why there is none.
    pub answers: &'a [String],
    /// The right answer is to say that there is none.
    pub abstain: bool,
}

/// Grades one response.
///
/// `score` is what `metric` says. `exact_match` and `f1` are always there: LoCoMo's own under
/// [`Metric::Locomo`], of the better of both readings under MemoryAgentBench's metrics, otherwise SQuAD's on
/// the answer that `reading` finds. A question without an answer gives 1 or 0 everywhere, whether the answer
/// abstains; LoCoMo's `score` of it knows the two official refusals only. An empty answer to a question that
/// has one gives 0.
pub fn grade(asked: Asked<'_>, response: &str, metric: Metric, reading: &Reading) -> Grade {
    let answer = reading.answer(response);
    let abstained = reading.abstains(&answer);
    let mut grade = Grade {
        question_type: asked.question_type.to_owned(),
        abstain: asked.abstain,
        abstained,
        gold: String::new(),
        metric,
        score: f64::from(abstained),
        exact_match: f64::from(abstained),
        f1: f64::from(abstained),
        evidence: Vec::new(),
        judged: None,
        likelihoods: None,
        answer,
    };
    if asked.abstain {
        if metric == Metric::Locomo {
            grade.score = locomo::refused(&grade.answer);
        }
        return grade;
    }
    let said = reading.without_thinking(response).trim();
    let mut readings = match metric {
        Metric::MemoryAgentBenchExactMatch
        | Metric::MemoryAgentBenchSubstring
        | Metric::MemoryAgentBenchRougeL => memory_agent_bench_readings(said).to_vec(),
        Metric::InContextLearning | Metric::EventQa => vec![memory_agent_bench_answer(said)],
        _ => vec![grade.answer.clone()],
    };
    // Who says nothing is not right, whatever the gold answer is.
    readings.retain(|answer| !answer.trim().is_empty());
    let (exact_match, f1): (Pairwise<'_>, Pairwise<'_>) = match metric {
        Metric::Locomo => (&locomo::exact_match, &locomo::f1),
        _ => (&text::exact_match, &text::f1),
    };
    let category = locomo::Category::of(asked.question_type);
    let mut closest = None;
    grade.exact_match = 0.0;
    grade.f1 = 0.0;
    for gold in asked.answers {
        let counted = match metric {
            Metric::Locomo => locomo::of_category(category, gold),
            _ => gold,
        };
        let found = (
            best(&readings, exact_match, counted),
            best(&readings, f1, counted),
        );
        grade.exact_match = found.0.max(grade.exact_match);
        grade.f1 = found.1.max(grade.f1);
        if closest.is_none_or(|closest| found > closest) {
            closest = Some(found);
            grade.gold.clone_from(gold);
        }
    }
    grade.score = score(metric, asked, said, &readings);
    grade
}

/// Grades the response in the target turn `turn_id` of a task, its evidence included; `None` for other turns.
pub fn grade_turn(
    task: &Task,
    turn_id: u32,
    response: &str,
    metric: Metric,
    reading: &Reading,
) -> Option<Grade> {
    let mut grade = grade(task.asked(turn_id)?, response, metric, reading);
    grade.evidence = task.evidence(turn_id);
    Some(grade)
}

/// Scores an answer against one gold answer.
type Pairwise<'a> = &'a dyn Fn(&str, &str) -> f64;

/// The best of several readings of a response.
fn best(readings: &[String], score: Pairwise<'_>, gold: &str) -> f64 {
    let scores = readings.iter().map(|answer| score(answer, gold));
    scores.fold(0.0, f64::max)
}

/// `said` is the response without its thoughts, `readings` what the metric reads out of it.
fn score(metric: Metric, asked: Asked<'_>, said: &str, readings: &[String]) -> f64 {
    let category = locomo::Category::of(asked.question_type);
    let golds = || asked.answers.iter().map(String::as_str);
    let max = |score: &dyn Fn(&str) -> f64| {
        let said = golds().filter(|gold| !gold.trim().is_empty());
        said.map(score).fold(0.0, f64::max)
    };
    let max_of = |score: Pairwise<'_>| max(&|gold| best(readings, score, gold));
    match metric {
        Metric::ExactMatch | Metric::MemoryAgentBenchExactMatch | Metric::InContextLearning => {
            max_of(&text::exact_match)
        }
        Metric::F1 => max_of(&text::f1),
        Metric::SubstringExactMatch | Metric::MemoryAgentBenchSubstring => {
            max_of(&text::substring_exact_match)
        }
        Metric::RougeLF1 | Metric::MemoryAgentBenchRougeL => {
            max_of(&|answer, gold| rouge_l(answer, gold).f1)
        }
        Metric::RougeLRecall => max_of(&|answer, gold| rouge_l(answer, gold).recall),
        Metric::Bleu1 => {
            let scores = readings.iter().map(|answer| bleu_1(answer, asked.answers));
            scores.fold(0.0, f64::max)
        }
        Metric::KeywordRecall => match asked.answers {
            [list] => keyword_recall(said, list.split(',')),
            _ => keyword_recall(said, golds()),
        },
        Metric::HitRate => max_of(&hit_rate),
        Metric::BoxedInteger => max(&|gold| boxed_integer(said, gold)),
        Metric::Locomo => max_of(&|answer, gold| locomo::score(category, answer, gold)),
        Metric::LongMemEval => {
            max_of(&|answer, gold| long_mem_eval(asked.question_type, answer, gold))
        }
        Metric::EventQa => f64::from(keyword_recall(said, golds()) == 1.0),
        Metric::NeedleRecall => keyword_recall(said, golds()),
        Metric::RecommendationRecallAt5 => recall_at_k(&recommended(said), asked.answers, 5),
        Metric::RulerHotpotqa => max(&|gold| ruler_hotpotqa(said, gold)),
        Metric::MultiObjective => {
            let golds: Vec<Vec<&str>> = golds().map(|gold| vec![gold]).collect();
            let met = readings.iter().map(|answer| objectives_met(answer, &golds));
            met.max().unwrap_or(0) as f64 / golds.len().max(1) as f64
        }
    }
}

fn long_mem_eval(question_type: &str, answer: &str, gold: &str) -> f64 {
    let name = question_type.to_lowercase();
    if name.contains("preference") {
        return rouge_l(answer, gold).recall;
    }
    let off_by_one = name.contains("temporal") && within_one_unit_of_time(answer, gold);
    text::substring_exact_match(answer, gold).max(f64::from(off_by_one))
}

impl Metric {
    /// The metric of a dataset, where its name begins with that of one that has a metric of its own; F1 for the
    /// others. What may well be the name of something else counts within its suite alone.
    pub fn of_source(data_source: &str) -> Self {
        use Suite::{MemAlpha, MemoryAgentBench};
        let source = SourceName::of(data_source);
        let one_of = |names: &[&str]| names.iter().any(|name| source.begins(name));
        let in_alpha = |name| source.begins_in(MemAlpha, name);
        let in_bench = |name| source.begins_in(MemoryAgentBench, name);
        let table = [
            (one_of(&["locomo", "locomo10"]), Self::Locomo),
            (one_of(&["longmemeval", "lmetrain"]), Self::LongMemEval),
            (one_of(&["booksum"]), Self::KeywordRecall),
            (one_of(&["perltqa"]), Self::HitRate),
            (
                one_of(&["pubmedrct"]) || in_alpha("pubmed") || in_alpha("icl"),
                Self::BoxedInteger,
            ),
            (
                in_alpha("squad") || in_alpha("hotpotqa"),
                Self::SubstringExactMatch,
            ),
            (
                one_of(&["iclbanking77", "iclclinic150", "iclnlu", "icltrec"]) || in_bench("icl"),
                Self::InContextLearning,
            ),
            (one_of(&["eventqa"]), Self::EventQa),
            (one_of(&["detectiveqa"]), Self::MemoryAgentBenchExactMatch),
            (
                one_of(&["recsysredial"]) || in_bench("recsys"),
                Self::RecommendationRecallAt5,
            ),
            (one_of(&["infbench"]), Self::MemoryAgentBenchRougeL),
            (one_of(&["rulerniah", "niah"]), Self::NeedleRecall),
            (one_of(&["rulerhqa"]), Self::RulerHotpotqa),
            (
                one_of(&["rulerqa1", "rulerqa2", "factconsolidation", "memorymerging"])
                    || in_bench("ruler")
                    || in_bench("factcons"),
                Self::MemoryAgentBenchSubstring,
            ),
            (one_of(&["mem1"]), Self::MultiObjective),
        ];
        let found = table.into_iter().find(|(is_it, _)| *is_it);
        found.map_or(Self::F1, |(_, metric)| metric)
    }
}

/// As recipes name it.
impl fmt::Display for Metric {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}
