//! A smoke check of what planners and patch models write: samples of every form, good and bad, each with the
//! code that it must have.
//!
//! Spec of the repair study, sections 1.1, 1.4, 4.2 and 7.3. For whoever builds a client: the samples are what
//! this program reads.

use std::collections::BTreeMap;

use code::{Patch, RelativePath};
use serde::Serialize;

use crate::wire::{Reading, Reply, WireFormat, write};

/// A sample, what must come of it and what came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contract {
    /// `text`, `tools` or `patch`.
    pub form: &'static str,
    pub name: &'static str,
    /// A fault's code, or `ok`.
    pub expected: &'static str,
    pub found: String,
    pub holds: bool,
}

/// Reads every sample. A good one is also written again and read alike.
pub fn contracts() -> Vec<Contract> {
    let replies = REPLIES.iter().map(|(format, name, expected, sample)| {
        let form = match format {
            WireFormat::Text => "text",
            WireFormat::Tools => "tools",
        };
        contract(form, name, expected, read_reply(sample, *format))
    });
    let patches = PATCHES
        .iter()
        .map(|(name, expected, sample)| contract("patch", name, expected, read_patch(sample)));
    replies.chain(patches).collect()
}

fn contract(
    form: &'static str,
    name: &'static str,
    expected: &'static str,
    found: String,
) -> Contract {
    Contract {
        form,
        name,
        expected,
        holds: found == expected,
        found,
    }
}

fn read_reply(sample: &str, format: WireFormat) -> String {
    let action = match Reply::read(sample, format, Reading::Strict).action {
        Ok(action) => action,
        Err(fault) => return fault.code.to_string(),
    };
    let again = Reply::read(&write(&action, format), format, Reading::Strict);
    match again.action == Ok(action) {
        true => "ok".to_owned(),
        false => "it is written and read otherwise".to_owned(),
    }
}

fn read_patch(sample: &str) -> String {
    let patch = match Patch::parse(sample.as_bytes()) {
        Ok(patch) => patch,
        Err(rejection) => return rejection.code().to_owned(),
    };
    let content = |path: &RelativePath| (path.as_str() == "a.py").then(|| FILE.as_bytes().to_vec());
    let files: BTreeMap<RelativePath, Option<Vec<u8>>> = patch
        .paths()
        .into_iter()
        .map(|path| {
            let content = content(&path);
            (path, content)
        })
        .collect();
    match patch.apply(&files) {
        Err(rejection) => rejection.code().to_owned(),
        Ok(applied) => match applied.changes.as_slice() {
            [code::patch::FileChange::Write { content, .. }] if content == MENDED.as_bytes() => {
                "ok".to_owned()
            }
            _ => "it changes something else".to_owned(),
        },
    }
}

/// The file that all sample patches are for, and what the good ones make of it.
const FILE: &str = "def first(items):\n    return items[1]\n";
const MENDED: &str = "def first(items):\n    return items[0]\n";

