//! An action that is written and read is the same action, in both formats.

use code::graph::{Anchor, AnchorKind, MemoryIntent, MemoryTarget};
use proptest::{option, prelude::*, sample::select};
use repair::{
    action::{
        Action, ActionKind, Evidence, ExpandMode, Explore, FindType, MemoryAction, Operation,
        ProposalAction, RepairAction, Selection, View, action_schema, plan_lines, tool_schemas,
    },
    wire::{Reading, Reply, WireFormat, system_prompt, tool_call, write},
};

/// Texts with all that could be taken for something else.
fn text() -> impl Strategy<Value = String> {
    const HARD: &[&str] = &[
        "]]>",
        "<![CDATA[",
        "</param>",
        "</function>",
        "<function=submit>",
        "<param name=\"op\">",
        "</tool_call>",
        "<tool_call>",
        "{\"a\": 1}",
        "[1",
        "\"quoted\"",
        "123",
        "true",
        "null",
        "- item",
        "1) step",
        "  ",
        "\n",
        "\r\n",
        "symbol:parse",
        "naïve ☃",
        "\\",
        "&lt;",
    ];
    prop::collection::vec(
        prop_oneof![select(HARD).prop_map(str::to_owned), "[ -~]{0,8}"],
        0..5,
    )
    .prop_map(|parts| parts.concat())
}

/// Texts that ids and names are.
fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        "func:[a-z]{1,5}/[a-z]{1,5}\\.py:[A-Z][a-z]{0,4}\\.[a-z]{1,6}:[1-9][0-9]{0,3}",
        "[!-~]{1,12}",
        text().prop_filter("ids are not blank", |text| !text.trim().is_empty()),
    ]
}

fn ids() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(id(), 0..3)
}

fn name() -> impl Strategy<Value = String> {
    text().prop_map(|text| text.trim().to_owned())
}

fn anchor() -> impl Strategy<Value = Anchor> {
    let kinds = [
        AnchorKind::Function,
        AnchorKind::Symbol,
        AnchorKind::File,
        AnchorKind::Class,
        AnchorKind::Module,
        AnchorKind::TestFile,
    ];
    let whole = (
        option::of(select(kinds.to_vec())),
        option::of(id()),
        option::of(id()),
    );
    prop_oneof![
        whole.prop_map(|(kind, text, id)| Anchor { kind, text, id }),
        id().prop_map(|id| Anchor::id(&id)),
    ]
}

fn view() -> impl Strategy<Value = View> {
    prop_oneof![
        Just(View::Body),
        Just(View::Header),
        (1u32..9000).prop_map(View::AroundLine),
        (1u32..9000, 0u32..500).prop_map(|(start, more)| View::FileWindow(start, start + more)),
    ]
}

fn explore() -> impl Strategy<Value = Explore> {
    let op = select(vec![
        Operation::Find,
        Operation::Expand,
        Operation::Read,
        Operation::Grep,
    ]);
    let find_type = select(vec![FindType::Any, FindType::Method, FindType::Assignment]);
    let mode = select(vec![
        ExpandMode::Related,
        ExpandMode::Callers,
        ExpandMode::OwnerFlow,
    ]);
    let numbers = (
        0u32..=2,
        1u32..=100,
        option::of(1u32..=200),
        option::of(1u32..=300),
        option::of(0u32..=50),
        0u32..=20,
    );
    let texts = (text(), text(), text(), text(), text());
    let lists = (prop::collection::vec(anchor(), 0..3), ids());
    (
        op,
        texts,
        lists,
        numbers,
        (find_type, mode, view(), any::<bool>()),
    )
        .prop_map(
            |(op, texts, (mut anchors, nodes), numbers, (find_type, expand_mode, view, regex))| {
                let (mut query, class_name, path_glob, symbol, mut pattern) = texts;
                // What an operation cannot do without.
                match op {
                    Operation::Find if anchors.is_empty() && query.is_empty() => {
                        query = "parse".to_owned();
                    }
                    Operation::Expand if anchors.is_empty() && nodes.is_empty() => {
                        anchors.push(Anchor::id("file:a.py"));
                    }
                    Operation::Grep if pattern.is_empty() => pattern = "def".to_owned(),
                    _ => {}
                }
                Explore {
                    op,
                    query,
                    anchors,
                    nodes,
                    hop: numbers.0,
                    limit: numbers.1,
                    max_per_anchor: numbers.2,
                    total_limit: numbers.3,
                    dir_diversity_k: numbers.4,
                    find_type,
                    class_name,
                    path_glob,
                    expand_mode,
                    symbol,
                    view,
                    pattern,
                    regex,
                    context_lines: numbers.5,
                }
            },
        )
}

