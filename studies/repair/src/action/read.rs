//! From named values to actions: types, ranges, words, and what must be there.
//!
//! Both wire formats end here: the text protocol has decoded its parameters by then, and a tool call its
//! arguments.

use code::graph::{Anchor, AnchorKind, MemoryIntent, MemoryTarget};
use serde_json::{Map, Value};

use super::{
    Action, ActionFault, ActionKind, Evidence, ExpandMode, Explore, FaultCode, FindType,
    MemoryAction, Meta, Operation, Param, ParamKind, ProposalAction, RepairAction, Selection,
    Signature, View, plan_lines,
};

/// Values by name.
pub(crate) type Named = Map<String, Value>;

type Read<T> = Result<T, ActionFault>;

/// An action of the text protocol.
pub(crate) fn read_action(
    signature: &'static Signature,
    given: Named,
    meta: &mut Meta,
) -> Read<Action> {
    let mut fields = Fields::new(signature, given, meta)?;
    let mut thought = fields.text("thought")?;
    if let Some(proposal) = proposal(&mut fields, &mut thought)? {
        return Ok(Action {
            thought,
            kind: ActionKind::Proposal(proposal),
        });
    }
    let kind = match signature.name {
        "explore" => ActionKind::Explore(explore(&mut fields)?),
        "memory" => ActionKind::Memory(memory(&mut fields)?),
        "repair" => ActionKind::Repair(repair(&mut fields, "subplan", "focus_ids")?),
        "run_failed_test" => ActionKind::RunFailedTest,
        "submit" => ActionKind::Submit,
        _ => ActionKind::Noop,
    };
    Ok(Action { thought, kind })
}

/// A call of a tool.
pub(crate) fn read_tool(
    signature: &'static Signature,
    given: Named,
    meta: &mut Meta,
) -> Read<Action> {
    let mut fields = Fields::new(signature, given, meta)?;
    let mut thought = fields.text("thought")?;
    if let Some(proposal) = proposal(&mut fields, &mut thought)? {
        return Ok(Action {
            thought,
            kind: ActionKind::Proposal(proposal),
        });
    }
    let kind = match signature.name {
        "explore_find" => ActionKind::Explore(Explore {
            query: fields.first("query")?,
            ..find(&mut fields)?
        }),
        "grep_code" => ActionKind::Explore(Explore {
            op: Operation::Grep,
            ..grep(&mut fields)?
        }),
        "explore_expand" => ActionKind::Explore(Explore {
            op: Operation::Expand,
            anchors: fields
                .one_id("anchor")?
                .iter()
                .map(|id| Anchor::id(id))
                .collect(),
            expand_mode: fields.word("expand_mode", ExpandMode::named)?,
            symbol: fields.text("symbol")?,
            hop: fields.integer("hop").unwrap_or(1),
            limit: fields.integer("limit").unwrap_or(50),
            ..Explore::default()
        }),
        "read" => ActionKind::Explore(Explore {
            op: Operation::Read,
            nodes: fields.ids("node_id")?,
            view: fields.view()?,
            ..Explore::default()
        }),
        "memory_commit" => {
            let select_ids = fields.ids("select_ids")?;
            commit(&mut fields, MemoryTarget::Explore, select_ids)?
        }
        "memory_commit_note" => commit(&mut fields, MemoryTarget::Observation, Vec::new())?,
        "memory_delete" => {
            let select_ids = fields.ids("delete_ids")?;
            ActionKind::Memory(MemoryAction {
                target: MemoryTarget::Explore,
                intent: MemoryIntent::Delete,
                selection: fields.selection_with(select_ids)?,
            })
        }
        "repair" => {
            let repair = repair(&mut fields, "plan", "focus_ids")?;
            if repair.plan.is_empty() {
                fields.meta.warn("missing-plan");
            }
            ActionKind::Repair(repair)
        }
        "repair_review" => {
            ActionKind::Repair(repair(&mut fields, "intent_analysis", "target_nodes")?)
        }
        "run_failed_test" => ActionKind::RunFailedTest,
        "submit" => ActionKind::Submit,
        _ => {
            fields.reason(&mut thought)?;
            ActionKind::Noop
        }
    };
    Ok(Action { thought, kind })
}

