//! What the machine can do: the best rate of a large f32 product, and of reading memory.

use std::time::Instant;

/// Repeats one measurement; gives an amount and the seconds that it took.
pub(crate) type Repeat = Box<dyn FnMut() -> (f64, f64)>;

/// Operations of square products of 1536 rows by the `gemm` crate, each thread its own.
pub(crate) fn gemm(threads: usize) -> Repeat {
    const SIDE: usize = 1536;
    let filled = || vec![0.5_f32; SIDE * SIDE];
    let mut operands: Vec<[Vec<f32>; 3]> = (0..threads)
        .map(|_| [filled(), filled(), filled()])
        .collect();
    Box::new(move || {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for [left, right, out] in &mut operands {
                scope.spawn(|| multiply(SIDE, left, right, out));
            }
        });
        let seconds = start.elapsed().as_secs_f64();
        ((2 * threads * SIDE * SIDE * SIDE) as f64, seconds)
    })
}

fn multiply(side: usize, left: &[f32], right: &[f32], out: &mut [f32]) {
    let stride = side as isize;
    // SAFETY: three matrices of `side · side` floats in rows of `side`; only `out` is written.
    unsafe {
        gemm::gemm(
            side,
            side,
            side,
            out.as_mut_ptr(),
            1,
            stride,
            false,
            left.as_ptr(),
            1,
            stride,
            right.as_ptr(),
            1,
            stride,
            0.0_f32,
            1.0_f32,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// Bytes read from 256 MB, far more than any cache holds, divided among the threads.
pub(crate) fn memory(threads: usize) -> Repeat {
    let data = vec![1_u64; 1 << 25];
    Box::new(move || {
        let start = Instant::now();
        let total: u64 = std::thread::scope(|scope| {
            let parts = data.chunks(data.len().div_ceil(threads));
            let readers: Vec<_> = parts.map(|part| scope.spawn(|| sum(part))).collect();
            readers
                .into_iter()
                .map(|reader| reader.join().unwrap())
                .sum()
        });
        let seconds = start.elapsed().as_secs_f64();
        assert_eq!(total, data.len() as u64);
        ((data.len() * size_of::<u64>()) as f64, seconds)
    })
}

/// Eight sums at once, so that additions do not wait for each other.
fn sum(part: &[u64]) -> u64 {
    let mut sums = [0_u64; 32];
    for block in part.as_chunks::<32>().0 {
        for (sum, value) in sums.iter_mut().zip(block) {
            *sum = sum.wrapping_add(*value);
        }
    }
    sums.iter().sum()
}
