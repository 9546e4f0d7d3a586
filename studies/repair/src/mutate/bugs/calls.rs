//! Calls: what is called, and with what.

use code::sites::ast::{Expr, ExprCall};
use ruff_text_size::{Ranged, TextRange};

use super::{Catalogue, Family, Place};

impl<'a> Catalogue<'_, 'a> {
    pub(super) fn call(&mut self, place: &Place<'_, 'a>, node: &'a ExprCall) {
        self.wrong_function(place, node);
        self.unconverted(place, node);
        self.arguments(place, node);
    }

    fn wrong_function(&mut self, place: &Place<'_, 'a>, node: &'a ExprCall) {
        let (name, at) = match &*node.func {
            Expr::Name(name) => (name.id.as_str(), name.range()),
            Expr::Attribute(attribute) => (attribute.attr.as_str(), attribute.attr.range()),
            _ => return,
        };
        for (a, b) in MISTAKEN {
            if name == *a {
                self.add(place, Family::WrongFunction, at, *b);
            } else if name == *b {
                self.add(place, Family::WrongFunction, at, *a);
            }
        }
    }

    fn unconverted(&mut self, place: &Place<'_, 'a>, node: &'a ExprCall) {
        if !node.arguments.keywords.is_empty() {
            return;
        }
        match (&*node.func, &node.arguments.args[..]) {
            (Expr::Name(name), [only])
                if CONVERSIONS.contains(&name.id.as_str()) && !only.is_starred_expr() =>
            {
                // What a generator makes is consumed once; that is a bug of its own kind.
                let inner = match only {
                    Expr::Generator(generator) if !generator.parenthesized => {
                        format!("({})", self.slice(only))
                    }
                    _ => self.slice(only).to_owned(),
                };
                self.add(place, Family::ConversionMissing, node, inner);
            }
            (Expr::Attribute(method), []) if NORMALISATIONS.contains(&method.attr.as_str()) => {
                let receiver = TextRange::new(node.start(), method.value.end());
                let receiver = self.slice(receiver);
                // A bracket that closes behind the receiver is lost with the name.
                if receiver.matches('(').count() == receiver.matches(')').count() {
                    self.add(place, Family::ConversionMissing, node, receiver);
                }
            }
            _ => {}
        }
    }

    fn arguments(&mut self, place: &Place<'_, 'a>, node: &'a ExprCall) {
        let inside = node.arguments.range();
        let positional = &node.arguments.args;
        let ranges: Vec<TextRange> = positional
            .iter()
            .map(|argument| match argument {
                // The brackets of the call are no generator's own.
                Expr::Generator(_) => argument.range(),
                _ if positional.len() + node.arguments.keywords.len() > 1 => {
                    self.bracketed(argument, inside)
                }
                _ => argument.range(),
            })
            .collect();
        for (at, pair) in positional.windows(2).enumerate() {
            if !pair.iter().any(Expr::is_starred_expr) {
                self.add_swap(place, Family::ArgumentOrder, ranges[at], ranges[at + 1]);
            }
        }
        if let [.., before, last] = &ranges[..] {
            let at = TextRange::new(before.end(), last.end());
            self.add(place, Family::ArgumentMissing, at, "");
        }
        let mut parts: Vec<TextRange> = ranges;
        parts.extend(node.arguments.keywords.iter().map(Ranged::range));
        parts.sort_by_key(|part| part.start());
        for keyword in &node.arguments.keywords {
            let own = parts.iter().position(|part| *part == keyword.range());
            let at = match (own, &parts[..]) {
                (Some(0), [only]) => *only,
                (Some(0), [first, second, ..]) => TextRange::new(first.start(), second.start()),
                (Some(own), _) => TextRange::new(parts[own - 1].end(), parts[own].end()),
                (None, _) => continue,
            };
            self.add(place, Family::ArgumentMissing, at, "");
        }
    }
}

/// Functions and methods that are taken for each other.
const MISTAKEN: &[(&str, &str)] = &[
    ("min", "max"),
    ("any", "all"),
    ("floor", "ceil"),
    ("append", "extend"),
    ("lstrip", "rstrip"),
    ("startswith", "endswith"),
    ("lower", "upper"),
    ("keys", "values"),
    ("find", "rfind"),
    ("index", "rindex"),
    ("partition", "rpartition"),
    ("split", "rsplit"),
    ("pop", "popleft"),
    ("appendleft", "append"),
    ("union", "intersection"),
    ("issubset", "issuperset"),
    ("bisect_left", "bisect_right"),
    ("bisect", "bisect_left"),
    ("insort_left", "insort_right"),
    ("ljust", "rjust"),
    ("takewhile", "dropwhile"),
    ("isdigit", "isalpha"),
    ("isalnum", "isalpha"),
    ("str", "repr"),
    ("list", "set"),
    ("round", "int"),
    ("zip", "zip_longest"),
    ("hasattr", "getattr"),
    ("heappush", "heappop"),
    ("add", "discard"),
    ("isinstance", "issubclass"),
    ("sub", "subn"),
    ("match", "search"),
    ("replace", "strip"),
    ("get", "pop"),
];

/// Functions of one value that make it what it should be.
const CONVERSIONS: &[&str] = &[
    "abs",
    "bool",
    "dict",
    "float",
    "frozenset",
    "int",
    "iter",
    "len",
    "list",
    "repr",
    "reversed",
    "round",
    "set",
    "sorted",
    "str",
    "tuple",
    "deque",
    "enumerate",
];

/// Methods without arguments that do.
const NORMALISATIONS: &[&str] = &[
    "casefold",
    "copy",
    "lower",
    "lstrip",
    "rstrip",
    "strip",
    "upper",
    "title",
    "capitalize",
    "items",
    "keys",
    "values",
    "normalize",
    "simplify",
];