/// Explorations that say little, as most do, and so have tools of their own.
fn plain_explore() -> impl Strategy<Value = Explore> {
    (explore(), id()).prop_map(|(other, id)| {
        let mut plain = Explore {
            op: other.op,
            limit: other.limit,
            ..Explore::default()
        };
        match other.op {
            Operation::Find => plain.query = format!("symbol:{id}"),
            Operation::Expand => plain.anchors = vec![Anchor::id(&id)],
            Operation::Read => {
                plain.nodes = vec![id];
                plain.view = other.view;
            }
            Operation::Grep => {
                plain.pattern = id;
                plain.path_glob = "**/*.py".to_owned();
                plain.context_lines = other.context_lines;
            }
        }
        plain
    })
}

fn memory() -> impl Strategy<Value = MemoryAction> {
    let named =
        || option::of(name().prop_filter("names", |tag| !matches!(tag.as_str(), "" | "latest")));
    let note = option::of(text().prop_filter("notes", |note| !note.trim().is_empty()));
    let target = select(vec![MemoryTarget::Explore, MemoryTarget::Observation]);
    let intent = select(vec![MemoryIntent::Commit, MemoryIntent::Delete]);
    (
        target,
        intent,
        (ids(), ids(), note, named(), option::of(1u32..=50)),
    )
        .prop_map(
            |(target, intent, (select_ids, keep_ids, note, tag, top_k))| MemoryAction {
                target,
                intent,
                selection: Selection {
                    select_ids,
                    keep_ids,
                    note,
                    tag,
                    top_k,
                },
            },
        )
}

fn repair_action() -> impl Strategy<Value = RepairAction> {
    let plan = prop::collection::vec(text(), 1..4).prop_map(|lines| {
        let mut plan = plan_lines(&lines.join("\n"));
        // What a line is after its bullet is gone may look like one more.
        plan.retain(|line| plan_lines(line) == [line.clone()]);
        if plan.is_empty() {
            plan.push("look again".to_owned());
        }
        plan
    });
    let one = (id(), text(), text()).prop_map(|(node_id, role, evidence)| Evidence {
        node_id,
        role,
        evidence,
    });
    let evidence = prop_oneof![Just(Vec::new()), prop::collection::vec(one, 2..=5),];
    let confidence = option::of((0u32..=100).prop_map(|share| f64::from(share) / 100.0));
    (plan, ids(), any::<bool>(), evidence, text(), confidence).prop_map(
        |(plan, focus_ids, apply, evidence, failure_seen, confidence)| RepairAction {
            plan,
            focus_ids,
            apply,
            evidence,
            failure_seen,
            confidence,
        },
    )
}

