//! Whatever is killed, whenever: nothing is left. A copy of this program runs many jobs that try to
//! stay, and is killed, or its supervisor, or a slot, at moments drawn from a seed.

#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests stop at the first surprise"
)]

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use sandbox::{Job, Limits, Sandbox};

mod common;

use common::{ALL, Tier, all_end, command_lines, config, control_groups_of, descendants};
use common::{eventually, kill, start};

/// The `argv[0]` of the copy; its arguments choose the test that makes it the victim.
const VICTIM: &str = "chaos-victim";

/// Programs that leave processes, files and much to take down behind.
fn hostile_jobs(marker: &str) -> Vec<Job> {
    let daemon = format!(
        "
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: os.execv('/bin/sleep', ['{marker}', '600'])
    os._exit(0)
os.wait(); time.sleep(0.05)"
    );
    let stayer = daemon.replace("time.sleep(0.05)", "time.sleep(600)");
    let tree = "
import os
for i in range(100): os.makedirs('%d/a/b' % i); open('%d/a/x' % i, 'w').write('x' * 10000)
os.chmod('7', 0)
import time; time.sleep(600)";
    let busy = "
import os, mmap
for _ in range(3): os.fork()
os.chdir('/tmp'); f = open('/box/held' if os.path.isdir('/box') else '/dev/null', 'wb')
m = mmap.mmap(-1, 8 << 20); m[:] = bytes(8 << 20)
while True: f.write(b'x' * 10)";
    let limits = Limits {
        wall: Duration::from_secs(60),
        ..Limits::SMALL
    };
    let sources = [daemon.as_str(), &stayer, tree, busy, "print(1)"];
    sources.map(|source| Job::script(source, limits)).into()
}

/// Started by the tests below only, as a program of its own: runs jobs until it is killed.
#[test]
fn victim() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments[0] != VICTIM {
        return;
    }
    let told = std::env::var("CHAOS").unwrap();
    let (tier, scratch) = told.split_once(' ').unwrap();
    let mut config = config(ALL[tier.parse::<usize>().unwrap()], 3);
    config.scratch = PathBuf::from(scratch);
    let sandbox = Sandbox::start(config).unwrap();
    println!("\nsupervisor {}", sandbox.supervisor_pid().unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let marker = format!("marker-of-{}", std::process::id());
    runtime.block_on(async {
        let mut running = Vec::new();
        for job in (0..4).flat_map(|_| hostile_jobs(&marker)) {
            let sandbox = sandbox.clone();
            running.push(tokio::spawn(async move {
                loop {
                    // Lost runs are expected here; what counts is what they leave.
                    let given_up = tokio::time::sleep(Duration::from_millis(150));
                    tokio::select! {
                        _ = sandbox.run(job.clone()) => {}
                        () = given_up => {}
                    }
                }
            }));
        }
        for task in running {
            let _ = task.await;
        }
    });
}

struct Victim {
    tier: Tier,
    process: Child,
    supervisor: u32,
    marker: String,
}

impl Victim {
    fn start(tier: usize, scratch: &Path) -> Option<Self> {
        start(config(ALL[tier], 1))?;
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg0(VICTIM)
            .args(["--exact", "victim", "--nocapture"])
            .env("CHAOS", format!("{tier} {}", scratch.display()))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let supervisor = lines
            .find_map(|line| line.unwrap().strip_prefix("supervisor ")?.parse().ok())
            .unwrap();
        let marker = format!("marker-of-{}", process.id());
        Some(Self {
            tier: ALL[tier],
            process,
            supervisor,
            marker,
        })
    }

    fn slots(&self) -> Vec<u32> {
        children(self.supervisor)
    }

    /// Kills it, and checks that all it started ends and all it made is gone.
    fn end(mut self, scratch: &Path) {
        let mut processes = descendants(self.process.id());
        kill(self.process.id());
        self.process.wait().unwrap();
        processes.insert(self.supervisor);
        all_end(&processes);
        self.nothing_is_left(scratch);
    }

