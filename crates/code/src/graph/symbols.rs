//! The facts of files in other languages than Python: the symbols that tree-sitter's grammars tag.
//!
//! Definitions and references come from the tag queries that each grammar brings, completed by
//! `queries/*.scm` of this crate: what is extended, what is imported, and the type that a method belongs
//! to where it stands outside of it.

use std::{cell::RefCell, ops::Range, sync::OnceLock};

use rustc_hash::FxHashMap;
use tree_sitter::{Node, Parser, Query, QueryCursor, StreamingIterator};

use super::{
    facts::{
        ChainPart, Definition, DefinitionIndex, DefinitionKind, FileFacts, Import, Span, Text,
    },
    language::Language,
    writer::Writer,
};

/// Larger files in these languages are rarely written by hand.
const MAX_FILE: usize = 1 << 20;

/// A grammar with what is asked of it.
struct Grammar {
    language: tree_sitter::Language,
    query: Query,
    /// By capture.
    roles: Vec<Role>,
    /// Patterns whose identifiers may be local variables.
    uncertain: Vec<bool>,
}

/// What a capture says of what it captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Name,
    Definition(DefinitionKind),
    Call,
    Reference,
    /// What the class around it extends.
    Base,
    Import,
    /// What belongs to the type called so.
    Owner,
    Ignored,
}

thread_local! {
    static TOOLS: RefCell<(Parser, QueryCursor)> = RefCell::new((Parser::new(), QueryCursor::new()));
}

/// The facts of a file in a language that has a grammar.
pub(super) fn facts(language: Language, source: &str) -> FileFacts {
    let empty = FileFacts {
        language,
        lines: memchr::memchr_iter(b'\n', source.as_bytes()).count() as u32 + 1,
        ..FileFacts::default()
    };
    let fault = |text: &str| FileFacts {
        fault: Some(text.to_owned()),
        ..empty.clone()
    };
    if source.len() > MAX_FILE {
        return fault("larger than 1 MiB");
    }
    let grammar = match grammar(language) {
        Some(Ok(grammar)) => grammar,
        Some(Err(detail)) => return fault(detail),
        None => return empty,
    };
    let found = TOOLS.with_borrow_mut(|(parser, cursor)| {
        parser.set_language(&grammar.language).ok()?;
        let tree = parser.parse(source, None)?;
        let root = tree.root_node();
        let mut tags = Tags::default();
        let mut matches = cursor.matches(&grammar.query, root, source.as_bytes());
        while let Some(found) = matches.next() {
            tags.add(grammar, found, source);
        }
        let broken = root.has_error().then(|| first_error(root));
        Some((tags, broken))
    });
    let Some((tags, broken)) = found else {
        return fault("its grammar does not fit the parser");
    };
    FileFacts {
        language,
        lines: empty.lines,
        fault: broken.map(|line| format!("line {line}: not understood")),
        ..tags.written(source)
    }
}

/// The line of the first place that did not parse.
fn first_error(root: Node) -> usize {
    let mut at = root;
    loop {
        let mut cursor = at.walk();
        let inner = at
            .children(&mut cursor)
            .find(|child| child.has_error() || child.is_missing());
        match inner {
            Some(inner) if !at.is_error() => at = inner,
            _ => return at.start_position().row + 1,
        }
    }
}

