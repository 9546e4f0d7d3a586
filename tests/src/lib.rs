//! End-to-end tests, the layering test and the house rules.