    fn nothing_is_left(&self, scratch: &Path) {
        // Killed in the middle of taking something down, it leaves that to the next one that starts.
        let mut config = config(self.tier, 1);
        config.scratch = scratch.to_owned();
        let starts = || start(config.clone()).unwrap().supervisor_pid().unwrap();
        let own = starts();
        none_left(|| {
            let lines = command_lines().into_iter();
            lines.filter(|line| line.contains(&self.marker)).collect()
        });
        none_left(|| {
            let folders = fs::read_dir(scratch).unwrap().flatten();
            folders
                .map(|entry| entry.path().display().to_string())
                .collect()
        });
        none_left(|| {
            let groups = [self.supervisor, own].map(control_groups_of).concat();
            if !groups.is_empty() {
                // A process that had only just been made held them a moment longer: the next takes them.
                starts();
            }
            groups
                .iter()
                .map(|group| group.display().to_string())
                .collect()
        });
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(scratch.to_str().unwrap()), "{mounts}");
    }
}

/// Numbers of processes tell no order: they begin anew.
fn children(process: u32) -> Vec<u32> {
    let below = descendants(process);
    let deeper: BTreeSet<u32> = below.iter().flat_map(|pid| descendants(*pid)).collect();
    below.difference(&deeper).copied().collect()
}

#[track_caller]
fn none_left(find: impl Fn() -> Vec<String>) {
    eventually(|| {
        let left = find();
        left.is_empty()
            .then_some(())
            .ok_or(format!("left: {left:?}"))
    });
}

/// Milliseconds to wait: a fixed sequence for each seed (a linear congruence is random enough here).
struct Moments(u64);

impl Moments {
    fn wait(&mut self) {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis(20 + (self.0 >> 33) % 250));
    }

    fn choose<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(7);
        from.get((self.0 >> 33) as usize % from.len().max(1))
            .copied()
    }
}

fn scratch() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// At every tier, in parallel: `attack`, again and again, and nothing may be left.
fn at_every_tier(attack: impl Fn(&mut Victim, &mut Moments) + Sync) {
    std::thread::scope(|scope| {
        for (tier, name) in Tier::ALL.iter().enumerate() {
            let attack = &attack;
            scope.spawn(move || {
                let folder = scratch();
                let mut moments = Moments(tier as u64 + 1);
                for _ in 0..2 {
                    let Some(mut victim) = Victim::start(tier, folder.path()) else {
                        eprintln!("SKIPPED for {name}");
                        return;
                    };
                    attack(&mut victim, &mut moments);
                    victim.end(folder.path());
                }
            });
        }
    });
}

#[test]
fn the_whole_program_is_killed() {
    at_every_tier(|_, moments| moments.wait());
}

#[test]
fn the_supervisor_is_killed() {
    at_every_tier(|victim, moments| {
        for _ in 0..3 {
            moments.wait();
            let below = descendants(victim.supervisor);
            kill(victim.supervisor);
            all_end(&below);
            // The next one.
            let parent = victim.process.id();
            victim.supervisor = eventually(|| {
                let next = children(parent).into_iter();
                let mut next = next.filter(|pid| *pid != victim.supervisor);
                next.next().ok_or("no supervisor".to_owned())
            });
            eventually(|| {
                let slots = victim.slots().len();
                (slots == 3).then_some(()).ok_or(format!("{slots} slots"))
            });
        }
    });
}

#[test]
fn a_slot_is_killed() {
    at_every_tier(|victim, moments| {
        for _ in 0..5 {
            moments.wait();
            let Some(slot) = moments.choose(&victim.slots()) else {
                continue;
            };
            let below = descendants(slot);
            kill(slot);
            all_end(&below);
        }
    });
}

#[test]
fn everything_is_killed_at_once() {
    at_every_tier(|victim, moments| {
        moments.wait();
        // Slots last, so that some of them see the others go.
        kill(victim.process.id());
        kill(victim.supervisor);
        moments.choose(&victim.slots()).into_iter().for_each(kill);
    });
}
