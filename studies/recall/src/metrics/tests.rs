//! The metrics against values of the official packages and formulas, and against hand-computed ones.

use proptest::prelude::*;
use serde::Deserialize;

use super::{
    benchmarks::*,
    locomo::{self, Category},
    overlap::{bleu_1, rouge_l},
    porter::stem,
    text::{exact_match, f1, normalize, substring_exact_match, tokens},
    *,
};
use crate::answer::Reading;

#[test]
fn stems_are_those_of_nltk() {
    let stems = include_str!("../../tests/cases/metrics/stems.tsv");
    let mut n = 0;
    for line in stems.lines() {
        let (word, expected) = line.split_once('\t').unwrap();
        assert_eq!(stem(word), expected, "{word}");
        n += 1;
    }
    assert!(n > 2500);
}

#[derive(Deserialize)]
struct Pair {
    prediction: String,
    gold: String,
    squad: Squad,
    locomo: Locomo,
    rouge_l: Rouge,
    bleu_1: f64,
}

#[derive(Deserialize)]
struct Squad {
    exact_match: f64,
    f1: f64,
    substring: f64,
}

#[derive(Deserialize)]
struct Locomo {
    exact_match: f64,
    #[serde(rename = "1")]
    multi_hop: f64,
    #[serde(rename = "2")]
    temporal: f64,
    #[serde(rename = "3")]
    open_domain: f64,
    #[serde(rename = "5")]
    adversarial: f64,
}

#[derive(Deserialize)]
struct Rouge {
    f1: f64,
    recall: f64,
    precision: f64,
}

#[test]
fn pairs_score_as_the_official_definitions_say() {
    let pairs = include_str!("../../tests/cases/metrics/pairs.jsonl");
    let mut n = 0;
    for line in pairs.lines() {
        let pair: Pair = serde_json::from_str(line).unwrap();
        let (prediction, gold) = (pair.prediction.as_str(), pair.gold.as_str());
        let locomo = |category| locomo::score(Some(category), prediction, gold);
        let rouge = rouge_l(prediction, gold);
        // Of neither is anything left: the official scorers call them the same, whatever they are.
        if normalize(prediction).is_empty() && normalize(gold).is_empty() {
            let same = f64::from(prediction == gold);
            for metric in [exact_match, f1, substring_exact_match, locomo::exact_match] {
                assert_eq!(metric(prediction, gold), same, "{prediction:?}, {gold:?}");
            }
            continue;
        }
        let found = [
            (
                "exact_match",
                exact_match(prediction, gold),
                pair.squad.exact_match,
            ),
            ("f1", f1(prediction, gold), pair.squad.f1),
            (
                "substring",
                substring_exact_match(prediction, gold),
                pair.squad.substring,
            ),
            (
                "locomo",
                locomo::exact_match(prediction, gold),
                pair.locomo.exact_match,
            ),
            (
                "locomo 1",
                locomo(Category::MultiHop),
                pair.locomo.multi_hop,
            ),
            ("locomo 2", locomo(Category::Temporal), pair.locomo.temporal),
            (
                "locomo 3",
                locomo(Category::OpenDomain),
                pair.locomo.open_domain,
            ),
            (
                "locomo 4",
                locomo(Category::SingleHop),
                pair.locomo.temporal,
            ),
            (
                "locomo 5",
                locomo(Category::Adversarial),
                pair.locomo.adversarial,
            ),
            ("rouge_l f1", rouge.f1, pair.rouge_l.f1),
            ("rouge_l recall", rouge.recall, pair.rouge_l.recall),
            ("rouge_l precision", rouge.precision, pair.rouge_l.precision),
            (
                "bleu_1",
                bleu_1(prediction, &[gold.to_owned()]),
                pair.bleu_1,
            ),
        ];
        for (name, value, expected) in found {
            assert!(
                (value - expected).abs() < 1e-9,
                "{name} of {prediction:?} against {gold:?}: {value}, not {expected}"
            );
        }
        n += 1;
    }
    assert!(n > 150);
}

