//! The facts of a Python file, by its syntax tree.

use ruff_python_ast::{
    Expr, ModModule, Parameters, Stmt, StmtClassDef, StmtFunctionDef,
    visitor::{self, Visitor},
};
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};
use ruff_text_size::{Ranged, TextRange, TextSize};
use rustc_hash::FxHashMap;

use super::{
    facts::{
        Binding, ChainIndex, ChainPart, Definition, DefinitionIndex, DefinitionKind, FileFacts,
        Import, Span, Symbol, Text,
    },
    language::Language,
    nesting::{self, DEEPEST},
    writer::Writer,
};

/// The facts of a Python file. What does not parse is left out, and [`FileFacts::fault`] says where.
/// Needs up to [`nesting::STACK`] bytes of stack.
pub(super) fn facts(source: &str) -> FileFacts {
    let lines = Lines::new(source);
    let empty = FileFacts {
        language: Language::Python,
        lines: lines.count(),
        ..FileFacts::default()
    };
    let too_deep = || Some(format!("expressions may be nested deeper than {DEEPEST}"));
    if !nesting::is_parsable(source.as_bytes()) {
        return FileFacts {
            fault: too_deep(),
            ..empty
        };
    }
    let parsed = parse_unchecked(source, ParseOptions::from(Mode::Module));
    let fault = parsed.errors().first().map(|error| {
        let line = lines.of(error.location.start());
        format!("line {line}: {}", error.error)
    });
    let Some(module) = parsed.try_into_module() else {
        return FileFacts { fault, ..empty };
    };
    let module: ModModule = module.into_syntax();
    let mut reader = Reader {
        source,
        lines,
        out: Writer::new(source.len()),
        scope: None,
        attributes: FxHashMap::default(),
        bindings: FxHashMap::default(),
        depth: 0,
        is_too_deep: false,
    };
    let documentation = reader.docstring(&module.body);
    reader.visit_body(&module.body);
    let (facts, is_too_deep) = (std::mem::take(&mut reader.out.facts), reader.is_too_deep);
    if is_too_deep {
        // Dropping the tree would recurse as deep; one of these is left lying about instead.
        std::mem::forget(module);
        return FileFacts {
            fault: too_deep(),
            ..empty
        };
    }
    FileFacts {
        language: Language::Python,
        lines: empty.lines,
        documentation,
        fault,
        ..facts
    }
}

/// Where lines begin.
struct Lines(Vec<u32>);

impl Lines {
    fn new(source: &str) -> Self {
        let ends = memchr::memchr_iter(b'\n', source.as_bytes());
        Self(ends.map(|at| at as u32).collect())
    }

    fn of(&self, offset: TextSize) -> u32 {
        self.from(1, offset)
    }

    /// The line of `offset`, which is not before that of `line`; mostly near it.
    fn from(&self, line: u32, offset: TextSize) -> u32 {
        let ends = &self.0[line as usize - 1..];
        let is_before = |end: &u32| *end < offset.to_u32();
        let mut width = 4;
        while width < ends.len() && is_before(&ends[width]) {
            width *= 4;
        }
        let found = ends[..ends.len().min(width + 1)].partition_point(is_before);
        line + found as u32
    }

    fn count(&self) -> u32 {
        self.0.len() as u32 + 1
    }

    fn span(&self, range: TextRange) -> Span {
        let end = range.end().max(range.start() + TextSize::from(1)) - TextSize::from(1);
        let start = self.of(range.start());
        Span {
            start,
            end: self.from(start, end),
        }
    }
}

struct Reader<'a> {
    source: &'a str,
    lines: Lines,
    out: Writer<'a>,
    scope: Option<DefinitionIndex>,
    attributes: FxHashMap<(Option<DefinitionIndex>, Symbol), DefinitionIndex>,
    bindings: FxHashMap<(DefinitionIndex, Symbol), usize>,
    depth: usize,
    is_too_deep: bool,
}

impl<'a> Reader<'a> {
    fn within(&mut self, scope: DefinitionIndex, read: impl FnOnce(&mut Self)) {
        let outer = self.scope.replace(scope);
        read(self);
        self.scope = outer;
    }

    /// `read`, unless what it reads lies too deep.
    fn deeper(&mut self, read: impl FnOnce(&mut Self)) {
        if self.depth >= DEEPEST {
            self.is_too_deep = true;
            return;
        }
        self.depth += 1;
        read(self);
        self.depth -= 1;
    }

    fn scope_kind(&self) -> Option<DefinitionKind> {
        let scope = self.scope? as usize;
        Some(self.out.facts.definitions[scope].kind)
    }

