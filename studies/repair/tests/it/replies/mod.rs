//! Replies of patch models with what must become of them, and the repository that they are about.

#![allow(clippy::unwrap_used, dead_code, reason = "helpers of tests")]

use std::collections::BTreeMap;

use repair::{
    Issue,
    patch_model::{Constraints, Feedback, PatchRequest, PlanTarget},
};
use serde::Deserialize;

pub(crate) const AROUND: u32 = 3;

#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) reply: String,
    /// `ok`: the patch can be tried.
    pub(crate) code: String,
}

pub(crate) fn cases() -> Vec<Case> {
    let lines = include_str!("../../cases/patch_replies.jsonl").lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub(crate) fn files() -> BTreeMap<&'static str, Vec<u8>> {
    let function = |n: usize| format!("def f{n}(x):\n    return x + {n}\n\n\n");
    let core: String = (1..=15).map(function).collect();
    let long: String = (1..=40).map(|n| format!("x{n} = {n}\n")).collect();
    let test = "import unittest\n\nfrom package.core import f3\n\n\n\
        class TestCore(unittest.TestCase):\n    def test_f3(self):\n        self.assertEqual(f3(2), 6)\n\n    \
        def test_kept(self):\n        self.assertEqual(f3(0), 0)\n";
    BTreeMap::from([
        ("package/__init__.py", Vec::new()),
        ("package/core.py", core.into_bytes()),
        ("package/long.py", long.into_bytes()),
        ("package/other.py", b"z = 1\n".to_vec()),
        ("package/short.py", b"a = 1\nb = 2\n".to_vec()),
        (
            "package/latin.py",
            b"# -*- coding: latin-1 -*-\nx = '\xe9'\n".to_vec(),
        ),
        ("tests/test_core.py", test.as_bytes().to_vec()),
        ("test_more.py", b"import package\n".to_vec()),
        ("conftest.py", b"# nothing\n".to_vec()),
        ("setup.cfg", b"[metadata]\n".to_vec()),
    ])
}

pub(crate) fn request() -> PatchRequest {
    let target = |path: &str, start, end| PlanTarget {
        path: path.to_owned(),
        start,
        end,
        ..PlanTarget::default()
    };
    let before = "diff --git a/package/core.py b/package/core.py\n--- a/package/core.py\n+++ b/package/core.py\n\
        @@ -7,7 +7,7 @@\n \n \n def f3(x):\n-    return x + 3\n+    return x - 3\n \n \n def f4(x):\n";
    PatchRequest {
        issue: Issue::default(),
        plan: vec!["multiply".to_owned()],
        targets: vec![
            target("package/core.py", 9, 14),
            target("package/latin.py", 1, 2),
            target("package/long.py", 1, 40),
            target("package/short.py", 1, 2),
            target("tests/test_core.py", 1, 9),
            target("conftest.py", 1, 1),
        ],
        graph: Default::default(),
        snippets: Vec::new(),
        feedback: vec![Feedback {
            patch: before.to_owned(),
            outcome: "build-failed".to_owned(),
            detail: String::new(),
        }],
        of_tests: std::sync::Arc::default(),
        observed: None,
        searched: None,
        constraints: Constraints {
            max_edits: 5,
            max_lines_per_edit: 20,
            ..Constraints::default()
        },
    }
}
