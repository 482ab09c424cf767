//! Text to tokens, on demand.
//!
//! Tokens borrow from the text; only a quoted name, string or regex with escapes is copied.
//!
//! Not here: deciding where a regex may stand (the parser asks for one), bound parameters (the parser replaces them).

use std::borrow::Cow;

use crate::position::previous_char;
use crate::token::{Tok, Token, keyword};

/// A cursor over the text.
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Whether reading has run into the end. InfluxDB's reader then places the end one character further, and users compare messages.
    end_seen: bool,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, end_seen: false }
    }

    /// Byte offset of the unread character.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// Goes on at byte `offset`, which must be the start of a token.
    pub(crate) fn seek(&mut self, offset: usize) {
        self.at = offset;
    }

    /// The unread character, without consuming it.
    pub(crate) fn peek_byte(&mut self) -> Option<u8> {
        let byte = self.byte(0);
        self.end_seen |= byte.is_none();
        byte
    }

    /// The next token, white space and comments included.
    pub(crate) fn next(&mut self) -> Token<'a> {
        let start = self.at;
        let Some(byte) = self.byte(0) else {
            let offset = self.text.len() + usize::from(self.end_seen);
            self.end_seen = true;
            return token(Tok::Eof, offset);
        };
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {
                self.skip_blanks();
                // The text is there for errors where no white space is allowed.
                let text = Cow::Borrowed(&self.text[start..self.at]);
                Token { tok: Tok::Whitespace, offset: start, text }
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(),
            b'0'..=b'9' => self.number(),
            b'.' if self.byte(1).is_some_and(|b| b.is_ascii_digit()) => self.number(),
            b'"' => self.quoted(Tok::Ident),
            b'\'' => self.quoted(Tok::String),
            b'$' => self.bound_param(),
            b'-' if self.byte(1) == Some(b'-') => self.line_comment(),
            b'/' if self.byte(1) == Some(b'*') => self.block_comment(),
            _ => self.operator(byte),
        }
    }

    /// Passes over white space, if there is some: in most places nobody asks for it as a token.
    #[inline]
    pub(crate) fn skip_blanks(&mut self) {
        let is_blank = |b| matches!(b, b' ' | b'\t' | b'\n' | b'\r');
        if self.byte(0).is_some_and(is_blank) {
            self.skip_while(is_blank);
            self.note_end();
        }
    }

    /// A regex; the unread character must be its opening slash.
    pub(crate) fn regex(&mut self) -> Token<'a> {
        let offset = previous_char(self.text, self.at);
        self.at += 1;
        let start = self.at;
        let mut unescaped: Option<String> = None;
        let mut copied = start;
        loop {
            self.skip_while(|b| !matches!(b, b'/' | b'\\' | b'\n' | b'\r'));
            match (self.byte(0), self.byte(1)) {
                (Some(b'/'), _) => {
                    let tail = &self.text[copied..self.at];
                    self.at += 1;
                    return Token { tok: Tok::Regex, offset, text: joined(unescaped, tail) };
                }
                (Some(b'\\'), Some(b'/')) => {
                    unescaped.get_or_insert_default().push_str(&self.text[copied..self.at]);
                    copied = self.at + 1;
                    self.at += 2;
                }
                (Some(b'\\'), _) => self.at += 1,
                _ => {
                    self.note_end();
                    return token(Tok::BadRegex, offset);
                }
            }
        }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn skip_while(&mut self, test: impl Fn(u8) -> bool) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().position(|b| !test(*b)).unwrap_or(rest.len());
    }

    fn note_end(&mut self) {
        self.end_seen |= self.at == self.text.len();
    }

    fn word(&mut self) -> Token<'a> {
        let start = self.at;
        self.skip_while(is_word_byte);
        self.note_end();
        let word = &self.text[start..self.at];
        match keyword(word) {
            Some(tok) => token(tok, start),
            None => Token { tok: Tok::Ident, offset: start, text: Cow::Borrowed(word) },
        }
    }

    /// Digits with a point are a number, with letters behind them a duration, alone an integer.
    fn number(&mut self) -> Token<'a> {
        let start = self.at;
        self.skip_while(|b| b.is_ascii_digit());
        let mut end = self.at;
        let tok = if self.byte(0) == Some(b'.') {
            self.at += 1;
            if self.byte(0).is_some_and(|b| b.is_ascii_digit()) {
                self.skip_while(|b| b.is_ascii_digit());
                end = self.at;
            }
            Tok::Number
        } else {
            while self.duration_char(end > start && end == self.at) {}
            let tok = if self.at > end { Tok::DurationVal } else { Tok::Integer };
            end = self.at;
            tok
        };
        Token { tok, offset: start, text: Cow::Borrowed(&self.text[start..end]) }
    }

    /// Consumes one character of a duration behind its first digits, if there is one.
    fn duration_char(&mut self, first: bool) -> bool {
        const MICRO: [u8; 2] = [0xC2, 0xB5];
        let rest = &self.text.as_bytes()[self.at..];
        let bytes = match rest.first() {
            Some(b) if b.is_ascii_alphabetic() || (!first && b.is_ascii_digit()) => 1,
            _ if rest.starts_with(&MICRO) => 2,
            _ => 0,
        };
        self.at += bytes;
        bytes > 0
    }

    /// A quoted name or string. Its position is that of the quote for a name, of the character before it for a string and for
    /// everything unterminated.
    fn quoted(&mut self, tok: Tok) -> Token<'a> {
        let start = self.at;
        let quote = self.text.as_bytes()[start];
        self.at += 1;
        let mut copied = self.at;
        let mut unescaped: Option<String> = None;
        loop {
            self.skip_while(|b| b != quote && !matches!(b, b'\\' | b'\n' | b'\r' | 0));
            let run = &self.text[copied..self.at];
            match self.byte(0) {
                Some(b) if b == quote => {
                    self.at += 1;
                    let offset = match tok {
                        Tok::Ident => start,
                        _ => previous_char(self.text, start),
                    };
                    return Token { tok, offset, text: joined(unescaped, run) };
                }
                Some(b'\\') => {
                    let plain = match self.byte(1) {
                        Some(b'n') => '\n',
                        Some(b @ (b'\\' | b'"' | b'\'')) => char::from(b),
                        _ => return self.bad_escape(),
                    };
                    let text = unescaped.get_or_insert_default();
                    text.push_str(run);
                    text.push(plain);
                    self.at += 2;
                    copied = self.at;
                }
                _ => {
                    self.note_end();
                    let offset = previous_char(self.text, start);
                    return Token { tok: Tok::BadString, offset, text: joined(unescaped, run) };
                }
            }
        }
    }

    /// The backslash at the cursor escapes nothing known.
    fn bad_escape(&mut self) -> Token<'a> {
        let start = self.at;
        let escaped_bytes = self.text[start + 1..].chars().next().map_or(0, char::len_utf8);
        self.at += 1 + escaped_bytes;
        self.note_end();
        let text = Cow::Borrowed(&self.text[start..self.at]);
        Token { tok: Tok::BadEscape, offset: start + 1, text }
    }

    /// `$name` or `$"name"`; the text keeps the dollar.
    fn bound_param(&mut self) -> Token<'a> {
        let start = self.at;
        self.at += 1;
        if self.byte(0) == Some(b'"') {
            let name = self.quoted(Tok::Ident);
            let tok = if name.tok == Tok::Ident { Tok::BoundParam } else { name.tok };
            return Token { tok, offset: start, text: Cow::Owned(format!("${}", name.text)) };
        }
        self.skip_while(is_word_byte);
        self.note_end();
        Token {
            tok: Tok::BoundParam,
            offset: start,
            text: Cow::Borrowed(&self.text[start..self.at]),
        }
    }

    fn line_comment(&mut self) -> Token<'a> {
        let start = self.at;
        self.skip_while(|b| !matches!(b, b'\n' | b'\r'));
        self.note_end();
        if self.byte(0).is_some() {
            let crlf = self.text[self.at..].starts_with("\r\n");
            self.at += 1 + usize::from(crlf);
        }
        token(Tok::Comment, start)
    }

    fn block_comment(&mut self) -> Token<'a> {
        let start = self.at;
        let tok = match self.text[start + 2..].find("*/") {
            Some(bytes) => {
                self.at = start + 2 + bytes + 2;
                Tok::Comment
            }
            None => {
                self.at = self.text.len();
                self.note_end();
                Tok::Illegal
            }
        };
        token(tok, start)
    }

    fn operator(&mut self, byte: u8) -> Token<'a> {
        let start = self.at;
        let (tok, bytes) = match (byte, self.byte(1)) {
            (b'=', Some(b'~')) => (Tok::EqRegex, 2),
            (b'!', Some(b'=')) | (b'<', Some(b'>')) => (Tok::NotEq, 2),
            (b'!', Some(b'~')) => (Tok::NotEqRegex, 2),
            (b'>', Some(b'=')) => (Tok::GtEq, 2),
            (b'<', Some(b'=')) => (Tok::LtEq, 2),
            (b':', Some(b':')) => (Tok::DoubleColon, 2),
            (b'+', _) => (Tok::Add, 1),
            (b'-', _) => (Tok::Sub, 1),
            (b'*', _) => (Tok::Mul, 1),
            (b'/', _) => (Tok::Div, 1),
            (b'%', _) => (Tok::Mod, 1),
            (b'&', _) => (Tok::BitAnd, 1),
            (b'|', _) => (Tok::BitOr, 1),
            (b'^', _) => (Tok::BitXor, 1),
            (b'=', _) => (Tok::Eq, 1),
            (b'>', _) => (Tok::Gt, 1),
            (b'<', _) => (Tok::Lt, 1),
            (b'(', _) => (Tok::LeftParen, 1),
            (b')', _) => (Tok::RightParen, 1),
            (b',', _) => (Tok::Comma, 1),
            (b';', _) => (Tok::Semicolon, 1),
            (b':', _) => (Tok::Colon, 1),
            (b'.', _) => (Tok::Dot, 1),
            _ => {
                let bytes = self.text[start..].chars().next().map_or(1, char::len_utf8);
                self.at += bytes;
                let text = Cow::Borrowed(&self.text[start..self.at]);
                return Token { tok: Tok::Illegal, offset: start, text };
            }
        };
        self.at += bytes;
        token(tok, start)
    }
}

fn is_word_byte(b: u8) -> bool {
    IS_WORD_BYTE[usize::from(b)]
}

static IS_WORD_BYTE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    table
};

fn token<'a>(tok: Tok, offset: usize) -> Token<'a> {
    Token { tok, offset, text: Cow::Borrowed("") }
}

fn joined(unescaped: Option<String>, tail: &str) -> Cow<'_, str> {
    match unescaped {
        Some(mut text) => {
            text.push_str(tail);
            Cow::Owned(text)
        }
        None => Cow::Borrowed(tail),
    }
}

#[cfg(test)]
mod tests;
