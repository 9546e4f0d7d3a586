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
        Binding, Chain, Definition, DefinitionIndex, DefinitionKind, FileFacts, Import, Span, Use,
    },
    nesting,
};

/// Deeper expressions are not looked into.
const MAX_DEPTH: usize = 2_000;
/// Bytes of stack that [`facts`] may need on top of its caller's.
pub(super) const STACK: usize = 64 << 20;
/// Characters of documentation and signatures that are kept.
const KEPT: usize = 240;

/// The facts of a Python file. What does not parse is left out, and [`FileFacts::fault`] says where.
/// Needs up to [`STACK`] bytes of stack.
pub(super) fn facts(source: &str) -> FileFacts {
    let lines = Lines::new(source);
    let empty = FileFacts {
        lines: lines.count(),
        ..FileFacts::default()
    };
    if nesting::bound(source.as_bytes()) > MAX_DEPTH {
        return FileFacts {
            fault: Some(format!("expressions may be nested deeper than {MAX_DEPTH}")),
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
        facts: FileFacts {
            documentation: docstring(&module.body),
            fault,
            ..empty
        },
        scope: None,
        attributes: FxHashMap::default(),
        bindings_start: 0,
    };
    reader.visit_body(&module.body);
    let mut facts = reader.facts;
    facts
        .uses
        .sort_unstable_by(|one, two| (one.scope, &one.chain).cmp(&(two.scope, &two.chain)));
    facts.uses.dedup();
    facts
}

/// Where lines begin.
struct Lines(Vec<u32>);

impl Lines {
    fn new(source: &str) -> Self {
        let ends = memchr::memchr_iter(b'\n', source.as_bytes());
        Self(ends.map(|at| at as u32).collect())
    }

    fn of(&self, offset: TextSize) -> u32 {
        self.0.partition_point(|end| *end < offset.to_u32()) as u32 + 1
    }

    fn count(&self) -> u32 {
        self.0.len() as u32 + 1
    }

    fn span(&self, range: TextRange) -> Span {
        let end = range.end().max(range.start() + TextSize::from(1)) - TextSize::from(1);
        Span {
            start: self.of(range.start()),
            end: self.of(end),
        }
    }
}

struct Reader<'a> {
    source: &'a str,
    lines: Lines,
    facts: FileFacts,
    scope: Option<DefinitionIndex>,
    attributes: FxHashMap<(Option<DefinitionIndex>, String), DefinitionIndex>,
    /// Where the bindings of the scope begin.
    bindings_start: usize,
}

