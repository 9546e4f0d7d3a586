//! Typed recipes: defaults, then the TOML file, then --set; unknown keys get a suggestion; resolved text and hash.
