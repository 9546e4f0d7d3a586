//! The tables of both wire formats: every action and tool with its parameters.
//!
//! Readers, JSON Schemas and prompts are all made from these, so that none can know what another does not.

use super::{ExpandMode, FindType, Operation};

/// An action or a tool.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    pub name: &'static str,
    pub about: &'static str,
    pub params: &'static [Param],
}

#[derive(Clone, Copy, Debug)]
pub struct Param {
    pub name: &'static str,
    pub kind: ParamKind,
    pub required: bool,
    pub about: &'static str,
}

/// What a parameter's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// Never decoded as JSON.
    Text,
    /// Put into its range; what is no integer is the default.
    Integer {
        min: u32,
        max: u32,
        default: Option<u32>,
    },
    Flag {
        default: bool,
    },
    Choice {
        words: &'static [&'static str],
        default: Option<&'static str>,
    },
    /// `body`, `header`, `around_line:N`, `file_window:A-B`.
    View,
    /// From 0 to 1.
    Share,
    /// One anchor or a list of them.
    Anchors,
    /// A text or a list of texts.
    Ids,
    /// `latest`, a tag, ids, or an object of all that a selection has.
    Selector,
    /// Lines of text, or a list of them.
    Lines,
    /// A list of 2 to 5 objects.
    Evidence,
}

const THOUGHT: Param = text("thought", "what you think, for yourself");

const fn text(name: &'static str, about: &'static str) -> Param {
    Param {
        name,
        kind: ParamKind::Text,
        required: false,
        about,
    }
}

const fn integer(
    name: &'static str,
    [min, max]: [u32; 2],
    default: Option<u32>,
    about: &'static str,
) -> Param {
    Param {
        name,
        kind: ParamKind::Integer { min, max, default },
        required: false,
        about,
    }
}

const fn param(name: &'static str, kind: ParamKind, about: &'static str) -> Param {
    Param {
        name,
        kind,
        required: false,
        about,
    }
}

const fn required(param: Param) -> Param {
    Param {
        required: true,
        ..param
    }
}

const LIMIT: Param = integer("limit", [1, 100], Some(50), "most results");
const HOP: Param = integer("hop", [0, 2], Some(1), "edges to follow");
const QUERY: Param = text(
    "query",
    "words, symbol:NAME, path:PART, +MUST, -NOT, \"a phrase\"",
);
const FIND_TYPE: Param = param(
    "find_type",
    ParamKind::Choice {
        words: FindType::WORDS,
        default: Some("any"),
    },
    "kind of node to find",
);
const CLASS_NAME: Param = text("class_name", "the class that it stands in");
const PATH_GLOB: Param = text("path_glob", "files to look in, such as src/**/*.py");
const EXPAND_MODE: Param = param(
    "expand_mode",
    ParamKind::Choice {
        words: ExpandMode::WORDS,
        default: Some("related"),
    },
    "which edges to follow",
);
const SYMBOL: Param = text("symbol", "part of the names to keep");
const VIEW: Param = param("view", ParamKind::View, "how much to read");
const PATTERN: Param = text("pattern", "text to look for in lines");
const REGEX: Param = param(
    "regex",
    ParamKind::Flag { default: false },
    "pattern is a regular expression",
);
const CONTEXT_LINES: Param = integer("context_lines", [0, 20], Some(2), "lines around each");
const NOTE: Param = text("note", "a note to keep");
const TAG: Param = text("tag", "a name for this change");
const FOCUS_IDS: Param = param("focus_ids", ParamKind::Ids, "nodes to change");
const APPLY: Param = param(
    "apply",
    ParamKind::Flag { default: true },
    "ask for a patch, test it and keep it if it passes; false only notes the plan",
);
const FAILURE_SEEN: Param = text("failure_seen", "the failure as the tests show it");
const CONFIDENCE: Param = param("confidence", ParamKind::Share, "how sure you are");
const EVIDENCE_CHAIN: Param = param(
    "evidence_chain",
    ParamKind::Evidence,
    "2 to 5 of {node_id, role, evidence}",
);

const TARGET_NODES: Param = required(param("target_nodes", ParamKind::Ids, "nodes to change"));
const INTENT_ANALYSIS: Param = required(param(
    "intent_analysis",
    ParamKind::Lines,
    "the steps of the plan; never a patch",
));

