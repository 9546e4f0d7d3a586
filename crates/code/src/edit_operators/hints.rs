//! What a failing test says about values.

/// What is known of how the code misbehaves. Empty when nothing is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    pub mismatches: Vec<Mismatch>,
    /// Types of exceptions that came and should not have.
    pub raised: Vec<String>,
    /// Types of exceptions that should have come and did not.
    pub not_raised: Vec<String>,
    /// Functions, and methods with a dot before them, that would make the expected values of those that came.
    pub conversions: Vec<String>,
    /// Calls without arguments that they need: what is called, and the parameters.
    pub lacking: Vec<(String, Vec<String>)>,
    /// Words of the failure and the issue: names and strings that play a part.
    pub words: Vec<String>,
}

/// A value that came and the one that should have, each as Python writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub got: String,
    pub expected: String,
}