/// `None` for a language without one; an error if its queries do not fit it.
fn grammar(language: Language) -> Option<&'static Result<Grammar, String>> {
    static GRAMMARS: [OnceLock<Result<Grammar, String>>; Language::ALL.len()] =
        [const { OnceLock::new() }; Language::ALL.len()];
    let (parser, tags, own): (tree_sitter::Language, &[&str], &str) = match language {
        Language::Other | Language::Python => return None,
        Language::JavaScript => (
            tree_sitter_javascript::LANGUAGE.into(),
            &[tree_sitter_javascript::TAGS_QUERY],
            include_str!("queries/javascript.scm"),
        ),
        Language::TypeScript | Language::Tsx => (
            match language {
                Language::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
                _ => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            },
            &[
                tree_sitter_javascript::TAGS_QUERY,
                tree_sitter_typescript::TAGS_QUERY,
            ],
            include_str!("queries/typescript.scm"),
        ),
        Language::Go => (
            tree_sitter_go::LANGUAGE.into(),
            &[tree_sitter_go::TAGS_QUERY],
            include_str!("queries/go.scm"),
        ),
        Language::Rust => (
            tree_sitter_rust::LANGUAGE.into(),
            &[tree_sitter_rust::TAGS_QUERY],
            include_str!("queries/rust.scm"),
        ),
        Language::Java => (
            tree_sitter_java::LANGUAGE.into(),
            &[tree_sitter_java::TAGS_QUERY],
            include_str!("queries/java.scm"),
        ),
        Language::C => (
            tree_sitter_c::LANGUAGE.into(),
            &[tree_sitter_c::TAGS_QUERY],
            include_str!("queries/c.scm"),
        ),
        Language::Cpp => (
            tree_sitter_cpp::LANGUAGE.into(),
            &[tree_sitter_cpp::TAGS_QUERY, include_str!("queries/c.scm")],
            include_str!("queries/cpp.scm"),
        ),
        Language::Ruby => (
            tree_sitter_ruby::LANGUAGE.into(),
            &[tree_sitter_ruby::TAGS_QUERY],
            include_str!("queries/ruby.scm"),
        ),
    };
    let place = &GRAMMARS[language as usize];
    Some(place.get_or_init(|| {
        let source = tags.join("\n") + "\n" + own;
        let query = Query::new(&parser, &source)
            .map_err(|error| format!("tags of {}: {error}", language.name()))?;
        let roles = query.capture_names().iter().map(|name| role(name));
        let uncertain = (0..query.pattern_count()).map(|pattern| {
            let mut properties = query.property_predicates(pattern).iter();
            properties.any(|(property, _)| property.key.as_ref() == "local")
        });
        Ok(Grammar {
            language: parser,
            roles: roles.collect(),
            uncertain: uncertain.collect(),
            query,
        })
    }))
}

fn role(capture: &str) -> Role {
    match capture.split_once('.') {
        Some(("definition", kind)) => Role::Definition(match kind {
            "function" | "method" | "macro" => DefinitionKind::Function,
            "constant" | "field" | "property" | "variable" => DefinitionKind::Attribute,
            _ => DefinitionKind::Class,
        }),
        Some(("reference", "call")) => Role::Call,
        Some(("reference", "extends")) => Role::Base,
        // Of a class's head, which `extends` has as well, or of an implementation's.
        Some(("reference", "implementation")) => Role::Ignored,
        Some(("reference", _)) => Role::Reference,
        _ => match capture {
            "name" => Role::Name,
            "import" => Role::Import,
            "owner" => Role::Owner,
            _ => Role::Ignored,
        },
    }
}

/// Places of what was tagged.
#[derive(Default)]
struct Tags {
    definitions: Vec<Tagged>,
    references: Vec<(Role, Range<usize>)>,
    imports: Vec<Range<usize>>,
    /// What belongs to a type, and the type's name.
    owners: Vec<(Range<usize>, Range<usize>)>,
    known: FxHashMap<usize, usize>,
}

struct Tagged {
    kind: DefinitionKind,
    range: Range<usize>,
    name: Range<usize>,
    span: Span,
    line: u32,
    documentation: Option<Range<usize>>,
    /// A function of C that is declared here and not defined.
    is_bare: bool,
}