/// What led to a plan, the plan, and last whether it is carried out.
const REVIEWED: &[Param] = &[
    THOUGHT,
    required(FAILURE_SEEN),
    required(EVIDENCE_CHAIN),
    TARGET_NODES,
    INTENT_ANALYSIS,
    CONFIDENCE,
    APPLY,
];

const PROPOSE: Signature = Signature {
    name: "repair_propose",
    about: "Have the patch model propose a patch; it is shown to you and not applied.",
    params: REVIEWED.split_at(REVIEWED.len() - 1).0,
};
const REVISE: Signature = Signature {
    name: "repair_revise",
    about: "Have the patch model propose another patch in place of the last.",
    params: &[
        THOUGHT,
        required(text(
            "feedback",
            "what is wrong with the proposal, and what is to be done instead",
        )),
    ],
};
const SUBMIT_PROPOSAL: Signature = Signature {
    name: "repair_submit",
    about: "Apply the proposal and run all tests: if they pass it is kept and you are done, else it is undone.",
    params: &[THOUGHT],
};
const DISCARD: Signature = Signature {
    name: "repair_discard",
    about: "Drop the proposal.",
    params: &[THOUGHT, text("reason", "why")],
};

/// Repairs in steps, in both wire formats: the prompt of the text protocol leaves them out.
pub const PROPOSALS: &[Signature] = &[PROPOSE, REVISE, SUBMIT_PROPOSAL, DISCARD];

/// Wire format A: the text protocol's actions.
pub const ACTIONS: &[Signature] = &[
    Signature {
        name: "explore",
        about: "look at the code graph: find nodes, expand around them, read their source, grep lines",
        params: &[
            THOUGHT,
            param(
                "op",
                ParamKind::Choice {
                    words: Operation::WORDS,
                    default: Some("find"),
                },
                "what to do",
            ),
            QUERY,
            param(
                "anchors",
                ParamKind::Anchors,
                "where to begin: {kind, text} or {id}",
            ),
            param("nodes", ParamKind::Ids, "ids of nodes"),
            HOP,
            LIMIT,
            integer(
                "max_per_anchor",
                [1, 200],
                None,
                "most results for one anchor",
            ),
            integer("total_limit", [1, 300], None, "most results in all"),
            integer(
                "dir_diversity_k",
                [0, 50],
                None,
                "results of one folder before others have their turn",
            ),
            FIND_TYPE,
            CLASS_NAME,
            PATH_GLOB,
            EXPAND_MODE,
            SYMBOL,
            VIEW,
            PATTERN,
            REGEX,
            CONTEXT_LINES,
        ],
    },
    Signature {
        name: "memory",
        about: "keep nodes and notes for the repair, or take them back",
        params: &[
            THOUGHT,
            param(
                "target",
                ParamKind::Choice {
                    words: &["explore", "observation"],
                    default: Some("explore"),
                },
                "explore: nodes and a note; observation: a note alone",
            ),
            required(param(
                "intent",
                ParamKind::Choice {
                    words: &["commit", "delete"],
                    default: None,
                },
                "what to do",
            )),
            param(
                "selector",
                ParamKind::Selector,
                "latest, a tag, ids, or {select_ids, keep_ids, note, tag, top_k}",
            ),
        ],
    },
    Signature {
        name: "repair",
        about: "hand a plan to the patch model; its patch is tested and kept if the tests pass",
        params: &[
            THOUGHT,
            required(param(
                "subplan",
                ParamKind::Lines,
                "the plan, a line a step; never a patch",
            )),
            FOCUS_IDS,
            APPLY,
            FAILURE_SEEN,
            EVIDENCE_CHAIN,
            CONFIDENCE,
        ],
    },
    Signature {
        name: "run_failed_test",
        about: "run the tests that are to pass and see how they fail",
        params: &[THOUGHT],
    },
    Signature {
        name: "submit",
        about: "finish: all tests are run on the work tree as it is",
        params: &[THOUGHT],
    },
    Signature {
        name: "noop",
        about: "do nothing",
        params: &[THOUGHT],
    },
];

