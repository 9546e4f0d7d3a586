//! Which policy answers for which role.

use std::{collections::BTreeMap, sync::Arc};

use policy::{MessagePolicy, Policy};
use record::Sampling;

/// Who answers for a role and how it is sampled.
#[derive(Clone)]
pub struct Role {
    pub answers: Answers,
    pub sampling: Sampling,
}

/// What a policy is asked in.
#[derive(Clone)]
pub enum Answers {
    Tokens(Arc<dyn Policy>),
    /// Its calls can be read and never trained on.
    Messages(Arc<dyn MessagePolicy>),
}

/// The bindings of a recipe: role name to policy.
#[derive(Clone, Default)]
pub struct Roles {
    roles: BTreeMap<String, Role>,
}

impl Roles {
    /// Adds or replaces a binding.
    pub fn bind(self, name: &str, policy: Arc<dyn Policy>, sampling: Sampling) -> Self {
        self.bind_answers(name, Answers::Tokens(policy), sampling)
    }

    /// Adds or replaces a binding to a policy whose tokens are unknown.
    pub fn bind_messages(
        self,
        name: &str,
        policy: Arc<dyn MessagePolicy>,
        sampling: Sampling,
    ) -> Self {
        self.bind_answers(name, Answers::Messages(policy), sampling)
    }

    /// Adds or replaces a binding to whoever answers.
    pub fn bind_answers(mut self, name: &str, answers: Answers, sampling: Sampling) -> Self {
        self.roles
            .insert(name.to_owned(), Role { answers, sampling });
        self
    }

    /// The same bindings, with the roles of these names answering greedily.
    pub(crate) fn greedy(&self, names: &[&str]) -> Self {
        let mut roles = self.clone();
        for (name, role) in &mut roles.roles {
            if names.contains(&name.as_str()) {
                role.sampling.temperature = 0.0;
            }
        }
        roles
    }

    pub fn get(&self, name: &str) -> Option<&Role> {
        self.roles.get(name)
    }
}
