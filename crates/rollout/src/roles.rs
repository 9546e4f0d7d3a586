//! Which policy answers for which role.

use std::{collections::BTreeMap, sync::Arc};

use policy::Policy;
use record::Sampling;

/// A role's policy and how it is sampled.
#[derive(Clone)]
pub struct Role {
    pub policy: Arc<dyn Policy>,
    pub sampling: Sampling,
}

/// The bindings of a recipe: role name to policy.
#[derive(Clone, Default)]
pub struct Roles {
    roles: BTreeMap<String, Role>,
}

impl Roles {
    /// Adds or replaces a binding.
    pub fn bind(mut self, name: &str, policy: Arc<dyn Policy>, sampling: Sampling) -> Self {
        self.roles
            .insert(name.to_owned(), Role { policy, sampling });
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
