//! Verdicts on patches by the rules of SWE-bench 5.0 and of R2E-Gym: logs in, reports out (spec of the
//! repair study, section 11). Pure, but for reading files of predictions.

mod eval_script;
mod grader;
mod infrastructure;
mod instance;
mod log_parser;
mod prediction;
mod r2e_gym;
mod report;
mod run_report;
mod statuses;
mod swe_smith;
mod test_log;
mod verdicts;

pub use eval_script::{directives, eval_script};
pub use grader::{Grader, HarborGrader, SweBenchGrader};
pub use infrastructure::{InfrastructureSign, Tier, infrastructure_sign};
pub use instance::Instance;
pub use log_parser::{LogParser, UnknownLogParser};
pub use prediction::{Prediction, read_predictions};
pub use r2e_gym::{ExpectedStatuses, r2e_gym_resolved, read_r2e_gym_log};
pub use report::{EvalType, Expected, InstanceReport, Resolution, Split, TestsStatus};
pub use run_report::{InstanceOutcome, RunReport};
pub use statuses::{STATUS_WORDS, Statuses, status_of};
pub use swe_smith::{SmithProfile, UnknownProfile, smith_expected};
pub use test_log::{
    END_OF_TESTS, Invalid, PATCH_APPLIED, PATCH_FAILED, START_OF_TESTS, TEST_EXIT_CODE, read_log,
};
pub use verdicts::{verdicts, with_verdicts};
