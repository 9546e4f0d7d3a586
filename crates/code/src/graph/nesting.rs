//! How deep a source text may nest, bounded without parsing it: the parser recurses.

/// An upper bound of the depth of any expression in `source`, by operators, words, brackets and braces
/// since the last comma of each open bracket. Strings count by their braces alone, those with values in
/// them by all signs.
pub(crate) fn bound(source: &[u8]) -> usize {
    let mut open = vec![0usize];
    let (mut total, mut most) = (0usize, 0usize);
    let mut at = 0;
    while at < source.len() {
        let byte = source[at];
        match byte {
            b' ' | b'\t' | b'\r' => {}
            b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => {
                // Words such as `not` and `lambda` nest as well, also right after a digit.
                let word = source[at..].iter().take_while(|byte| is_word(**byte));
                let length = word.count();
                add(&mut open, &mut total, &mut most, 1);
                at += length;
                let has_values = |word: &[u8]| {
                    let mut letters = word.iter();
                    letters.any(|letter| matches!(letter, b'f' | b'F' | b't' | b'T'))
                };
                if length <= 2
                    && matches!(source.get(at), Some(b'\'' | b'"'))
                    && has_values(&source[at - length..at])
                {
                    let (string, _) = string(&source[at..]);
                    let signs = source[at..at + string]
                        .iter()
                        .filter(|byte| !is_word(**byte));
                    add(&mut open, &mut total, &mut most, signs.count());
                    at += string;
                }
                continue;
            }
            b'#' => {
                at += memchr::memchr(b'\n', &source[at..]).unwrap_or(source.len() - at);
                continue;
            }
            b'\'' | b'"' => {
                let (length, braces) = string(&source[at..]);
                add(&mut open, &mut total, &mut most, braces);
                at += length;
                continue;
            }
            b'(' | b'[' | b'{' => {
                add(&mut open, &mut total, &mut most, 1);
                open.push(0);
            }
            b')' | b']' | b'}' if open.len() > 1 => {
                total -= open.pop().unwrap_or(0);
            }
            b',' | b';' => {
                if let Some(last) = open.last_mut() {
                    total -= *last;
                    *last = 0;
                }
            }
            // The line goes on.
            b'\\' => at += 1,
            b'\n' if open.len() == 1 => {
                total = 0;
                open[0] = 0;
            }
            b'\n' => {}
            _ => add(&mut open, &mut total, &mut most, 1),
        }
        at += 1;
    }
    most
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

fn add(open: &mut [usize], total: &mut usize, most: &mut usize, count: usize) {
    if let Some(last) = open.last_mut() {
        *last += count;
        *total += count;
        *most = (*most).max(*total);
    }
}

/// The length of the string that `source` begins with, and the opening braces in it.
fn string(source: &[u8]) -> (usize, usize) {
    let quote = source[0];
    let triple = source.starts_with(&[quote; 3]);
    let mut at = if triple { 3 } else { 1 };
    let mut braces = 0;
    while at < source.len() {
        match source[at] {
            b'\\' => at += 1,
            b'{' => braces += 1,
            b'\n' if !triple => return (at, braces),
            byte if byte == quote && !triple => return (at + 1, braces),
            byte if byte == quote && source[at..].starts_with(&[quote; 3]) => {
                return (at + 3, braces);
            }
            _ => {}
        }
        at += 1;
    }
    (source.len(), braces)
}

#[cfg(test)]
mod tests {
    use super::bound;

    #[test]
    fn depth_is_bounded_and_long_tables_are_shallow() {
        assert!(bound("-".repeat(5000).as_bytes()) >= 5000);
        assert!(bound("(".repeat(5000).as_bytes()) >= 5000);
        assert!(bound("not ".repeat(5000).as_bytes()) >= 5000);
        assert!(bound(format!("x{}", ".a()".repeat(3000)).as_bytes()) >= 6000);
        assert!(bound(b"f\"{f'{1}'}\"") >= 1);
        assert!(bound(format!("f\"{{{}x}}\"", "-".repeat(5000)).as_bytes()) >= 5000);
        assert!(bound("1if 1else ".repeat(5000).as_bytes()) >= 5000);
        assert!(bound(format!("x = {}1", "-\\\n".repeat(5000)).as_bytes()) >= 5000);
        let table = format!(
            "T = [{}]",
            "(1.5, -2, 'a, b', {'k': \"{}\"}), ".repeat(10_000)
        );
        assert!(bound(table.as_bytes()) < 20, "{}", bound(table.as_bytes()));
        let lines = "x = -1 # ((((((\n".repeat(10_000);
        assert!(bound(lines.as_bytes()) < 8);
    }
}
