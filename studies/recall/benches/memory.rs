//! What memories cost beside the policies that use them: whole rollouts, and each part of a turn at growing
//! lengths of history, in seconds of one processor.
//!
//! `cargo bench -p recall --bench memory`

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::{hint::black_box, sync::Arc};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use recall::{
    TurnRole, TurnSpec, Utterance,
    memory::{
        Author, Compression, Extraction, FactId, MemoryConfig, MemoryManager, MemoryOp,
        MemoryState, OpFormat, RetrieveOptions, UpdatePolicy, ViewBudget, protocol,
    },
};

const ROUNDS: usize = 5;
const EPISODES: usize = 256;
const TURNS: u32 = 40;
/// Every fifth turn asks.
const ASKS_EVERY: u32 = 5;
const LENGTHS: [u32; 3] = [10, 100, 1000];
/// Turns that are measured at each length, each on a snapshot of its own.
const MEASURED: u32 = 20;

fn main() {
    rollouts();
    lengths();
}

/// 256 episodes of 40 turns: eight targets and 32 sessions of twelve sentences.
fn rollouts() {
    println!(
        "{EPISODES} episodes of {TURNS} turns, one thread; each episode's median of {ROUNDS} rounds"
    );
    for (name, config) in [
        ("rule, window", MemoryConfig::default()),
        (
            "rule, rolling summary",
            MemoryConfig {
                compression: Compression::Rolling,
                ..MemoryConfig::default()
            },
        ),
        (
            "rule, extractive summary",
            MemoryConfig {
                compression: Compression::Extractive,
                ..MemoryConfig::default()
            },
        ),
        (
            "policy, crud",
            MemoryConfig {
                extraction: Extraction::Policy,
                compression: Compression::Overwrite,
                ..MemoryConfig::default()
            },
        ),
        (
            "policy, append_supersede",
            MemoryConfig {
                extraction: Extraction::Policy,
                compression: Compression::Overwrite,
                update_policy: UpdatePolicy::AppendSupersede,
                ..MemoryConfig::default()
            },
        ),
    ] {
        let manager = manager(config);
        let episodes: Vec<Vec<(TurnSpec, String)>> = (0..EPISODES)
            .map(|episode| script(episode as u64, TURNS))
            .collect();
        let mut seconds = vec![Vec::new(); EPISODES];
        let (mut facts, mut tokens) = (0, 0);
        for round in 0..ROUNDS {
            for (episode, seconds) in episodes.iter().zip(&mut seconds) {
                let started = cpu_seconds();
                let state = play(&manager, episode);
                seconds.push(cpu_seconds() - started);
                if round == 0 {
                    facts += state.len();
                    tokens += state.token_len();
                }
            }
        }
        let whole: f64 = seconds.iter_mut().map(|seconds| median(seconds)).sum();
        println!(
            "  {name:26} {:8.1} ms   {:6.1} µs a turn   {:4} facts, {:5} tokens an episode",
            whole * 1e3,
            whole * 1e6 / (EPISODES as f64 * f64::from(TURNS)),
            facts / EPISODES,
            tokens / EPISODES,
        );
    }
}

fn play(manager: &MemoryManager, turns: &[(TurnSpec, String)]) -> MemoryState {
    let mut state = manager.initialize();
    for (turn, response) in turns {
        if turn.turn_role == TurnRole::Target {
            black_box(ask(manager, &state, turn));
            manager.update_memory(&mut state, turn, response);
        } else {
            remember(manager, &mut state, turn, response);
            manager.compress_short_term(&mut state, turn);
        }
    }
    state
}

fn remember(manager: &MemoryManager, state: &mut MemoryState, turn: &TurnSpec, response: &str) {
    if manager.config().extraction == Extraction::Policy {
        let by = Author::role(turn, "memory", Some(turn.turn_id));
        black_box(manager.apply_written(state, response, OpFormat::Lines, &by));
    } else {
        black_box(manager.extract_facts(state, turn));
    }
}