const REPLIES: &[(WireFormat, &str, &str, &str)] = &[
    (
        WireFormat::Text,
        "explore",
        "ok",
        "<function=explore>\n  <param name=\"thought\"><![CDATA[look at <b> & </param>]]></param>\n  \
         <param name=\"op\">expand</param>\n  <param name=\"anchors\">[{\"kind\":\"function\",\
         \"text\":\"first\"}]</param>\n  <param name=\"hop\">1</param>\n</function>",
    ),
    (
        WireFormat::Text,
        "memory",
        "ok",
        "<function=memory><param name=\"intent\">commit</param><param name=\"selector\">{\"ids\": \
         [\"func:a.py:first:1\"], \"note\": \"off by one\"}</param></function>",
    ),
    (
        WireFormat::Text,
        "repair, a plan with numbers",
        "ok",
        "<function=repair><param name=\"subplan\">1) take item 0</param></function>",
    ),
    (
        WireFormat::Text,
        "submit",
        "ok",
        "<FUNCTION=submit></FUNCTION>",
    ),
    (
        WireFormat::Text,
        "no block",
        "missing-function-tag",
        "submit",
    ),
    (
        WireFormat::Text,
        "two blocks",
        "invalid-multi-block",
        "<function=noop></function><function=noop></function>",
    ),
    (
        WireFormat::Text,
        "text around",
        "extra-text",
        "So: <function=noop></function>",
    ),
    (
        WireFormat::Text,
        "no such action",
        "unknown-action",
        "<function=edit></function>",
    ),
    (
        WireFormat::Text,
        "a patch of the planner's",
        "unknown-param",
        "<function=repair><param name=\"subplan\">x</param><param name=\"patch\">y</param></function>",
    ),
    (
        WireFormat::Text,
        "a parameter twice",
        "duplicate-param",
        "<function=noop><param name=\"thought\">a</param><param name=\"thought\">b</param></function>",
    ),
    (
        WireFormat::Text,
        "bad JSON",
        "invalid-json-param",
        "<function=explore><param name=\"anchors\">[{kind: file}]</param></function>",
    ),
    (
        WireFormat::Text,
        "no plan",
        "missing-required-param",
        "<function=repair></function>",
    ),
    (
        WireFormat::Text,
        "no such operation",
        "invalid-enum",
        "<function=explore><param name=\"op\">search</param></function>",
    ),
    (
        WireFormat::Tools,
        "explore_find",
        "ok",
        "<tool_call>\n{\"name\": \"explore_find\", \"arguments\": {\"query\": \"symbol:first\", \
         \"find_type\": \"function\"}}\n</tool_call>",
    ),
    (
        WireFormat::Tools,
        "arguments as text",
        "ok",
        "<tool_call>{\"name\": \"read\", \"arguments\": \"{\\\"node_id\\\": \\\"file:a.py\\\"}\"}</tool_call>",
    ),
    (
        WireFormat::Tools,
        "repair",
        "ok",
        "<tool_call>{\"name\": \"repair\", \"arguments\": {\"plan\": [\"take item 0\"]}}</tool_call>",
    ),
    (
        WireFormat::Tools,
        "repair_review",
        "ok",
        "<tool_call>{\"name\": \"repair_review\", \"arguments\": {\"failure_seen\": \"IndexError\", \
         \"evidence_chain\": [{\"node_id\": \"func:a.py:first:1\", \"role\": \"cause\", \"evidence\": \
         \"takes item 1\"}, {\"node_id\": \"file:a.py\"}], \"target_nodes\": [\"func:a.py:first:1\"], \
         \"intent_analysis\": \"take item 0\", \"confidence\": 0.9}}</tool_call>",
    ),
    (
        WireFormat::Tools,
        "repair_propose",
        "ok",
        "<tool_call>{\"name\": \"repair_propose\", \"arguments\": {\"failure_seen\": \"IndexError\", \
         \"evidence_chain\": [{\"node_id\": \"func:a.py:first:1\"}, {\"node_id\": \"file:a.py\"}], \
         \"target_nodes\": [\"func:a.py:first:1\"], \"intent_analysis\": [\"take item 0\"]}}</tool_call>",
    ),
    (
        WireFormat::Tools,
        "repair_revise",
        "ok",
        "<tool_call>{\"name\": \"repair_revise\", \"arguments\": {\"feedback\": \"items may be empty\"}}</tool_call>",
    ),
    (
        WireFormat::Tools,
        "repair_submit",
        "ok",
        "<tool_call>{\"name\": \"repair_submit\"}</tool_call>",
    ),
    (
        WireFormat::Tools,
        "repair_discard",
        "ok",
        "<tool_call>{\"name\": \"repair_discard\", \"arguments\": {\"reason\": \"the wrong function\"}}</tool_call>",
    ),
    (
        WireFormat::Tools,
        "one piece of evidence",
        "invalid-json-param",
        "<tool_call>{\"name\": \"repair_propose\", \"arguments\": {\"failure_seen\": \"x\", \"evidence_chain\": \
         [{\"node_id\": \"a\"}], \"target_nodes\": [\"a\"], \"intent_analysis\": \"y\"}}</tool_call>",
    ),
    (
        WireFormat::Tools,
        "a revision that says nothing",
        "missing-required-param",
        "<tool_call>{\"name\": \"repair_revise\", \"arguments\": {\"feedback\": \" \"}}</tool_call>",
    ),
    (
        WireFormat::Tools,
        "a patch of the planner's",
        "unknown-param",
        "<tool_call>{\"name\": \"repair_submit\", \"arguments\": {\"patch\": \"--- a\"}}</tool_call>",
    ),
    (
        WireFormat::Tools,
        "no call",
        "missing-function-tag",
        "{\"name\": \"submit\"}",
    ),
    (
        WireFormat::Tools,
        "two calls",
        "invalid-multi-block",
        "<tool_call>{\"name\": \"noop\"}</tool_call><tool_call>{\"name\": \"noop\"}</tool_call>",
    ),
    (
        WireFormat::Tools,
        "no such tool",
        "unknown-action",
        "<tool_call>{\"name\": \"bash\"}</tool_call>",
    ),
    (
        WireFormat::Tools,
        "no such argument",
        "unknown-param",
        "<tool_call>{\"name\": \"submit\", \"arguments\": {\"now\": true}}</tool_call>",
    ),
    (
        WireFormat::Tools,
        "bad JSON",
        "invalid-json-param",
        "<tool_call>submit()</tool_call>",
    ),
    (
        WireFormat::Tools,
        "no query",
        "missing-required-param",
        "<tool_call>{\"name\": \"explore_find\", \"arguments\": {}}</tool_call>",
    ),
    (
        WireFormat::Tools,
        "no such view",
        "invalid-enum",
        "<tool_call>{\"name\": \"read\", \"arguments\": {\"node_id\": \"a\", \"view\": \"all\"}}</tool_call>",
    ),
];

