//! What the user sees while work goes on: bars on a terminal, lines elsewhere. All on stderr.

use std::{
    io::{IsTerminal, Write},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The user's screen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    terminal: bool,
}

/// One piece of work with a known length.
pub(crate) struct Work {
    bar: ProgressBar,
    terminal: bool,
    /// Seconds of the work after which a line was last said, where there is no bar.
    said_s: AtomicU64,
}

/// Seconds between two lines where there is no bar.
const EVERY_S: u64 = 30;

/// `1 task`, `2 tasks`.
pub(crate) fn count_of(n: usize, noun: &str) -> String {
    let ending = if n == 1 { "" } else { "s" };
    format!("{n} {noun}{ending}")
}

impl Screen {
    pub(crate) fn new() -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// A line of its own.
    pub(crate) fn say(&self, line: impl AsRef<str>) {
        // Nobody is left to tell when stderr is gone.
        let _ = writeln!(std::io::stderr(), "{}", line.as_ref());
    }

    /// The headline of a phase.
    pub(crate) fn headline(&self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if self.terminal {
            self.say(format!("\n\x1b[1m{line}\x1b[0m"));
        } else {
            self.say(format!("\n{line}"));
        }
    }

    /// Begins work of `length` units; the bar appears on terminals only.
    pub(crate) fn work(&self, what: &str, length: u64) -> Work {
        let target = if self.terminal {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(length), target);
        if let Ok(style) =
            ProgressStyle::with_template("  {prefix:<18} {bar:20} {pos:>5}/{len:<5} {msg}")
        {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar.set_prefix(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Work {
            bar,
            terminal: self.terminal,
            said_s: AtomicU64::new(0),
        }
    }
}

impl Work {
    pub(crate) fn at(&self, position: u64) {
        self.bar.set_position(position);
        let seconds = self.bar.elapsed().as_secs();
        let is_due = |said: u64| (seconds >= said + EVERY_S).then_some(seconds);
        let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
        if !self.terminal && self.said_s.fetch_update(set, read, is_due).is_ok() {
            let length = self.bar.length().unwrap_or(position);
            Screen { terminal: false }.say(format!("  {position} of {length} after {seconds} s"));
        }
    }

    /// What has come of the work so far, after `step` of it: beside the bar, or a line of its own
    /// where there is none and `as_line` holds.
    pub(crate) fn note(&self, step: u64, message: &str, as_line: bool) {
        self.bar.set_position(step);
        if self.terminal {
            self.bar.set_message(message.to_owned());
        } else if as_line {
            let length = self.bar.length().unwrap_or(step);
            Screen { terminal: false }.say(format!("  step {step:>3}/{length}: {message}"));
        }
    }

    /// Ends the work; its bar disappears and `line` stays.
    pub(crate) fn done(self, line: impl AsRef<str>) {
        self.bar.finish_and_clear();
        Screen {
            terminal: self.terminal,
        }
        .say(format!("  {}", line.as_ref()));
    }
}