fn find(fields: &mut Fields) -> Read<Explore> {
    Ok(Explore {
        find_type: fields.word("find_type", FindType::named)?,
        class_name: fields.text("class_name")?,
        path_glob: fields.text("path_glob")?,
        limit: fields.integer("limit").unwrap_or(50),
        ..Explore::default()
    })
}

fn grep(fields: &mut Fields) -> Read<Explore> {
    Ok(Explore {
        pattern: fields.text("pattern")?,
        path_glob: fields.text("path_glob")?,
        context_lines: fields.integer("context_lines").unwrap_or(2),
        limit: fields.integer("limit").unwrap_or(50),
        regex: fields.flag("regex"),
        ..Explore::default()
    })
}

fn explore(fields: &mut Fields) -> Read<Explore> {
    let explore = Explore {
        op: fields.word("op", Operation::named)?,
        query: fields.text("query")?,
        anchors: fields.anchors()?,
        nodes: fields.ids("nodes")?,
        hop: fields.integer("hop").unwrap_or(1),
        max_per_anchor: fields.integer("max_per_anchor"),
        total_limit: fields.integer("total_limit"),
        dir_diversity_k: fields.integer("dir_diversity_k"),
        expand_mode: fields.word("expand_mode", ExpandMode::named)?,
        symbol: fields.text("symbol")?,
        view: fields.view()?,
        pattern: fields.text("pattern")?,
        regex: fields.flag("regex"),
        context_lines: fields.integer("context_lines").unwrap_or(2),
        ..find(fields)?
    };
    let missing = |what: &str| Err(missing(format!("`explore` with op {what}")));
    match explore.op {
        Operation::Expand if explore.anchors.is_empty() && explore.nodes.is_empty() => {
            missing("`expand` needs `anchors` or `nodes`")
        }
        Operation::Find if explore.anchors.is_empty() && explore.query.is_empty() => {
            missing("`find` needs `anchors` or `query`")
        }
        Operation::Grep if explore.pattern.is_empty() => missing("`grep` needs `pattern`"),
        _ => Ok(explore),
    }
}

fn memory(fields: &mut Fields) -> Read<MemoryAction> {
    let target = fields.text("target")?;
    let intent = fields.text("intent")?;
    let unknown = |name: &str, word: &str, words: &str| {
        ActionFault::new(
            FaultCode::InvalidEnum,
            format!("`{name}` is `{word}`; give {words}"),
        )
    };
    Ok(MemoryAction {
        target: target
            .parse()
            .map_err(|_| unknown("target", &target, "explore or observation"))?,
        intent: intent
            .parse()
            .map_err(|_| unknown("intent", &intent, "commit or delete"))?,
        selection: fields.selector()?,
    })
}

fn commit(fields: &mut Fields, target: MemoryTarget, select_ids: Vec<String>) -> Read<ActionKind> {
    Ok(ActionKind::Memory(MemoryAction {
        target,
        intent: MemoryIntent::Commit,
        selection: fields.selection_with(select_ids)?,
    }))
}

fn repair(fields: &mut Fields, plan: &'static str, focus: &'static str) -> Read<RepairAction> {
    Ok(RepairAction {
        plan: fields.lines(plan)?,
        focus_ids: fields.ids(focus)?,
        apply: fields.flag_or("apply", true),
        evidence: fields.evidence()?,
        failure_seen: fields.text("failure_seen")?,
        confidence: fields.share("confidence"),
    })
}

/// `None` for what is no step of a repair in steps.
fn proposal(fields: &mut Fields, thought: &mut String) -> Read<Option<ProposalAction>> {
    Ok(Some(match fields.signature.name {
        "repair_propose" => {
            ProposalAction::Propose(repair(fields, "intent_analysis", "target_nodes")?)
        }
        "repair_revise" => ProposalAction::Revise(fields.text("feedback")?),
        "repair_submit" => ProposalAction::Submit,
        "repair_discard" => {
            fields.reason(thought)?;
            ProposalAction::Discard
        }
        _ => return Ok(None),
    }))
}

