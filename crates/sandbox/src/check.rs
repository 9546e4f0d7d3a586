//! What a job may ask for. Checked on this side, before anything is started.

use std::{
    collections::HashSet,
    fmt::Display,
    path::{Component, Path},
    time::Duration,
};

use crate::{Build, InputFile, Job, Limits, Program, SandboxError};

/// Files that one job may bring, and folders that they may need.
pub const MAX_FILES: usize = 100_000;
/// Paths that one job may have fetched.
pub const MAX_FETCHED_FILES: usize = 10_000;

/// The kernel's own limits, of a name and a single argument; and well below that of all arguments.
const MAX_NAME: usize = 255;
const MAX_PATH: usize = 2048;
const MAX_ARGUMENT: usize = (128 << 10) - 1;
const MAX_ARGUMENTS: usize = 1 << 20;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The name under which a script lies in the working folder.
pub(crate) const SCRIPT_FILE: &str = "main.py";

/// Whether `job` may be run; the error names the field that is wrong.
pub(crate) fn check(job: &Job) -> Result<(), SandboxError> {
    limits("limits", &job.limits)?;
    if let Program::Exec { argv } = &job.program {
        command("program", argv, &job.arguments, &job.env)?;
    } else if !job.arguments.is_empty() {
        arguments("arguments", &job.arguments)?;
    }
    environment(&job.env)?;
    if let Some(Build {
        argv,
        limits: build_limits,
    }) = &job.build
    {
        limits("build.limits", build_limits)?;
        command("build", argv, &[], &job.env)?;
    }
    let script = matches!(job.program, Program::Script { .. });
    files(&job.files, script)?;
    if job.fetch.len() > MAX_FETCHED_FILES {
        return refuse("fetch", job.fetch.len(), "more paths than 10000");
    }
    job.fetch
        .iter()
        .try_for_each(|path| relative("fetch", path))
}

fn refuse<T>(
    field: &'static str,
    value: impl Display,
    detail: impl Into<String>,
) -> Result<T, SandboxError> {
    // Values come from anywhere and go to logs.
    let value: String = value.to_string().chars().take(200).collect();
    Err(SandboxError::Invalid {
        field,
        value: format!("{value:?}"),
        detail: detail.into(),
    })
}

fn limits(field: &'static str, limits: &Limits) -> Result<(), SandboxError> {
    let within = |name: &str, value: u64, least: u64, most: u64, unit: &str| {
        if (least..=most).contains(&value) {
            return Ok(());
        }
        let detail = format!("{name} must be {least} to {most}{unit}");
        refuse(field, format!("{name} = {value}{unit}"), detail)
    };
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let day = milliseconds(DAY);
    within("wall", milliseconds(limits.wall), 1, day, " ms")?;
    // Of many processes together.
    within("cpu", milliseconds(limits.cpu), 1, 1000 * day, " ms")?;
    within("memory", limits.memory, 1 << 20, 1 << 44, " bytes")?;
    let keep = limits.output_keep as u64;
    within("output_keep", keep, 0, 1 << 30, " bytes")?;
    within("output_max", limits.output_max, 0, 1 << 40, " bytes")?;
    within("processes", u64::from(limits.processes), 1, 1 << 20, "")?;
    within("disk", limits.disk, 4096, 1 << 44, " bytes")?;
    within("files", u64::from(limits.files), 4, 1 << 20, "")
}

fn command(
    field: &'static str,
    argv: &[String],
    more: &[String],
    env: &[(String, String)],
) -> Result<(), SandboxError> {
    if argv.first().is_none_or(String::is_empty) {
        return refuse(field, "", "no program is named");
    }
    arguments(field, argv)?;
    arguments("arguments", more)?;
    let all = argv.iter().chain(more).map(String::len).sum::<usize>()
        + env
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum::<usize>();
    if all > MAX_ARGUMENTS {
        let detail = format!("arguments and variables have more than {MAX_ARGUMENTS} bytes");
        return refuse(field, format!("{all} bytes"), detail);
    }
    Ok(())
}

