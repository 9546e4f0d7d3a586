//! The instruction sets that one binary chooses from when it runs.

#[cfg(not(test))]
use pulp::Arch;
use pulp::WithSimd;

/// Runs vector code compiled for the widest instruction set that this CPU has. In tests a thread can
/// be held to a lower one.
#[inline(always)]
pub(crate) fn dispatch<W: WithSimd>(work: W) -> W::Output {
    arch().dispatch(work)
}

#[cfg(not(test))]
#[inline(always)]
fn arch() -> Arch {
    Arch::new()
}

/// Whether products of bf16 pairs have an instruction of their own.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_bf16() -> bool {
    #[cfg(test)]
    if LEVEL.get().is_some_and(|level| level != Level::Avx512Bf16) {
        return false;
    }
    pulp::x86::V4::is_available() && is_x86_feature_detected!("avx512bf16")
}

#[cfg(test)]
use testing::{LEVEL, arch};
#[cfg(test)]
pub(crate) use testing::{Level, at_each_level};

#[cfg(test)]
mod testing {
    use pulp::Arch;
    use std::cell::Cell;

    /// An instruction set.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Level {
        Portable,
        Avx2,
        Avx512,
        Avx512Bf16,
        Neon,
    }

    thread_local! {
        pub(super) static LEVEL: Cell<Option<Level>> = const { Cell::new(None) };
    }

    pub(super) fn arch() -> Arch {
        LEVEL.get().map_or_else(Arch::new, |level| {
            arch_of(level).expect("this CPU has these instructions")
        })
    }

    /// None where this CPU does not have it.
    fn arch_of(level: Level) -> Option<Arch> {
        match level {
            Level::Portable => Some(Arch::Scalar),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => pulp::x86::V3::try_new().map(Arch::V3),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => pulp::x86::V4::try_new().map(Arch::V4),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512Bf16 => super::has_bf16()
                .then(pulp::x86::V4::try_new)
                .flatten()
                .map(Arch::V4),
            #[cfg(target_arch = "aarch64")]
            Level::Neon => pulp::aarch64::Neon::try_new().map(Arch::Neon),
            _ => None,
        }
    }

    /// Runs `work`, on this thread, with the instructions of one level.
    fn forced<T>(level: Level, work: impl FnOnce() -> T) -> T {
        let before = LEVEL.replace(Some(level));
        let result = work();
        LEVEL.set(before);
        result
    }

    /// What `work` gives at each level that this CPU has; says which are missing.
    pub(crate) fn at_each_level<T>(mut work: impl FnMut() -> T) -> Vec<(Level, T)> {
        let levels = [
            Level::Portable,
            Level::Avx2,
            Level::Avx512,
            Level::Avx512Bf16,
            Level::Neon,
        ];
        let mut results = Vec::new();
        for level in levels {
            let before = LEVEL.replace(None);
            let available = arch_of(level).is_some();
            LEVEL.set(before);
            if available {
                results.push((level, forced(level, &mut work)));
            } else {
                eprintln!("{level:?} skipped: this CPU does not have it");
            }
        }
        results
    }
}
