//! Malformed replies, each with its fault's code: `cases/replies/planner.txt`.
//!
//! A case is a line `=== NAME | FORMAT | READING | CODE | REWARD`, then the reply. `-` is no fault.

use std::collections::BTreeMap;

use repair::wire::{Reading, Reply, WireFormat};

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) format: WireFormat,
    pub(crate) reading: Reading,
    pub(crate) code: Option<String>,
    pub(crate) reward: f64,
    pub(crate) reply: String,
}

pub(crate) fn cases() -> Vec<Case> {
    let text = include_str!("../../cases/replies/planner.txt");
    let blocks = text.strip_prefix("=== ").unwrap().split("\n=== ");
    let case = |block: &str| {
        let (head, reply) = block.split_once('\n').unwrap();
        let [name, format, reading, code, reward] = head.split(" | ").collect::<Vec<_>>()[..]
            .try_into()
            .unwrap();
        Case {
            name: name.to_owned(),
            format: serde_json::from_value(format.into()).unwrap(),
            reading: serde_json::from_value(reading.into()).unwrap(),
            code: (code != "-").then(|| code.to_owned()),
            reward: reward.parse().unwrap(),
            reply: reply.strip_suffix('\n').unwrap_or(reply).to_owned(),
        }
    };
    blocks.map(case).collect()
}

#[test]
fn malformed_replies_have_their_codes() {
    let cases = cases();
    assert!(cases.len() >= 100, "{}", cases.len());
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for case in cases {
        let reply = Reply::read(&case.reply, case.format, case.reading);
        let found = reply.action.as_ref().map_err(|fault| fault.code.code());
        assert_eq!(
            found.err(),
            case.code.as_deref(),
            "{}: {:?}\n{}",
            case.name,
            reply,
            case.reply
        );
        match &reply.action {
            Ok(_) => assert!(!reply.meta.warnings.is_empty(), "{}: silent", case.name),
            Err(fault) => assert!(fault.detail.len() > 10, "{}: {fault}", case.name),
        }
        assert!(case.reward < 0.0, "{}: {}", case.name, case.reward);
        *seen.entry(case.code.unwrap_or_default()).or_default() += 1;
    }
    // Each of the nine codes, and replies that are read tolerantly.
    assert_eq!(seen.len(), 10, "{seen:?}");
}
