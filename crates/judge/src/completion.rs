//! The program in a completion, by SandboxFusion's rules (spec of the critique study, section 9.3).

/// A program and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extracted {
    pub code: String,
    /// `fenced`, `incomplete_fenced`, `heuristic` or `empty`.
    pub kind: &'static str,
}

/// Closed fences come first, then one that is never closed, then what looks like a program. Among
/// closed fences the first whose tag means `language`, else the first. With `heuristic` or `empty` the
/// completion may still be a program as a whole: a few lines without a definition.
pub fn extract(completion: &str, language: &str) -> Extracted {
    let (closed, open) = fences(completion);
    let found = |code: &str, kind| Extracted {
        code: code.to_owned(),
        kind,
    };
    if let Some(first) = closed.first() {
        let tagged = closed.iter().find(|fence| means(fence.tag, language));
        return found(tagged.unwrap_or(first).code, "fenced");
    }
    if let Some(open) = open {
        return found(open.code, "incomplete_fenced");
    }
    match program_like(completion) {
        Some(code) => found(&code, "heuristic"),
        None => found("", "empty"),
    }
}

struct Fence<'a> {
    tag: &'a str,
    code: &'a str,
}

/// Fences begin a line; so does their end.
fn fences(text: &str) -> (Vec<Fence<'_>>, Option<Fence<'_>>) {
    const TICKS: &str = "```";
    let mut closed = Vec::new();
    let mut open: Option<(&str, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let Some(tag) = line.trim().strip_prefix(TICKS) else {
            continue;
        };
        match open.take() {
            None => open = Some((tag.trim(), at)),
            Some((tag, from)) => closed.push(Fence {
                tag,
                code: text[from..start].trim_end_matches('\n'),
            }),
        }
    }
    let open = open.map(|(tag, from)| Fence {
        tag,
        code: &text[from..],
    });
    (closed, open)
}

fn means(tag: &str, language: &str) -> bool {
    let named = |name: &str| sandbox::Language::named(name);
    tag.eq_ignore_ascii_case(language) || (named(tag).is_some() && named(tag) == named(language))
}

/// Imports, functions and classes at the beginning of lines, with what belongs to them.
fn program_like(text: &str) -> Option<String> {
    let begins = |line: &str| {
        ["def ", "class ", "async def ", "import ", "from ", "@"]
            .iter()
            .any(|word| line.starts_with(word))
    };
    let mut kept = Vec::new();
    let (mut inside, mut defines) = (false, false);
    for line in text.lines() {
        let continues = line.is_empty() || line.starts_with([' ', '\t', ')', ']', '}']);
        inside = begins(line) || (inside && continues);
        defines |= line.starts_with("def ") || line.starts_with("class ");
        if inside {
            kept.push(line);
        }
    }
    defines.then(|| kept.join("\n").trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::extract;

    #[test]
    fn the_best_block_is_taken() {
        let cases = [
            ("a\n```python\nx = 1\n```\nb", "x = 1", "fenced"),
            ("```py\nx\n```", "x", "fenced"),
            (
                "```\nplain\n```\n```python\ntagged\n```",
                "tagged",
                "fenced",
            ),
            ("```cpp\nint x;\n```\n```\nother\n```", "int x;", "fenced"),
            (
                "```python\nclosed\n```\n```python\nopen",
                "closed",
                "fenced",
            ),
            ("text\n```python\ncut off", "cut off", "incomplete_fenced"),
            (
                "Sure:\nimport math\n\ndef f(x):\n    return x\n\nDone.",
                "import math\n\ndef f(x):\n    return x",
                "heuristic",
            ),
            ("no program here", "", "empty"),
            ("", "", "empty"),
        ];
        for (completion, code, kind) in cases {
            let found = extract(completion, "python");
            assert_eq!(
                (found.code.as_str(), found.kind),
                (code, kind),
                "{completion}"
            );
        }
    }
}
