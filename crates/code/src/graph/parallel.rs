//! The same work on many items, on threads with the stack that parsing needs.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::python::STACK;

/// `each` of the items, in their order, on threads with the stack that parsing needs.
pub(super) fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    each: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    /// Neighbours that a thread takes together.
    const GRAIN: usize = 8;
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let start = next.fetch_add(GRAIN, Ordering::Relaxed);
            if start >= items.len() {
                return done;
            }
            let end = (start + GRAIN).min(items.len());
            done.extend((start..end).map(|index| (index, each(&items[index]))));
        }
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads = threads.clamp(1, items.len().div_ceil(GRAIN).max(1));
        let started: Vec<_> = (0..threads)
            .map(|_| {
                std::thread::Builder::new()
                    .stack_size(STACK)
                    .spawn_scoped(scope, work)
            })
            .collect();
        let mut done = Vec::with_capacity(items.len());
        for thread in started {
            match thread.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(part)) => done.extend(part),
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                // Another thread, or this one, does its part.
                Err(_) => done.extend(work()),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