/// Wire format B: tools. `memory_commit` takes what it is given, or the best of what was explored.
pub const TOOLS: &[Signature] = &[
    Signature {
        name: "run_failed_test",
        about: "Run the tests that are to pass and see how they fail.",
        params: &[THOUGHT],
    },
    Signature {
        name: "explore_find",
        about: "Find nodes of the code graph.",
        params: &[
            THOUGHT,
            required(QUERY),
            FIND_TYPE,
            CLASS_NAME,
            PATH_GLOB,
            LIMIT,
        ],
    },
    Signature {
        name: "grep_code",
        about: "Find lines of sources.",
        params: &[
            THOUGHT,
            required(PATTERN),
            required(PATH_GLOB),
            CONTEXT_LINES,
            integer("limit", [1, 50], Some(50), "most results"),
            REGEX,
        ],
    },
    Signature {
        name: "explore_expand",
        about: "Look around a node; without an anchor, around the best one of the last search.",
        params: &[
            THOUGHT,
            param("anchor", ParamKind::Ids, "the node's id"),
            EXPAND_MODE,
            SYMBOL,
            HOP,
            LIMIT,
        ],
    },
    Signature {
        name: "read",
        about: "Read source.",
        params: &[
            THOUGHT,
            required(param("node_id", ParamKind::Ids, "the node's id")),
            VIEW,
        ],
    },
    Signature {
        name: "memory_commit",
        about: "Keep nodes for the repair, with a note.",
        params: &[
            THOUGHT,
            param("select_ids", ParamKind::Ids, "nodes to keep"),
            param(
                "keep_ids",
                ParamKind::Ids,
                "nodes that stay in the working graph",
            ),
            NOTE,
            TAG,
            integer("top_k", [1, 50], None, "nodes to take when none is named"),
        ],
    },
    Signature {
        name: "memory_delete",
        about: "Take kept nodes and notes back: those named, the commit of a tag, or the latest.",
        params: &[
            THOUGHT,
            param("delete_ids", ParamKind::Ids, "nodes and notes"),
            NOTE,
            TAG,
        ],
    },
    Signature {
        name: "memory_commit_note",
        about: "Keep a note.",
        params: &[THOUGHT, required(NOTE), TAG],
    },
    Signature {
        name: "repair",
        about: "Hand a plan to the patch model; its patch is tested and kept if the tests pass.",
        params: &[
            THOUGHT,
            param(
                "plan",
                ParamKind::Lines,
                "the steps of the plan; never a patch",
            ),
            FOCUS_IDS,
            APPLY,
        ],
    },
    Signature {
        name: "repair_review",
        about: "As repair, with what led to the plan.",
        params: REVIEWED,
    },
    PROPOSE,
    REVISE,
    SUBMIT_PROPOSAL,
    DISCARD,
    Signature {
        name: "submit",
        about: "Finish: all tests are run on the work tree as it is.",
        params: &[THOUGHT],
    },
    Signature {
        name: "noop",
        about: "Do nothing.",
        params: &[THOUGHT, text("reason", "why")],
    },
];

impl Signature {
    pub(crate) fn of(table: &'static [Self], name: &str) -> Option<&'static Self> {
        table.iter().find(|signature| signature.name == name)
    }

    pub(crate) fn param(&self, name: &str) -> Option<&'static Param> {
        self.params.iter().find(|param| param.name == name)
    }
}

impl ParamKind {
    /// The type in words, for prompts.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Integer { min, max, default } => match default {
                Some(default) => format!("integer {min} to {max}, default {default}"),
                None => format!("integer {min} to {max}"),
            },
            Self::Flag { default } => format!("true or false, default {default}"),
            Self::Choice { words, default } => match default {
                Some(default) => format!("{}, default {default}", words.join("|")),
                None => words.join("|"),
            },
            Self::View => "body|header|around_line:N|file_window:A-B, default body".to_owned(),
            Self::Share => "number 0 to 1".to_owned(),
            Self::Anchors => {
                "JSON list of {\"kind\": function|symbol|file|class|module|t-file, \"text\", \"id\"}"
                    .to_owned()
            }
            Self::Ids => "JSON list of texts".to_owned(),
            Self::Selector => "text or JSON object".to_owned(),
            Self::Lines => "text, a line a step".to_owned(),
            Self::Evidence => "JSON list of objects".to_owned(),
        }
    }
}
