//! Parsers of test logs, by the names that rows of SWE-bench 5.0 have for them (spec of the repair study,
//! section 11.3).

mod failures;
mod lines;
mod python;

use std::{fmt, str::FromStr};

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::grading::Statuses;
use python::Names;

macro_rules! log_parsers {
    ($($(#[$doc:meta])* $variant:ident = $name:literal $(| $alias:literal)*;)*) => {
        /// Who reads a log.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum LogParser {
            $($(#[$doc])* $variant,)*
        }

        impl LogParser {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The first of the names that rows have for it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            fn find(name: &str) -> Option<Self> {
                match name {
                    $($name $(| $alias)* => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

log_parsers! {
    Pytest = "parse_log_pytest" | "parse_log_astroid" | "parse_log_flask" | "parse_log_marshmallow"
        | "parse_log_mypy" | "parse_log_paramiko" | "parse_log_pvlib" | "parse_log_pyvista" | "parse_log_sqlfluff" | "parse_log_xarray";
    /// Paths in the brackets of a test's name lose their folders.
    PytestOptions = "parse_log_pytest_options" | "parse_log_pydicom" | "parse_log_requests"
        | "parse_log_pylint";
    /// Colours, and statuses behind names as older versions have them.
    PytestV2 = "parse_log_pytest_v2" | "parse_log_astropy" | "parse_log_scikit"
        | "parse_log_sphinx";
    /// `pytest --verbose`: lines `name STATUS [ n%]`.
    PytestVerbose = "parse_log_pytest_verbose";
    /// The same of several workers: `[gw0] STATUS name`.
    PytestWorkers = "parse_log_autograd";
    /// `python -m unittest --verbose` and what is made of it.
    Unittest = "parse_log_tornado" | "parse_log_python_slugify";
    Django = "parse_log_django";
    Sympy = "parse_log_sympy";
    Seaborn = "parse_log_seaborn";
    Matplotlib = "parse_log_matplotlib";
    Gotest = "parse_log_gotest";
    Cargo = "parse_log_cargo";
    /// With names of several words: tests of documentation, tests that should panic.
    CargoVerbose = "parse_log_cargo_verbose";
    Redis = "parse_log_redis";
    Jq = "parse_log_jq";
    Micropython = "parse_log_micropython_test";
    Googletest = "parse_log_googletest";
    Maven = "parse_log_maven";
    Surefire = "parse_log_maven_surefire";
    Ant = "parse_log_ant";
    Gradle = "parse_log_gradle_custom";
    Phpunit = "parse_log_phpunit";
    Minitest = "parse_log_minitest";
    Cucumber = "parse_log_cucumber";
    RubyUnit = "parse_log_ruby_unit";
    Rspec = "parse_log_rspec_transformed_json";
    /// Minitest or Cucumber, by the instance.
    Jekyll = "parse_log_jekyll";
    Jest = "parse_log_jest";
    JestJson = "parse_log_jest_json";
    Mocha = "parse_log_mocha";
    Vitest = "parse_log_vitest";
    Tap = "parse_log_tap";
    Karma = "parse_log_karma";
    /// Jest with or without JSON, by the instance.
    ImmutableJs = "parse_log_immutable_js";
    ChartJs = "parse_log_chart_js";
    Marked = "parse_log_marked";
    P5js = "parse_log_p5js";
    BpmnJs = "parse_log_bpmn_js";
    Openlayers = "parse_log_openlayers";
    Eslint = "parse_log_eslint";
}

/// Nobody reads such logs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownLogParser {
    #[error("there is no log parser `{name}`; there are {}", LogParser::names())]
    Name { name: String },
    #[error("the row names no log parser, and none is known for {repo}")]
    Repo { repo: String },
}

impl LogParser {
    /// All of their names, in one line.
    pub(super) fn names() -> String {
        let names: Vec<&str> = Self::ALL.iter().map(|parser| parser.name()).collect();
        names.join(", ")
    }

    /// The parser of a repository's logs, for rows that name none.
    pub fn of_repo(repo: &str) -> Option<Self> {
        Some(match repo {
            "marshmallow-code/marshmallow"
            | "pallets/flask"
            | "pvlib/pvlib-python"
            | "pydata/xarray"
            | "pylint-dev/astroid"
            | "pytest-dev/pytest"
            | "pyvista/pyvista"
            | "sqlfluff/sqlfluff" => Self::Pytest,
            "psf/requests" | "pydicom/pydicom" | "pylint-dev/pylint" => Self::PytestOptions,
            "astropy/astropy" | "scikit-learn/scikit-learn" | "sphinx-doc/sphinx" => Self::PytestV2,
            "django/django" => Self::Django,
            "sympy/sympy" => Self::Sympy,
            "mwaskom/seaborn" => Self::Seaborn,
            "matplotlib/matplotlib" => Self::Matplotlib,
            "caddyserver/caddy"
            | "hashicorp/terraform"
            | "prometheus/prometheus"
            | "gohugoio/hugo"
            | "gin-gonic/gin" => Self::Gotest,
            "burntsushi/ripgrep" | "sharkdp/bat" | "astral-sh/ruff" | "tokio-rs/tokio"
            | "uutils/coreutils" | "nushell/nushell" | "tokio-rs/axum" => Self::Cargo,
            "redis/redis" | "valkey-io/valkey" => Self::Redis,
            "jqlang/jq" => Self::Jq,
            "micropython/micropython" => Self::Micropython,
            "fmtlib/fmt" => Self::Googletest,
            "google/gson" | "apache/druid" | "javaparser/javaparser" => Self::Maven,
            "projectlombok/lombok" => Self::Ant,
            "apache/lucene" | "reactivex/rxjava" => Self::Gradle,
            "phpoffice/phpspreadsheet"
            | "laravel/framework"
            | "php-cs-fixer/php-cs-fixer"
            | "briannesbitt/carbon" => Self::Phpunit,
            "jekyll/jekyll" => Self::Jekyll,
            "fluent/fluentd" | "faker-ruby/faker" => Self::RubyUnit,
            "fastlane/fastlane" | "jordansissel/fpm" | "rubocop/rubocop" => Self::Rspec,
            "babel/babel" | "facebook/docusaurus" => Self::Jest,
            "vuejs/core" => Self::Vitest,
            "mrdoob/three.js" | "axios/axios" => Self::Tap,
            "preactjs/preact" => Self::Karma,
            "immutable-js/immutable-js" => Self::ImmutableJs,
            "chartjs/Chart.js" => Self::ChartJs,
            "markedjs/marked" => Self::Marked,
            "processing/p5.js" => Self::P5js,
            "bpmn-io/bpmn-js" => Self::BpmnJs,
            "openlayers/openlayers" => Self::Openlayers,
            "eslint/eslint" => Self::Eslint,
            _ => return None,
        })
    }

    /// Reads a log, or a piece of one. Some repositories changed their runner from one instance to the next.
    pub fn read(self, log: &str, instance_id: &str) -> Statuses {
        let number = instance_id.rsplit('-').next().unwrap_or_default();
        match self {
            Self::Pytest => python::pytest(log, Names::AsTheyAre),
            Self::PytestOptions => python::pytest(log, Names::ShortPaths),
            Self::Matplotlib => python::pytest(log, Names::MouseButtons),
            Self::PytestV2 => python::pytest_v2(log),
            Self::PytestVerbose => lines::PYTEST_VERBOSE.read(log),
            Self::PytestWorkers => lines::PYTEST_WORKERS.read(log),
            Self::Unittest => python::unittest(log),
            Self::Django => python::django(log),
            Self::Sympy => python::sympy(log),
            Self::Seaborn => python::seaborn(log),
            Self::Gotest => lines::GO.read(log),
            Self::Cargo => lines::CARGO.read(log),
            Self::CargoVerbose => lines::CARGO_VERBOSE.read(log),
            Self::Redis => lines::redis(log),
            Self::Jq => lines::JQ.read(log),
            Self::Micropython => lines::MICROPYTHON.read(log),
            Self::Googletest => lines::GOOGLETEST.read(log),
            Self::Maven => lines::maven(log),
            Self::Surefire => lines::surefire(log),
            Self::Ant => lines::ANT.read(log),
            Self::Gradle => lines::gradle(log),
            Self::Phpunit => lines::phpunit(log),
            Self::Cucumber => lines::CUCUMBER.read(log),
            Self::Jekyll if matches!(number, "8761" | "8771") => lines::CUCUMBER.read(log),
            Self::Minitest | Self::Jekyll => lines::MINITEST.read(log),
            Self::RubyUnit => lines::RUBY_UNIT.read(log),
            Self::Rspec => lines::RSPEC.read(log),
            Self::JestJson => lines::JEST_JSON.read(log),
            Self::ImmutableJs if number == "2005" => lines::JEST_JSON.read(log),
            Self::Jest | Self::ImmutableJs => lines::JEST.read(log),
            Self::Mocha => lines::MOCHA.read(log),
            Self::Vitest => lines::VITEST.read(log),
            Self::Tap => lines::TAP.read(log),
            Self::Karma => lines::karma(log),
            Self::ChartJs => failures::chart_js(log),
            Self::Marked => failures::marked(log),
            Self::P5js => failures::p5js(log),
            Self::BpmnJs => failures::bpmn_js(log),
            Self::Openlayers => failures::openlayers(log),
            Self::Eslint => failures::eslint(log),
        }
    }
}

impl FromStr for LogParser {
    type Err = UnknownLogParser;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::find(name).ok_or_else(|| UnknownLogParser::Name {
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for LogParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for LogParser {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for LogParser {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

#[expect(
    clippy::expect_used,
    reason = "patterns are written in this crate, and each is used by a test"
)]
pub(super) fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of this crate")
}
