//! Building a repository's code graph: from cold, after a change of one file, and by a walker over
//! Python's own `ast` on the same files in the same run.
//!
//! `cargo bench -p code --bench graph -- FOLDER [PYTHON]`

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark"
)]

use std::{fs, path::Path, process::Command, time::Instant};

use code::graph::{Contents, EdgeKind, Graph, Index, ListedGraph, NodeKind, Query};

/// As in `etude`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 5;
/// Everything but `all_cores` is measured with so many.
const THREADS: usize = 2;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| it != "--bench")
        .collect();
    let Some(folder) = arguments.first() else {
        println!("usage: cargo bench -p code --bench graph -- FOLDER [PYTHON]");
        return;
    };
    let python = arguments.get(1).map_or("python3", String::as_str);
    let peer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/peers/code_graph.py");
    let mut contents: Contents = paths(Path::new(folder))
        .map(|path| {
            (
                path.clone(),
                fs::read(Path::new(folder).join(&path)).unwrap(),
            )
        })
        .collect();
    let cores = std::thread::available_parallelism().map_or(THREADS, usize::from);
    let (mut listing, mut cold, mut warm) = (vec![], vec![], vec![]);
    let mut all_cores = vec![];
    let (mut binary, mut codefuse) = (vec![], vec![]);
    let (mut theirs, mut their_json) = (vec![], vec![]);
    let mut graph = Graph::default();
    for round in 0..ROUNDS {
        drop(std::mem::take(&mut graph));
        let started = Instant::now();
        std::hint::black_box(paths(Path::new(folder)).count());
        listing.push(started.elapsed().as_secs_f64());
        let read = |path: &str| fs::read(Path::new(folder).join(path));
        let started = Instant::now();
        graph = Graph::read(paths(Path::new(folder)), cores, read).unwrap();
        all_cores.push(started.elapsed().as_secs_f64());
        drop(std::mem::take(&mut graph));
        let started = Instant::now();
        graph = Graph::read(paths(Path::new(folder)), THREADS, read).unwrap();
        cold.push(started.elapsed().as_secs_f64());
        std::hint::black_box(graph.to_bytes());
        binary.push(started.elapsed().as_secs_f64());
        let started = Instant::now();
        std::hint::black_box(as_codefuse(&graph, read));
        codefuse.push(cold[round] + started.elapsed().as_secs_f64());
        // The file with the most lines of its middle quarter, so neither the smallest nor the largest.
        let mut sizes: Vec<(usize, String)> = contents
            .iter()
            .map(|(path, content)| (content.len(), path.clone()))
            .collect();
        sizes.sort();
        let (_, path) = &sizes[sizes.len() * 9 / 10 + round];
        let content = contents.get_mut(path).unwrap();
        content.extend(b"\n\ndef added_by_the_benchmark():\n    return sorted([])\n");
        let started = Instant::now();
        graph.update(path, Some(content), THREADS);
        warm.push(started.elapsed().as_secs_f64());
        match Command::new(python).arg(&peer).arg(folder).output() {
            Ok(out) if out.status.success() => {
                let told = String::from_utf8_lossy(&out.stdout).into_owned();
                let mut numbers = told.split(' ').map(|number| number.trim().parse::<f64>());
                theirs.push(numbers.next().unwrap().unwrap());
                their_json.push(numbers.next().unwrap().unwrap());
            }
            Ok(out) => println!("peer: {}", String::from_utf8_lossy(&out.stderr)),
            Err(error) => println!("peer: {error}"),
        }
        if round == 0 {
            assert!(
                graph == Graph::build(&contents, 1),
                "an update is not a build"
            );
        }
    }
    let files = graph.files().count();
    println!("{files} files of {folder}, {THREADS} threads");
    for kind in [NodeKind::Class, NodeKind::Function, NodeKind::Attribute] {
        let count = graph
            .nodes()
            .filter(|node| graph.kind(*node) == kind)
            .count();
        println!("  {:<12} {count:>8}", kind.name());
    }
    println!("  {:<12} {:>8}", "nodes", graph.nodes().count());
    for kind in EdgeKind::ALL {
        let count = graph.edges().filter(|edge| edge.kind == kind).count();
        println!("  {:<12} {count:>8}", kind.name());
    }
    ask(&graph);
    let (cold, warm) = (median(cold), median(warm));
    println!(
        "files listed               {:>9.1} ms",
        median(listing) * 1e3
    );
    println!("listed, read and built     {:>9.1} ms", cold * 1e3);
    let all_cores = median(all_cores);
    println!(
        "  by {cores:>2} threads            {:>9.1} ms",
        all_cores * 1e3
    );
    let (binary, codefuse) = (median(binary), median(codefuse));
    println!("  to the binary form       {:>9.1} ms", binary * 1e3);
    println!("  to CodeFuse's JSON       {:>9.1} ms", codefuse * 1e3);
    println!("one file changed           {:>9.2} ms", warm * 1e3);
    if !theirs.is_empty() {
        let (theirs, their_json) = (median(theirs), median(their_json));
        for (until, theirs, ours, to) in [
            ("graph", theirs, cold, "the graph"),
            ("JSON", their_json, cold, "the graph"),
            ("JSON", their_json, binary, "the binary form"),
            ("JSON", their_json, codefuse, "CodeFuse's JSON"),
            ("graph", theirs, all_cores, "the graph by all cores"),
            ("JSON", their_json, all_cores, "the graph by all cores"),
        ] {
            println!(
                "ast walker, to its {until:<7} {:>9.1} ms, {:.1} times as long as to {to}",
                theirs * 1e3,
                theirs / ours
            );
        }
    }
}

