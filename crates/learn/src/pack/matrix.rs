//! Dense matrices, row by row.

/// `rows × columns` numbers, row-major.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix<T> {
    columns: usize,
    rows: usize,
    data: Vec<T>,
}

impl<T: Copy> Matrix<T> {
    /// All `value`.
    pub fn filled(rows: usize, columns: usize, value: T) -> Self {
        Self {
            columns,
            rows,
            data: vec![value; rows * columns],
        }
    }

    /// `[rows, columns]`.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }

    pub fn row(&self, row: usize) -> &[T] {
        &self.data[row * self.columns..(row + 1) * self.columns]
    }

    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        &mut self.data[row * self.columns..(row + 1) * self.columns]
    }

    /// All numbers, row after row.
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// These rows in this order; a row may come several times.
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            columns: self.columns,
            rows: rows.len(),
            data: rows
                .iter()
                .flat_map(|&row| self.row(row))
                .copied()
                .collect(),
        }
    }

    /// The columns of `range` of every row.
    pub fn columns(&self, range: std::ops::Range<usize>) -> Self {
        Self {
            columns: range.len(),
            rows: self.rows,
            data: (0..self.rows)
                .flat_map(|row| &self.row(row)[range.clone()])
                .copied()
                .collect(),
        }
    }
}
