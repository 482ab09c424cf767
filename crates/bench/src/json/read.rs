//! The reader: recursive descent over bytes, with a depth limit.

use super::{Json, JsonError};

const DEPTH_MAX: usize = 128;

pub(super) fn skip_space(text: &[u8], mut offset: usize) -> usize {
    while matches!(text.get(offset), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        offset += 1;
    }
    offset
}

pub(super) fn document(text: &[u8]) -> Result<(Json, usize), JsonError> {
    value_at(text, skip_space(text, 0))
}

/// Reads the value that starts exactly at `offset`; returns it with the offset after it.
pub(super) fn value_at(text: &[u8], offset: usize) -> Result<(Json, usize), JsonError> {
    let mut reader = Reader { text, offset };
    let value = reader.value(0)?;
    Ok((value, reader.offset))
}

struct Reader<'a> {
    text: &'a [u8],
    offset: usize,
}

impl Reader<'_> {
    fn fail<T>(&self, reason: &'static str) -> Result<T, JsonError> {
        Err(JsonError { offset: self.offset, reason })
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.offset).copied()
    }

    /// Steps over the byte if it is next.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.offset += usize::from(found);
        found
    }

    fn skip_space(&mut self) {
        self.offset = skip_space(self.text, self.offset);
    }

    fn value(&mut self, depth: usize) -> Result<Json, JsonError> {
        if depth > DEPTH_MAX {
            return self.fail("nested too deeply");
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(_) => self.fail("no value starts with this byte"),
            None => self.fail("a value is missing"),
        }
    }

    fn word(&mut self, word: &'static str, value: Json) -> Result<Json, JsonError> {
        if self.text[self.offset..].starts_with(word.as_bytes()) {
            self.offset += word.len();
            return Ok(value);
        }
        self.fail("expected true, false or null")
    }

    fn array(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.offset += 1;
        let mut elements = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(Json::Array(elements));
        }
        loop {
            self.skip_space();
            elements.push(self.value(depth + 1)?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Json::Array(elements));
            }
            if !self.take(b',') {
                return self.fail("expected , or ]");
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.offset += 1;
        let mut members = Vec::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return self.fail("expected a key");
            }
            let key = self.string()?;
            self.skip_space();
            if !self.take(b':') {
                return self.fail("expected :");
            }
            self.skip_space();
            members.push((key, self.value(depth + 1)?));
            self.skip_space();
            if self.take(b'}') {
                return Ok(Json::Object(members));
            }
            if !self.take(b',') {
                return self.fail("expected , or }");
            }
        }
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return self.fail("expected a digit");
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.offset += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Json, JsonError> {
        let start = self.offset;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _sign = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        let digits = String::from_utf8_lossy(&self.text[start..self.offset]);
        Ok(Json::Number(digits.into_owned()))
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.offset += 1;
        let mut bytes = Vec::new();
        loop {
            match self.peek() {
                None => return self.fail("a string does not end"),
                Some(b'"') => break,
                Some(b'\\') => {
                    self.offset += 1;
                    self.escape(&mut bytes)?;
                }
                Some(0..0x20) => return self.fail("control character in a string"),
                Some(byte) => {
                    bytes.push(byte);
                    self.offset += 1;
                }
            }
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| JsonError { offset: self.offset, reason: "a string is not UTF-8" })?;
        self.offset += 1;
        Ok(text)
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), JsonError> {
        let Some(kind) = self.peek() else { return self.fail("a string does not end") };
        self.offset += 1;
        let byte = match kind {
            b'"' | b'\\' | b'/' => kind,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let character = self.unicode()?;
                let mut buffer = [0; 4];
                bytes.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
                return Ok(());
            }
            _ => return self.fail("unknown escape"),
        };
        bytes.push(byte);
        Ok(())
    }

    /// The character of `\uXXXX`, or of a surrogate pair of two.
    fn unicode(&mut self) -> Result<char, JsonError> {
        let first = self.hex()?;
        let code = match first {
            0xD800..0xDC00 => {
                if !(self.take(b'\\') && self.take(b'u')) {
                    return self.fail("half a surrogate pair");
                }
                let second = self.hex()?;
                if !(0xDC00..0xE000).contains(&second) {
                    return self.fail("half a surrogate pair");
                }
                0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00)
            }
            other => other,
        };
        char::from_u32(code).map_or_else(|| self.fail("half a surrogate pair"), Ok)
    }

    fn hex(&mut self) -> Result<u32, JsonError> {
        let digits = self.text.get(self.offset..).and_then(|rest| rest.get(..4));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let valid = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match valid.map(|digits| u32::from_str_radix(digits, 16)) {
            Some(Ok(code)) => {
                self.offset += 4;
                Ok(code)
            }
            _ => self.fail("expected four hexadecimal digits"),
        }
    }
}