    fn function(&mut self, function: &'a StmtFunctionDef) {
        for decorator in &function.decorator_list {
            self.visit_decorator(decorator);
        }
        let begin = ["def ", "async def "][usize::from(function.is_async)];
        let returns = function.returns.as_deref();
        let signature = [
            begin,
            &function.name,
            self.text(function.parameters.range()),
            returns.map_or("", |_| " -> "),
            returns.map_or("", |returns| self.text(returns.range())),
        ];
        let signature = self.out.one_line(signature);
        let is_property = function.decorator_list.iter().any(|decorator| {
            let last = match &decorator.expression {
                Expr::Name(name) => name.id.as_str(),
                Expr::Attribute(attribute) => attribute.attr.as_str(),
                _ => "",
            };
            last.ends_with("property")
        });
        let name = self.out.symbol(&function.name);
        let value = returns.and_then(|returns| self.instance(returns));
        let documentation = self.docstring(&function.body);
        let index = self.out.define(Definition {
            signature,
            documentation,
            value,
            is_property,
            ..Definition::plain(
                DefinitionKind::Function,
                name,
                self.scope,
                self.lines.span(function.range()),
                self.lines.of(function.name.start()),
            )
        });
        self.annotations(&function.parameters, returns);
        self.within(index, |reader| {
            reader.parameters(&function.parameters);
            reader.visit_body(&function.body);
        });
    }

    /// Annotations and defaults are evaluated outside of the function.
    fn annotations(&mut self, parameters: &'a Parameters, returns: Option<&'a Expr>) {
        for parameter in parameters.iter() {
            if let Some(annotation) = parameter.annotation() {
                self.visit_expr(annotation);
            }
            if let Some(default) = parameter.default() {
                self.visit_expr(default);
            }
        }
        if let Some(returns) = returns {
            self.visit_expr(returns);
        }
    }

    fn parameters(&mut self, parameters: &'a Parameters) {
        for parameter in parameters.iter() {
            let value = parameter
                .annotation()
                .and_then(|annotation| self.instance(annotation));
            self.bind(parameter.name().as_str(), value);
        }
    }

    fn class(&mut self, class: &'a StmtClassDef) {
        for decorator in &class.decorator_list {
            self.visit_decorator(decorator);
        }
        let arguments = class.arguments.as_deref();
        let signature = [
            "class ",
            &class.name,
            arguments.map_or("", |arguments| self.text(arguments.range())),
        ];
        let signature = self.out.one_line(signature);
        let first = self.out.facts.bases.len() as u32;
        if let Some(arguments) = arguments {
            for base in &arguments.args {
                if let Some(base) = self.base(base) {
                    self.out.facts.bases.push(base);
                }
            }
            self.visit_arguments(arguments);
        }
        let name = self.out.symbol(&class.name);
        let documentation = self.docstring(&class.body);
        let index = self.out.define(Definition {
            signature,
            documentation,
            bases: (first, self.out.facts.bases.len() as u32),
            ..Definition::plain(
                DefinitionKind::Class,
                name,
                self.scope,
                self.lines.span(class.range()),
                self.lines.of(class.name.start()),
            )
        });
        self.within(index, |reader| reader.visit_body(&class.body));
    }

    /// A name of a module or a class, or `self.name` in a method, is an attribute; a name of a function
    /// is a variable.
    fn assign(&mut self, target: &'a Expr, value: Option<ChainIndex>, statement: TextRange) {
        match target {
            Expr::Name(name) if self.scope_kind() == Some(DefinitionKind::Function) => {
                self.bind(&name.id, value);
            }
            Expr::Name(name) => {
                self.attribute(&name.id, self.scope, value, target.start(), statement);
            }
            Expr::Attribute(attribute) => {
                let method = self.scope;
                let class = method.and_then(|method| {
                    self.out.facts.definitions[method as usize]
                        .parent
                        .filter(|class| {
                            self.out.facts.definitions[*class as usize].kind
                                == DefinitionKind::Class
                        })
                });
                let is_self =
                    matches!(attribute.value.as_ref(), Expr::Name(name) if name.id == "self");
                if let (Some(class), true) = (class, is_self) {
                    self.attribute(
                        &attribute.attr,
                        Some(class),
                        value,
                        target.start(),
                        statement,
                    );
                }
                self.visit_expr(&attribute.value);
            }
            Expr::Tuple(tuple) => self.assign_each(&tuple.elts, statement),
            Expr::List(list) => self.assign_each(&list.elts, statement),
            Expr::Starred(starred) => {
                self.assign_each(std::slice::from_ref(&starred.value), statement);
            }
            other => self.visit_expr(other),
        }
    }