#[test]
fn bleu_clips_over_all_gold_texts_and_takes_the_nearest_length() {
    // Papineni et al. 2002, example 2: 2/7 of single tokens.
    let golds = ["the cat is on the mat", "there is a cat on the mat"].map(str::to_owned);
    assert_eq!(bleu_1("the the the the the the the", &golds), 2.0 / 7.0);
    // Lengths 2 against 3 and 4: both tokens occur, penalty exp(1 - 3/2).
    let golds = ["a b c d", "x a b"].map(str::to_owned);
    assert!((bleu_1("a b", &golds) - (-0.5f64).exp()).abs() < 1e-12);
    assert_eq!(bleu_1("", &golds), 0.0);
    assert_eq!(bleu_1("a", &[]), 0.0);
}

#[test]
fn letters_of_unspaced_scripts_are_tokens() {
    assert_eq!(tokens("我爱Rust 语言"), ["我", "爱", "Rust", "语", "言"]);
    assert_eq!(normalize("他在北京。"), "他在北京");
    // 3 of 4 and 3 of 3 letters: 2 · 0.75 · 1 / 1.75.
    assert!((f1("他在北京", "在北京") - 6.0 / 7.0).abs() < 1e-12);
    assert_eq!(exact_match("他在北京。", "他在北京"), 1.0);
    assert_eq!(rouge_l("他在北京", "在北京").recall, 1.0);
    assert_eq!(bleu_1("在北京", &["在北京".to_owned()]), 1.0);
    assert_eq!(f1("서울 시", "서울"), 2.0 / 3.0);
}

#[test]
fn categories_go_by_name_or_number() {
    for (name, category) in [
        ("multi-hop", Category::MultiHop),
        ("1", Category::MultiHop),
        ("category_2", Category::Temporal),
        ("Open Domain", Category::OpenDomain),
        ("single_hop", Category::SingleHop),
        ("5", Category::Adversarial),
    ] {
        assert_eq!(Category::of(name), Some(category), "{name}");
    }
    assert_eq!(Category::of("preference"), None);
}

#[test]
fn rules_of_single_benchmarks_by_hand() {
    assert_eq!(memory_agent_bench_answer("So. Answer: 43\nBye"), "43");
    assert_eq!(memory_agent_bench_answer("ANSWER: answer: 43"), "43");
    assert_eq!(memory_agent_bench_answer("43\nor 44"), "43");
    assert_eq!(
        keyword_recall("Ann met BOB.", ["ann", " bob ", "", "carl"]),
        2.0 / 3.0
    );
    assert_eq!(hit_rate("in Rome, then Paris", "Paris; London;"), 0.5);
    assert_eq!(boxed_integer("\\boxed{ 043 }", "43"), 1.0);
    assert_eq!(boxed_integer("43", "43"), 0.0);
    assert_eq!(boxed_integer("\\boxed{x}", "x"), 0.0);
    assert_eq!(ruler_hotpotqa("\\boxed{The Nile}", "nile"), 1.0);
    let far = format!("\\boxed{{Nile}}{}", " so".repeat(100));
    assert_eq!(ruler_hotpotqa(&far, "Nile"), 0.0);
    let golds = [vec!["Rome", "Roma"], vec!["7"], vec!["blue"]];
    assert_eq!(objectives_met("roma; 8; the blue", &golds), 2);
    assert_eq!(objectives_met("roma", &golds), 1);
    let list = "You like drama.\n1. Heat (1995)\n2) Alien\n3 - Up";
    assert_eq!(recommended(list), ["Heat", "Alien", "Up"]);
    assert_eq!(recommended("Heat, Alien"), ["Heat", "Alien"]);
    let golds = ["alien", "Jaws"].map(str::to_owned);
    assert_eq!(recall_at_k(&recommended(list), &golds, 5), 0.5);
    assert_eq!(recall_at_k(&recommended(list), &golds, 1), 0.0);
    for (prediction, gold, within) in [
        (
            "It took 19 days",
            "18 days. 19 days (with the last) is fine too.",
            true,
        ),
        ("twenty days", "18 days", false),
        ("17", "18 days", true),
        ("17 weeks", "18 days", false),
        ("one week ago", "2 weeks", true),
        ("in 2017", "2018", false),
        ("16 days", "18 days", false),
    ] {
        assert_eq!(
            within_one_unit_of_time(prediction, gold),
            within,
            "{prediction}"
        );
    }
}

