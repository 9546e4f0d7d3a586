//! The recall study: long dialogues are read turn by turn into a memory, and questions are answered from
//! it (spec of the recall study).
//!
//! History turns write long-term facts and a short-term summary; target turns build a prompt from the
//! retrieved facts, the summary and the window of recent turns, and answer. Answers are graded, and
//! whichever roles the recipe trains learn from it.

pub mod adapters;
mod answer;
mod config;
mod dialogue;
mod event;
pub mod memory;
pub mod metrics;
mod model_judge;
mod play;
mod prompts;
mod room;
mod source_name;
pub mod step_reward;
mod study;
mod task;
pub mod tiny;

pub use answer::{AnswerForm, Reading, boxed};
pub use config::{RecallConfig, RewardConfig};
pub use dialogue::{ChunkQuestion, Dialogue, Question, Session, Utterance};
pub use event::{ChunkAnswer, Event, Evidence, Grade, Notes, Retrieved};
pub use model_judge::{JUDGE, Judged};
pub use play::{ANSWER, CHUNK_QA, EXTRACT, FACT_SPLIT, LONG_MEM, MEMORY, SHORT_MEM, roles_of};
pub use prompts::PromptConfig;
pub use room::BarePrompt;
pub use study::{Recall, RecallError};
pub use task::{ActionType, Facts, Granularity, Public, QuestionFacts, Task, TurnRole, TurnSpec};