/// What queries take, by the middle and the slowest of each kind, and what loading takes.
fn ask(graph: &Graph) {
    let started = Instant::now();
    let index = Index::new(graph);
    let made = started.elapsed().as_secs_f64();
    println!("index of queries made      {:>9.1} ms", made * 1e3);
    for text in [
        "symbol:get",
        "symbol:QuerySet.filter path:models",
        "symbol:e symbol:a symbol:t",
        "path:tests",
        "path:d path:p path:y",
        "\"the object\"",
        "\"a\" \"e\" \"the\" \"self\" \"self, \" \"return\"",
        "\"in\" \"on\" \"er\" \"re\" \"te\" \"def\"",
        "+se +te +re +in +er +on path:p",
        "how does the url resolver match a pattern",
        "request",
        "+model -test symbol:save",
        "+self +e path:django",
        "-zebra -yak -emu -gnu -elk -auk path:py",
        "+zebra +yak self request view model",
        "self request view test model field get set value name form",
        "self request view test model field get set value name form class def test tests data response \
         query user filter save admin urls key id",
    ] {
        let query = Query::parse(text);
        let mut times: Vec<f64> = (0..51)
            .map(|_| {
                let started = Instant::now();
                std::hint::black_box(index.search(&query, 50));
                started.elapsed().as_secs_f64()
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let (middle, most) = (times[times.len() / 2] * 1e3, times[times.len() - 1] * 1e3);
        println!("query                      {middle:>9.2} ms, at most {most:.2} ms: {text}");
    }
    let bytes = graph.to_bytes();
    let started = Instant::now();
    let loaded = Graph::from_bytes(&bytes, THREADS).unwrap();
    let loading = started.elapsed().as_secs_f64();
    assert!(loaded == *graph, "what was loaded is not what was kept");
    println!(
        "loaded from {:>5.1} MB       {:>9.1} ms",
        bytes.len() as f64 / 1e6,
        loading * 1e3
    );
}

/// What `etude graph build --format codefuse` writes, sources read again as it does.
fn as_codefuse(graph: &Graph, read: impl Fn(&str) -> std::io::Result<Vec<u8>>) -> String {
    let sources: std::collections::BTreeMap<&str, String> = graph
        .files()
        .map(|(path, _)| {
            (
                path,
                String::from_utf8(read(path).unwrap()).unwrap_or_default(),
            )
        })
        .collect();
    let listed = ListedGraph::of(graph);
    let codefuse = listed.to_codefuse(|path| sources.get(path).map(String::as_str));
    codefuse.unwrap()
}

/// Of the Python files in a folder, below it, found one folder after the other.
fn paths(root: &Path) -> impl Iterator<Item = String> + Send + '_ {
    let (mut folders, mut files) = (vec![String::new()], Vec::new());
    std::iter::from_fn(move || {
        while files.is_empty() {
            let folder = folders.pop()?;
            for entry in fs::read_dir(root.join(&folder)).unwrap().flatten() {
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                let path = if folder.is_empty() {
                    name
                } else {
                    format!("{folder}/{name}")
                };
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() && path.ends_with(".py") {
                    files.push(path);
                }
            }
        }
        files.pop()
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
