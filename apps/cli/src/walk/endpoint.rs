//! Models behind chat endpoints: opened where a recipe or an option names one.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, anyhow};
use policy::{Endpoint, EndpointConfig};

use crate::failure::{Classify, Failure, Outcome};

/// An endpoint as a recipe or an option names it.
pub(crate) struct NamedEndpoint<'a> {
    /// `openai:http://HOST:PORT/v1#MODEL`.
    pub(crate) model: &'a str,
    /// The environment variable that holds its key; without one, none is sent.
    pub(crate) api_key_env: Option<&'a str>,
    pub(crate) timeout_s: f64,
}

impl NamedEndpoint<'_> {
    /// What is wrong with it without asking anybody. `key` is where the recipe says it.
    pub(crate) fn check(&self, key: &str) -> anyhow::Result<()> {
        super::check_seconds(&format!("{key}.timeout_s"), self.timeout_s)?;
        let parsed = EndpointConfig::parse(self.model);
        parsed.map(drop).map_err(|error| anyhow!("{key}: {error}"))
    }

    /// Reads its key and asks whether it is there and has the model.
    pub(crate) async fn open(&self) -> Outcome<Arc<Endpoint>> {
        self.opened().await.map(Arc::new)
    }

    /// As [`Self::open`], to be bound to something yet.
    pub(crate) async fn opened(&self) -> Outcome<Endpoint> {
        let config =
            EndpointConfig::parse(self.model).map_err(|error| Failure::Asked(anyhow!(error)))?;
        let api_key = api_key(self.api_key_env, &config.base_url)?;
        let endpoint = Endpoint::new(EndpointConfig {
            api_key,
            timeout: Duration::from_secs_f64(self.timeout_s),
            ..config
        });
        let endpoint = endpoint.failed()?;
        endpoint.check().await.asked()?;
        Ok(endpoint)
    }
}

/// The key of `url` in the environment variable of this name, where one is named.
pub(crate) fn api_key(variable: Option<&str>, url: &str) -> Outcome<Option<String>> {
    let read = |name: &str| {
        let value = std::env::var_os(name).and_then(|value| value.into_string().ok());
        value.with_context(|| {
            format!("the environment variable {name}, which holds the key of {url}, is not set")
        })
    };
    variable.map(read).transpose().asked()
}
