//! Whether a text is Python.

use ruff_python_parser::parse_module;
use ruff_text_size::Ranged;

/// Where a text stops to be Python.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct SyntaxFault {
    /// From 1.
    pub line: usize,
    pub message: String,
}

/// The first syntax error of `source` as a module of the newest Python.
pub fn syntax_fault(source: &str) -> Option<SyntaxFault> {
    let error = parse_module(source).err()?;
    let before = source.get(..usize::from(error.range().start()));
    Some(SyntaxFault {
        line: before.unwrap_or_default().matches('\n').count() + 1,
        message: error.error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::syntax_fault;

    #[test]
    fn the_first_error_is_told_with_its_line() {
        assert_eq!(syntax_fault("def f(x):\n    return x\n"), None);
        let fault = syntax_fault("x = 1\ndef f(:\n    pass\n").unwrap();
        assert_eq!(fault.line, 2);
        assert!(!fault.message.is_empty());
        assert_eq!(syntax_fault("def f():\nreturn 1\n").unwrap().line, 2);
    }
}
