//! What is printed: the machine, the size, and medians with ratios.

use std::fs;

use engine::Model;

use crate::job::{Arguments, Size, StepSeconds, WARM_UP};

/// Both sides, one after the other.
pub(crate) struct Round {
    pub(crate) ours: Vec<StepSeconds>,
    /// Empty without the peer.
    pub(crate) theirs: Vec<StepSeconds>,
    /// Of the machine when the round began.
    pub(crate) load: String,
}

/// The three load averages; a question mark where the system does not tell.
pub(crate) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let three: Vec<&str> = text.split(' ').take(3).collect();
    if three.len() == 3 {
        three.join(" ")
    } else {
        "?".to_owned()
    }
}

pub(crate) fn machine(arguments: &Arguments) {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find(|line| line.starts_with("model name"));
    let name = name.and_then(|line| line.split_once(": ")).map(|it| it.1);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let threads = arguments.threads;
    println!(
        "{}, {cores} cores open to this process, {threads} threads, etude {}",
        name.unwrap_or("unknown processor"),
        env!("CARGO_PKG_VERSION"),
    );
    if cores != threads {
        println!(
            "pin both sides to as many cores: taskset -c 0-{}",
            threads - 1
        );
    }
}

pub(crate) fn size(arguments: &Arguments, size: &Size, model: &Model) {
    println!(
        "\nsize {}: {} parameters; a step is {} prompts of {} tokens, {} responses each of {} \
         tokens; {} rounds of {} steps after {WARM_UP}; the peer's micro-batch is {} rows",
        size.name,
        model.n_parameters(),
        size.groups,
        size.prompt_tokens,
        size.group_size,
        size.response_tokens,
        arguments.rounds,
        arguments.steps,
        arguments.micro_batch(size),
    );
}

/// A part of a step.
type Seconds = fn(&StepSeconds) -> f64;

/// Medians over all measured steps, and over rounds of the ratio of a round's medians.
pub(crate) fn print(size: &Size, rounds: &[Round]) {
    println!(
        "{:<12} {:>12} {:>12} {:>12} {:>12} {:>8}   a round's ratios",
        "phase", "etude s", "TRL s", "etude tok/s", "TRL tok/s", "ratio"
    );
    let phases: [(&str, usize, Seconds); 6] = [
        ("sampling", size.sampled(), |step| step.sample),
        ("scoring", size.trained(), |step| step.score),
        ("updating", size.trained(), |step| step.update),
        ("rest", 0, |step| {
            step.step - step.sample - step.score - step.update
        }),
        ("step", size.sampled(), |step| step.step),
        ("core-seconds", 0, |step| step.processor),
    ];
    for (name, tokens, seconds) in phases {
        let of = |steps: &[StepSeconds]| -> Vec<f64> {
            steps.iter().skip(WARM_UP as usize).map(seconds).collect()
        };
        let all = |side: fn(&Round) -> &[StepSeconds]| {
            median(rounds.iter().flat_map(|round| of(side(round))).collect())
        };
        let (ours, theirs) = (all(|round| &round.ours), all(|round| &round.theirs));
        let ratios: Vec<f64> = rounds
            .iter()
            .map(|round| median(of(&round.theirs)) / median(of(&round.ours)))
            .collect();
        let rate = |seconds: f64| match tokens {
            0 => "-".to_owned(),
            _ => format!("{:.0}", tokens as f64 / seconds),
        };
        if theirs.is_nan() {
            println!("{name:<12} {ours:>12.4} {:>12} {:>12}", "-", rate(ours));
            continue;
        }
        let each: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
        println!(
            "{name:<12} {ours:>12.4} {theirs:>12.4} {:>12} {:>12} {:>8.2}   {}",
            rate(ours),
            rate(theirs),
            median(ratios),
            each.join(" "),
        );
    }
    let loads: Vec<&str> = rounds.iter().map(|round| round.load.as_str()).collect();
    println!("load when the rounds began: {}", loads.join("; "));
}

/// Not a number when there are none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}