/// Repairs in steps; what a proposal cannot do without is there.
fn proposal() -> impl Strategy<Value = ProposalAction> {
    let some = || text().prop_filter("not blank", |text| !text.trim().is_empty());
    let chain = || {
        let one = (id(), text(), text()).prop_map(|(node_id, role, evidence)| Evidence {
            node_id,
            role,
            evidence,
        });
        prop::collection::vec(one, 2..=5)
    };
    let whole = (repair_action(), id(), some(), chain());
    prop_oneof![
        whole.prop_map(|(repair, id, failure_seen, evidence)| {
            ProposalAction::Propose(RepairAction {
                focus_ids: [vec![id], repair.focus_ids].concat(),
                apply: true,
                failure_seen,
                evidence,
                ..repair
            })
        }),
        some().prop_map(ProposalAction::Revise),
        Just(ProposalAction::Submit),
        Just(ProposalAction::Discard),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let kind = prop_oneof![
        explore().prop_map(ActionKind::Explore),
        plain_explore().prop_map(ActionKind::Explore),
        memory().prop_map(ActionKind::Memory),
        repair_action().prop_map(ActionKind::Repair),
        proposal().prop_map(ActionKind::Proposal),
        Just(ActionKind::RunFailedTest),
        Just(ActionKind::Submit),
        Just(ActionKind::Noop),
    ];
    (text(), kind).prop_map(|(thought, kind)| Action { thought, kind })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn action_to_text_to_action(action in action()) {
        let written = write(&action, WireFormat::Text);
        let reply = Reply::read(&written, WireFormat::Text, Reading::Strict);
        prop_assert_eq!(reply.action.as_ref(), Ok(&action), "{}", written);
        prop_assert!(reply.meta.warnings.is_empty(), "{:?}", reply.meta);
    }

    #[test]
    fn action_to_tool_call_to_action(action in action()) {
        let written = write(&action, WireFormat::Tools);
        let reply = Reply::read(&written, WireFormat::Tools, Reading::Strict);
        prop_assert_eq!(reply.action.as_ref(), Ok(&action), "{}", written);
        prop_assert!(reply.meta.warnings.is_empty(), "{:?}", reply.meta);
        let apart = Reply::of_calls(&[tool_call(&action)], Reading::Strict);
        prop_assert_eq!(apart.action, Ok(action));
    }

    #[test]
    fn what_strict_reading_takes_tolerant_reading_takes_alike(action in action()) {
        let written = write(&action, WireFormat::Text);
        let reply = Reply::read(&written, WireFormat::Text, Reading::Tolerant);
        prop_assert_eq!(reply.action, Ok(action.clone()), "{}", written);
        let written = write(&action, WireFormat::Tools);
        let reply = Reply::read(&written, WireFormat::Tools, Reading::Tolerant);
        prop_assert_eq!(reply.action, Ok(action), "{}", written);
    }

    #[test]
    fn no_reply_is_too_strange_to_be_read(reply in "[ -~\\n]{0,60}", parts in prop::collection::vec(text(), 0..6)) {
        for text in [reply, parts.concat()] {
            for format in [WireFormat::Text, WireFormat::Tools] {
                for reading in [Reading::Strict, Reading::Tolerant] {
                    let _ = Reply::read(&text, format, reading);
                }
            }
        }
    }

    #[test]
    fn a_truncated_reply_is_read_tolerantly(action in action(), cut in 0.0..1.0f64) {
        let written = write(&action, WireFormat::Text);
        let at = (written.len() as f64 * cut) as usize;
        let at = (0..=at).rev().find(|at| written.is_char_boundary(*at)).unwrap_or(0);
        // Never a panic; whatever it is then is an action or has a code.
        let _ = Reply::read(&written[..at], WireFormat::Text, Reading::Tolerant);
    }
}

#[test]
fn schemas_and_prompts_name_every_parameter() {
    let schema = action_schema();
    assert_eq!(schema["oneOf"].as_array().map(Vec::len), Some(10));
    let explore = &schema["oneOf"][0]["properties"];
    assert_eq!(explore["hop"]["maximum"], 2);
    assert_eq!(explore["op"]["enum"][2], "read");
    let tools = tool_schemas();
    assert_eq!(tools[1]["function"]["name"], "explore_find");
    assert_eq!(tools[1]["function"]["parameters"]["required"][0], "query");
    let text = system_prompt(WireFormat::Text);
    for name in explore.as_object().unwrap().keys() {
        let known = ["schema_version", "type"].contains(&name.as_str());
        assert!(known || text.contains(name.as_str()), "{name}");
    }
    for word in [
        "never write a patch",
        "exactly one block",
        "CDATA",
        "+MUST",
        "working graph",
    ] {
        assert!(text.contains(word), "{word}");
    }
    let tools = system_prompt(WireFormat::Tools);
    for word in [
        "repair_review",
        "exactly one call",
        "file_window:A-B",
        "additionalProperties",
    ] {
        assert!(tools.contains(word), "{word}");
    }
}
