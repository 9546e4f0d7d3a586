//! Rotary positions (Su et al., 2021) in the half-split form of Llama and Qwen2.

/// Cosines and sines of `position · frequency`, grown on demand.
#[derive(Debug, Default)]
pub(crate) struct Rope {
    half: usize,
    /// Radians a position, for each pair.
    frequencies: Vec<f32>,
    amplitude: f32,
    /// `[positions, head_dim / 2]`
    cosines: Vec<f32>,
    sines: Vec<f32>,
}

impl Rope {
    /// Makes the table hold at least `positions` positions for these frequencies; cosines and sines
    /// are multiplied by `amplitude`.
    ///
    /// Angles are rounded to single precision before the cosine is taken, as `transformers` does.
    pub(crate) fn prepare(&mut self, frequencies: &[f32], amplitude: f32, positions: usize) {
        if self.frequencies != frequencies || self.amplitude != amplitude {
            *self = Self {
                half: frequencies.len(),
                frequencies: frequencies.to_vec(),
                amplitude,
                ..Self::default()
            };
        }
        for position in self.cosines.len() / self.half..positions {
            for frequency in &self.frequencies {
                let angle = position as f32 * frequency;
                self.cosines.push(amplitude * angle.cos());
                self.sines.push(amplitude * angle.sin());
            }
        }
    }

    /// `to = factor · rotation(position) · from`, one head.
    #[inline(always)]
    pub(crate) fn rotate(&self, position: usize, factor: f32, from: &[f32], to: &mut [f32]) {
        self.turn(position, [factor, factor], from, to);
    }

    /// `to = factor · rotation(-position) · from`: the gradient of [`Self::rotate`].
    #[inline(always)]
    pub(crate) fn rotate_back(&self, position: usize, factor: f32, from: &[f32], to: &mut [f32]) {
        self.turn(position, [factor, -factor], from, to);
    }

    /// Cosines and sines come with a factor each.
    #[inline(always)]
    fn turn(&self, position: usize, factors: [f32; 2], from: &[f32], to: &mut [f32]) {
        let half = self.half;
        let cosines = &self.cosines[position * half..][..half];
        let sines = &self.sines[position * half..][..half];
        let (first, second) = from.split_at(half);
        let (to_first, to_second) = to.split_at_mut(half);
        for (to, ((x, y), (cosine, sine))) in to_first
            .iter_mut()
            .zip(first.iter().zip(second).zip(cosines.iter().zip(sines)))
        {
            *to = factors[0] * (x * cosine) - factors[1] * (y * sine);
        }
        for (to, ((x, y), (cosine, sine))) in to_second
            .iter_mut()
            .zip(first.iter().zip(second).zip(cosines.iter().zip(sines)))
        {
            *to = factors[0] * (y * cosine) + factors[1] * (x * sine);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::noise;

    #[test]
    fn rotation_keeps_lengths_depends_on_distance_only_and_is_undone() {
        let mut rope = Rope::default();
        rope.prepare(&[1.0, 0.1, 0.01, 0.001], 1.0, 50);
        let (q, k) = (noise(8, 1), noise(8, 2));
        let rotated = |at: usize, from: &[f32]| {
            let mut to = vec![0.0; 8];
            rope.rotate(at, 1.0, from, &mut to);
            to
        };
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let near = product(&rotated(3, &q), &rotated(1, &k));
        let far = product(&rotated(43, &q), &rotated(41, &k));
        assert!((near - far).abs() < 1e-4);
        let mut back = vec![0.0; 8];
        rope.rotate_back(17, 1.0, &rotated(17, &q), &mut back);
        assert!(back.iter().zip(&q).all(|(a, b)| (a - b).abs() < 1e-6));
    }
}
