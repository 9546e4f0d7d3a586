//! The lines of a diff that name files, modes and places.

use super::{
    Rejection,
    hunk::{FileDiff, Hunk},
    reject::quoted,
    target,
};
use crate::RelativePath;

/// The change of one file while it is read.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// Line of the patch, from 1.
    line: usize,
    /// The names of a `diff --git` line, when they can be told apart.
    git: Option<(String, String)>,
    /// The names of `---` and `+++`; `None` is `/dev/null`.
    old: Option<String>,
    new: Option<String>,
    /// `---` and `+++` were read.
    pub(super) named: bool,
    moved_from: Option<String>,
    moved_to: Option<String>,
    copy: bool,
    created: bool,
    deleted: bool,
    mode: Option<u32>,
    unsupported: Option<&'static str>,
    pub(super) hunks: Vec<Hunk>,
}

/// The numbers of a `@@` line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stated {
    pub(super) start: usize,
    /// Old and new lines.
    pub(super) counts: (usize, usize),
}

/// `None` for a `@@` line without numbers.
pub(super) fn hunk_header(line: &[u8]) -> Option<Stated> {
    let text = std::str::from_utf8(line.strip_prefix(b"@@")?)
        .ok()
        .or_else(|| {
            // Only the heading behind the second @@ can be in another encoding.
            let end = line[2..].windows(2).position(|pair| pair == b"@@")?;
            std::str::from_utf8(&line[2..2 + end]).ok()
        })?;
    let mut words = text.split_whitespace();
    let (start, old) = range(words.next()?.strip_prefix('-')?)?;
    let (_, new) = range(words.next()?.strip_prefix('+')?)?;
    // With no old lines, the number is that of the line before.
    let start = if old == 0 { start + 1 } else { start };
    Some(Stated {
        start,
        counts: (old, new),
    })
}

/// What a `@@` line says of the lines above its hunk: the text behind the second `@@`, or behind the
/// first when it has no numbers.
pub(super) fn heading(line: &[u8]) -> &[u8] {
    let text = line.strip_prefix(b"@@").unwrap_or(line);
    let second = text.windows(2).position(|pair| pair == b"@@");
    match second {
        Some(at) => text[at + 2..].trim_ascii(),
        None if hunk_header(line).is_some() => &[],
        None => text.trim_ascii(),
    }
}

fn range(text: &str) -> Option<(usize, usize)> {
    let text = text.trim_end_matches('@');
    let number = |text: &str| text.parse::<u32>().ok().map(|number| number as usize);
    match text.split_once(',') {
        Some((start, count)) => Some((number(start)?, number(count)?)),
        None => Some((number(text)?, 1)),
    }
}

impl Section {
    pub(super) fn plain(line: usize) -> Self {
        Self {
            line,
            ..Self::default()
        }
    }

    pub(super) fn git(line: usize, header: &[u8]) -> Self {
        let names = std::str::from_utf8(header)
            .ok()
            .and_then(|header| git_names(header.strip_prefix("diff --git ")?.trim_end()));
        Self {
            line,
            git: names,
            ..Self::default()
        }
    }

    /// Takes the names of a `---` and a `+++` line.
    pub(super) fn name(&mut self, old: &[u8], new: &[u8]) -> Result<(), Rejection> {
        self.named = true;
        self.old = self.file_name(&old[4..])?;
        self.new = self.file_name(&new[4..])?;
        Ok(())
    }

