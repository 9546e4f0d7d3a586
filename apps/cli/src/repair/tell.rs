//! What the user sees of an episode while it is played.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use async_trait::async_trait;
use record::Fault;
use repair::{
    Issue,
    patch_model::{Answered, EXHAUSTED, PatchModel, PatchRequest, SPENT},
    play::StepNote,
    search::{Fate, TestsObserved, Tried},
    workplace::Testbed,
};
use rollout::Cx;
use serde_json::Value;

use crate::screen::{Screen, count_of};

/// Targets of a plan that are told.
const TARGETS: usize = 5;
/// Lines of a failure that are told after its first.
const DETAIL: usize = 4;
/// Candidates that are told one by one.
const SHOWN: usize = 10;
/// Of the others, at which numbers a line says how many there are.
const EVERY: usize = 50;

/// A patch model whose plans are told before it is asked, and that need not look at the tests once more.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) model: Arc<dyn PatchModel>,
    pub(super) candidates: Arc<Candidates>,
    /// What a search goes by: the issue as the user put it, without the names of tests that planners are told, and
    /// what the tests of the repository do.
    pub(super) observed: Option<(Issue, Arc<TestsObserved>)>,
}

#[async_trait]
impl PatchModel for Told {
    async fn propose(
        &self,
        request: &PatchRequest,
        testbed: &Testbed,
        cx: &mut Cx,
    ) -> Result<Answered, Fault> {
        self.candidates.plan(request);
        let mut request = request.clone();
        if let Some((issue, observed)) = self.observed.clone() {
            (request.issue, request.observed) = (issue, Some(observed));
        }
        self.model.propose(&request, testbed, cx).await
    }
}

/// Candidates of a search as they end: the first ones of a step each in a line, of the others how many. All are
/// numbered through the episode.
#[derive(Debug)]
pub(super) struct Candidates {
    screen: Screen,
    /// The plan of the step that is being made was told.
    planned: AtomicBool,
    /// Its lines, or those of the plan before.
    plan: Mutex<Vec<String>>,
    /// One of the step that is being made passes.
    passed: AtomicBool,
    /// Those since the last step's end.
    recent: AtomicUsize,
}

impl Candidates {
    pub(super) fn new(screen: Screen) -> Self {
        Self {
            screen,
            planned: AtomicBool::new(false),
            plan: Mutex::default(),
            passed: AtomicBool::new(false),
            recent: AtomicUsize::new(0),
        }
    }

    fn plan(&self, request: &PatchRequest) {
        self.planned.store(true, Ordering::Relaxed);
        let plan = request.plan.iter().map(|line| format!("plan: {line}"));
        let targets = request.targets.iter().take(TARGETS).map(|target| {
            let (path, start, end) = (&target.path, target.start, target.end);
            format!("target: {path}:{start}-{end}")
        });
        let more = request.targets.len().saturating_sub(TARGETS);
        let more = (more > 0).then(|| format!("and {more} more"));
        let lines: Vec<String> = plan.chain(targets).chain(more).collect();
        // Another attempt at the same place has much the same plan.
        let mut before = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let mut others = lines
            .iter()
            .filter(|line| !before.contains(line))
            .peekable();
        if others.peek().is_none() {
            self.screen.say("     plan: as before");
        }
        for line in others {
            self.screen.say(format!("     {line}"));
        }
        *before = lines;
    }

    pub(super) fn tell(&self, tried: &Tried<'_>) {
        // What was run at the same time as one that passes, and stands behind it, is counted at the step's end.
        if self.passed.load(Ordering::Relaxed) {
            return;
        }
        let number = tried.number;
        let recent = self.recent.fetch_add(1, Ordering::Relaxed) + 1;
        self.passed
            .store(*tried.fate == Fate::Passing, Ordering::Relaxed);
        let fate = match tried.fate {
            Fate::Unmended(why) if why.is_empty() => "a failing test still fails".to_owned(),
            Fate::Unmended(why) => format!("still fails: {why}"),
            Fate::Endless => "its tests do not end".to_owned(),
            Fate::Crashed => "the interpreter dies".to_owned(),
            Fate::Breaking => "mends failing tests, and breaks others".to_owned(),
            Fate::Partial(mended) => format!(
                "mends {} and breaks none, and leaves others",
                count_of(*mended, "failing test")
            ),
            Fate::Passing => "passes".to_owned(),
            Fate::Unchecked => "mends failing tests, after one that passes".to_owned(),
        };
        let is_told = recent <= SHOWN
            || matches!(
                tried.fate,
                Fate::Breaking | Fate::Partial(_) | Fate::Passing
            );
        if is_told {
            self.screen.say(format!(
                "     candidate {number}: {} at {}:{}: {fate}",
                tried.family, tried.path, tried.line
            ));
        } else if number.is_multiple_of(EVERY) {
            self.screen
                .say(format!("     {} so far", count_of(number, "candidate")));
        }
    }

