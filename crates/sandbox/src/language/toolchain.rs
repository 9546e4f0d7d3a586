//! From a source text in some language to a job, with the compilers and runtimes of this machine.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    Language,
    find::{ask, candidates, foreign, home_of, linked_from},
};
use crate::{Build, Job, Limits, SandboxError, python::find_python};

/// The compilers and runtimes found on this machine.
#[derive(Clone, Debug)]
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
    program: PathBuf,
    /// What else is needed: Java's runtime, Rust's linker, what loads TypeScript.
    second: Option<PathBuf>,
    /// Outside the system's folders, and needed in the jail.
    folders: Vec<PathBuf>,
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
                        scope.spawn(move || find(*language, python, search)),
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

fn find(
    language: Language,
    python: Option<&Path>,
    search: &[PathBuf],
) -> Result<Toolchain, SandboxError> {
    if language == Language::Python {
        let python = find_python(python, search)?;
        return Ok(Toolchain {
            language,
            version: format!("Python {}", python.version),
            program: python.executable,
            second: None,
            folders: python.folders,
        });
    }
    let found = match language {
        Language::Python | Language::Pytest => pytest(python, search),
        Language::Bash => simple(language, "bash", search),
        Language::C => simple(language, "gcc", search),
        Language::Cpp => simple(language, "g++", search),
        Language::Rust => rust(search)?,
        Language::Go => go(search),
        Language::Java => java(search),
        Language::JavaScript => node(search),
        Language::TypeScript => typescript(search),
    };
    found.ok_or_else(|| missing(language))
}

fn missing(language: Language) -> SandboxError {
    let (program, package) = match language {
        Language::Python => ("python3", "install python3"),
        Language::Pytest => (
            "pytest",
            "install it (`pip install pytest`, or python3-pytest)",
        ),
        Language::Bash => ("bash", "install bash"),
        Language::C => ("gcc", "install gcc and libc6-dev"),
        Language::Cpp => ("g++", "install g++"),
        Language::Rust => ("rustc", "install it from https://rustup.rs"),
        Language::Go => ("go", "install golang-go, or from https://go.dev/dl"),
        Language::Java => ("javac", "install a JDK, such as default-jdk-headless"),
        Language::JavaScript => ("node", "install nodejs"),
        Language::TypeScript => (
            "tsx",
            "install it (`npm install -g tsx`), or Node 22.6 or newer, which runs TypeScript itself",
        ),
    };
    needs(language, program, package)
}

fn needs(language: Language, program: &'static str, package: &str) -> SandboxError {
    SandboxError::MissingProgram {
        language: language.name(),
        program,
        hint: format!("{package}; it is searched in the folders of PATH"),
    }
}

fn pytest(python: Option<&Path>, search: &[PathBuf]) -> Option<Toolchain> {
    let candidates = match python {
        Some(python) => vec![python.to_owned()],
        // The system's before those of the search, as for Python itself.
        None => [candidates("python3", &[]), candidates("python3", search)].concat(),
    };
    let python = candidates.iter().find_map(|candidate| {
        ask(candidate, &["-c", "import pytest"])?;
        find_python(Some(candidate), &[]).ok()
    })?;
    let told = ask(&python.executable, &["-m", "pytest", "--version"])?;
    Some(Toolchain {
        language: Language::Pytest,
        version: first_line(&told),
        program: python.executable,
        second: None,
        folders: python.folders,
    })
}

/// A program that is what it seems to be.
fn simple(language: Language, name: &str, search: &[PathBuf]) -> Option<Toolchain> {
    let works = |program: PathBuf| Some((ask(&program, &["--version"])?, program));
    let (told, program) = candidates(name, search).into_iter().find_map(works)?;
    Some(Toolchain {
        language,
        version: first_line(&told),
        folders: home_of(&program),
        program,
        second: None,
    })
}

