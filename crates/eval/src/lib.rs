//! Evaluation suites over a study, with 95 % intervals over tasks.
