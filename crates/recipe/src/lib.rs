//! Typed recipes: defaults, then the TOML file, then `--set a.b=c`.
//!
//! A recipe is one serde type with `deny_unknown_fields` on every level; its defaults are the type's
//! serde defaults. [`load`] resolves a file and overrides to the typed value, the full resolved TOML
//! text (what a run saves) and its hash (what identifies the run's settings).

mod error;
mod overrides;

use std::path::Path;

use serde::{Serialize, de::DeserializeOwned};

pub use error::{RecipeError, nearest};
use overrides::Override;

/// A recipe with every default filled in.
#[derive(Clone, Debug)]
pub struct Resolved<T> {
    pub value: T,
    /// Canonical TOML of `value`; loading it again gives the same value and the same text.
    pub text: String,
    /// Hexadecimal BLAKE3 of `text`.
    pub hash: String,
}

/// Reads the recipe at `path` and applies `overrides` (`a.b=c`, the value in TOML syntax or a bare
/// string).
///
/// # Errors
/// A file that cannot be read, TOML that does not parse, an unknown key (with the nearest known one),
/// a value of the wrong type, a malformed override. All of them before anything was done.
pub fn load<T>(path: &Path, overrides: &[String]) -> Result<Resolved<T>, RecipeError>
where
    T: DeserializeOwned + Serialize,
{
    load_amended(path, overrides, |_| {})
}

/// [`load`], with `amend` run on the value before it becomes text: for what a recipe says relative to
/// its own place.
///
/// # Errors
/// As [`load`].
pub fn load_amended<T>(
    path: &Path,
    overrides: &[String],
    amend: impl FnOnce(&mut T),
) -> Result<Resolved<T>, RecipeError>
where
    T: DeserializeOwned + Serialize,
{
    let text = std::fs::read_to_string(path).map_err(|source| RecipeError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let origin = path.display().to_string();
    let mut value = parse(&text, &origin, overrides)?;
    amend(&mut value);
    finish(value, &origin)
}

/// [`load`] for text that is already at hand; `origin` names it in errors.
pub fn resolve<T>(
    text: &str,
    origin: &str,
    overrides: &[String],
) -> Result<Resolved<T>, RecipeError>
where
    T: DeserializeOwned + Serialize,
{
    finish(parse(text, origin, overrides)?, origin)
}

fn parse<T>(text: &str, origin: &str, overrides: &[String]) -> Result<T, RecipeError>
where
    T: DeserializeOwned + Serialize,
{
    let overrides: Vec<Override> = overrides
        .iter()
        .map(|text| Override::parse(text))
        .collect::<Result<_, _>>()?;
    let mut table: toml::Table =
        toml::from_str(text).map_err(|source| RecipeError::in_file(origin, text, &source))?;
    if overrides.is_empty() {
        // Straight from the text, so that errors know their line.
        return toml::from_str(text).map_err(|source| RecipeError::in_file(origin, text, &source));
    }
    for change in &overrides {
        change.apply(&mut table)?;
    }
    let merged = toml::to_string(&table).map_err(|source| RecipeError::Unprintable {
        origin: origin.to_owned(),
        source,
    })?;
    match toml::from_str::<T>(&merged) {
        Ok(value) => Ok(value),
        Err(source) => Err(match toml::from_str::<T>(text) {
            // The file is sound by itself, so an override broke it.
            Ok(_) => RecipeError::in_overrides(&overrides, &source),
            Err(own) => RecipeError::in_file(origin, text, &own),
        }),
    }
}

fn finish<T: Serialize>(value: T, origin: &str) -> Result<Resolved<T>, RecipeError> {
    let text = toml::to_string(&value).map_err(|source| RecipeError::Unprintable {
        origin: origin.to_owned(),
        source,
    })?;
    let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
    Ok(Resolved { value, text, hash })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Recipe {
        name: String,
        #[serde(default)]
        model: Model,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Model {
        hidden_size: usize,
        rope_theta: f64,
    }

    impl Default for Model {
        fn default() -> Self {
            Self {
                hidden_size: 128,
                rope_theta: 1e4,
            }
        }
    }

    fn load(text: &str, overrides: &[&str]) -> Result<Resolved<Recipe>, RecipeError> {
        let overrides: Vec<String> = overrides.iter().map(|s| (*s).to_owned()).collect();
        resolve(text, "r.toml", &overrides)
    }

    #[test]
    fn defaults_file_overrides_in_that_order() {
        let text = "name = \"a\"\n[model]\nhidden_size = 64\n";
        let plain = load(text, &[]).unwrap();
        assert_eq!(
            plain.value.model,
            Model {
                hidden_size: 64,
                rope_theta: 1e4
            }
        );
        let set = load(text, &["model.rope_theta=5", "name=b c"]).unwrap();
        assert_eq!(set.value.model.rope_theta, 5.0);
        assert_eq!(set.value.name, "b c");
        assert_ne!(set.hash, plain.hash);
    }

    #[test]
    fn resolved_text_is_a_fixed_point() {
        let first = load("name = \"a\"", &["model.hidden_size=7"]).unwrap();
        let second = load(&first.text, &[]).unwrap();
        assert_eq!((first.text, first.hash), (second.text, second.hash));
    }

    #[test]
    fn an_amended_value_is_what_the_text_says() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.toml");
        std::fs::write(&path, "name = \"a\"").unwrap();
        let amended: Resolved<Recipe> =
            super::load_amended(&path, &[], |recipe: &mut Recipe| recipe.name.push('b')).unwrap();
        let again = load(&amended.text, &[]).unwrap();
        assert_eq!(again.value.name, "ab");
        assert_eq!(again.hash, amended.hash);
    }

    #[test]
    fn unknown_keys_name_line_and_nearest_key() {
        let error = load("name = \"a\"\n[model]\nhiden_size = 64\n", &[])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("r.toml") && error.contains("line 3"),
            "{error}"
        );
        assert!(error.contains("hidden_size"), "{error}");
        assert!(error.contains("did you mean"), "{error}");
    }

    #[test]
    fn a_bad_override_is_named_as_one() {
        for bad in [
            "model.hiden_size=1",
            "model.hidden_size=lots",
            "model",
            "name.first=x",
            "=3",
        ] {
            let error = load("name = \"a\"", &[bad]).unwrap_err().to_string();
            assert!(error.contains("--set"), "{bad}: {error}");
        }
    }
}
