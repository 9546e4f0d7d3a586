//! The same work on many items, on threads with the stack that parsing needs.

use std::sync::{Mutex, PoisonError};

use super::nesting::STACK;

/// `each` of the items, in their order, on threads with the stack that parsing needs. Items are asked for
/// as they are needed: listing files goes on while others are read.
pub(super) fn in_parallel<T: Send, R: Send>(
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    threads: usize,
    each: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    /// Neighbours that a thread takes together.
    const GRAIN: usize = 8;
    let items = items.into_iter().fuse();
    let most = items.size_hint().1.unwrap_or(usize::MAX);
    let next = Mutex::new(items.enumerate());
    let work = || {
        let (mut taken, mut done) = (Vec::with_capacity(GRAIN), Vec::new());
        loop {
            let mut items = next.lock().unwrap_or_else(PoisonError::into_inner);
            taken.extend(items.by_ref().take(GRAIN));
            drop(items);
            if taken.is_empty() {
                return done;
            }
            let each = |(index, item)| (index, each(item));
            done.extend(taken.drain(..).map(each));
        }
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads = threads.clamp(1, most.div_ceil(GRAIN).max(1));
        let started: Vec<_> = (0..threads)
            .map(|_| {
                std::thread::Builder::new()
                    .stack_size(STACK)
                    .spawn_scoped(scope, work)
            })
            .collect();
        let mut done = Vec::new();
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
