//! `etude validate contracts`: whether this program reads planners' replies and patches as it promises.

use anyhow::anyhow;
use repair::contracts::{Contract, contracts};
use serde::Serialize;

use crate::{
    failure::{Failure, Outcome},
    report::{print_json, print_text},
};

#[derive(Serialize)]
struct Validated {
    ok: bool,
    contracts: Vec<Contract>,
}

/// Fails where a contract does not hold.
pub(crate) fn run(json: bool) -> Outcome<()> {
    let contracts = contracts();
    let broken = contracts.iter().filter(|contract| !contract.holds).count();
    let found = Validated {
        ok: broken == 0,
        contracts,
    };
    match json {
        true => print_json(&found)?,
        false => print_text(&found.text())?,
    }
    if found.ok {
        return Ok(());
    }
    Err(Failure::Failed(anyhow!("{broken} contracts do not hold")))
}

impl Validated {
    fn text(&self) -> String {
        let mut text = String::new();
        for contract in &self.contracts {
            let Contract {
                form,
                name,
                expected,
                found,
                holds,
            } = contract;
            text += &format!("{form:<6} {name:<30} {expected}");
            if !holds {
                text += &format!(", but it is {found}");
            }
            text.push('\n');
        }
        let word = if self.ok { "ok" } else { "broken" };
        text + &format!("{word}: {} contracts\n", self.contracts.len())
    }
}
