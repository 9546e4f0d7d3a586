//! From a source text in some language to a job, with the compilers and runtimes of this machine.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    Language,
    discover::{discover, missing},
};
use crate::{Build, Job, Limits, SandboxError};

/// The compilers and runtimes found on this machine.
#[derive(Clone, Debug, Default)]
pub struct Toolchains {
    found: BTreeMap<Language, Result<Toolchain, SandboxError>>,
}

/// What runs the programs of one language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    pub language: Language,
    /// What the compiler or runtime calls itself, in one line.
    pub version: String,
    /// The compiler or runtime.
    pub(super) program: PathBuf,
    /// What else is needed: Java's runtime, Rust's linker, what loads TypeScript.
    pub(super) second: Option<PathBuf>,
    /// Outside the system's folders, and needed in the jail.
    pub(super) folders: Vec<PathBuf>,
}

impl Toolchains {
    /// Looks for the programs of `languages` in the folders `search`, such as those of `PATH`, and in
    /// the usual places. Python is `python` where given. Starts each program once, all at the same
    /// time; takes some hundred milliseconds.
    pub fn probe(languages: &[Language], python: Option<&Path>, search: &[PathBuf]) -> Self {
        let found = std::thread::scope(|scope| {
            let probes: Vec<_> = languages
                .iter()
                .map(|language| {
                    (
                        *language,
                        scope.spawn(move || discover(*language, python, search)),
                    )
                })
                .collect();
            let ended = probes.into_iter().map(|(language, probe)| {
                let found = probe.join();
                (language, found.unwrap_or_else(|_| Err(missing(language))))
            });
            ended.collect()
        });
        Self { found }
    }

    /// These, and those of `others` for languages that these have nothing for.
    pub fn or(mut self, others: Self) -> Self {
        for (language, other) in others.found {
            let found = self.found.entry(language).or_insert_with(|| other.clone());
            if found.is_err() {
                *found = other;
            }
        }
        self
    }

    /// Folders that have to be shown in the jail: the sandbox's
    /// [`Config::readable`](crate::Config).
    pub fn readable(&self) -> Vec<PathBuf> {
        let toolchains = self.found.values().flatten();
        let mut folders: Vec<PathBuf> = toolchains
            .flat_map(|toolchain| toolchain.folders.clone())
            .collect();
        folders.sort();
        folders.dedup();
        folders
    }

    /// What runs `language`, or [`SandboxError::MissingProgram`], also when it was not looked for.
    pub fn get(&self, language: Language) -> Result<&Toolchain, SandboxError> {
        match self.found.get(&language) {
            Some(found) => found.as_ref().map_err(Clone::clone),
            None => Err(missing(language)),
        }
    }

    /// A job that runs `source`; compiled languages have a build with [`Toolchain::BUILD_LIMITS`].
    /// Runtimes that reserve more address space than they use are limited by what is resident.
    pub fn job(
        &self,
        language: Language,
        source: impl Into<Vec<u8>>,
        limits: Limits,
    ) -> Result<Job, SandboxError> {
        Ok(self.get(language)?.job(source.into(), limits))
    }
}

impl Toolchain {
    /// Compilers do more than the small programs that they make.
    pub const BUILD_LIMITS: Limits = Limits {
        wall: Duration::from_secs(120),
        cpu: Duration::from_secs(60),
        memory: 2 << 30,
        address_space: false,
        output_keep: 64 << 10,
        output_max: 16 << 20,
        processes: 256,
        disk: 512 << 20,
        files: 1024,
    };

    /// The compiler or runtime itself.
    pub fn program(&self) -> &Path {
        &self.program
    }

    fn job(&self, source: Vec<u8>, limits: Limits) -> Job {
        let program = text(&self.program);
        let second = self.second.as_deref().map(text).unwrap_or_default();
        let megabytes = limits.memory >> 20;
        let reserving = Limits {
            address_space: false,
            ..limits
        };
        let run = |file: &str, argv: &[&str], limits| {
            let argv = [program.as_str()].into_iter().chain(argv.iter().copied());
            Job::exec(argv, limits).with_file(file, source.clone())
        };
        let compiled = |file: &str, argv: &[&str], job: Job| {
            let build = Build {
                argv: argv.iter().map(|text| (*text).to_owned()).collect(),
                limits: Self::BUILD_LIMITS,
            };
            job.with_file(file, source.clone()).with_build(build)
        };
        let own = |limits| Job::exec(["./main"], limits);
        match self.language {
            Language::Python => Job::script(source.clone(), limits),
            Language::Pytest => {
                let argv = ["-m", "pytest", "-p", "no:cacheprovider", "test_main.py"];
                run("test_main.py", &argv, limits)
            }
            Language::Bash => run("main.sh", &["main.sh"], limits),
            Language::C => {
                let argv = [&program, "-O2", "-std=gnu17", "main.c", "-o", "main", "-lm"];
                compiled("main.c", &argv, own(limits))
            }
            Language::Cpp => {
                let argv = [&program, "-O2", "-std=gnu++17", "main.cpp", "-o", "main"];
                compiled("main.cpp", &argv, own(limits))
            }
            Language::Rust => {
                let linker = format!("linker={second}");
                let argv = [&program, "-O", "--edition=2021", "-C", &linker, "main.rs"];
                compiled("main.rs", &argv, own(limits))
            }
            Language::Go => {
                let script = "export GOCACHE=$TMPDIR/go-build GOPATH=$TMPDIR/go; \
                    export GOTOOLCHAIN=local GOFLAGS=-buildvcs=false; \
                    exec \"$0\" build -o main main.go";
                let argv = ["/bin/sh", "-c", script, &program];
                compiled("main.go", &argv, own(reserving))
            }
            Language::Java => {
                // What the machine itself needs besides the heap.
                const OVERHEAD_MB: u64 = 96;
                let heap = megabytes.saturating_sub(OVERHEAD_MB).max(megabytes / 2);
                let heap = format!("-Xmx{}m", heap.max(2));
                let machine = ["-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xshare:auto"];
                let (argv, class) = (machine.map(str::to_owned), ["-ea", "-cp", ".", "Main"]);
                let argv = [second.clone()].into_iter().chain(argv).chain([heap]);
                let job = Job::exec(argv.chain(class.map(str::to_owned)), reserving);
                let build = [&program, "-J-XX:+UseSerialGC", "-J-Xmx1g", "Main.java"];
                compiled("Main.java", &build, job)
            }
            Language::JavaScript => {
                let heap = format!("--max-old-space-size={}", (megabytes * 3 / 4).max(4));
                run("main.js", &[&heap, "main.js"], reserving)
            }
            Language::TypeScript => {
                let heap = format!("--max-old-space-size={}", (megabytes * 3 / 4).max(4));
                let loader = format!("file://{second}");
                let how: &[&str] = match &self.second {
                    Some(_) => &["--import", &loader],
                    None => &["--experimental-strip-types", "--no-warnings"],
                };
                let argv: Vec<&str> = [heap.as_str()]
                    .into_iter()
                    .chain(how.iter().copied())
                    .chain(["main.ts"])
                    .collect();
                run("main.ts", &argv, reserving)
            }
        }
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_found_says_what_to_install() {
        let toolchains = Toolchains::probe(&[], None, &[]);
        for language in Language::ALL {
            let error = toolchains.job(language, "", Limits::SMALL).unwrap_err();
            let said = error.to_string();
            assert!(
                said.contains(language.name()) && said.contains("hint: install"),
                "{said}"
            );
        }
    }
}
