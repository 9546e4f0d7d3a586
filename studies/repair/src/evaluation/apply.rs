//! A predicted patch onto a checkout, with the tools and in the order in which SWE-bench tries them (spec of
//! the repair study, section 11.2).

use code::RelativePath;
use record::Fault;
use session::Command;

use super::Evaluated;
use crate::{
    grading::{PATCH_APPLIED, PATCH_FAILED},
    workplace::{Workplace, infra},
};

/// Where the patch is while it is applied; no repository tracks files there.
const FILE: &str = ".git/etude-prediction.diff";
/// The same, where there is no repository.
const BARE_FILE: &str = ".etude-prediction.diff";

/// The last takes what is left over, up to five lines off.
const ATTEMPTS: [&str; 4] = [
    "git apply --verbose",
    "git apply --verbose --3way",
    "git apply --verbose --reject",
    "patch --batch --forward --fuzz=5 -p1 -i",
];

/// Whether the patch is in the work tree now. A work tree without git, or a sandbox without these tools, has
/// it applied by the house's own rules.
///
/// # Errors
/// Failures of the machinery.
pub(super) async fn apply(
    patch: &str,
    workplace: &mut Workplace,
    evaluated: &mut Evaluated,
) -> Result<bool, Fault> {
    if !shell(workplace, "git rev-parse --git-dir").await?.0 {
        return own(patch, workplace, evaluated).await;
    }
    // Below .git, so that `git clean` between the attempts lets it be; a work tree may have a file there.
    let file = match shell(workplace, "test -d .git").await?.0 {
        true => FILE,
        false => BARE_FILE,
    };
    let path = RelativePath::new(file).map_err(Fault::infra)?;
    let written = workplace
        .session()
        .await?
        .write(&path, patch.as_bytes(), 0o644);
    written.await.map_err(infra)?;
    let mut last = String::new();
    let mut applied = false;
    for (number, attempt) in ATTEMPTS.into_iter().enumerate() {
        if number > 0 {
            // An attempt that failed leaves parts behind.
            shell(
                workplace,
                &format!("git checkout -- . ; git clean -fd -e {file}"),
            )
            .await?;
        }
        let (ok, output) = shell(workplace, &format!("{attempt} {file}")).await?;
        last = output;
        if ok {
            applied = true;
            break;
        }
        evaluated.note(format!("failed to apply the patch with: {attempt}"));
    }
    if !applied {
        // All of it may be there although every tool complained.
        let reverse = format!("git apply --check --reverse {file}");
        applied = shell(workplace, &reverse).await?.0;
    }
    workplace
        .session()
        .await?
        .remove(&path)
        .await
        .map_err(infra)?;
    let marker = if applied { PATCH_APPLIED } else { PATCH_FAILED };
    evaluated.note(format!("{marker}:\n{last}"));
    Ok(applied)
}

/// Makes the work tree as it is what attempts at a patch go back to, where it has git: without this, an attempt that
/// fails would take the planted bug away with its leftovers.
///
/// # Errors
/// Failures of the machinery; a work tree that git cannot commit.
pub(super) async fn commit(workplace: &mut Workplace) -> Result<(), Fault> {
    if !shell(workplace, "git rev-parse --git-dir").await?.0 {
        return Ok(());
    }
    let who = "-c user.name=etude -c user.email=etude@localhost -c commit.gpgsign=false";
    let script = format!("git add -A && git {who} commit --no-verify --allow-empty -qm planted");
    match shell(workplace, &script).await? {
        (true, _) => Ok(()),
        (false, why) => Err(Fault::grader(format!(
            "the checkout cannot be committed: {why}"
        ))),
    }
}

async fn own(
    patch: &str,
    workplace: &mut Workplace,
    evaluated: &mut Evaluated,
) -> Result<bool, Fault> {
    let applied = match code::Patch::parse(patch.as_bytes()) {
        Ok(patch) => workplace.apply(&patch).await?.map(|_| ()),
        Err(rejection) => Err(rejection.to_string()),
    };
    match &applied {
        Ok(()) => evaluated.note(format!("{PATCH_APPLIED}, without git")),
        Err(why) => evaluated.note(format!("{PATCH_FAILED}:\n{why}")),
    }
    Ok(applied.is_ok())
}

/// Whether a script ended well, and what it printed.
pub(super) async fn shell(
    workplace: &mut Workplace,
    script: &str,
) -> Result<(bool, String), Fault> {
    let limits = workplace.testbed().limits;
    // Whoever owns the work tree, it is ours here.
    let git = "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'";
    let script = format!("{git}; {{ {script} ; }} 2>&1");
    let command = Command::shell(script, limits);
    let outcome = workplace
        .session()
        .await?
        .exec(&command)
        .await
        .map_err(infra)?;
    Ok((outcome.is_ok(), outcome.stdout.text()))
}