fn missing(detail: String) -> ActionFault {
    ActionFault::new(FaultCode::MissingRequiredParam, detail)
}

fn wrong(name: &str, wanted: &str) -> ActionFault {
    ActionFault::new(
        FaultCode::InvalidJsonParam,
        format!("`{name}` must be {wanted}"),
    )
}

/// What was given for the parameters of one action.
struct Fields<'a> {
    signature: &'static Signature,
    given: Named,
    meta: &'a mut Meta,
}

impl<'a> Fields<'a> {
    /// Names must be known by now.
    fn new(signature: &'static Signature, given: Named, meta: &'a mut Meta) -> Read<Self> {
        let is_empty = |value: &Value| match value {
            Value::Null => true,
            Value::String(text) => text.trim().is_empty(),
            Value::Array(list) => list.is_empty(),
            _ => false,
        };
        for param in signature.params.iter().filter(|param| param.required) {
            if given.get(param.name).is_none_or(is_empty) {
                return Err(missing(format!(
                    "`{}` needs `{}`: {}",
                    signature.name, param.name, param.about
                )));
            }
        }
        Ok(Self {
            signature,
            given,
            meta,
        })
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.given.remove(name).filter(|value| !value.is_null())
    }

    fn param(&self, name: &str) -> Option<&'static Param> {
        self.signature.param(name)
    }

    fn text(&mut self, name: &str) -> Read<String> {
        match self.take(name) {
            None => Ok(String::new()),
            Some(value) => scalar(&value).ok_or_else(|| wrong(name, "a text")),
        }
    }

    /// Why something is not done, where no thought says it.
    fn reason(&mut self, thought: &mut String) -> Read<()> {
        let reason = self.text("reason")?;
        if thought.is_empty() {
            *thought = reason;
        }
        Ok(())
    }

    /// A text, or the first of a list of them.
    fn first(&mut self, name: &str) -> Read<String> {
        let texts = self.ids(name)?;
        Ok(self.only_one(name, texts).unwrap_or_default())
    }

    fn one_id(&mut self, name: &str) -> Read<Option<String>> {
        let ids = self.ids(name)?;
        Ok(self.only_one(name, ids))
    }

    fn only_one(&mut self, name: &str, texts: Vec<String>) -> Option<String> {
        if texts.len() > 1 {
            let trimmed = super::Trimmed {
                from: texts.len(),
                to: 1,
            };
            self.meta.trimmed.insert(name.to_owned(), trimmed);
        }
        texts.into_iter().next()
    }

    fn ids(&mut self, name: &str) -> Read<Vec<String>> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(value) => ids(&value).ok_or_else(|| wrong(name, "a list of ids")),
        }
    }

    fn lines(&mut self, name: &str) -> Read<Vec<String>> {
        let Some(value) = self.take(name) else {
            return Ok(Vec::new());
        };
        let lines = ids(&value).ok_or_else(|| wrong(name, "text, or a list of texts"))?;
        let lines = plan_lines(&lines.join("\n"));
        match (lines.is_empty(), self.param(name)) {
            (true, Some(param)) if param.required => {
                Err(missing(format!("`{name}` has no steps in it")))
            }
            _ => Ok(lines),
        }
    }

    /// In its range; `None` is nothing, or no integer.
    fn integer(&mut self, name: &str) -> Option<u32> {
        let value = self.take(name)?;
        let Some(ParamKind::Integer { min, max, default }) =
            self.param(name).map(|param| param.kind)
        else {
            return None;
        };
        let number = match &value {
            Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let Some(number) = number else {
            return default;
        };
        let capped = number.clamp(i64::from(min), i64::from(max));
        if capped != number {
            self.meta.cap(name, value);
        }
        u32::try_from(capped).ok()
    }

    fn flag(&mut self, name: &str) -> bool {
        self.flag_or(name, false)
    }

    fn flag_or(&mut self, name: &str, default: bool) -> bool {
        let word = self.take(name).and_then(|value| scalar(&value));
        match word.map(|word| word.trim().to_lowercase()).as_deref() {
            Some("true" | "1" | "yes" | "y") => true,
            Some("false" | "0" | "no" | "n") => false,
            _ => default,
        }
    }

    fn share(&mut self, name: &str) -> Option<f64> {
        let value = self.take(name)?;
        let number = match &value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let number = number.filter(|number: &f64| number.is_finite())?;
        if !(0.0..=1.0).contains(&number) {
            self.meta.cap(name, value);
        }
        Some(number.clamp(0.0, 1.0))
    }

    /// One of a closed set; the first of them where nothing is given, unless another is the default.
    fn word<T>(&mut self, name: &str, named: impl Fn(&str) -> Option<T>) -> Read<T> {
        let given = self.text(name)?;
        let (words, default) = match self.param(name).map(|param| param.kind) {
            Some(ParamKind::Choice { words, default }) => (words, default),
            _ => (&[][..], None),
        };
        let first = default.or(words.first().copied()).unwrap_or_default();
        let word = match given.trim() {
            "" => first,
            word => word,
        };
        named(word).ok_or_else(|| {
            let detail = format!("`{name}` is `{word}`; give one of {}", words.join(", "));
            ActionFault::new(FaultCode::InvalidEnum, detail)
        })
    }

    fn view(&mut self) -> Read<View> {
        let text = self.text("view")?;
        View::named(&text).ok_or_else(|| {
            let detail =
                format!("`view` is `{text}`; give body, header, around_line:N or file_window:A-B");
            ActionFault::new(FaultCode::InvalidEnum, detail)
        })
    }

    fn anchors(&mut self) -> Read<Vec<Anchor>> {
        let Some(value) = self.take("anchors") else {
            return Ok(Vec::new());
        };
        let list = match embedded(value) {
            Value::Array(list) => list,
            one => vec![one],
        };
        list.iter().map(anchor).collect()
    }

    fn selector(&mut self) -> Read<Selection> {
        let Some(value) = self.take("selector") else {
            return Ok(Selection::default());
        };
        match embedded(value) {
            Value::Object(object) => self.selection_of(object),
            Value::Array(list) => {
                let select_ids = ids(&Value::Array(list));
                Ok(Selection {
                    select_ids: select_ids.ok_or_else(|| wrong("selector", "a list of ids"))?,
                    ..Selection::default()
                })
            }
            one => {
                let tag = scalar(&one).ok_or_else(|| wrong("selector", "a text"))?;
                let tag = tag.trim();
                Ok(Selection {
                    tag: (!matches!(tag, "" | "latest")).then(|| tag.to_owned()),
                    ..Selection::default()
                })
            }
        }
    }

    fn selection_of(&mut self, object: Named) -> Read<Selection> {
        let mut select_ids = Vec::new();
        let mut rest = Named::new();
        for (name, value) in object {
            match name.as_str() {
                "select_ids" | "commit_ids" | "nodes" | "node_ids" | "ids" => {
                    let more = ids(&value);
                    select_ids.extend(more.ok_or_else(|| wrong(&name, "a list of ids"))?);
                }
                "keep_ids" | "note" | "tag" | "top_k" => {
                    rest.insert(name, value);
                }
                _ => {
                    let detail = format!(
                        "`selector` has no `{name}`; it has select_ids, keep_ids, note, tag, top_k"
                    );
                    return Err(ActionFault::new(FaultCode::UnknownParam, detail));
                }
            }
        }
        // The same as the arguments of the tool that commits.
        let commit = Signature::of(super::TOOLS, "memory_commit");
        let mut fields = Fields {
            signature: commit.unwrap_or(self.signature),
            given: rest,
            meta: &mut *self.meta,
        };
        fields.selection_with(select_ids)
    }

    fn selection_with(&mut self, select_ids: Vec<String>) -> Read<Selection> {
        let filled = |text: String| (!text.trim().is_empty()).then_some(text);
        Ok(Selection {
            select_ids,
            keep_ids: self.ids("keep_ids")?,
            note: filled(self.text("note")?),
            tag: filled(self.text("tag")?.trim().to_owned()).filter(|tag| tag != "latest"),
            top_k: self.integer("top_k"),
        })
    }

    fn evidence(&mut self) -> Read<Vec<Evidence>> {
        let Some(value) = self.take("evidence_chain") else {
            return Ok(Vec::new());
        };
        let chain: Vec<Evidence> = serde_json::from_value(embedded(value)).map_err(|error| {
            wrong(
                "evidence_chain",
                &format!("a list of {{node_id, role, evidence}}: {error}"),
            )
        })?;
        match chain.len() {
            2..=5 => Ok(chain),
            count => Err(wrong(
                "evidence_chain",
                &format!("2 to 5 objects, and it has {count}"),
            )),
        }
    }
}