impl Reader<'_> {
    fn define(&mut self, definition: Definition) -> DefinitionIndex {
        self.facts.definitions.push(definition);
        self.facts.definitions.len() as u32 - 1
    }

    fn within(&mut self, scope: DefinitionIndex, read: impl FnOnce(&mut Self)) {
        let outer = (self.scope.replace(scope), self.bindings_start);
        self.bindings_start = self.facts.bindings.len();
        read(self);
        (self.scope, self.bindings_start) = outer;
    }

    fn scope_kind(&self) -> Option<DefinitionKind> {
        let scope = self.scope? as usize;
        Some(self.facts.definitions[scope].kind)
    }

    fn function(&mut self, function: &StmtFunctionDef) {
        for decorator in &function.decorator_list {
            self.visit_decorator(decorator);
        }
        let mut signature = if function.is_async {
            "async def "
        } else {
            "def "
        }
        .to_owned();
        signature += &function.name;
        signature += self.text(function.parameters.range());
        if let Some(returns) = &function.returns {
            signature += " -> ";
            signature += self.text(returns.range());
        }
        let is_property = function.decorator_list.iter().any(|decorator| {
            let name = chain(&decorator.expression).unwrap_or_default();
            name.ends_with("property")
        });
        let index = self.define(Definition {
            kind: DefinitionKind::Function,
            name: function.name.to_string(),
            parent: self.scope,
            span: self.lines.span(function.range()),
            line: self.lines.of(function.name.start()),
            signature: one_line(&signature),
            documentation: docstring(&function.body),
            bases: Vec::new(),
            value: function.returns.as_deref().and_then(instance),
            value_scope: None,
            is_property,
        });
        self.annotations(&function.parameters, function.returns.as_deref());
        self.within(index, |reader| {
            reader.parameters(&function.parameters);
            reader.visit_body(&function.body);
        });
    }

    /// Annotations and defaults are evaluated outside of the function.
    fn annotations(&mut self, parameters: &Parameters, returns: Option<&Expr>) {
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

    fn parameters(&mut self, parameters: &Parameters) {
        for parameter in parameters.iter() {
            let value = parameter.annotation().and_then(instance);
            self.bind(parameter.name().as_str(), value);
        }
    }

    fn class(&mut self, class: &StmtClassDef) {
        for decorator in &class.decorator_list {
            self.visit_decorator(decorator);
        }
        let mut signature = format!("class {}", class.name);
        let mut bases = Vec::new();
        if let Some(arguments) = &class.arguments {
            signature += self.text(arguments.range());
            bases.extend(arguments.args.iter().filter_map(base));
            self.visit_arguments(arguments);
        }
        let index = self.define(Definition {
            kind: DefinitionKind::Class,
            name: class.name.to_string(),
            parent: self.scope,
            span: self.lines.span(class.range()),
            line: self.lines.of(class.name.start()),
            signature: one_line(&signature),
            documentation: docstring(&class.body),
            bases,
            value: None,
            value_scope: None,
            is_property: false,
        });
        self.within(index, |reader| reader.visit_body(&class.body));
    }

    /// A name of a module or a class, or `self.name` in a method, is an attribute; a name of a function
    /// is a variable.
    fn assign(&mut self, target: &Expr, value: Option<Chain>, statement: TextRange) {
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
                    self.facts.definitions[method as usize]
                        .parent
                        .filter(|class| {
                            self.facts.definitions[*class as usize].kind == DefinitionKind::Class
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
            Expr::Tuple(tuple) => {
                for element in &tuple.elts {
                    self.assign(element, None, statement);
                }
            }
            Expr::List(list) => {
                for element in &list.elts {
                    self.assign(element, None, statement);
                }
            }
            Expr::Starred(starred) => self.assign(&starred.value, None, statement),
            other => self.visit_expr(other),
        }
    }

    fn attribute(
        &mut self,
        name: &str,
        owner: Option<DefinitionIndex>,
        value: Option<Chain>,
        at: TextSize,
        statement: TextRange,
    ) {
        let value_scope = self.scope;
        let key = (owner, name.to_owned());
        if let Some(known) = self.attributes.get(&key) {
            let known = &mut self.facts.definitions[*known as usize];
            // The first value that can be told counts.
            if known.value.is_none() {
                known.value = value;
                known.value_scope = value_scope;
            }
            return;
        }
        let index = self.define(Definition {
            kind: DefinitionKind::Attribute,
            name: name.to_owned(),
            parent: owner,
            span: self.lines.span(statement),
            line: self.lines.of(at),
            signature: String::new(),
            documentation: None,
            bases: Vec::new(),
            value,
            value_scope,
            is_property: false,
        });
        self.attributes.insert(key, index);
    }

    fn bind(&mut self, name: &str, value: Option<Chain>) {
        let Some(scope) = self.scope else { return };
        let mut own = self.facts.bindings[self.bindings_start..].iter_mut();
        let known = own.find(|known| known.scope == scope && known.name == name);
        match known {
            Some(known) if known.value.is_none() => known.value = value,
            Some(_) => {}
            None => self.facts.bindings.push(Binding {
                scope,
                name: name.to_owned(),
                value,
            }),
        }
    }

    fn use_chain(&mut self, chain: Chain) {
        self.facts.uses.push(Use {
            scope: self.scope,
            chain,
        });
    }

    fn text(&self, range: TextRange) -> &str {
        &self.source[range.start().to_usize()..range.end().to_usize()]
    }

    fn import(&mut self, module: &str, level: u32, name: Option<&str>, bound: &str) {
        self.facts.imports.push(Import {
            scope: self.scope,
            module: module.to_owned(),
            level,
            name: name.map(str::to_owned),
            bound: bound.to_owned(),
        });
    }

    /// What a chain leaves out: arguments, and what it begins with when that is no name.
    fn rest_of_chain<'a>(&mut self, expression: &'a Expr)
    where
        Self: Visitor<'a>,
    {
        match expression {
            Expr::Attribute(attribute) => self.rest_of_chain(&attribute.value),
            Expr::Await(awaited) => self.rest_of_chain(&awaited.value),
            Expr::Call(call) => {
                self.rest_of_chain(&call.func);
                self.visit_arguments(&call.arguments);
            }
            Expr::Name(_) => {}
            other => self.visit_expr(other),
        }
    }
}

