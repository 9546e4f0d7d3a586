//! What each language needs, and where this machine has it.

use std::path::{Path, PathBuf};

use super::{
    Language, Toolchain,
    find::{ask, candidates, foreign, home_of, linked_from},
};
use crate::{SandboxError, python::find_python};

/// What runs `language` here; see [`Toolchains::probe`](super::Toolchains::probe).
pub(super) fn discover(
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

/// The error of a language that nothing runs here.
pub(super) fn missing(language: Language) -> SandboxError {
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
}
