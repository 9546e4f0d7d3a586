//! The order in which waiting jobs are run.
//!
//! The job whose deadline comes first is next. A job without a deadline counts as one that is due
//! [`PATIENCE`] after it came, though it never expires. So nobody starves: a job is only overtaken by
//! jobs that are due earlier, and jobs that come later than `PATIENCE` before it is due are not,
//! unless they bring a deadline that is even shorter.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

/// After which a job without a deadline is as urgent as any.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Waiting jobs.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// By deadline, and by arrival where deadlines are equal.
    dated: BTreeMap<(Instant, u64), T>,
    /// In order of arrival, with the moment when each is due.
    undated: VecDeque<(Instant, T)>,
    arrivals: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            dated: BTreeMap::new(),
            undated: VecDeque::new(),
            arrivals: 0,
        }
    }
}

impl<T> Queue<T> {
    pub(crate) fn push(&mut self, job: T, deadline: Option<Instant>, now: Instant) {
        self.arrivals += 1;
        match deadline {
            Some(deadline) => {
                self.dated.insert((deadline, self.arrivals), job);
            }
            None => self.undated.push_back((now + PATIENCE, job)),
        }
    }

    /// The job that is due first.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let dated = self.dated.first_key_value().map(|((due, _), _)| *due);
        let undated = self.undated.front().map(|(due, _)| *due);
        match (dated, undated) {
            (Some(dated), Some(undated)) if dated < undated => self.pop_dated(),
            (Some(_), None) => self.pop_dated(),
            _ => self.undated.pop_front().map(|(_, job)| job),
        }
    }

    /// A job whose deadline is over.
    pub(crate) fn pop_expired(&mut self, now: Instant) -> Option<T> {
        self.next_deadline()
            .is_some_and(|deadline| deadline <= now)
            .then(|| self.pop_dated())?
    }

    /// When the next job expires.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.dated.keys().next().map(|(deadline, _)| *deadline)
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.dated.retain(|_, job| keep(job));
        self.undated.retain(|(_, job)| keep(job));
    }

    pub(crate) fn len(&self) -> usize {
        self.dated.len() + self.undated.len()
    }

    fn pop_dated(&mut self) -> Option<T> {
        self.dated.pop_first().map(|(_, job)| job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_earliest_deadline_is_first_and_nobody_starves() {
        let start = Instant::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        let mut queue = Queue::default();
        queue.push("late", Some(after(100)), start);
        queue.push("whenever", None, start);
        queue.push("soon", Some(after(3)), start);
        queue.push("soon too", Some(after(3)), start);
        queue.push("before patience ends", Some(after(9)), start);
        queue.push("later", None, after(1));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        let expected = [
            "soon",
            "soon too",
            "before patience ends",
            "whenever",
            "later",
            "late",
        ];
        assert_eq!(order, expected);
        // A stream of urgent jobs: each is due two seconds after it comes.
        queue.push("whenever", None, start);
        let mut waited = 0;
        loop {
            queue.push("urgent", Some(after(waited + 2)), after(waited));
            if queue.pop() == Some("whenever") {
                break;
            }
            waited += 1;
            assert!(waited < 60, "starved");
        }
        assert_eq!(waited, PATIENCE.as_secs() - 2);
    }

    #[test]
    fn only_deadlines_expire() {
        let start = Instant::now();
        let soon = start + Duration::from_secs(1);
        let mut queue = Queue::default();
        queue.push("whenever", None, start);
        queue.push("soon", Some(soon), start);
        assert_eq!(queue.next_deadline(), Some(soon));
        assert_eq!(queue.pop_expired(start), None);
        assert_eq!(queue.pop_expired(start + 9 * PATIENCE), Some("soon"));
        assert_eq!(queue.pop_expired(start + 9 * PATIENCE), None);
        assert_eq!((queue.next_deadline(), queue.len()), (None, 1));
        queue.retain(|_| false);
        assert_eq!(queue.len(), 0);
    }

    proptest! {
        #[test]
        fn every_job_comes_out_once_in_the_order_it_is_due(
            deadlines in proptest::collection::vec(proptest::option::of(0u64..40), 0..40),
        ) {
            let start = Instant::now();
            let mut queue = Queue::default();
            for (i, deadline) in deadlines.iter().enumerate() {
                let now = start + Duration::from_secs(i as u64);
                let deadline = deadline.map(|seconds| now + Duration::from_secs(seconds));
                queue.push((i, deadline.unwrap_or(now + PATIENCE)), deadline, now);
            }
            prop_assert_eq!(queue.len(), deadlines.len());
            let out: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
            prop_assert!(out.windows(2).all(|pair| pair[0].1 <= pair[1].1));
            let mut numbers: Vec<_> = out.iter().map(|(i, _)| *i).collect();
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..deadlines.len()).collect::<Vec<_>>());
        }
    }
}
