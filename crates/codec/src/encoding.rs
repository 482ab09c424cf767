//! The persisted encoding ids: the first byte of every page.
//!
//! Ids are never reused or renumbered: files written years ago name them.

/// How much work an encoder may spend on choosing and on compressing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Pieces of pages in memory: the cheapest choice, at least a billion integers a second; of texts a
    /// dictionary at most.
    Fast,
    /// Memtable flush: statistics and a sample choose; everything stays SIMD-decodable.
    Hot,
    /// Compaction of big cold pages: entropy coding and zstd where they are clearly smaller.
    Cold,
}

macro_rules! encodings {
    ($($(#[$doc:meta])* $name:ident = $id:literal, $text:literal;)*) => {
        /// The first byte of a page.
        pub(crate) mod id {
            $($(#[$doc])* pub(crate) const $name: u8 = $id;)*
        }

        /// The name of the encoding of a page, for inspection tools; only the first byte is read.
        #[must_use]
        pub fn encoding_name(bytes: &[u8]) -> &'static str {
            match bytes.first() {
                $(Some(&id::$name) => $text,)*
                Some(_) => "unknown",
                None => "empty",
            }
        }

        #[cfg(test)]
        const ALL: &[(u8, &str)] = &[$(($id, $text)),*];
    };
}

encodings! {
    /// One value, repeated.
    INT_CONSTANT = 0x01, "int-constant";
    /// start + i * step.
    INT_REGULAR = 0x02, "int-regular";
    /// Bit-packed differences from a base.
    INT_FOR = 0x03, "int-for";
    /// Bit-packed differences from the previous value.
    INT_DELTA = 0x04, "int-delta";
    /// base + factor * (a nested page).
    INT_SCALED = 0x05, "int-scaled";
    /// Run values and run lengths, each a nested page.
    INT_RUNS = 0x06, "int-runs";
    /// Eight bytes a value.
    INT_RAW = 0x07, "int-raw";
    /// Entropy-coded differences from a base; read, not written.
    INT_FOR_ENTROPY = 0x08, "int-for-entropy";
    /// Entropy-coded differences from the previous value; read, not written.
    INT_DELTA_ENTROPY = 0x09, "int-delta-entropy";
    /// Entropy-coded differences from a base, with less around them.
    INT_FOR_TIGHT = 0x0a, "int-for-tight";
    /// Entropy-coded differences from the previous value, with less around them.
    INT_DELTA_TIGHT = 0x0b, "int-delta-tight";
    /// Integers divided by a power of ten, with exceptions.
    FLOAT_DECIMAL = 0x20, "float-decimal";
    /// Order-preserving bit patterns as a nested integer page.
    FLOAT_BITS = 0x21, "float-bits";
    /// Eight bytes a value.
    FLOAT_RAW = 0x22, "float-raw";
    /// All bits clear.
    BITS_ZEROS = 0x40, "bits-zeros";
    /// All bits set.
    BITS_ONES = 0x41, "bits-ones";
    /// One bit a value.
    BITS_PLAIN = 0x42, "bits-plain";
    /// Positions of the bits that differ from the majority.
    BITS_SPARSE = 0x43, "bits-sparse";
    /// Lengths of alternating runs.
    BITS_RUNS = 0x44, "bits-runs";
    /// One string, repeated.
    STRINGS_CONSTANT = 0x60, "strings-constant";
    /// Lengths and bytes.
    STRINGS_PLAIN = 0x61, "strings-plain";
    /// Codes into a dictionary.
    STRINGS_DICTIONARY = 0x62, "strings-dictionary";
    /// Lengths and LZ4 blocks.
    STRINGS_LZ4 = 0x63, "strings-lz4";
    /// Lengths and Zstandard frames.
    STRINGS_ZSTD = 0x64, "strings-zstd";
    /// Templates, and columns of the words that vary in them.
    STRINGS_TEMPLATES = 0x65, "strings-templates";
    /// Characters of an alphabet, bit-packed, at some places of strings that are alike in all others.
    STRINGS_ALPHABET = 0x66, "strings-alphabet";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persisted_ids_are_pinned() {
        let listed: Vec<String> = ALL.iter().map(|(id, name)| format!("{id:02x} {name}")).collect();
        assert_eq!(
            listed.join("\n"),
            "01 int-constant\n02 int-regular\n03 int-for\n04 int-delta\n05 int-scaled\n\
             06 int-runs\n07 int-raw\n08 int-for-entropy\n09 int-delta-entropy\n0a int-for-tight\n0b int-delta-tight\n\
             20 float-decimal\n21 float-bits\n22 float-raw\n\
             40 bits-zeros\n41 bits-ones\n42 bits-plain\n43 bits-sparse\n44 bits-runs\n\
             60 strings-constant\n61 strings-plain\n62 strings-dictionary\n\
             63 strings-lz4\n64 strings-zstd\n65 strings-templates\n66 strings-alphabet",
            "Encoding ids are on users' disks. Do not renumber or rename one: add a new id at the \
             end of its type, describe it in docs/formats/encodings.md, add a golden page, and \
             only then extend this list."
        );
    }

    #[test]
    fn names_need_only_the_first_byte() {
        assert_eq!(encoding_name(&[0x04, 9, 9]), "int-delta");
        assert_eq!(encoding_name(&[0xff]), "unknown");
        assert_eq!(encoding_name(&[]), "empty");
    }
}