    fn assign_each(&mut self, targets: &'a [Expr], statement: TextRange) {
        self.deeper(|reader| {
            for target in targets {
                reader.assign(target, None, statement);
            }
        });
    }

    fn attribute(
        &mut self,
        name: &'a str,
        owner: Option<DefinitionIndex>,
        value: Option<ChainIndex>,
        at: TextSize,
        statement: TextRange,
    ) {
        let value_scope = self.scope;
        let name = self.out.symbol(name);
        if let Some(known) = self.attributes.get(&(owner, name)) {
            let known = &mut self.out.facts.definitions[*known as usize];
            // The first value that can be told counts.
            if known.value.is_none() {
                known.value = value;
                known.value_scope = value_scope;
            }
            return;
        }
        let (span, line) = (self.lines.span(statement), self.lines.of(at));
        let index = self.out.define(Definition {
            value,
            value_scope,
            ..Definition::plain(DefinitionKind::Attribute, name, owner, span, line)
        });
        self.attributes.insert((owner, name), index);
    }

    fn bind(&mut self, name: &'a str, value: Option<ChainIndex>) {
        let Some(scope) = self.scope else { return };
        let name = self.out.symbol(name);
        let bindings = &mut self.out.facts.bindings;
        let known = *self.bindings.entry((scope, name)).or_insert(bindings.len());
        match bindings.get_mut(known) {
            Some(known) if known.value.is_none() => known.value = value,
            Some(_) => {}
            None => bindings.push(Binding { scope, name, value }),
        }
    }

    fn text(&self, range: TextRange) -> &'a str {
        &self.source[range.start().to_usize()..range.end().to_usize()]
    }

    fn import(&mut self, module: &'a str, level: u32, name: Option<&'a str>, bound: &'a str) {
        let import = Import {
            scope: self.scope,
            module: self.out.symbol(module),
            level,
            name: name.map(|name| self.out.symbol(name)),
            bound: self.out.symbol(bound),
        };
        self.out.facts.imports.push(import);
    }

    /// `None` for what is neither a name, an attribute nor a call.
    fn chain(&mut self, expression: &'a Expr) -> Option<ChainIndex> {
        let part = self.last_part(expression);
        let is_unknown = part.before.is_none() && self.out.facts.name(part.name) == "?";
        (!is_unknown).then(|| self.out.chain(part))
    }

    /// The last part of a chain, with what is before it.
    fn last_part(&mut self, expression: &'a Expr) -> ChainPart {
        let mut calls = 0;
        let mut at = expression;
        loop {
            match at {
                Expr::Call(call) => {
                    calls += 1;
                    at = &call.func;
                }
                Expr::Await(awaited) => at = &awaited.value,
                _ => break,
            }
        }
        let (before, name) = match at {
            Expr::Name(name) => (None, name.id.as_str()),
            Expr::Attribute(attribute) => {
                let mut before = None;
                self.deeper(|reader| {
                    let part = reader.last_part(&attribute.value);
                    before = Some(reader.out.chain(part));
                });
                (before, attribute.attr.as_str())
            }
            _ => (None, "?"),
        };
        let name = self.out.symbol(name);
        ChainPart {
            before,
            name,
            calls,
        }
    }

    /// What is extended: of `Generic[T]` it is `Generic`.
    fn base(&mut self, expression: &'a Expr) -> Option<ChainIndex> {
        match expression {
            Expr::Subscript(subscript) => self.chain(&subscript.value),
            Expr::Starred(_) => None,
            other => self.chain(other),
        }
    }

    /// An instance of what an annotation names: `Tree`, `"Tree"`, `Optional[Tree]` and `Tree | None` are
    /// all a `Tree()`.
    fn instance(&mut self, annotation: &'a Expr) -> Option<ChainIndex> {
        match annotation {
            Expr::Name(_) | Expr::Attribute(_) => self.called(annotation),
            Expr::StringLiteral(text) => {
                let mut parts = text.value.iter();
                let (Some(only), None) = (parts.next(), parts.next()) else {
                    return None;
                };
                let text: &str = &only.value;
                let is_path = !text.is_empty()
                    && text.split('.').all(|part| {
                        !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_')
                    });
                let mut before = None;
                let parts = text.split('.').filter(|_| is_path);
                let last = parts.clone().count();
                for (index, name) in parts.enumerate() {
                    let name = self.out.symbol(name);
                    before = Some(self.out.chain(ChainPart {
                        before,
                        name,
                        calls: u32::from(index + 1 == last),
                    }));
                }
                before
            }
            Expr::Subscript(subscript) => {
                let last = match subscript.value.as_ref() {
                    Expr::Name(name) => name.id.as_str(),
                    Expr::Attribute(attribute) => attribute.attr.as_str(),
                    _ => return None,
                };
                match last {
                    "Optional" | "Annotated" | "Final" | "ClassVar" => {
                        match subscript.slice.as_ref() {
                            Expr::Tuple(tuple) => self.instance(tuple.elts.first()?),
                            one => self.instance(one),
                        }
                    }
                    _ => self.called(&subscript.value),
                }
            }
            Expr::BinOp(either) => {
                let mut found = None;
                self.deeper(|reader| {
                    found = reader.instance(&either.left);
                    if found.is_none() {
                        found = reader.instance(&either.right);
                    }
                });
                found
            }
            _ => None,
        }
    }

    fn called(&mut self, expression: &'a Expr) -> Option<ChainIndex> {
        let part = self.last_part(expression);
        let is_unknown = part.before.is_none() && self.out.facts.name(part.name) == "?";
        (!is_unknown).then(|| {
            self.out.chain(ChainPart {
                calls: part.calls + 1,
                ..part
            })
        })
    }

    fn docstring(&mut self, body: &[Stmt]) -> Text {
        let Some(Stmt::Expr(first)) = body.first() else {
            return Text::default();
        };
        let Expr::StringLiteral(text) = first.value.as_ref() else {
            return Text::default();
        };
        self.out.one_line([text.value.to_str()])
    }

    /// What a chain leaves out: arguments, and what it begins with when that is no name.
    fn rest_of_chain(&mut self, expression: &'a Expr) {
        let mut at = expression;
        loop {
            match at {
                Expr::Attribute(attribute) => at = &attribute.value,
                Expr::Await(awaited) => at = &awaited.value,
                Expr::Call(call) => {
                    self.visit_arguments(&call.arguments);
                    at = &call.func;
                }
                Expr::Name(_) => return,
                other => return self.visit_expr(other),
            }
        }
    }
}

