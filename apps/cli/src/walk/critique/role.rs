//! Who plays a role of a critique recipe: a model here, a model behind an endpoint, or the critic itself.

use std::{fmt, path::Path};

use policy::endpoint::PREFIX;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

use crate::walk::model_source::{ModelSource, RandomModel};

/// `model` of `[critic]` and `[reviser]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RoleModel {
    /// A model of the role's own, with its own tokenizer and template.
    Here(ModelSource),
    /// `openai:http://HOST:PORT/v1#MODEL`.
    Endpoint(String),
    /// Of the reviser: the critic, with the weights that it has at the time. Said by name and never supposed, as a
    /// reviser that learns along is no fixed measure of critiques (spec of the critique study, section 5).
    Critic,
}

/// What stands for [`RoleModel::Critic`].
const CRITIC: &str = "critic";

impl RoleModel {
    pub(crate) fn here(&self) -> Option<&ModelSource> {
        match self {
            Self::Here(model) => Some(model),
            Self::Endpoint(_) | Self::Critic => None,
        }
    }

    /// Takes a relative directory from `place`.
    pub(crate) fn resolve(&mut self, place: &Path) {
        if let Self::Here(model) = self {
            model.resolve(place);
        }
    }
}

impl Serialize for RoleModel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Here(model) => model.serialize(serializer),
            Self::Endpoint(name) => serializer.serialize_str(name),
            Self::Critic => serializer.serialize_str(CRITIC),
        }
    }
}

impl<'de> Deserialize<'de> for RoleModel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RoleVisitor)
    }
}

struct RoleVisitor;

impl<'de> Visitor<'de> for RoleVisitor {
    type Value = RoleModel;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the sizes of a new model, \"hf:DIRECTORY\" of a checkpoint, or \"openai:URL#MODEL\" of an endpoint",
        )
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RoleModel, E> {
        if text == CRITIC {
            return Ok(RoleModel::Critic);
        }
        if text.starts_with(PREFIX) {
            return Ok(RoleModel::Endpoint(text.to_owned()));
        }
        let source = ModelSource::deserialize(serde::de::value::StrDeserializer::<E>::new(text))?;
        Ok(RoleModel::Here(source))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RoleModel, A::Error> {
        let random = RandomModel::deserialize(MapAccessDeserializer::new(map))?;
        Ok(RoleModel::Here(ModelSource::Random(random)))
    }
}
