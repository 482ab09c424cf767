//! Tokens and keywords.

use std::borrow::Cow;

macro_rules! tokens {
    ($($name:ident => $text:literal,)* ; $($keyword:ident => $word:literal,)*) => {
        /// The kind of a token.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Tok { $($name,)* $($keyword,)* }

        impl Tok {
            /// What error texts call the token when it has no text of its own.
            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* $(Self::$keyword => $word,)* }
            }
        }

        const KEYWORDS: &[(&str, Tok)] = &[$(($word, Tok::$keyword),)*];
    };
}

tokens! {
    Illegal => "ILLEGAL",
    Eof => "EOF",
    Whitespace => "WS",
    Comment => "COMMENT",
    Ident => "IDENT",
    BoundParam => "BOUNDPARAM",
    Number => "NUMBER",
    Integer => "INTEGER",
    DurationVal => "DURATIONVAL",
    String => "STRING",
    BadString => "BADSTRING",
    BadEscape => "BADESCAPE",
    Regex => "REGEX",
    BadRegex => "BADREGEX",
    Add => "+",
    Sub => "-",
    Mul => "*",
    Div => "/",
    Mod => "%",
    BitAnd => "&",
    BitOr => "|",
    BitXor => "^",
    Eq => "=",
    NotEq => "!=",
    EqRegex => "=~",
    NotEqRegex => "!~",
    Lt => "<",
    LtEq => "<=",
    Gt => ">",
    GtEq => ">=",
    LeftParen => "(",
    RightParen => ")",
    Comma => ",",
    Colon => ":",
    DoubleColon => "::",
    Semicolon => ";",
    Dot => ".",
    ;
    All => "ALL",
    Alter => "ALTER",
    Analyze => "ANALYZE",
    And => "AND",
    Any => "ANY",
    As => "AS",
    Asc => "ASC",
    Begin => "BEGIN",
    By => "BY",
    Cardinality => "CARDINALITY",
    Continuous => "CONTINUOUS",
    Create => "CREATE",
    Database => "DATABASE",
    Databases => "DATABASES",
    Default => "DEFAULT",
    Delete => "DELETE",
    Desc => "DESC",
    Destinations => "DESTINATIONS",
    Diagnostics => "DIAGNOSTICS",
    Distinct => "DISTINCT",
    Drop => "DROP",
    Duration => "DURATION",
    End => "END",
    Every => "EVERY",
    Exact => "EXACT",
    Explain => "EXPLAIN",
    False => "FALSE",
    Field => "FIELD",
    For => "FOR",
    From => "FROM",
    Grant => "GRANT",
    Grants => "GRANTS",
    Group => "GROUP",
    Groups => "GROUPS",
    In => "IN",
    Inf => "INF",
    Insert => "INSERT",
    Into => "INTO",
    Key => "KEY",
    Keys => "KEYS",
    Kill => "KILL",
    Limit => "LIMIT",
    Measurement => "MEASUREMENT",
    Measurements => "MEASUREMENTS",
    Name => "NAME",
    Offset => "OFFSET",
    On => "ON",
    Or => "OR",
    Order => "ORDER",
    Password => "PASSWORD",
    Policies => "POLICIES",
    Policy => "POLICY",
    Privileges => "PRIVILEGES",
    Queries => "QUERIES",
    Query => "QUERY",
    Read => "READ",
    Replication => "REPLICATION",
    Resample => "RESAMPLE",
    Retention => "RETENTION",
    Revoke => "REVOKE",
    Select => "SELECT",
    Series => "SERIES",
    Set => "SET",
    Shard => "SHARD",
    Shards => "SHARDS",
    Show => "SHOW",
    Slimit => "SLIMIT",
    Soffset => "SOFFSET",
    Stats => "STATS",
    Subscription => "SUBSCRIPTION",
    Subscriptions => "SUBSCRIPTIONS",
    Tag => "TAG",
    To => "TO",
    True => "TRUE",
    User => "USER",
    Users => "USERS",
    Values => "VALUES",
    Where => "WHERE",
    With => "WITH",
    Write => "WRITE",
}

/// A token. `text` is the unescaped text of a literal or name, empty for keywords and operators.
#[derive(Clone, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) tok: Tok,
    /// Byte offset that an error about this token names.
    pub(crate) offset: usize,
    pub(crate) text: Cow<'a, str>,
}

impl Token<'_> {
    /// What error texts call this token.
    pub(crate) fn display(&self) -> &str {
        if self.text.is_empty() { self.tok.as_str() } else { &self.text }
    }
}

/// For each first letter, where its keywords begin in the sorted table; the last entry is the length of the table.
const KEYWORD_STARTS: [u8; 27] = keyword_starts();

const fn keyword_starts() -> [u8; 27] {
    let mut starts = [0_u8; 27];
    let mut letter = 0;
    while letter < 26 {
        let mut i = starts[letter] as usize;
        while i < KEYWORDS.len() && KEYWORDS[i].0.as_bytes()[0] == b'A' + letter as u8 {
            i += 1;
        }
        starts[letter + 1] = i as u8;
        letter += 1;
    }
    assert!(starts[26] as usize == KEYWORDS.len(), "the keywords are not sorted by first letter");
    starts
}

/// All keywords, in upper case.
pub fn keywords() -> impl Iterator<Item = &'static str> {
    KEYWORDS.iter().map(|(word, _)| *word)
}

/// The keyword a bare word is, in any case.
pub(crate) fn keyword(word: &str) -> Option<Tok> {
    let letter = word.as_bytes().first()?.to_ascii_uppercase().checked_sub(b'A')? as usize;
    let range = *KEYWORD_STARTS.get(letter)? as usize..*KEYWORD_STARTS.get(letter + 1)? as usize;
    KEYWORDS[range].iter().find(|(k, _)| k.eq_ignore_ascii_case(word)).map(|(_, tok)| *tok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_is_found_in_any_case() {
        for (word, tok) in KEYWORDS {
            assert_eq!(keyword(word), Some(*tok));
            assert_eq!(keyword(&word.to_lowercase()), Some(*tok));
        }
    }

    #[test]
    fn other_words_are_no_keywords() {
        for word in ["", "fill", "tz", "time", "now", "selec", "selects", "\u{e9}", "_", "zz", "{"]
        {
            assert_eq!(keyword(word), None, "{word}");
        }
    }
}