impl View {
    /// `None` is no view; nothing is [`View::Body`].
    pub(super) fn named(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        let (name, rest) = text.split_once(':').unwrap_or((&text, ""));
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|line| *line > 0);
        match name {
            "" | "body" if rest.is_empty() => Some(Self::Body),
            "header" if rest.is_empty() => Some(Self::Header),
            "around_line" => number(rest).map(Self::AroundLine),
            "file_window" => {
                let (start, end) = rest.split_once('-')?;
                let (start, end) = (number(start)?, number(end)?);
                (start <= end).then_some(Self::FileWindow(start, end))
            }
            _ => None,
        }
    }

    /// As planners write it.
    pub fn text(self) -> String {
        match self {
            Self::Body => "body".to_owned(),
            Self::Header => "header".to_owned(),
            Self::AroundLine(line) => format!("around_line:{line}"),
            Self::FileWindow(start, end) => format!("file_window:{start}-{end}"),
        }
    }
}

fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 1e15).then_some(number as i64)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null => Some(String::new()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// JSON that somebody wrapped in a text.
fn embedded(value: Value) -> Value {
    match &value {
        Value::String(text) if text.trim_start().starts_with(['[', '{']) => {
            serde_json::from_str(text).unwrap_or(value)
        }
        _ => value,
    }
}

/// A text, or a list of texts or of objects with an `id`; empty ones are left out.
fn ids(value: &Value) -> Option<Vec<String>> {
    let one = |value: &Value| match value {
        Value::Object(object) => object.get("id").and_then(scalar),
        other => scalar(other),
    };
    let found: Option<Vec<String>> = match value {
        Value::Array(list) => list.iter().map(one).collect(),
        other => Some(vec![one(other)?]),
    };
    let filled = |text: &String| !text.trim().is_empty();
    Some(found?.into_iter().filter(filled).collect())
}

fn anchor(value: &Value) -> Read<Anchor> {
    let object = match value {
        Value::Object(object) => object,
        other => {
            let id = scalar(other).filter(|_| !other.is_null());
            let id = id.ok_or_else(|| wrong("anchors", "objects {kind, text, id}, or ids"))?;
            return Ok(Anchor::id(&id));
        }
    };
    let mut anchor = Anchor::default();
    for (name, value) in object {
        let text = || scalar(value).ok_or_else(|| wrong("anchors", "objects of texts"));
        let filled = |text: String| Some(text).filter(|text| !text.is_empty());
        match name.as_str() {
            "kind" => {
                let kind = text()?;
                let named: Result<AnchorKind, _> =
                    serde_json::from_value(Value::String(kind.trim().to_lowercase()));
                anchor.kind = Some(named.map_err(|_| {
                    let detail = format!(
                        "an anchor's `kind` is `{kind}`; give function, symbol, file, class, \
                         module or t-file"
                    );
                    ActionFault::new(FaultCode::InvalidEnum, detail)
                })?);
            }
            "text" => anchor.text = filled(text()?),
            "id" => anchor.id = filled(text()?),
            _ => {
                let detail = format!("an anchor has no `{name}`; it has kind, text and id");
                return Err(ActionFault::new(FaultCode::UnknownParam, detail));
            }
        }
    }
    Ok(anchor)
}