impl Tags {
    fn add(&mut self, grammar: &Grammar, found: &tree_sitter::QueryMatch, source: &str) {
        let of = |wanted: fn(Role) -> bool| {
            let mut captures = found.captures().iter();
            captures.find(|capture| wanted(grammar.roles[capture.index as usize]))
        };
        let role_of = |capture: &tree_sitter::QueryCapture| grammar.roles[capture.index as usize];
        let Some(name) = of(|role| role == Role::Name) else {
            return;
        };
        let Some(tagged) = of(|role| !matches!(role, Role::Name | Role::Ignored)) else {
            return;
        };
        let range = tagged.node.byte_range();
        match role_of(tagged) {
            Role::Definition(kind) => {
                let definition = Tagged {
                    kind,
                    name: name.node.byte_range(),
                    span: Span {
                        start: tagged.node.start_position().row as u32 + 1,
                        end: last_row(tagged.node) as u32 + 1,
                    },
                    line: name.node.start_position().row as u32 + 1,
                    range,
                    documentation: documentation(tagged.node),
                    is_bare: tagged.node.kind() == "function_declarator",
                };
                // What several patterns tag is what the first of them says, at its longest.
                match self.known.get(&definition.name.start) {
                    Some(known) => {
                        let known = &mut self.definitions[*known];
                        if definition.range.len() > known.range.len() {
                            *known = Tagged {
                                kind: known.kind,
                                ..definition
                            };
                        }
                    }
                    None => {
                        self.known
                            .insert(definition.name.start, self.definitions.len());
                        self.definitions.push(definition);
                    }
                }
            }
            Role::Import => self.imports.push(name.node.byte_range()),
            Role::Owner => self.owners.push((range, name.node.byte_range())),
            role => {
                let name = name.node.byte_range();
                let role = match grammar.uncertain[found.pattern_index] {
                    true if !source[name.clone()].starts_with(char::is_uppercase) => return,
                    true => Role::Reference,
                    false => role,
                };
                self.references.push((role, name));
            }
        }
    }

    fn written(mut self, source: &str) -> FileFacts {
        // What holds others begins before them or, of what begins at one place, ends after them.
        self.definitions.sort_by_key(|found| {
            (
                found.range.start,
                std::cmp::Reverse(found.range.end),
                found.name.start,
            )
        });
        let mut out = Writer::new(source.len());
        let mut open: Vec<(usize, DefinitionIndex)> = Vec::new();
        // What is declared alone at the level of the file, or is a module, is defined elsewhere.
        let mut ends = 0;
        self.definitions.retain(|found| {
            let is_declared =
                found.is_bare && found.range.start >= ends || self.imports.contains(&found.name);
            if !found.is_bare {
                ends = ends.max(found.range.end);
            }
            !is_declared
        });
        let mut top: FxHashMap<&str, DefinitionIndex> = FxHashMap::default();
        for found in &self.definitions {
            while open.last().is_some_and(|(end, _)| *end < found.range.end) {
                open.pop();
            }
            let name = &source[found.name.clone()];
            let symbol = out.symbol(name);
            let parent = open.last().map(|(_, index)| *index);
            let text = &source[found.range.clone()];
            let head = text.find(['{', '\n']).map_or(text, |end| &text[..end]);
            let signature = match found.kind {
                DefinitionKind::Attribute => Text::default(),
                _ => out.one_line([head.trim_end()]),
            };
            let documentation = match &found.documentation {
                Some(range) => {
                    let lines = source[range.clone()].lines().map(bare_comment);
                    out.one_line(lines.flat_map(|line| [line, " "]))
                }
                None => Text::default(),
            };
            let index = out.define(Definition {
                signature,
                documentation,
                ..Definition::plain(found.kind, symbol, parent, found.span, found.line)
            });
            if parent.is_none() && found.kind == DefinitionKind::Class {
                top.entry(name).or_insert(index);
            }
            open.push((found.range.end, index));
        }
        self.give_owners(source, &top, &mut out);
        self.write_references(source, &mut out);
        for range in &self.imports {
            let module = out.symbol(source[range.clone()].trim_matches(['"', '\'', '<', '>']));
            out.facts.imports.push(Import {
                scope: None,
                module,
                level: 0,
                name: None,
                bound: module,
            });
        }
        out.facts
    }

