//! Verdicts by what they depend on: one execution for any number of equal requests.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::Arc,
};

use code::NormalForm;
use sandbox::{Language, Limits, Tier};
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use crate::{Submission, Tests, Verdict, harness};

/// BLAKE3 of everything that a verdict depends on: the program's normal form, the tests, the
/// limits, the interpreter, the sandbox's tier, and the modules that judge in the jail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheKey([u8; 32]);

impl CacheKey {
    pub(crate) fn new(
        submission: &Submission,
        tests: &Tests,
        limits: &Limits,
        version: &str,
        tier: Tier,
    ) -> Self {
        let form = match submission.language {
            Language::Python if !tests.could_read_programs() => {
                code::normal_form(&submission.source)
            }
            _ => NormalForm::exact(submission.source.as_bytes()),
        };
        let language = submission.language;
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"etude verdict 5\0");
        hasher.update(&*harness::DIGEST);
        hasher.update(&form.digest);
        hasher.update(&tests.digest());
        hasher.update(format!("{language}\0{limits:?}\0{version}\0{tier:?}").as_bytes());
        Self(*hasher.finalize().as_bytes())
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

/// The executions known and under way. Bounded: the oldest finished one goes first.
#[derive(Debug)]
pub(crate) struct Cache {
    capacity: usize,
    entries: HashMap<CacheKey, Entry>,
    order: VecDeque<CacheKey>,
}

/// Filled by the first request; the others wait for it.
pub(crate) type Entry = Arc<OnceCell<Arc<Verdict>>>;

impl Cache {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            entries: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// The entry of `key`, made when absent.
    pub(crate) fn entry(&mut self, key: CacheKey) -> Entry {
        if let Some(entry) = self.entries.get(&key) {
            return entry.clone();
        }
        while self.order.len() >= self.capacity {
            if let Some(oldest) = self.order.pop_front() {
                self.entries.remove(&oldest);
            }
        }
        let entry = Entry::default();
        self.entries.insert(key, entry.clone());
        self.order.push_back(key);
        entry
    }

    /// Stores a verdict that was executed before.
    pub(crate) fn prime(&mut self, key: CacheKey, verdict: Verdict) {
        // An entry under way is left alone: its request holds the truth already.
        let _ = self.entry(key).set(Arc::new(verdict));
    }

    /// Takes back an entry that must not be reused, unless a newer one took its place.
    pub(crate) fn forget(&mut self, key: CacheKey, entry: &Entry) {
        if self
            .entries
            .get(&key)
            .is_some_and(|current| Arc::ptr_eq(current, entry))
        {
            self.entries.remove(&key);
            self.order.retain(|other| *other != key);
        }
    }
}

impl fmt::Display for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CacheKey({self})")
    }
}

impl Serialize for CacheKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CacheKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let text = String::deserialize(deserializer)?;
        if text.len() != 64 || !text.is_ascii() {
            return Err(Error::custom("a verdict's key is 64 hexadecimal digits"));
        }
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(Error::custom)?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn layouts_share_a_key_unless_the_tests_are_given_the_text() {
        let same_key = |tests: &Tests| {
            let key = |source: &str| {
                let submission = Submission::new(Language::Python, source);
                CacheKey::new(&submission, tests, &Limits::SMALL, "3", Tier::Namespaces)
            };
            key("def f(): return 1\n") == key("def f(): return 1  # one\n")
        };
        assert!(same_key(&Tests::function("f", [])));
        assert!(same_key(&Tests::asserts(["assert f() == 1"])));
        assert!(same_key(&Tests::assert_script("assert f() == 1", None)));
        let line = "assert f.__code__.co_firstlineno == 1";
        assert!(!same_key(&Tests::asserts([line])));
        assert!(!same_key(&Tests::assert_script(line, None)));
        assert!(!same_key(&Tests::pytest(BTreeMap::new(), vec![], vec![])));
        assert!(!same_key(&Tests::script(Language::Bash, "wc program")));
    }
}
