//! Records of CSV as InfluxDB writes them.

/// One record with its line end. A cell is quoted if it would be read back as something else.
pub(crate) fn record<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let mut out = String::new();
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            out.push(',');
        }
        if needs_quotes(cell) {
            out.push('"');
            out.push_str(&cell.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(cell);
        }
    }
    out.push('\n');
    out
}

fn needs_quotes(cell: &str) -> bool {
    cell == "\\." || cell.contains([',', '"', '\r', '\n']) || cell.starts_with(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records() {
        let cells = ["a", "", "b,c", "d\"e", " f", "g "];
        assert_eq!(record(cells.into_iter()), "a,,\"b,c\",\"d\"\"e\",\" f\",g \n");
    }

    #[test]
    fn they_are_read_back() {
        let cells = ["\n", "\"", "\r\n,", " x", "\u{e9}"];
        let text = record(cells.into_iter());
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
        let row = reader.records().next().unwrap().unwrap();
        assert_eq!(row.iter().collect::<Vec<_>>(), cells);
    }
}
