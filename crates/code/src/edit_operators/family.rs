//! Families of edits.

use serde::{Deserialize, Serialize};

/// What kind of mistake an edit mends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// `<` for `<=`, and the like.
    ComparisonBoundary,
    /// `<` for `>`, `==` for `!=`, `in` for `not in`, `is` for `is not`.
    ComparisonOperator,
    /// A `not` too many or too few.
    Negation,
    /// `and` for `or`, an operand too many or too few, a condition that never or always holds.
    Condition,
    /// Another operator of arithmetic.
    Arithmetic,
    /// `+=` for `-=`, `=` for `+=`.
    Assignment,
    /// One too many or too few, in any place that counts.
    OffByOne,
    /// Another number, boolean or `None`.
    Constant,
    /// Another string.
    StringConstant,
    /// Arguments or operands in the wrong order.
    Swap,
    /// Another name that is in scope.
    Variable,
    /// Another attribute of the same object.
    Attribute,
    /// Another function or method.
    Callee,
    /// An argument too many, too few, or another one.
    Argument,
    /// A call too many or too few around a value.
    Conversion,
    /// Another value is returned or yielded, or it should be.
    Return,
    /// `break` for `continue`, and the like.
    Jump,
    /// A statement too many.
    Removal,
    /// A statement too few.
    Insertion,
    /// A statement in the wrong place.
    Move,
    /// A guard that is missing or wrong.
    Guard,
    /// Another default of a parameter.
    Default,
    /// Another exception is raised or caught.
    Exception,
    /// Bounds and steps of slices and ranges.
    Bounds,
    /// What a loop or a comprehension runs over.
    Iteration,
    /// A decorator too many or too few.
    Decorator,
}

impl Family {
    /// As it is written in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::ComparisonBoundary => "comparison_boundary",
            Self::ComparisonOperator => "comparison_operator",
            Self::Negation => "negation",
            Self::Condition => "condition",
            Self::Arithmetic => "arithmetic",
            Self::Assignment => "assignment",
            Self::OffByOne => "off_by_one",
            Self::Constant => "constant",
            Self::StringConstant => "string_constant",
            Self::Swap => "swap",
            Self::Variable => "variable",
            Self::Attribute => "attribute",
            Self::Callee => "callee",
            Self::Argument => "argument",
            Self::Conversion => "conversion",
            Self::Return => "return",
            Self::Jump => "jump",
            Self::Removal => "removal",
            Self::Insertion => "insertion",
            Self::Move => "move",
            Self::Guard => "guard",
            Self::Default => "default",
            Self::Exception => "exception",
            Self::Bounds => "bounds",
            Self::Iteration => "iteration",
            Self::Decorator => "decorator",
        }
    }
}
