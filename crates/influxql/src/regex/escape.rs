//! What a backslash introduces.

use super::{BAD_CLASS, BAD_ESCAPE, RegexError, Translator, error};

impl Translator<'_> {
    /// An escape outside of classes.
    pub(super) fn escaped(&mut self) -> Result<(), RegexError> {
        let rest = self.rest();
        self.has_operand = true;
        let second = rest[1..].chars().next();
        match second {
            Some('Q') => {
                let text = &rest[2..];
                let (text, len) = match text.find("\\E") {
                    Some(len) => (&text[..len], len + 4),
                    None => (text, rest.len()),
                };
                text.chars().for_each(|character| self.literal(character));
                self.at += len;
                return Ok(());
            }
            Some('A') => self.out.push_str("\\A"),
            Some('z') => self.out.push_str("\\z"),
            Some('b') => self.out.push_str("(?-u:\\b)"),
            // Without Unicode it could match inside a character, which the crate does not allow.
            Some('B') => self.out.push_str("\\B"),
            Some('p' | 'P') => return self.unicode_class(),
            Some(letter) => match perl_class(letter) {
                Some(class) => {
                    let negation = if letter.is_ascii_uppercase() { "^" } else { "" };
                    self.out.push_str(&format!("[{negation}{class}]"));
                }
                None => {
                    let character = self.character()?;
                    self.literal(character);
                    return Ok(());
                }
            },
            None => return Err(error("trailing backslash at end of expression", "")),
        }
        self.at += 2;
        Ok(())
    }

    /// `\pN` or `\p{Name}`, in or out of a class.
    pub(super) fn unicode_class(&mut self) -> Result<(), RegexError> {
        let rest = self.rest();
        let len = match rest[2..].chars().next() {
            Some('{') => match rest.find('}') {
                Some(end) => end + 1,
                None => return Err(error(BAD_CLASS, rest)),
            },
            Some(letter) => 2 + letter.len_utf8(),
            None => return Err(error(BAD_ESCAPE, rest)),
        };
        let text = &rest[..len];
        let (negates, name) = match text[2..].strip_prefix("{^") {
            Some(name) => (true, format!("{{{name}")),
            None => (false, text[2..].to_owned()),
        };
        let letter = if rest.starts_with("\\P") == negates { 'p' } else { 'P' };
        let class = format!("\\{letter}{name}");
        // Go's names are a part of what the crate knows.
        if regex::Regex::new(&class).is_err() {
            return Err(error(BAD_CLASS, text));
        }
        self.out.push_str(&class);
        self.at += len;
        Ok(())
    }

    /// The character that an escape stands for.
    pub(super) fn character(&mut self) -> Result<char, RegexError> {
        let start = self.at;
        self.at += 1;
        let Some(letter) = self.next() else {
            return Err(error("trailing backslash at end of expression", ""));
        };
        let found = match letter {
            '0'..='7' => self.octal(letter),
            'x' => self.hexadecimal(),
            'a' => Some('\u{7}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\u{b}'),
            other if other.is_ascii() && !other.is_ascii_alphanumeric() => Some(other),
            _ => None,
        };
        found.ok_or_else(|| error(BAD_ESCAPE, &self.source[start..self.at]))
    }

    /// Up to three octal digits; one alone would be a reference to a group, which there is not.
    fn octal(&mut self, first: char) -> Option<char> {
        let mut code = first.to_digit(8)?;
        let more = |next: &char| matches!(next, '0'..='7');
        if first != '0' && !self.peek().as_ref().is_some_and(more) {
            return None;
        }
        for _ in 0..2 {
            let Some(digit) = self.peek().filter(more).and_then(|next| next.to_digit(8)) else {
                break;
            };
            self.at += 1;
            code = code * 8 + digit;
        }
        char::from_u32(code)
    }

    /// `xFF` or `x{10FFFF}`; the `x` was read.
    fn hexadecimal(&mut self) -> Option<char> {
        let rest = self.rest();
        let (digits, len) = match rest.strip_prefix('{') {
            Some(inner) => {
                let len = inner.find('}')?;
                (&inner[..len], len + 2)
            }
            None => (rest.get(..2)?, 2),
        };
        let hexadecimal = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        if !hexadecimal {
            return None;
        }
        self.at += len;
        u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)
    }
}

/// The characters of `\d`, `\s`, `\w`, or of which their opposites are the others.
pub(super) fn perl_class(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' | 'D' => "0-9",
        's' | 'S' => "\\t\\n\\x0C\\r\\x20",
        'w' | 'W' => "0-9A-Za-z_",
        _ => return None,
    })
}
