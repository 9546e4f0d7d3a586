//! `--set a.b=c` on the command line.

use toml::{Table, Value};

use crate::RecipeError;

/// One override: a dotted path of keys and the value to put there.
#[derive(Debug)]
pub(crate) struct Override {
    /// As the user wrote it.
    pub(crate) text: String,
    keys: Vec<String>,
    value: Value,
}

impl Override {
    pub(crate) fn parse(text: &str) -> Result<Self, RecipeError> {
        let malformed = || RecipeError::Override {
            text: text.to_owned(),
            reason: "expected KEY=VALUE, for example --set rl.steps=10".to_owned(),
        };
        let (path, value) = text.split_once('=').ok_or_else(malformed)?;
        let keys: Vec<String> = path.split('.').map(|key| key.trim().to_owned()).collect();
        if keys.iter().any(String::is_empty) {
            return Err(malformed());
        }
        Ok(Self {
            text: text.to_owned(),
            keys,
            value: parse_value(value.trim()),
        })
    }

    /// Puts the value at its path, making tables on the way.
    pub(crate) fn apply(&self, table: &mut Table) -> Result<(), RecipeError> {
        let Some((last, parents)) = self.keys.split_last() else {
            return Ok(());
        };
        let mut at = table;
        for key in parents {
            let next = at
                .entry(key.clone())
                .or_insert_with(|| Value::Table(Table::new()));
            at = next.as_table_mut().ok_or_else(|| RecipeError::Override {
                text: self.text.clone(),
                reason: format!("`{key}` is a value in this recipe, not a section"),
            })?;
        }
        at.insert(last.clone(), self.value.clone());
        Ok(())
    }
}

/// A TOML value where it parses as one, else the text itself, so that `name=a b` needs no quotes.
fn parse_value(text: &str) -> Value {
    toml::from_str::<Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}
