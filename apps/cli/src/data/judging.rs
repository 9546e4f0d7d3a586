//! Programs of problem files in the sandbox, many at a time.

use std::time::Duration;

use clap::{Args, builder::RangedU64ValueParser};
use critique::data::Problem;
use futures::{StreamExt, stream};
use judge::{Judge, JudgeConfig, JudgeError, Verdict};
use sandbox::{Config, Limits, Sandbox};

use crate::{
    args::seconds,
    failure::{Classify, Failure, Outcome},
    machine,
    screen::Screen,
};

#[derive(Debug, Args)]
pub(super) struct JudgingArgs {
    /// Programs that run at the same time [default: one a core]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=4096))]
    workers: Option<usize>,
    /// Seconds of processor time that one run may take where the problem has no limit of its own: a case of standard
    /// input, or all other tests together
    #[arg(long, value_name = "SECONDS", default_value = "10", allow_negative_numbers = true, value_parser = seconds)]
    timeout: Duration,
    /// MiB of memory of one run
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u64).range(16..=1 << 20))]
    memory: u64,
    /// Run programs even where only weak walls can be built
    #[arg(long)]
    allow_weak_tier: bool,
}

/// Programs that wait in the sandbox's queue at the same time.
const AHEAD: usize = 256;

impl JudgingArgs {
    /// The verdict of every program, in order.
    pub(super) fn verdicts(
        &self,
        programs: &[(&Problem, &str)],
        what: &str,
        screen: Screen,
    ) -> Outcome<Vec<Verdict>> {
        if programs.is_empty() {
            return Ok(Vec::new());
        }
        let judge = self.judge()?;
        let runtime = tokio::runtime::Runtime::new().failed()?;
        runtime.block_on(async {
            tokio::select! {
                verdicts = all(&judge, programs, what, screen) => verdicts.failed(),
                () = crate::stop::asked_to_stop() => Err(Failure::Stopped),
            }
        })
    }

    fn judge(&self) -> Outcome<Judge> {
        let workers = self.workers.unwrap_or_else(machine::cores);
        let sandbox = Sandbox::start(Config {
            allow_weak_tier: self.allow_weak_tier,
            ..machine::sandbox_config(workers)
        });
        let limits = Limits {
            wall: self.timeout.saturating_mul(2),
            cpu: self.timeout,
            memory: self.memory << 20,
            ..Limits::SMALL
        };
        let config = JudgeConfig {
            limits,
            ..JudgeConfig::small()
        };
        Ok(Judge::new(sandbox.failed()?, config))
    }
}

/// A failure of the sandbox says nothing about a program, so the first one ends the work.
async fn all(
    judge: &Judge,
    programs: &[(&Problem, &str)],
    what: &str,
    screen: Screen,
) -> Result<Vec<Verdict>, JudgeError> {
    let work = screen.work(what, programs.len() as u64);
    let verdicts: Vec<_> = programs
        .iter()
        .map(|(problem, program)| problem.verdict(judge, program))
        .collect();
    let mut verdicts = stream::iter(verdicts).buffered(AHEAD);
    let mut done = Vec::with_capacity(programs.len());
    while let Some(verdict) = verdicts.next().await {
        done.push(verdict?);
        work.at(done.len() as u64);
    }
    work.done(format!("{what}: {} programs judged", done.len()));
    Ok(done)
}

/// How a verdict is told in one line.
pub(super) fn told(verdict: &Verdict) -> String {
    let message = verdict.message.as_deref().unwrap_or_default();
    let separator = if message.is_empty() { "" } else { ": " };
    format!(
        "{} ({} of {} tests){separator}{message}",
        verdict.status, verdict.n_passed, verdict.n_tests
    )
}