fn graded(question_type: &str, golds: &[&str], response: &str, metric: Metric) -> (f64, f64, f64) {
    let answers: Vec<String> = golds.iter().map(|&gold| gold.to_owned()).collect();
    let asked = Asked {
        question_type,
        answers: &answers,
        abstain: golds.is_empty(),
    };
    let grade = grade(asked, response, metric, &Reading::default());
    (grade.score, grade.exact_match, grade.f1)
}

/// Question type, gold answers, response, metric; score, exact match and F1.
type Case = (
    &'static str,
    &'static [&'static str],
    &'static str,
    Metric,
    (f64, f64, f64),
);

#[test]
fn grades_by_hand() {
    let third = 1.0 / 3.0;
    let cases: [Case; 24] = [
        (
            "",
            &["Rome", "Paris"],
            "Answer: paris",
            Metric::ExactMatch,
            (1.0, 1.0, 1.0),
        ),
        (
            "",
            &["Rome", "Paris"],
            "\\boxed{to Paris}",
            Metric::F1,
            (2.0 / 3.0, 0.0, 2.0 / 3.0),
        ),
        ("", &["Paris"], "<think>Paris", Metric::F1, (0.0, 0.0, 0.0)),
        ("", &["yes"], "yes she did", Metric::F1, (0.0, 0.0, 0.0)),
        (
            "",
            &["Paris"],
            "to Paris",
            Metric::SubstringExactMatch,
            (1.0, 0.0, 2.0 / 3.0),
        ),
        ("", &[], "Not mentioned.", Metric::F1, (1.0, 1.0, 1.0)),
        ("", &[], "Paris", Metric::F1, (0.0, 0.0, 0.0)),
        // A question that has an answer is not answered by abstaining.
        ("", &["Paris"], "not mentioned", Metric::F1, (0.0, 0.0, 0.0)),
        (
            "1",
            &["tea, cake"],
            "teas",
            Metric::Locomo,
            (0.5, 0.0, 2.0 / 3.0),
        ),
        (
            "3",
            &["Likely no; she is shy"],
            "likely no",
            Metric::Locomo,
            (1.0, 1.0, 1.0),
        ),
        (
            "4",
            &["cakes and tea"],
            "tea cakes",
            Metric::Locomo,
            (1.0, 1.0, 1.0),
        ),
        ("2", &["7"], "7", Metric::Locomo, (1.0, 1.0, 1.0)),
        (
            "5",
            &[],
            "That is not mentioned",
            Metric::Locomo,
            (1.0, 1.0, 1.0),
        ),
        ("5", &[], "unknown", Metric::Locomo, (0.0, 1.0, 1.0)),
        (
            "temporal-reasoning",
            &["18 days"],
            "19 days",
            Metric::LongMemEval,
            (1.0, 0.0, 0.5),
        ),
        (
            "multi-session",
            &["18 days"],
            "19 days",
            Metric::LongMemEval,
            (0.0, 0.0, 0.5),
        ),
        (
            "knowledge-update",
            &["Rome"],
            "Oslo, now Rome",
            Metric::LongMemEval,
            (1.0, 0.0, 0.5),
        ),
        (
            "",
            &["43"],
            "label: 43",
            Metric::InContextLearning,
            (0.0, 0.0, 2.0 / 3.0),
        ),
        (
            "",
            &["43"],
            "Answer: 43",
            Metric::InContextLearning,
            (1.0, 1.0, 1.0),
        ),
        (
            "",
            &["Ann", "Bob"],
            "bob saw ann",
            Metric::EventQa,
            (1.0, 0.0, 0.5),
        ),
        ("", &["Ann", "Bob"], "bob", Metric::EventQa, (0.0, 1.0, 1.0)),
        (
            "",
            &["17", "18", "19"],
            "it is 18",
            Metric::NeedleRecall,
            (third, 0.0, 0.5),
        ),
        (
            "",
            &["Rome", "7"],
            "rome; 7",
            Metric::MultiObjective,
            (1.0, 0.0, 2.0 / 3.0),
        ),
        (
            "",
            &["3"],
            "\\boxed{3}",
            Metric::BoxedInteger,
            (1.0, 1.0, 1.0),
        ),
    ];
    for (question_type, golds, response, metric, expected) in cases {
        let found = graded(question_type, golds, response, metric);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(
            close(found.0, expected.0) && close(found.1, expected.1) && close(found.2, expected.2),
            "{metric:?} of {response:?} against {golds:?}: {found:?}, not {expected:?}"
        );
    }
}