fn ask(manager: &MemoryManager, state: &MemoryState, turn: &TurnSpec) -> usize {
    let question = turn.observation();
    let hits = manager
        .retrieve(state, &question, &RetrieveOptions::default())
        .unwrap();
    let budget = ViewBudget {
        total: 1024,
        ..ViewBudget::default()
    };
    manager.render_view(state, &hits, &budget).tokens.total()
}

/// Each part of a turn behind 10, 100 and 1000 turns.
fn lengths() {
    println!("\nparts of a turn, by the turns before it; microseconds, median of {MEASURED}");
    println!(
        "  {:38} {:>9} {:>9} {:>9}",
        "", LENGTHS[0], LENGTHS[1], LENGTHS[2]
    );
    let row = |name: &str, cells: Vec<f64>| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:9.1}")).collect();
        println!("  {name:38} {}", cells.join(" "));
    };
    let script = script(77, LENGTHS[2] + MEASURED);
    let long = |config: MemoryConfig| {
        let manager = manager(config);
        let states: Vec<MemoryState> = LENGTHS
            .iter()
            .map(|length| {
                let mut state = manager.initialize();
                for (turn, response) in &script[..*length as usize] {
                    remember(&manager, &mut state, turn, response);
                    manager.compress_short_term(&mut state, turn);
                }
                state
            })
            .collect();
        (manager, states)
    };
    let measure = |states: &[MemoryState],
                   part: &mut dyn FnMut(&mut MemoryState, &(TurnSpec, String))| {
        let medians = states.iter().map(|state| {
            let turns = &script[LENGTHS[2] as usize..];
            let mut seconds: Vec<f64> = turns
                .iter()
                .map(|turn| {
                    let mut state = state.clone();
                    let started = cpu_seconds();
                    part(&mut state, turn);
                    cpu_seconds() - started
                })
                .collect();
            median(&mut seconds) * 1e6
        });
        medians.collect::<Vec<f64>>()
    };

    let (manager, states) = long(MemoryConfig::default());
    row(
        "live facts",
        states.iter().map(|state| state.len() as f64).collect(),
    );
    let clones = states.iter().map(|state| {
        let started = cpu_seconds();
        for _ in 0..10_000 {
            black_box(state.clone());
        }
        (cpu_seconds() - started) * 1e6 / 10_000.0
    });
    row("snapshot, made and dropped", clones.collect());
    row(
        "rule: extract and file twelve sentences",
        measure(&states, &mut |state, (turn, _)| {
            manager.extract_facts(state, turn);
        }),
    );
    row(
        "window: compress",
        measure(&states, &mut |state, (turn, _)| {
            manager.compress_short_term(state, turn);
        }),
    );
    row(
        "retrieve ten facts",
        measure(&states, &mut |state, (turn, _)| {
            let question = &turn.utterances[0].text;
            let options = RetrieveOptions::default();
            black_box(manager.retrieve(state, question, &options).unwrap());
        }),
    );
    let hits: Vec<_> = states
        .iter()
        .map(|state| {
            let question = &script[0].0.utterances[0].text;
            let options = RetrieveOptions::default();
            manager.retrieve(state, question, &options).unwrap()
        })
        .collect();
    let rendered = states.iter().zip(&hits).map(|(state, hits)| {
        let budget = ViewBudget {
            total: 1024,
            ..ViewBudget::default()
        };
        let mut seconds: Vec<f64> = (0..MEASURED)
            .map(|_| {
                let started = cpu_seconds();
                black_box(manager.render_view(state, hits, &budget));
                cpu_seconds() - started
            })
            .collect();
        median(&mut seconds) * 1e6
    });
    row("render the view", rendered.collect());
    let by = Author::role(&script[0].0, "memory", Some(0));
    let newest = |state: &MemoryState| state.newest_facts().next().map_or(FactId(0), |it| it.id);
    row(
        "update one fact",
        measure(&states, &mut |state, (turn, _)| {
            let op = MemoryOp::Update {
                id: newest(state),
                text: turn.utterances[0].text.clone(),
                kind: None,
            };
            manager.apply(state, op, &by);
        }),
    );
    row(
        "delete one fact",
        measure(&states, &mut |state, _| {
            let op = MemoryOp::Delete {
                id: newest(state),
                kind: None,
            };
            manager.apply(state, op, &by);
        }),
    );
    for (name, compression) in [
        ("rolling: compress", Compression::Rolling),
        ("extractive: compress", Compression::Extractive),
    ] {
        let (manager, states) = long(MemoryConfig {
            extraction: Extraction::None,
            compression,
            ..MemoryConfig::default()
        });
        row(
            name,
            measure(&states, &mut |state, (turn, _)| {
                manager.compress_short_term(state, turn);
            }),
        );
    }
    let (manager, states) = long(MemoryConfig {
        extraction: Extraction::Policy,
        compression: Compression::Overwrite,
        max_facts: 200,
        ..MemoryConfig::default()
    });
    row(
        "policy: five operations, 200 facts kept",
        measure(&states, &mut |state, (turn, response)| {
            remember(&manager, state, turn, response);
        }),
    );
}

