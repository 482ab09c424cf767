//! Rows to columns.

use crate::simd::multiversion;

/// Values of a column gathered before they are stored: one cache line.
const LINE: usize = 8;

/// Rows handled together: their cache lines stay in the first-level cache until every column has
/// taken its part of them.
const TILE_ROWS: usize = 64;

multiversion! {
    fn transpose_tiles / transpose_tiles_at(rows: &[u64], n_columns: usize, out: &mut [u64]) {
        let n_rows = rows.len() / n_columns;
        for tile in (0..n_rows).step_by(TILE_ROWS) {
            let tile_rows = TILE_ROWS.min(n_rows - tile);
            let source = &rows[tile * n_columns..(tile + tile_rows) * n_columns];
            for column in 0..n_columns {
                let start = column * n_rows + tile;
                let (lines, rest) = out[start..start + tile_rows].as_chunks_mut::<LINE>();
                let mut from = column;
                for line in lines {
                    *line = std::array::from_fn(|i| source[from + i * n_columns]);
                    from += LINE * n_columns;
                }
                for slot in rest {
                    *slot = source[from];
                    from += n_columns;
                }
            }
        }
    }
}

/// Writes a matrix given row by row column by column: `out[c * n_rows + r] = rows[r * n_columns + c]`.
///
/// # Panics
/// If `rows` is not a whole number of rows, or `out` not of the same length.
pub fn transpose_u64(rows: &[u64], n_columns: usize, out: &mut [u64]) {
    assert_eq!(rows.len(), out.len(), "BUG: a transposed matrix has as many values");
    if rows.is_empty() {
        return;
    }
    assert!(n_columns > 0 && rows.len().is_multiple_of(n_columns), "BUG: part of a row");
    transpose_tiles(rows, n_columns, out);
}
