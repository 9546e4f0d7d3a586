//! What a request must be for it to be sampled.

use record::{BadSampling, TokenId};

use crate::{SampleError, SampleExtras, SampleRequest, cache::CacheShape, scheduler::Published};

/// A request that is in order.
pub(crate) struct Checked {
    pub(crate) published: Published,
    /// The most tokens that its response can get.
    pub(crate) limit: usize,
}

/// Refuses what cannot be sampled from the weights published under its name, or not within a budget of
/// bytes for keys and values.
pub(crate) fn check(
    request: &SampleRequest,
    extras: &SampleExtras,
    published: Option<&Published>,
    budget: usize,
) -> Result<Checked, SampleError> {
    let Some(published) = published else {
        return Err(SampleError::UnknownModel {
            model: request.model.clone(),
        });
    };
    let config = published.weights.config();
    let (tokens, context, vocab_size) = (request.prompt.len(), config.context, config.vocab_size);
    if tokens == 0 {
        return Err(SampleError::EmptyPrompt);
    }
    if tokens >= context {
        return Err(SampleError::PromptTooLong { tokens, context });
    }
    let unknown = |token: TokenId| token as usize >= vocab_size;
    if let Some(position) = request.prompt.iter().position(|&token| unknown(token)) {
        let token = request.prompt[position];
        return Err(SampleError::UnknownToken {
            position,
            token,
            vocab_size,
        });
    }
    let sampling = &request.sampling;
    if let Err(bad) = sampling.check() {
        let BadSampling {
            parameter,
            value,
            expected,
        } = bad;
        return Err(SampleError::BadSampling {
            parameter,
            value,
            expected,
        });
    }
    if let Some(&token) = sampling.logit_bias.keys().find(|&&token| unknown(token)) {
        return Err(SampleError::UnknownBias { token, vocab_size });
    }
    if !sampling.stop_strings.is_empty() && extras.watch.is_none() {
        return Err(SampleError::StopStringsUnwatched);
    }
    let limit = sampling.max_tokens.min(context - tokens);
    let caches = [tokens - 1, limit].map(|tokens| CacheShape::new(config, tokens).bytes());
    let needed = caches.iter().sum();
    if needed > budget {
        return Err(SampleError::NoRoom { needed, budget });
    }
    Ok(Checked {
        published: published.clone(),
        limit,
    })
}