fn arguments(field: &'static str, arguments: &[String]) -> Result<(), SandboxError> {
    for argument in arguments {
        if argument.contains('\0') {
            return refuse(field, argument, "it contains a NUL character");
        }
        if argument.len() > MAX_ARGUMENT {
            let detail = format!("an argument has more than {MAX_ARGUMENT} bytes");
            return refuse(field, argument, detail);
        }
    }
    Ok(())
}

fn environment(env: &[(String, String)]) -> Result<(), SandboxError> {
    for (name, value) in env {
        if name.is_empty() || name.contains(['=', '\0']) {
            let detail = "a variable's name may not be empty nor contain `=` or NUL";
            return refuse("env", name, detail);
        }
        if value.contains('\0') {
            return refuse("env", name, "its value contains a NUL character");
        }
        if name.len() + value.len() > MAX_ARGUMENT {
            let detail = format!("a variable has more than {MAX_ARGUMENT} bytes");
            return refuse("env", name, detail);
        }
    }
    let all: usize = env
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if all > MAX_ARGUMENTS {
        let detail = format!("the variables have more than {MAX_ARGUMENTS} bytes");
        return refuse("env", format!("{all} bytes"), detail);
    }
    Ok(())
}

fn files(files: &[InputFile], script: bool) -> Result<(), SandboxError> {
    if files.len() > MAX_FILES {
        let detail = format!("more than {MAX_FILES} files");
        return refuse("files", files.len(), detail);
    }
    let mut folders = HashSet::new();
    let mut seen = HashSet::new();
    for file in files {
        relative("files", &file.path)?;
        let path = plain(&file.path);
        if script && path.first() == Some(&SCRIPT_FILE) {
            return refuse("files", &file.path, "the script itself lies there");
        }
        for end in 1..path.len() {
            folders.insert(path[..end].to_vec());
        }
        if folders.len() > MAX_FILES {
            let detail = format!("the files lie in more than {MAX_FILES} folders");
            return refuse("files", &file.path, detail);
        }
        if !seen.insert(path) {
            return refuse("files", &file.path, "it is given twice");
        }
    }
    match seen.iter().find(|path| folders.contains(*path)) {
        Some(path) => refuse("files", path.join("/"), "it is both a file and a folder"),
        None => Ok(()),
    }
}

/// The names along a checked path.
fn plain(path: &str) -> Vec<&str> {
    path.split('/')
        .filter(|name| !matches!(*name, "" | "."))
        .collect()
}

