//! The critique study (CTRL): a critic writes a critique, a frozen reviser rewrites the program, the tests decide.