    /// Of the repair that is over; whether its plan was told.
    pub(super) fn end(&self, step: &StepNote) -> bool {
        let recent = self.recent.swap(0, Ordering::Relaxed);
        self.passed.store(false, Ordering::Relaxed);
        let number = |name: &str| step.info[name].as_u64().unwrap_or_default() as usize;
        let (run, all) = (number("candidates"), number("candidates_so_far"));
        if recent > 0 {
            let run = count_of(run, "candidate");
            self.screen
                .say(format!("     {run} in this step, {all} so far"));
        }
        self.planned.swap(false, Ordering::Relaxed)
    }
}

/// One step of the planner, and what came of it.
pub(super) fn step(step: &StepNote, is_planned: bool, screen: Screen) {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let action = step.action.as_ref();
    let what = action.map_or_else(
        || "a reply that is no action".to_owned(),
        |action| {
            let kind = text(&action["type"]).unwrap_or_default();
            let inner = ["op", "intent"].iter().find_map(|key| text(&action[*key]));
            inner.map_or(kind.clone(), |inner| format!("{kind} {inner}"))
        },
    );
    screen.say(format!("{:>3}. {what}", step.step));
    if let Some(why) = &step.fallback {
        let why = why.lines().next().unwrap_or_default();
        screen.say(format!(
            "     by rule: the model's reply was refused: {why}"
        ));
    }
    let info = &step.info;
    for line in planned(step, is_planned) {
        screen.say(format!("     plan: {line}"));
    }
    if let Some(found) = info["candidates"].as_array() {
        let ids: Vec<&str> = found.iter().filter_map(Value::as_str).take(5).collect();
        if !ids.is_empty() {
            screen.say(format!("     looks at {}", ids.join(", ")));
        }
    }
    let feedback = info["feedback"].as_array();
    for tried in feedback.into_iter().flatten() {
        let first = |key: &str| {
            let said = text(&tried[key]).unwrap_or_default();
            said.lines().next().unwrap_or_default().to_owned()
        };
        screen.say(format!(
            "     patch refused: {}: {}",
            first("outcome"),
            first("detail")
        ));
    }
    let detail = text(&info["detail"]).unwrap_or_default();
    match text(&info["error"]) {
        // Why is said at the end.
        Some(error) if error == SPENT => screen.say("     the budget of candidates is spent"),
        Some(error) if error == EXHAUSTED => screen.say("     nothing is left to try"),
        Some(_) if feedback.is_some_and(|tried| tried.iter().any(|it| it["detail"] == *detail)) => {
        }
        Some(error) => {
            let mut lines = detail.lines();
            let first = lines.next().unwrap_or_default();
            screen.say(format!("     {error}: {first}"));
            for line in lines.by_ref().take(DETAIL) {
                screen.say(format!("       {line}"));
            }
            if lines.next().is_some() {
                screen.say("       …");
            }
        }
        None => {}
    }
    let said = ["message", "summary"];
    let said = said.iter().find_map(|key| text(&info[*key]));
    let said = said.filter(|said| *said != detail).unwrap_or_default();
    for line in said.lines() {
        screen.say(format!("     {line}"));
    }
}

/// The lines of a plan that were not told when a patch model was asked with it, each once.
fn planned(step: &StepNote, is_told: bool) -> Vec<&str> {
    let told = step.info["plan"].as_array().filter(|_| !is_told);
    let mut lines: Vec<&str> = told
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    // As the planner wrote it, and what it says of a proposal of a repair in steps.
    let keys: &[&str] = match lines.is_empty() && !is_told {
        true => &["subplan", "intent_analysis", "feedback"],
        false => &["feedback"],
    };
    let action = step.action.as_ref();
    let said = keys.iter().filter_map(|key| action?[*key].as_str());
    lines.extend(said.flat_map(str::lines));
    lines
}

/// `1 test now passes, 3 still do`, of a report of tests that all pass.
pub(super) fn tests(report: &Value) -> String {
    let of = |key: &str| {
        let number = |name: &str| report[key][name].as_u64().unwrap_or_default() as usize;
        number("passed")
    };
    let (mended, kept) = (of("fail_to_pass"), of("pass_to_pass"));
    let verbs = |n: usize, one: &'static str, many: &'static str| if n == 1 { one } else { many };
    format!(
        "{} now {}, {kept} still {}.",
        count_of(mended, "test"),
        verbs(mended, "passes", "pass"),
        verbs(kept, "does", "do"),
    )
}

/// A diff.
pub(super) fn patch(patch: &str, screen: Screen) {
    for line in patch.lines() {
        screen.say(format!("  {line}"));
    }
}
