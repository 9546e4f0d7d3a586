//! Whether a Python program could read its own layout: its lines, columns, comments or text.
//!
//! Names are looked at, not uses, so the answer "no" can be relied on and "yes" may be wrong. What
//! a program reads of itself it reads through frames, tracebacks, code objects, modules that report
//! on those, its own file, or names that it puts together at run time; each of these ways begins
//! with a name of the list below.

use ruff_python_ast::token::TokenKind;

/// Whether a text could be Python that reads the layout of a program beside it. Looks at words only.
pub fn could_read_layout(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(watched)
}

/// The first word of a program by which it could reach what runs beside it in its process: frames,
/// memory, modules, or names put together at run time. Looks at words only, so "none" is no promise.
pub fn could_reach_tests(program: &str) -> Option<&'static str> {
    program
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .find_map(|word| Some(REACHING[REACHING.binary_search(&word).ok()?]))
}

/// In the order of the alphabet.
const REACHING: [&str; 49] = [
    "__builtins__",
    "__closure__",
    "__code__",
    "__dict__",
    "__getattribute__",
    "__globals__",
    "__import__",
    "__main__",
    "__self__",
    "__subclasses__",
    "__traceback__",
    "_current_frames",
    "_getframe",
    "_getframemodulename",
    "_posixsubprocess",
    "ag_frame",
    "attrgetter",
    "builtins",
    "cr_frame",
    "ctypes",
    "currentframe",
    "eval",
    "exc_info",
    "exec",
    "f_back",
    "f_builtins",
    "f_globals",
    "f_locals",
    "faulthandler",
    "fork",
    "gc",
    "getattr",
    "gi_frame",
    "globals",
    "importlib",
    "inspect",
    "last_traceback",
    "marshal",
    "mem",
    "methodcaller",
    "mmap",
    "modules",
    "proc",
    "setprofile",
    "settrace",
    "tb_frame",
    "traceback",
    "tracemalloc",
    "vars",
];

/// Looks at one token after the other.
#[derive(Debug, Default)]
pub(crate) struct Observer {
    last_was_open: u8,
    formats: bool,
    /// A string with a field and with an attribute's underscore, or one that is spelled in escapes.
    reaching_string: bool,
    found: bool,
}

/// In the order of the alphabet.
const NAMES: [&str; 127] = [
    "FileIO",
    "Formatter",
    "__aexit__",
    "__annotate__",
    "__build_class__",
    "__builtins__",
    "__code__",
    "__del__",
    "__dict__",
    "__dir__",
    "__exit__",
    "__file__",
    "__firstlineno__",
    "__getattribute__",
    "__import__",
    "__loader__",
    "__prepare__",
    "__reduce__",
    "__reduce_ex__",
    "__spec__",
    "__stderr__",
    "__subclasses__",
    "__traceback__",
    "_current_frames",
    "_getframe",
    "_getframemodulename",
    "_io",
    "_thread",
    "ag_code",
    "ag_frame",
    "argv",
    "asyncio",
    "attrgetter",
    "bdb",
    "builtins",
    "cProfile",
    "code",
    "codecs",
    "codeop",
    "compile",
    "compileall",
    "concurrent",
    "copyreg",
    "cr_code",
    "cr_frame",
    "cr_origin",
    "ctypes",
    "currentframe",
    "dir",
    "dis",
    "doctest",
    "eval",
    "exc_info",
    "excepthook",
    "exec",
    "f_code",
    "f_lineno",
    "faulthandler",
    "fcntl",
    "fileinput",
    "format_map",
    "gc",
    "getattr",
    "gi_code",
    "gi_frame",
    "glob",
    "globals",
    "help",
    "importlib",
    "inspect",
    "io",
    "last_exc",
    "last_traceback",
    "linecache",
    "listdir",
    "locals",
    "logging",
    "marshal",
    "metaclass",
    "methodcaller",
    "mmap",
    "modules",
    "monitoring",
    "multiprocessing",
    "nt",
    "orig_argv",
    "os",
    "pathlib",
    "pdb",
    "pickle",
    "pkgutil",
    "popen",
    "posix",
    "profile",
    "pstats",
    "pyclbr",
    "pydoc",
    "resource",
    "runpy",
    "scandir",
    "sched",
    "select",
    "selectors",
    "setprofile",
    "settrace",
    "shutil",
    "signal",
    "socket",
    "stat",
    "stderr",
    "subprocess",
    "symtable",
    "system",
    "tb_frame",
    "tb_lineno",
    "tempfile",
    "threading",
    "tokenize",
    "trace",
    "traceback",
    "tracemalloc",
    "unittest",
    "unraisablehook",
    "vars",
    "walk",
    "warnings",
    "weakref",
];

impl Observer {
    pub(crate) fn see(&mut self, kind: TokenKind, text: &str) {
        // `open(0)` is standard input.
        self.found |= !matches!(
            (self.last_was_open, kind, text),
            (0, ..) | (1, TokenKind::Lpar, _) | (2, _, "0")
        );
        self.last_was_open = match self.last_was_open {
            1 => 2,
            _ => 0,
        };
        match kind {
            TokenKind::Name if text == "open" => self.last_was_open = 1,
            TokenKind::Name => {
                self.formats |= text == "format";
                self.found |= watched(text) || !text.is_ascii();
            }
            TokenKind::String | TokenKind::FStringMiddle | TokenKind::TStringMiddle => {
                self.reaching_string |= text.contains('{') && text.contains('_');
                self.reaching_string |= ["\\x", "\\u", "\\U", "\\N", "\\1"]
                    .iter()
                    .any(|escape| text.contains(escape));
                let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
                self.found |= words.any(|word| word.contains('_') && watched(word));
            }
            _ => {}
        }
    }

    pub(crate) fn could_read_layout(&self) -> bool {
        self.found || self.last_was_open > 0 || self.formats && self.reaching_string
    }
}

fn watched(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_looked_at() {
        assert!(could_read_layout(
            "assert candidate.__code__.co_firstlineno == 1"
        ));
        assert!(!could_read_layout(
            "assert candidate([1, 2]) == 3, 'a code_point'"
        ));
    }

    #[test]
    fn names_are_in_order() {
        assert!(NAMES.is_sorted() && REACHING.is_sorted());
    }

    #[test]
    fn programs_that_could_reach_their_tests_are_told_by_their_words() {
        assert_eq!(
            could_reach_tests("import sys\nf = sys._getframe()"),
            Some("_getframe")
        );
        assert_eq!(could_reach_tests("open('/proc/self/mem')"), Some("proc"));
        assert_eq!(could_reach_tests("process = memory = 1"), None);
    }
}