/// Nothing is left of `A` without articles; it is an answer all the same, and silence is none.
#[test]
fn answers_that_normal_forms_leave_nothing_of_are_compared_as_they_are() {
    let pairwise = [
        Metric::ExactMatch,
        Metric::F1,
        Metric::SubstringExactMatch,
        Metric::HitRate,
        Metric::Locomo,
        Metric::LongMemEval,
        Metric::MemoryAgentBenchExactMatch,
        Metric::MemoryAgentBenchSubstring,
        Metric::InContextLearning,
        Metric::RecommendationRecallAt5,
        Metric::MultiObjective,
    ];
    for metric in pairwise {
        for (gold, response, expected) in [
            ("A", "", 0.0),
            ("A", " \n", 0.0),
            ("A", "<think>A", 0.0),
            ("A", "the", 0.0),
            ("A", "an", 0.0),
            ("A", "!", 0.0),
            ("A", "B", 0.0),
            ("A", "A", 1.0),
            ("A", "a", 1.0),
            ("The", "A", 0.0),
            ("The", "the", 1.0),
        ] {
            for question_type in ["", "1", "2"] {
                let (score, exact_match, f1) = graded(question_type, &[gold], response, metric);
                assert_eq!(
                    (score, exact_match, f1),
                    (expected, expected, expected),
                    "{metric:?} of {response:?} against {gold:?}, type {question_type:?}"
                );
            }
        }
    }
    assert_eq!(graded("", &["A"], "(A)", Metric::F1), (1.0, 1.0, 1.0));
    assert_eq!(graded("", &["?"], "!", Metric::F1), (0.0, 0.0, 0.0));
    assert_eq!(graded("", &["?"], "?", Metric::F1), (1.0, 1.0, 1.0));
    // A gold answer of several, a part of one and an empty box are nothing to be right about.
    assert_eq!(graded("", &["Rome", ""], "", Metric::F1), (0.0, 0.0, 0.0));
    assert_eq!(
        graded("1", &["tea, "], ",", Metric::Locomo),
        (0.0, 0.0, 0.0)
    );
    assert_eq!(
        graded("", &["7", ""], "\\boxed{}", Metric::RulerHotpotqa).0,
        0.0
    );
    assert_eq!(
        graded("", &["A", "Rome"], "; Rome", Metric::MultiObjective).0,
        0.5
    );
}

#[test]
fn the_closest_gold_answer_is_named() {
    let answers = ["Rome", "the city of Paris", "Paris"].map(str::to_owned);
    let asked = Asked {
        question_type: "place",
        answers: &answers,
        abstain: false,
    };
    let found = grade(asked, "paris", Metric::F1, &Reading::default());
    assert_eq!(found.gold, "Paris");
    assert_eq!(found.question_type, "place");
    assert!(!found.abstained);
}