const PATCHES: &[(&str, &str, &str)] = &[
    (
        "edits",
        "ok",
        "{\"patch\": {\"edits\": [{\"path\": \"a.py\", \"start\": 2, \"end\": 2, \"new_text\": \
         \"    return items[0]\\n\"}]}}",
    ),
    (
        "unified diff",
        "ok",
        "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n def first(items):\n-    return items[1]\n\
         +    return items[0]\n",
    ),
    (
        "search and replace",
        "ok",
        "a.py\n<<<<<<< SEARCH\n    return items[1]\n=======\n    return items[0]\n>>>>>>> REPLACE\n",
    ),
    (
        "envelope",
        "ok",
        "*** Begin Patch\n*** Update File: a.py\n@@\n-    return items[1]\n+    return items[0]\n\
         *** End Patch\n",
    ),
    ("no edits", "invalid-patch-schema", "{\"edits\": []}"),
    (
        "an edit past the end",
        "range-invalid",
        "{\"edits\": [{\"path\": \"a.py\", \"start\": 9, \"end\": 9, \"new_text\": \"x\\n\"}]}",
    ),
    (
        "a path that leads outside",
        "path-missing",
        "{\"edits\": [{\"path\": \"../a.py\", \"start\": 1, \"end\": 1, \"new_text\": \"x\\n\"}]}",
    ),
    ("no patch", "invalid-unified-diff", "Change line 2."),
    (
        "other lines than the file's",
        "hunk-mismatch",
        "--- a/a.py\n+++ b/a.py\n@@ -2 +2 @@\n-    return items[3]\n+    return items[0]\n",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::FaultCode;

    #[test]
    fn every_contract_holds_and_every_code_has_one() {
        let contracts = contracts();
        for contract in &contracts {
            assert!(contract.holds, "{contract:?}");
        }
        for code in FaultCode::ALL {
            let has_one = contracts.iter().any(|it| it.expected == code.code());
            assert!(has_one, "{code}");
        }
    }
}