fn manager(config: MemoryConfig) -> MemoryManager {
    let words = Arc::new(|text: &str| text.split_ascii_whitespace().count());
    MemoryManager::new(config, words, None).unwrap()
}

/// Turns of twelve sentences by two speakers, with what a policy writes about each: three additions, an update
/// and a deletion of earlier facts. Every fifth turn of a short episode is a question.
fn script(seed: u64, turns: u32) -> Vec<(TurnSpec, String)> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut facts = 0;
    (0..turns)
        .map(|turn_id| {
            let asks = turns == TURNS && turn_id % ASKS_EVERY == ASKS_EVERY - 1;
            let utterances = (0..if asks { 1 } else { 4 }).map(|index| Utterance {
                source_id: Some(format!("D{turn_id}:{index}")),
                speaker: (!asks).then(|| ["Ana", "Bo"][index % 2].to_owned()),
                text: (0..if asks { 1 } else { 3 })
                    .map(|_| sentence(&mut random))
                    .collect::<Vec<String>>()
                    .join(" "),
            });
            let turn = TurnSpec {
                turn_id,
                turn_role: if asks {
                    TurnRole::Target
                } else {
                    TurnRole::History
                },
                timestamp: Some(format!(
                    "2024-{:02}-{:02}",
                    1 + turn_id / 28 % 12,
                    1 + turn_id % 28
                )),
                session_id: Some(format!("s{turn_id}")),
                utterances: utterances.collect(),
            };
            let mut ops: Vec<MemoryOp> = (0..3)
                .map(|_| MemoryOp::Insert {
                    kind: recall::memory::FactKind::Semantic,
                    text: sentence(&mut random),
                    importance: None,
                    timestamp: None,
                })
                .collect();
            facts += 3;
            ops.push(MemoryOp::Update {
                id: FactId(random.random_range(0..facts)),
                text: sentence(&mut random),
                kind: None,
            });
            ops.push(MemoryOp::Delete {
                id: FactId(random.random_range(0..facts)),
                kind: None,
            });
            (turn, protocol::write_all(&ops, OpFormat::Lines))
        })
        .collect()
}

/// Eight to fifteen words out of four thousand, frequent ones more often.
fn sentence(random: &mut ChaCha8Rng) -> String {
    let words: Vec<String> = (0..random.random_range(8..16))
        .map(|_| {
            let spread: f64 = random.random();
            format!("w{}", (4000_f64.powf(spread)) as u32)
        })
        .collect();
    let when = ["", "", "", " yesterday", " last Friday"][random.random_range(0..5)];
    format!("{}{when}.", words.join(" "))
}

/// Processor time of this thread: what a busy machine takes for others does not count.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn median(seconds: &mut [f64]) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