impl<'a> Visitor<'a> for Reader<'_> {
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
                let value = chain(&assign.value);
                for target in &assign.targets {
                    self.assign(target, value.clone(), assign.range());
                }
            }
            Stmt::AnnAssign(assign) => {
                self.visit_expr(&assign.annotation);
                if let Some(value) = &assign.value {
                    self.visit_expr(value);
                }
                let value = instance(&assign.annotation);
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
                        let value = chain(&item.context_expr);
                        self.assign(target, value, item.range());
                    }
                }
                self.visit_body(&with.body);
            }
            other => visitor::walk_stmt(self, other),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(_) | Expr::Attribute(_) | Expr::Call(_) | Expr::Await(_) => {
                if let Some(chain) = chain(expression) {
                    self.use_chain(chain);
                }
                self.rest_of_chain(expression);
            }
            Expr::Named(named) => {
                self.visit_expr(&named.value);
                let value = chain(&named.value);
                self.assign(&named.target, value, named.range());
            }
            other => visitor::walk_expr(self, other),
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

/// `None` for what is neither a name, an attribute nor a call.
fn chain(expression: &Expr) -> Option<Chain> {
    fn write(expression: &Expr, out: &mut String) {
        match expression {
            Expr::Name(name) => out.push_str(&name.id),
            Expr::Attribute(attribute) => {
                write(&attribute.value, out);
                out.push('.');
                out.push_str(&attribute.attr);
            }
            Expr::Call(call) => {
                write(&call.func, out);
                out.push_str("()");
            }
            Expr::Await(awaited) => write(&awaited.value, out),
            _ => out.push('?'),
        }
    }
    let mut out = String::new();
    write(expression, &mut out);
    (!matches!(out.as_str(), "?" | "?()")).then_some(out)
}

/// What is extended: of `Generic[T]` it is `Generic`.
fn base(expression: &Expr) -> Option<Chain> {
    match expression {
        Expr::Subscript(subscript) => chain(&subscript.value),
        Expr::Starred(_) => None,
        other => chain(other),
    }
}

/// An instance of what an annotation names: `Tree`, `"Tree"`, `Optional[Tree]` and `Tree | None` are
/// all a `Tree()`.
fn instance(annotation: &Expr) -> Option<Chain> {
    match annotation {
        Expr::Name(_) | Expr::Attribute(_) => Some(format!("{}()", chain(annotation)?)),
        Expr::StringLiteral(text) => {
            let text = text.value.to_str();
            let is_path = !text.is_empty()
                && text.split('.').all(|part| {
                    !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_')
                });
            is_path.then(|| format!("{text}()"))
        }
        Expr::Subscript(subscript) => {
            let name = chain(&subscript.value)?;
            match name.rsplit('.').next()? {
                "Optional" | "Annotated" | "Final" | "ClassVar" => match subscript.slice.as_ref() {
                    Expr::Tuple(tuple) => instance(tuple.elts.first()?),
                    one => instance(one),
                },
                _ => Some(format!("{name}()")),
            }
        }
        Expr::BinOp(either) => instance(&either.left).or_else(|| instance(&either.right)),
        _ => None,
    }
}

fn docstring(body: &[Stmt]) -> Option<String> {
    let Some(Stmt::Expr(first)) = body.first() else {
        return None;
    };
    let Expr::StringLiteral(text) = first.value.as_ref() else {
        return None;
    };
    let text = one_line(text.value.to_str());
    (!text.is_empty()).then_some(text)
}

/// White space made single, and cut.
fn one_line(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        if out.len() + word.len() + 1 > KEPT {
            break;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}
