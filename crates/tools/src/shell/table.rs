//! Columns of text as wide as what is in them.
//!
//! Cells end with a tab. A column is as wide as its widest cell in neighbouring lines that have a
//! cell there, and one space; what follows the last tab of a line belongs to no column.

/// Replaces tabs with spaces such that columns line up.
pub(super) fn align(text: &str) -> String {
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    let lengths: Vec<Vec<usize>> =
        lines.iter().map(|cells| cells.iter().map(|cell| cell.chars().count()).collect()).collect();
    let mut widths = lengths.clone();
    let columns = lines.iter().map(|cells| cells.len() - 1).max().unwrap_or(0);
    for column in 0..columns {
        let mut start = 0;
        while start < lines.len() {
            let run = lines[start..].iter().take_while(|cells| cells.len() > column + 1).count();
            let width = lengths[start..start + run].iter().map(|line| line[column]).max();
            for line in &mut widths[start..start + run] {
                line[column] = width.unwrap_or(0) + 1;
            }
            start += run.max(1);
        }
    }
    let mut out = String::with_capacity(text.len() * 2);
    for ((cells, lengths), widths) in lines.iter().zip(&lengths).zip(&widths) {
        let last = cells.len() - 1;
        for (at, cell) in cells.iter().enumerate() {
            out.push_str(cell);
            if at < last {
                out.extend(std::iter::repeat_n(' ', widths[at] - lengths[at]));
            }
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        assert_eq!(align("a\tb\nlonger\tc\n"), "a      b\nlonger c\n");
        assert_eq!(align("\t\tx\n\t\ty\n"), "  x\n  y\n");
        assert_eq!(align("name: m\ntime\tv\n1\t\u{e9}\n"), "name: m\ntime v\n1    \u{e9}\n");
        assert_eq!(align("long\tx\n\na\tb\n"), "long x\n\na b\n");
        assert_eq!(align("a\tb\tc\nd\teee\n"), "a b c\nd eee\n");
        assert_eq!(align(""), "");
    }
}