/// Refuses paths that are not those of a file below the working folder.
fn relative(field: &'static str, path: &str) -> Result<(), SandboxError> {
    if path.contains('\0') {
        return refuse(field, path, "a path contains a NUL character");
    }
    if path.len() > MAX_PATH || path.split('/').any(|name| name.len() > MAX_NAME) {
        let detail = format!("a path has more than {MAX_PATH} bytes, or a name in it {MAX_NAME}");
        return refuse(field, path, detail);
    }
    if path.ends_with('/') || path.ends_with("/.") {
        return refuse(field, path, "a path names a folder, not a file");
    }
    for component in Path::new(path).components() {
        match component {
            Component::Normal(_) | Component::CurDir => {}
            Component::ParentDir => return refuse(field, path, "a path contains `..`"),
            Component::RootDir | Component::Prefix(_) => {
                return refuse(field, path, "a path is absolute; it must be relative");
            }
        }
    }
    match plain(path).is_empty() {
        true => refuse(field, path, "a path is empty"),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refusal(job: &Job) -> (&'static str, String) {
        match check(job).unwrap_err() {
            SandboxError::Invalid { field, value, .. } => (field, value),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn paths_that_leave_the_working_folder_are_refused_by_name() {
        for path in [
            "",
            "/etc/passwd",
            "..",
            "a/../../b",
            "a\0b",
            ".",
            "a/",
            "./",
            "a/.",
        ] {
            let job = Job::exec(["/bin/true"], Limits::SMALL);
            let into = job.clone().with_file(path, "");
            assert_eq!(refusal(&into), ("files", format!("{path:?}")));
            let out = job.with_fetch([path]);
            assert_eq!(refusal(&out), ("fetch", format!("{path:?}")));
        }
        let long = "x".repeat(256);
        let job = Job::exec(["/bin/true"], Limits::SMALL).with_file(long, "");
        assert_eq!(refusal(&job).0, "files");
        let fine = Job::exec(["/bin/true"], Limits::SMALL)
            .with_file("a/b.txt", "")
            .with_file("./a/c..d", "")
            .with_file("...", "")
            .with_fetch(["./a//b.txt"]);
        check(&fine).unwrap();
    }

    #[test]
    fn files_that_stand_in_each_others_way_are_refused() {
        let job = || Job::script("", Limits::SMALL);
        let twice = job().with_file("a", "1").with_file("./a", "2");
        assert_eq!(refusal(&twice).1, "\"./a\"");
        let both = job().with_file("a/b", "1").with_file("a", "2");
        assert_eq!(refusal(&both).1, "\"a\"");
        assert_eq!(refusal(&job().with_file("main.py", "")).1, "\"main.py\"");
        check(&job().with_file("folder/main.py", "")).unwrap();
    }

    #[test]
    fn impossible_limits_are_refused_by_name() {
        let small = Limits::SMALL;
        let wrong = [
            Limits {
                wall: Duration::ZERO,
                ..small
            },
            Limits {
                wall: Duration::MAX,
                ..small
            },
            Limits {
                cpu: Duration::ZERO,
                ..small
            },
            Limits { memory: 0, ..small },
            Limits {
                memory: u64::MAX,
                ..small
            },
            Limits {
                processes: 0,
                ..small
            },
            Limits {
                processes: u32::MAX,
                ..small
            },
            Limits { disk: 0, ..small },
            Limits {
                disk: u64::MAX,
                ..small
            },
            Limits { files: 0, ..small },
            Limits {
                output_keep: usize::MAX,
                ..small
            },
            Limits {
                output_max: u64::MAX,
                ..small
            },
        ];
        for limits in wrong {
            assert_eq!(refusal(&Job::script("", limits)).0, "limits");
            let argv = vec!["/bin/true".to_owned()];
            let job = Job::script("", small).with_build(Build { argv, limits });
            assert_eq!(refusal(&job).0, "build.limits");
        }
    }

    #[test]
    fn arguments_and_variables_that_the_kernel_cannot_carry_are_refused() {
        let job = Job::script("", Limits::SMALL);
        let with = |name: &str, value: &str| Job {
            env: vec![(name.to_owned(), value.to_owned())],
            ..job.clone()
        };
        for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "\0")] {
            assert_eq!(refusal(&with(name, value)).0, "env");
        }
        assert_eq!(refusal(&with("A", &"x".repeat(200_000))).0, "env");
        let many = Job {
            env: (0..20)
                .map(|i| (format!("A{i}"), "x".repeat(100_000)))
                .collect(),
            ..job.clone()
        };
        assert_eq!(refusal(&many).0, "env");
        for argument in ["a\0b".to_owned(), "x".repeat(200_000)] {
            let arguments = vec![argument.clone()];
            assert_eq!(
                refusal(&Job {
                    arguments,
                    ..job.clone()
                })
                .0,
                "arguments"
            );
            assert_eq!(
                refusal(&Job::exec(["/bin/true", &argument], Limits::SMALL)).0,
                "program"
            );
        }
        assert_eq!(refusal(&Job::exec([""; 0], Limits::SMALL)).0, "program");
    }

    proptest! {
        #[test]
        fn accepted_paths_stay_below_the_working_folder(
            parts in proptest::collection::vec(
                prop::sample::select(vec!["..", ".", "", "a", "b.c", "...", "/", "\0", "\\", "~"]),
                0..8,
            ),
        ) {
            let path = parts.join("/");
            if relative("files", &path).is_ok() {
                let mut depth = 0;
                for name in path.split('/') {
                    depth += match name {
                        "" | "." => 0,
                        ".." => -1,
                        _ => 1,
                    };
                    prop_assert!(depth >= 0, "{path}");
                }
                prop_assert!(depth > 0 && !path.starts_with('/') && !path.contains('\0'), "{path}");
            } else {
                let fine = !path.starts_with('/') && !path.ends_with(['/', '.'])
                    && !parts.contains(&"..") && !path.contains('\0') && !path.is_empty();
                prop_assert!(!fine, "{path}");
            }
        }
    }
}