#[test]
fn a_turn_is_graded_with_its_evidence() {
    use crate::{Dialogue, Granularity, Question, Session, Task, Utterance};

    let session = |name: &str, source: &str| Session {
        session_id: Some(name.to_owned()),
        timestamp: None,
        utterances: vec![Utterance {
            source_id: Some(source.to_owned()),
            speaker: None,
            text: "so".to_owned(),
        }],
    };
    let question = Question::new("q", "Where?", "place", vec!["Paris".to_owned()]);
    let evidence = ["s2", "D1:1", "D9:9", "D1:1"].map(str::to_owned);
    let dialogue = Dialogue {
        sample_id: "a".to_owned(),
        data_source: "tiny".to_owned(),
        split: "test".to_owned(),
        document: "a".to_owned(),
        metric: None,
        sessions: vec![session("s1", "D1:1"), session("s2", "D2:1")],
        questions: vec![question.with_evidence(evidence.to_vec())],
        chunk_questions: Vec::new(),
        metadata: serde_json::Map::new(),
    };
    let task = Task::of_dialogue(&dialogue, Granularity::Sample).remove(0);
    let grade = |turn| grade_turn(&task, turn, "Paris", Metric::F1, &Reading::default());
    let found = grade(2).unwrap();
    assert_eq!((found.score, found.gold.as_str()), (1.0, "Paris"));
    let places: Vec<(u32, Option<&str>)> = found
        .evidence
        .iter()
        .map(|evidence| (evidence.turn_id, evidence.source_id.as_deref()))
        .collect();
    assert_eq!(places, [(0, Some("D1:1")), (1, None)]);
    assert_eq!(grade(0), None);
}

#[test]
fn every_source_has_its_metric() {
    for (source, metric) in [
        ("tiny", Metric::F1),
        ("hotpotqa", Metric::F1),
        ("locomo", Metric::Locomo),
        ("longmemeval_s", Metric::LongMemEval),
        ("memalpha/booksum", Metric::KeywordRecall),
        ("mem-alpha/pubmed-rct", Metric::BoxedInteger),
        ("memalpha-squad", Metric::SubstringExactMatch),
        ("rulerhqa", Metric::RulerHotpotqa),
        ("mem1", Metric::MultiObjective),
        (
            "memory_agent_bench/icl_banking77",
            Metric::InContextLearning,
        ),
        ("ruler_niah_mq", Metric::NeedleRecall),
        ("ruler_hqa", Metric::RulerHotpotqa),
        ("ruler_qa1_197K", Metric::MemoryAgentBenchSubstring),
        ("factconsolidation_mh_6k", Metric::MemoryAgentBenchSubstring),
        ("recsys_redial_full", Metric::RecommendationRecallAt5),
        ("detective_qa", Metric::MemoryAgentBenchExactMatch),
    ] {
        assert_eq!(Metric::of_source(source), metric, "{source}");
    }
    // Names of other datasets that have such a name inside, or begin with letters of one.
    for source in [
        "news-articles",
        "chronicles",
        "particle-physics",
        "rulers",
        "rulers-of-england",
        "ruler-history",
        "detective-stories",
        "mem10k",
        "my-mem1",
        "icl",
        "pubmed-abstracts",
        "about-locomo",
        "locomotives",
        "not-longmemeval",
        "squad",
        "",
        "-/-",
    ] {
        assert_eq!(Metric::of_source(source), Metric::F1, "{source}");
    }
    assert_eq!(Metric::MultiObjective.to_string(), "multi_objective");
    assert_eq!(Metric::Bleu1.to_string(), "bleu_1");
}

proptest! {
    #[test]
    fn scores_lie_between_0_and_1_and_a_text_matches_itself(
        prediction in "[a-dA-D ,.;á我\u{FF0C}'y]{0,24}",
        gold in "[a-dA-D ,.;á我\u{FF0C}'y]{0,24}",
    ) {
        let rouge = rouge_l(&prediction, &gold);
        for score in [
            f1(&prediction, &gold),
            locomo::f1(&prediction, &gold),
            locomo::multi_answer_f1(&prediction, &gold),
            rouge.f1,
            rouge.recall,
            bleu_1(&prediction, std::slice::from_ref(&gold)),
            hit_rate(&prediction, &gold),
        ] {
            prop_assert!((0.0..=1.0).contains(&score));
        }
        prop_assert_eq!(exact_match(&gold, &gold), 1.0);
        prop_assert_eq!(f1(&gold, &gold), 1.0);
        prop_assert_eq!(locomo::exact_match(&gold, &gold), 1.0);
        prop_assert_eq!(f1(&prediction, &gold), f1(&gold, &prediction));
        if exact_match(&prediction, &gold) == 1.0 {
            prop_assert_eq!(substring_exact_match(&prediction, &gold), 1.0);
            prop_assert_eq!(f1(&prediction, &gold), 1.0);
        }
    }
}
