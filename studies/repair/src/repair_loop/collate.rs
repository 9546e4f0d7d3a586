//! The pieces of source that a patch model is shown: the plan's own lines first, within a budget of tokens
//! (spec of the repair study, section 4.3).

use std::collections::BTreeMap;

use code::graph::{Chunk, CountTokens, is_test_path};

use crate::patch_model::{PatchRequest, PlanTarget};

/// Chunks that are shown, in all and of one file.
const CHUNKS: usize = 64;
const PER_FILE: usize = 8;
/// Between two chunks of tests stand at least so many others.
const BETWEEN_TESTS: usize = 3;
/// Lines around a target.
const AROUND: u32 = 2;

/// The request's own snippets and the lines of its targets in `sources`, best first, as many as `budget`
/// tokens hold.
pub fn collate(
    request: &PatchRequest,
    sources: &BTreeMap<String, String>,
    budget: usize,
    count: &CountTokens,
) -> Vec<Chunk> {
    let mut chunks = request.snippets.clone();
    for target in &request.targets {
        let covered = |chunk: &Chunk| {
            chunk.path == target.path && chunk.start <= target.start && target.end <= chunk.end
        };
        if !chunks.iter().any(covered)
            && let Some(text) = sources.get(&target.path)
        {
            chunks.extend(window(target, text));
        }
    }
    let mut ranked: Vec<(f64, Chunk)> = chunks
        .into_iter()
        .map(|chunk| (score(&chunk, request), chunk))
        .collect();
    ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let (tests, others): (Vec<Chunk>, Vec<Chunk>) = ranked
        .into_iter()
        .map(|(_, chunk)| chunk)
        .partition(|chunk| is_test_path(&chunk.path));
    let mut tests = tests.into_iter();
    let mut row = Vec::new();
    for (number, chunk) in (1..).zip(others) {
        row.push(chunk);
        if number % BETWEEN_TESTS == 0 {
            row.extend(tests.next());
        }
    }
    row.extend(tests);
    let (mut kept, mut tokens) = (Vec::<Chunk>::new(), 0);
    for chunk in row {
        let same_file = kept.iter().filter(|other| other.path == chunk.path).count();
        if kept.len() == CHUNKS || same_file == PER_FILE {
            continue;
        }
        let cost = count(&chunk.numbered());
        if tokens + cost <= budget {
            tokens += cost;
            kept.push(chunk);
        }
    }
    kept
}

fn window(target: &PlanTarget, text: &str) -> Option<Chunk> {
    let start = target.start.saturating_sub(AROUND).max(1);
    let count = target.end.saturating_add(AROUND).saturating_sub(start) as usize + 1;
    let lines = text.split_inclusive('\n').skip(start as usize - 1);
    let lines: Vec<&str> = lines.take(count).collect();
    (!lines.is_empty()).then(|| Chunk {
        path: target.path.clone(),
        start,
        end: start + lines.len() as u32 - 1,
        text: lines.concat(),
    })
}

fn score(chunk: &Chunk, request: &PatchRequest) -> f64 {
    const LONG: f64 = 200.0;
    const BUSY: f64 = 12.0;
    let same_file = |target: &&PlanTarget| target.path == chunk.path;
    let mut overlapping = request
        .targets
        .iter()
        .filter(same_file)
        .filter(|target| target.start <= chunk.end && chunk.start <= target.end);
    let place = match overlapping.next() {
        Some(_) => 1.6,
        None if request.targets.iter().any(|target| same_file(&target)) => 1.0,
        None => 0.0,
    };
    let degree = request
        .graph
        .nodes
        .values()
        .filter(|node| node.path == chunk.path)
        .filter(|node| {
            node.span
                .is_some_and(|span| span.start <= chunk.end && chunk.start <= span.end)
        })
        .filter_map(|node| node.degree.map(f64::from))
        .fold(0.0, f64::max);
    let lines = f64::from(chunk.end.saturating_sub(chunk.start) + 1);
    place + 0.8 * (degree / BUSY).min(1.0) + 0.5 * (1.0 - (lines / LONG).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Issue, patch_model::Constraints};

    fn chunk(path: &str, start: u32, end: u32) -> Chunk {
        let text = (start..=end).map(|line| format!("line {line}\n")).collect();
        Chunk {
            path: path.to_owned(),
            start,
            end,
            text,
        }
    }

    #[test]
    fn the_plans_lines_come_first_and_the_budget_holds() {
        let mut snippets = vec![chunk("other.py", 1, 30), chunk("m.py", 90, 99)];
        snippets.extend((0..20).map(|n| chunk("tests/test_m.py", 1 + 10 * n, 5 + 10 * n)));
        let request = PatchRequest {
            issue: Issue::default(),
            plan: Vec::new(),
            targets: vec![PlanTarget {
                path: "m.py".to_owned(),
                start: 10,
                end: 20,
                ..PlanTarget::default()
            }],
            graph: Default::default(),
            snippets,
            feedback: Vec::new(),
            constraints: Constraints::default(),
            of_tests: std::sync::Arc::default(),
            observed: None,
            searched: None,
        };
        let text: String = (1..=100).map(|line| format!("{line}\n")).collect();
        let sources = BTreeMap::from([("m.py".to_owned(), text)]);
        let places = |budget: usize| -> Vec<(String, u32, u32)> {
            let chunks = collate(&request, &sources, budget, &|text| text.len());
            let size: usize = chunks.iter().map(|chunk| chunk.numbered().len()).sum();
            assert!(size <= budget);
            let of = |chunk: Chunk| (chunk.path, chunk.start, chunk.end);
            chunks.into_iter().map(of).collect()
        };
        let all = places(1 << 20);
        assert_eq!(all[0], ("m.py".to_owned(), 8, 22));
        assert_eq!(all[1], ("m.py".to_owned(), 90, 99));
        assert_eq!(all[2].0, "other.py");
        assert_eq!(all.len(), 3 + PER_FILE);
        assert_eq!(places(200).len(), 1);
        assert_eq!(places(0), []);
    }
}