    /// Takes one of git's extended header lines; other text means nothing.
    pub(super) fn extended(&mut self, line: usize, text: &[u8]) -> Result<(), Rejection> {
        let Ok(text) = std::str::from_utf8(text) else {
            return Ok(());
        };
        if text == "GIT binary patch"
            || (text.starts_with("Binary files ") && text.ends_with(" differ"))
        {
            self.unsupported = Some("a binary patch cannot be applied");
        }
        if self.git.is_none() && self.named || !self.hunks.is_empty() {
            return Ok(());
        }
        for (start, copy) in [("rename ", false), ("copy ", true)] {
            let Some(rest) = text.strip_prefix(start) else {
                continue;
            };
            self.copy |= copy;
            if let Some(name) = rest.strip_prefix("from ") {
                self.moved_from = Some(unquoted(name, line)?);
            } else if let Some(name) = rest.strip_prefix("to ") {
                self.moved_to = Some(unquoted(name, line)?);
            }
        }
        for (start, created, deleted) in [
            ("new file mode ", true, false),
            ("deleted file mode ", false, true),
            ("new mode ", false, false),
            ("old mode ", false, false),
        ] {
            let Some(mode) = text.strip_prefix(start) else {
                continue;
            };
            self.created |= created;
            self.deleted |= deleted;
            let bits = self.bits(mode.trim());
            if !deleted && start != "old mode " {
                self.mode = bits;
            }
        }
        if let Some(mode) = text
            .strip_prefix("index ")
            .and_then(|rest| rest.split(' ').nth(1))
        {
            self.bits(mode);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<FileDiff, Rejection> {
        let (mut old, mut new) = self.names()?;
        if self.created {
            old = None;
        }
        if self.deleted {
            new = None;
        }
        let Some(path) = new.as_ref().or(old.as_ref()) else {
            return self.syntax("both names are /dev/null");
        };
        if let Some(detail) = self.unsupported {
            return Err(Rejection::Unsupported {
                path: path.clone(),
                detail: detail.to_owned(),
            });
        }
        let moves = old != new && old.is_some() && new.is_some();
        let nothing = self.hunks.is_empty() && !moves && self.mode.is_none();
        if nothing && !self.created && !self.deleted {
            return self.syntax(&format!("{path} is named, but no hunk follows"));
        }
        Ok(FileDiff {
            old,
            new,
            copy: self.copy,
            unseen: false,
            mode: self.mode,
            hunks: self.hunks,
        })
    }

    fn names(&self) -> Result<(Option<RelativePath>, Option<RelativePath>), Rejection> {
        if let (Some(from), Some(to)) = (&self.moved_from, &self.moved_to) {
            return Ok((Some(target::path(from)?), Some(target::path(to)?)));
        }
        // Without prefixes, both names of git's line are the same.
        let bare = self.git.as_ref().is_some_and(|(old, new)| old == new);
        let pair = if self.named {
            (self.old.as_deref(), self.new.as_deref())
        } else {
            match &self.git {
                Some((old, new)) => (Some(&**old), Some(&**new)),
                None => return self.syntax("the names of the file cannot be read"),
            }
        };
        match pair {
            (Some(old), Some(new)) => {
                let Some(name) = common_name(old, new) else {
                    return self.syntax(&format!(
                        "the old file {:?} and the new file {:?} differ; one section changes one file",
                        quoted(old.as_bytes()),
                        quoted(new.as_bytes())
                    ));
                };
                let path = target::path(name)?;
                Ok((Some(path.clone()), Some(path)))
            }
            (None, Some(new)) => {
                let name = new.strip_prefix("b/").filter(|_| !bare).unwrap_or(new);
                Ok((None, Some(target::path(name)?)))
            }
            (Some(old), None) => {
                let name = old.strip_prefix("a/").filter(|_| !bare).unwrap_or(old);
                Ok((Some(target::path(name)?), None))
            }
            (None, None) => Ok((None, None)),
        }
    }

    /// A name behind `---` or `+++`, without its timestamp.
    fn file_name(&self, text: &[u8]) -> Result<Option<String>, Rejection> {
        let Ok(text) = std::str::from_utf8(text) else {
            return self.syntax(&format!("the name {:?} is not UTF-8", quoted(text)));
        };
        let name = if text.starts_with('"') {
            unquoted(text, self.line)?
        } else {
            let name = text.split('\t').next().unwrap_or(text);
            without_date(name).trim_end().to_owned()
        };
        Ok((name != "/dev/null").then_some(name))
    }

    fn bits(&mut self, mode: &str) -> Option<u32> {
        match mode {
            "100644" => Some(0o644),
            "100755" => Some(0o755),
            "120000" => {
                self.unsupported = Some("symbolic links cannot be patched");
                None
            }
            "160000" => {
                self.unsupported = Some("submodules cannot be patched");
                None
            }
            _ => None,
        }
    }

    fn syntax<T>(&self, detail: &str) -> Result<T, Rejection> {
        Err(Rejection::Syntax {
            line: self.line,
            detail: detail.to_owned(),
        })
    }
}

/// The one file that two names of a change in place mean.
fn common_name<'a>(old: &'a str, new: &'a str) -> Option<&'a str> {
    for (a, b) in [
        ("a/", "b/"),
        ("i/", "w/"),
        ("c/", "i/"),
        ("c/", "w/"),
        ("o/", "w/"),
    ] {
        if let (Some(old), Some(new)) = (old.strip_prefix(a), new.strip_prefix(b)) {
            return (old == new).then_some(new);
        }
    }
    if old == new {
        return Some(new);
    }
    let backup = old.strip_prefix(new);
    if matches!(backup, Some(".orig" | ".old" | ".bak" | "~")) {
        return Some(new);
    }
    let ((_, old), (_, new)) = (old.split_once('/')?, new.split_once('/')?);
    (old == new).then_some(new)
}

/// The two names of a `diff --git` line. Names with spaces are told apart only when they are equal.
fn git_names(text: &str) -> Option<(String, String)> {
    if text.starts_with('"') || text.ends_with('"') {
        let (old, new) = match text.strip_prefix('"') {
            Some(inside) => {
                let end = closing_quote(inside)?;
                (&text[..end + 2], inside.get(end + 2..)?)
            }
            None => text
                .split_once(" \"")
                .map(|(old, _)| (old, &text[old.len() + 1..]))?,
        };
        return Some((unquoted(old, 0).ok()?, unquoted(new, 0).ok()?));
    }
    let middle = text.len() / 2;
    let split = match text.as_bytes().get(middle) {
        Some(b' ') => {
            let (old, new) = (&text[..middle], &text[middle + 1..]);
            common_name(old, new).map(|_| (old, new))
        }
        _ => None,
    };
    let (old, new) = match split {
        Some(split) => split,
        None => text.split_once(' ').filter(|(_, new)| !new.contains(' '))?,
    };
    Some((old.to_owned(), new.to_owned()))
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

/// A name in git's quotes, if it has any.
fn unquoted(text: &str, line: usize) -> Result<String, Rejection> {
    let fault = || Rejection::Syntax {
        line,
        detail: format!("the quoted name {} cannot be read", quoted(text.as_bytes())),
    };
    let Some(inside) = text.strip_prefix('"') else {
        return Ok(text.to_owned());
    };
    let inside = &inside[..closing_quote(inside).ok_or_else(fault)?];
    let mut bytes = Vec::new();
    let mut rest = inside.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next().ok_or_else(fault)? {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            high @ b'0'..=b'3' => {
                let mut digit = || {
                    let digit = rest.next().filter(|digit| (b'0'..=b'7').contains(digit));
                    digit.map(|digit| digit - b'0').ok_or_else(fault)
                };
                let (middle, low) = (digit()?, digit()?);
                ((high - b'0') << 6) | (middle << 3) | low
            }
            other => other,
        });
    }
    String::from_utf8(bytes).map_err(|_| fault())
}

/// `name` without a date that is set apart by blanks instead of a tab.
fn without_date(name: &str) -> &str {
    let date = name.match_indices(' ').find(|(at, _)| {
        let digits = |range: std::ops::Range<usize>| {
            let text = name
                .as_bytes()
                .get(at + 1 + range.start..at + 1 + range.end);
            text.is_some_and(|text| text.iter().all(u8::is_ascii_digit))
        };
        let dash = |offset: usize| name.as_bytes().get(at + 1 + offset) == Some(&b'-');
        digits(0..4) && dash(4) && digits(5..7) && dash(7) && digits(8..10)
    });
    date.map_or(name, |(at, _)| &name[..at])
}
