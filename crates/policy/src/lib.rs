//! Policy: tokens in, tokens with log-probs out. Back ends: engine, scripted.