    /// Methods outside of their type belong to it nevertheless, if it is one of the file's own.
    fn give_owners<'a>(
        &self,
        source: &'a str,
        top: &FxHashMap<&'a str, DefinitionIndex>,
        out: &mut Writer<'a>,
    ) {
        for (range, name) in &self.owners {
            let Some(owner) = top.get(&source[name.clone()]) else {
                continue;
            };
            for (index, found) in self.definitions.iter().enumerate() {
                let is_inside = range.start <= found.range.start && found.range.end <= range.end;
                let definition = &mut out.facts.definitions[index];
                if is_inside && definition.parent.is_none() && index as u32 != *owner {
                    let is_type = definition.kind == DefinitionKind::Class;
                    definition.parent = Some(*owner).filter(|_| !is_type);
                }
            }
        }
    }

    fn write_references<'a>(&self, source: &'a str, out: &mut Writer<'a>) {
        let mut bases: Vec<(DefinitionIndex, u32)> = Vec::new();
        let mut by_start = self.references.clone();
        by_start.sort_by_key(|(_, name)| name.start);
        let mut open: Vec<usize> = Vec::new();
        let mut next = 0;
        for (role, name) in by_start {
            while next < self.definitions.len() && self.definitions[next].range.start <= name.start
            {
                open.push(next);
                next += 1;
            }
            while open
                .last()
                .is_some_and(|last| self.definitions[*last].range.end < name.end)
            {
                open.pop();
            }
            // Definitions lie within one another, so the innermost is the last one that is not over.
            let around = open
                .iter()
                .rev()
                .find(|index| self.definitions[**index].range.end >= name.end)
                .copied();
            if self.known.contains_key(&name.start) {
                continue;
            }
            let symbol = out.symbol(&source[name]);
            let chain = out.chain(ChainPart {
                before: None,
                name: symbol,
                calls: u32::from(role == Role::Call),
            });
            let scope = around.map(|index| index as DefinitionIndex);
            match (role, scope) {
                (Role::Base, Some(class)) => bases.push((class, chain)),
                (Role::Base, None) => {}
                _ => out.use_chain(scope, chain),
            }
        }
        bases.sort_by_key(|(class, _)| *class);
        for group in bases.chunk_by(|one, two| one.0 == two.0) {
            let start = out.facts.bases.len() as u32;
            out.facts
                .bases
                .extend(group.iter().map(|(_, chain)| *chain));
            let class = group[0].0 as usize;
            out.facts.definitions[class].bases = (start, out.facts.bases.len() as u32);
        }
    }
}

/// The row that a node ends in; one that ends with a line ends in that line.
fn last_row(node: Node) -> usize {
    let end = node.end_position();
    match end.column {
        0 => end.row.saturating_sub(1).max(node.start_position().row),
        _ => end.row,
    }
}

/// The comments that lie directly above a node.
fn documentation(node: Node) -> Option<Range<usize>> {
    let mut at = node;
    while let Some(around) = at.parent()
        && around.parent().is_some()
        && (around.start_byte() == at.start_byte()
            || matches!(
                around.kind(),
                "export_statement"
                    | "type_declaration"
                    | "lexical_declaration"
                    | "variable_declaration"
            ))
    {
        at = around;
    }
    let mut below = at.start_position().row;
    let mut found: Option<Range<usize>> = None;
    while let Some(above) = at.prev_sibling()
        && last_row(above) + 1 >= below
    {
        at = above;
        below = above.start_position().row;
        if above.kind().contains("comment") {
            let end = found.map_or(above.end_byte(), |found| found.end);
            found = Some(above.start_byte()..end);
        } else if above.kind() != "attribute_item" {
            break;
        }
    }
    found
}

/// A line of a comment without what makes it one.
fn bare_comment(line: &str) -> &str {
    let line = line.trim().trim_start_matches(['/', '*', '#', '!']);
    line.trim_end_matches("*/").trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_a_grammar_that_its_tags_fit() {
        for language in Language::ALL {
            match grammar(language) {
                None => assert!(matches!(language, Language::Other | Language::Python)),
                Some(Ok(grammar)) => assert!(grammar.query.pattern_count() > 4, "{language:?}"),
                Some(Err(error)) => panic!("{error}"),
            }
        }
    }
}
