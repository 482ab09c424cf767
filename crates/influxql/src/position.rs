//! From byte offsets to line and character, which only errors need.

use crate::error::Position;

/// The position of byte `offset` in `text`. One past the end is one character behind the last; a carriage return, alone or before a
/// line feed, ends a line.
pub(crate) fn position(text: &str, offset: usize) -> Position {
    let cut = offset.min(text.len());
    let mut position = Position { line: 1, character: 1 + (offset - cut) };
    let mut chars = text[..cut].chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' | '\n' => {
                if c == '\r' {
                    chars.next_if_eq(&'\n');
                }
                position.line += 1;
                position.character = 1 + (offset - cut);
            }
            _ => position.character += 1,
        }
    }
    position
}

/// Start of the character before byte `offset`, 0 at the start; a CR LF is one character.
pub(crate) fn previous_char(text: &str, offset: usize) -> usize {
    let before = &text[..offset];
    match before.chars().next_back() {
        Some('\n') if before.ends_with("\r\n") => offset - 2,
        Some(c) => offset - c.len_utf8(),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, offset: usize) -> (usize, usize) {
        let p = position(text, offset);
        (p.line, p.character)
    }

    #[test]
    fn counts() {
        assert_eq!(at("", 0), (1, 1));
        assert_eq!(at("abc", 3), (1, 4));
        assert_eq!(at("abc", 4), (1, 5));
        assert_eq!(at("\u{e9}\nb", 4), (2, 2));
        assert_eq!(at("a\r\nb\rc\n", 7), (4, 1));
        assert_eq!(at("a\n", 3), (2, 2));
    }

    #[test]
    fn steps_back() {
        assert_eq!(previous_char("", 0), 0);
        assert_eq!(previous_char("a\u{e9}'", 3), 1);
        assert_eq!(previous_char("a\r\n'", 3), 1);
    }
}
