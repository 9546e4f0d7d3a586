//! The border between the engine and the losses: per-token coefficients, never kernels.

use record::TokenId;

/// One row of a forward or backward pass.
#[derive(Clone, Copy, Debug)]
pub struct TrainRow<'a> {
    pub tokens: &'a [TokenId],
    /// As long as `tokens`; token `i` is scored given `tokens[..i]` where `mask[i]` holds.
    /// `mask[0]` must be false.
    pub mask: &'a [bool],
}

/// What the model says of the masked tokens of one row, in order of position. Natural logarithms,
/// temperature 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowScores {
    pub logprobs: Vec<f32>,
    /// Entropy of the distribution that each masked token was scored under.
    pub entropies: Vec<f32>,
}

/// A loss over log-probs and entropies of masked tokens. `learn` implements it; the engine calls it
/// once per row and back-propagates the coefficients, so a new loss never touches a kernel.
pub trait TokenLoss: Sync {
    /// Writes `d loss / d logprobs[i]` and `d loss / d entropies[i]` (both slices arrive zeroed, as
    /// long as `scores.logprobs`) and returns the row's share of the loss. `row` is the index of
    /// the row in the batch given to the trainer, whatever the micro-batching.
    fn row(
        &self,
        row: usize,
        scores: &RowScores,
        d_logprobs: &mut [f32],
        d_entropies: &mut [f32],
    ) -> f64;
}