fn rust(search: &[PathBuf]) -> Result<Option<Toolchain>, SandboxError> {
    let language = Language::Rust;
    let real = |program: PathBuf| {
        let sysroot = PathBuf::from(ask(&program, &["--print", "sysroot"])?.trim_end());
        let real = sysroot.join("bin/rustc");
        Some((ask(&real, &["--version"])?, real, sysroot))
    };
    let found = candidates("rustc", search).into_iter().find_map(real);
    let Some((told, program, sysroot)) = found else {
        return Ok(None);
    };
    let Some(linker) = candidates("cc", search).into_iter().next() else {
        return Err(needs(language, "cc", "install gcc, which links programs"));
    };
    Ok(Some(Toolchain {
        language,
        version: first_line(&told),
        program,
        folders: foreign(home_of(&linker).into_iter().chain([sysroot])),
        second: Some(linker),
    }))
}

fn go(search: &[PathBuf]) -> Option<Toolchain> {
    let real = |program: PathBuf| {
        let told = ask(&program, &["env", "GOROOT", "GOVERSION"])?;
        let (root, version) = told.split_once('\n')?;
        let root = PathBuf::from(root);
        Some((version.trim().to_owned(), root.join("bin/go"), root))
    };
    let (version, program, root) = candidates("go", search).into_iter().find_map(real)?;
    Some(Toolchain {
        language: Language::Go,
        version,
        program,
        second: None,
        folders: foreign(linked_from(&root).into_iter().chain([root])),
    })
}

fn java(search: &[PathBuf]) -> Option<Toolchain> {
    let real = |program: PathBuf| {
        let told = ask(&program, &["-XshowSettings:properties", "-version"])?;
        let mut lines = told.lines().map(str::trim);
        let home = lines.find_map(|line| line.strip_prefix("java.home = "))?;
        let home = PathBuf::from(home);
        let (compiler, runtime) = (home.join("bin/javac"), home.join("bin/java"));
        Some((ask(&compiler, &["--version"])?, compiler, runtime, home))
    };
    let (told, compiler, runtime, home) = candidates("java", search).into_iter().find_map(real)?;
    Some(Toolchain {
        language: Language::Java,
        version: first_line(&told),
        program: compiler,
        second: Some(runtime),
        folders: foreign(linked_from(&home).into_iter().chain([home])),
    })
}

fn node(search: &[PathBuf]) -> Option<Toolchain> {
    let real = |program: PathBuf| {
        let told = ask(
            &program,
            &["-p", "process.execPath + '\\n' + process.version"],
        )?;
        let (program, version) = told.split_once('\n')?;
        Some((version.trim().to_owned(), PathBuf::from(program)))
    };
    let (version, program) = candidates("node", search).into_iter().find_map(real)?;
    Some(Toolchain {
        language: Language::JavaScript,
        version,
        folders: home_of(&program),
        program,
        second: None,
    })
}

/// With `tsx`, which knows the whole language; else with Node alone, which drops the types.
fn typescript(search: &[PathBuf]) -> Option<Toolchain> {
    let node = node(search)?;
    let version = node_version(&node.version)?;
    let tsx = candidates("tsx", search).into_iter().find_map(|program| {
        // `<package>/dist/cli.mjs`
        let loader = program.canonicalize().ok()?.with_file_name("loader.mjs");
        loader.is_file().then_some(loader)
    });
    if version >= (20, 6)
        && let Some(loader) = tsx
    {
        let mut above = loader.ancestors();
        let modules = above.find(|folder| folder.ends_with("node_modules"));
        let modules = modules.map(Path::to_owned);
        return Some(Toolchain {
            language: Language::TypeScript,
            version: format!("tsx on node {}", node.version),
            folders: foreign(node.folders.into_iter().chain(modules)),
            program: node.program,
            second: Some(loader),
        });
    }
    (version >= (22, 6)).then(|| Toolchain {
        language: Language::TypeScript,
        version: format!("node {} (types dropped)", node.version),
        ..node
    })
}

/// Of `v22.6.0`.
fn node_version(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.trim_start_matches('v').split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn first_line(told: &str) -> String {
    told.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_node_are_read() {
        assert_eq!(node_version("v22.6.0"), Some((22, 6)));
        assert_eq!(node_version("none"), None);
    }

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
