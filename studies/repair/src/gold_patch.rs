//! A patch beside the one that is known to repair its task.

use std::collections::{BTreeMap, BTreeSet};

use code::{
    Patch, RelativePath,
    patch::{Applied, FileChange},
    sites::Source,
};

/// Whether `patch` makes the same of a checkout as `gold` does: of every file that either changes the same text, or
/// the same program of Python up to layout ([`Source::is_same_syntax`]). What does not fit the checkout makes nothing.
///
/// `text` tells what is in a file of the checkout.
pub(crate) fn makes_the_same<'a>(
    patch: &str,
    gold: &str,
    text: impl Fn(&str) -> Option<&'a str>,
) -> bool {
    let made = |patch: &str| made(patch, &text);
    let (Some(made), Some(wanted)) = (made(patch), made(gold)) else {
        return false;
    };
    let paths: BTreeSet<&RelativePath> = made.keys().chain(wanted.keys()).collect();
    paths.into_iter().all(|path| {
        let before = || text(path.as_str()).map(str::as_bytes);
        let after = |made: &'_ Made| match made.get(path) {
            Some(content) => content.clone(),
            None => before().map(<[u8]>::to_vec),
        };
        is_same(path, after(&made).as_deref(), after(&wanted).as_deref())
    })
}

/// Contents of changed files; `None` of one that is gone.
type Made = BTreeMap<RelativePath, Option<Vec<u8>>>;

fn made<'a>(patch: &str, text: impl Fn(&str) -> Option<&'a str>) -> Option<Made> {
    let patch = Patch::parse(patch.as_bytes()).ok()?;
    let content = |path: RelativePath| {
        let content = text(path.as_str()).map(|text| text.as_bytes().to_vec());
        (path, content)
    };
    let files = patch.paths().into_iter().map(content).collect();
    let Applied { changes, .. } = patch.apply(&files).ok()?;
    let changed = changes.into_iter().map(|change| match change {
        FileChange::Write { path, content, .. } => (path, Some(content)),
        FileChange::Remove { path } => (path, None),
    });
    Some(changed.collect())
}

fn is_same(path: &RelativePath, one: Option<&[u8]>, two: Option<&[u8]>) -> bool {
    if one == two {
        return true;
    }
    let is_python = path.as_str().ends_with(".py");
    let (Some(one), Some(two)) = (one, two) else {
        return false;
    };
    let parsed = |content| Source::parse(std::str::from_utf8(content).ok()?).ok();
    is_python
        && match (parsed(one), parsed(two)) {
            (Some(one), Some(two)) => one.is_same_syntax(&two),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::makes_the_same;

    const AREA: &str = "def area(a, b):\n    return a + b\n";

    fn same(patch: &str, gold: &str) -> bool {
        makes_the_same(patch, gold, |path| (path == "area.py").then_some(AREA))
    }

    fn line(new: &str) -> String {
        format!(
            "--- a/area.py\n+++ b/area.py\n@@ -1,2 +1,2 @@\n def area(a, b):\n-    return a + b\n+{new}\n"
        )
    }

    #[test]
    fn layout_does_not_count_and_everything_else_does() {
        let gold = line("    return a * b");
        for (new, is_it) in [
            ("    return a * b", true),
            ("    return (a*b)  # sides", true),
            ("    return b * a", false),
            ("    return a * b if a else 0", false),
        ] {
            assert_eq!(same(&line(new), &gold), is_it, "{new}");
        }
    }

    #[test]
    fn what_touches_another_file_or_fits_nothing_is_not_the_same() {
        let gold = line("    return a * b");
        let added = "--- /dev/null\n+++ b/more.py\n@@ -0,0 +1 @@\n+x = 1\n";
        assert!(!same(&format!("{gold}{added}"), &gold));
        assert!(!same(&gold.replace("a + b", "a - b"), &gold));
        assert!(!same("", &gold) && !same(&gold, ""));
        let removed =
            "--- a/area.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-def area(a, b):\n-    return a + b\n";
        assert!(same(removed, removed) && !same(removed, &gold));
    }
}