impl<'a> Visitor<'a> for Reader<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => self.function(function),
            Stmt::ClassDef(class) => self.class(class),
            Stmt::Import(import) => {
                for alias in &import.names {
                    let first = alias.name.split('.').next().unwrap_or_default();
                    let bound = alias.asname.as_deref().unwrap_or(first);
                    self.import(&alias.name, 0, None, bound);
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_deref().unwrap_or_default();
                for alias in &import.names {
                    let bound = alias.asname.as_deref().unwrap_or(&alias.name);
                    self.import(module, import.level, Some(&alias.name), bound);
                }
            }
            Stmt::Assign(assign) => {
                self.visit_expr(&assign.value);
                let value = self.chain(&assign.value);
                for target in &assign.targets {
                    self.assign(target, value, assign.range());
                }
            }
            Stmt::AnnAssign(assign) => {
                self.visit_expr(&assign.annotation);
                if let Some(value) = &assign.value {
                    self.visit_expr(value);
                }
                let value = self.instance(&assign.annotation);
                self.assign(&assign.target, value, assign.range());
            }
            Stmt::For(each) => {
                self.visit_expr(&each.iter);
                self.assign(&each.target, None, each.target.range());
                self.visit_body(&each.body);
                self.visit_body(&each.orelse);
            }
            Stmt::With(with) => {
                for item in &with.items {
                    self.visit_expr(&item.context_expr);
                    if let Some(target) = &item.optional_vars {
                        let value = self.chain(&item.context_expr);
                        self.assign(target, value, item.range());
                    }
                }
                self.visit_body(&with.body);
            }
            other => self.deeper(|reader| visitor::walk_stmt(reader, other)),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(_) | Expr::Attribute(_) | Expr::Call(_) | Expr::Await(_) => {
                if let Some(chain) = self.chain(expression) {
                    self.out.use_chain(self.scope, chain);
                }
                self.deeper(|reader| reader.rest_of_chain(expression));
            }
            Expr::Named(named) => {
                self.visit_expr(&named.value);
                let value = self.chain(&named.value);
                self.assign(&named.target, value, named.range());
            }
            other => self.deeper(|reader| visitor::walk_expr(reader, other)),
        }
    }

    fn visit_comprehension(&mut self, comprehension: &'a ruff_python_ast::Comprehension) {
        self.visit_expr(&comprehension.iter);
        if self.scope_kind() == Some(DefinitionKind::Function) {
            self.assign(&comprehension.target, None, comprehension.range());
        }
        for condition in &comprehension.ifs {
            self.visit_expr(condition);
        }
    }
}
