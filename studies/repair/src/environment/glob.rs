//! Patterns of paths, as planners write them: `*`, `**`, `?`.

/// Whether `path` fits `pattern`. `*` and `?` stay within a part of the path, `**` may span several; a
/// pattern without `/` is tried on the file's name alone, and one that names a folder fits all below it.
/// Empty fits everything.
pub(super) fn fits(pattern: &str, path: &str) -> bool {
    let pattern = pattern.trim().trim_start_matches("./").trim_matches('/');
    if pattern.is_empty() {
        return true;
    }
    if !pattern.contains('/') {
        let name = path.rsplit('/').next().unwrap_or(path);
        if part_fits(pattern.as_bytes(), name.as_bytes()) {
            return true;
        }
    }
    let patterns: Vec<&str> = pattern.split('/').collect();
    let parts: Vec<&str> = path.split('/').collect();
    parts_fit(&patterns, &parts)
}

fn parts_fit(patterns: &[&str], parts: &[&str]) -> bool {
    // Which beginnings of the path the patterns so far fit.
    let mut fits = vec![false; parts.len() + 1];
    fits[0] = true;
    for pattern in patterns {
        let mut next = vec![false; parts.len() + 1];
        for at in 0..=parts.len() {
            next[at] = match *pattern {
                "**" => fits[..=at].contains(&true),
                pattern => {
                    at > 0
                        && fits[at - 1]
                        && part_fits(pattern.as_bytes(), parts[at - 1].as_bytes())
                }
            };
        }
        fits = next;
    }
    // A folder stands for what lies below it.
    let is_folder = patterns.last().is_some_and(|last| !last.contains('*'));
    fits[parts.len()] || is_folder && fits.contains(&true)
}

fn part_fits(pattern: &[u8], part: &[u8]) -> bool {
    let mut fits = vec![false; part.len() + 1];
    fits[0] = true;
    for sign in pattern {
        let mut next = vec![false; part.len() + 1];
        for at in 0..=part.len() {
            next[at] = match sign {
                b'*' => fits[..=at].contains(&true),
                b'?' => at > 0 && fits[at - 1],
                byte => at > 0 && fits[at - 1] && part[at - 1] == *byte,
            };
        }
        fits = next;
    }
    fits[part.len()]
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_fit_as_they_are_meant() {
        for (pattern, path, expected) in [
            ("", "a.py", true),
            ("*.py", "a/b/c.py", true),
            ("*.py", "a/b/c.pyi", false),
            ("a/*.py", "a/c.py", true),
            ("a/*.py", "a/b/c.py", false),
            ("a/**/*.py", "a/b/c.py", true),
            ("a/**/*.py", "a/c.py", true),
            ("**/test_?.py", "x/y/test_a.py", true),
            ("**/test_?.py", "x/y/test_ab.py", false),
            ("./src", "src/a/b.py", true),
            ("src/", "lib/src2/b.py", false),
            ("c.py", "a/b/c.py", true),
            ("*********a", "bbbbbbbbbbbbbbbbbbbbbbbbbb", false),
        ] {
            assert_eq!(fits(pattern, path), expected, "{pattern} {path}");
        }
    }
}
