//! How long policies were asked, how long programs ran, and how long both at once, by one clock.
//!
//! A step is well pipelined when programs run while responses are still decoded: what then remains is the
//! time in which nothing but programs ran. Nothing is kept of a single span, so that this costs two looks
//! at the clock a span.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Seconds since they were last taken. A second counts once, however many did the same in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// At least one response was waited for.
    pub decoding: f64,
    /// At least one program was waited for.
    pub sandbox: f64,
    pub both: f64,
}

impl Spent {
    /// Seconds in which nothing but programs ran.
    pub fn sandbox_alone(&self) -> f64 {
        self.sandbox - self.both
    }
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    Decoding,
    Sandbox,
}

/// Shared by the episodes of a runner.
#[derive(Clone, Debug)]
pub(crate) struct Overlap {
    began: Instant,
    sums: Arc<Mutex<Sums>>,
}

impl Default for Overlap {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            sums: Arc::default(),
        }
    }
}

impl Overlap {
    /// The activity goes on until what is returned is dropped, cancelled episodes included.
    pub(crate) fn span(&self, activity: Activity) -> Span {
        self.locked().begin(self.began.elapsed(), activity);
        Span {
            overlap: self.clone(),
            activity,
        }
    }

    pub(crate) fn take(&self) -> Spent {
        self.locked().take(self.began.elapsed())
    }

    fn locked(&self) -> MutexGuard<'_, Sums> {
        // The sums are consistent between any two of their operations.
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Span {
    overlap: Overlap,
    activity: Activity,
}

impl Drop for Span {
    fn drop(&mut self) {
        let now = self.overlap.began.elapsed();
        self.overlap.locked().end(now, self.activity);
    }
}

/// The sums at a moment; moments are given, so that this is a function of them.
#[derive(Debug, Default)]
struct Sums {
    at: Duration,
    decoding: usize,
    sandbox: usize,
    spent: Spent,
}

impl Sums {
    fn begin(&mut self, now: Duration, activity: Activity) {
        self.advance(now);
        *self.count_of(activity) += 1;
    }

    fn end(&mut self, now: Duration, activity: Activity) {
        self.advance(now);
        let count = self.count_of(activity);
        *count = count.saturating_sub(1);
    }

    fn take(&mut self, now: Duration) -> Spent {
        self.advance(now);
        std::mem::take(&mut self.spent)
    }

    /// Threads read the clock before they hold the sums, so a moment may come late.
    fn advance(&mut self, now: Duration) {
        let seconds = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        if self.decoding > 0 {
            self.spent.decoding += seconds;
        }
        if self.sandbox > 0 {
            self.spent.sandbox += seconds;
        }
        if self.decoding > 0 && self.sandbox > 0 {
            self.spent.both += seconds;
        }
    }

    fn count_of(&mut self, activity: Activity) -> &mut usize {
        match activity {
            Activity::Decoding => &mut self.decoding,
            Activity::Sandbox => &mut self.sandbox,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_counts_once_for_what_went_on_in_it() {
        use Activity::{Decoding, Sandbox};
        let mut sums = Sums::default();
        let mut at = |seconds: u64, begins: bool, activity| {
            let now = Duration::from_secs(seconds);
            match begins {
                true => sums.begin(now, activity),
                false => sums.end(now, activity),
            }
        };
        at(1, true, Decoding);
        at(2, true, Decoding);
        at(4, false, Decoding);
        at(5, true, Sandbox);
        at(8, false, Decoding);
        // Late: the clock was read before another thread's moment was counted.
        at(7, true, Sandbox);
        at(9, false, Sandbox);
        at(10, false, Sandbox);
        let spent = sums.take(Duration::from_secs(20));
        let expected = Spent {
            decoding: 7.0,
            sandbox: 5.0,
            both: 3.0,
        };
        assert_eq!((spent, spent.sandbox_alone()), (expected, 2.0));
        assert_eq!(sums.take(Duration::from_secs(30)), Spent::default());
    }

    #[test]
    fn a_span_ends_when_it_is_dropped() {
        let overlap = Overlap::default();
        let span = overlap.span(Activity::Sandbox);
        assert_eq!(overlap.locked().sandbox, 1);
        drop(span);
        assert_eq!(overlap.locked().sandbox, 0);
    }
}
