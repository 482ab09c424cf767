//! The bytes that the pages of docs/formats show, for the tests that compare them.

/// The bytes of a page's hex listings, one line of a listing after the other. What stands behind a
/// bar is for the human reader.
pub(crate) fn listings(page: &str) -> Vec<Vec<u8>> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let line = |line: &str| {
        let digits = line.split('|').next().unwrap().replace(' ', "");
        assert!(digits.len().is_multiple_of(2), "half a byte in: {line}");
        digits.as_bytes().chunks(2).map(byte).collect::<Vec<u8>>()
    };
    let blocks = page.split("```hex\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap().lines().flat_map(line).collect())
        .collect()
}
