//! `[...]`.

use super::escape::perl_class;
use super::{BAD_CLASS, RegexError, Translator, error};

/// Named classes of ASCII characters.
const NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// Translates the class that starts at the current character.
pub(super) fn class(translator: &mut Translator<'_>) -> Result<(), RegexError> {
    let start = translator.at;
    let unclosed = || error("missing closing ]", &translator.source[start..]);
    let missing = unclosed();
    translator.at += 1;
    translator.out.push('[');
    if translator.rest().starts_with('^') {
        translator.at += 1;
        translator.out.push('^');
    }
    let mut first = true;
    loop {
        match translator.peek() {
            None => return Err(missing),
            Some(']') if !first => {
                translator.at += 1;
                translator.out.push(']');
                return Ok(());
            }
            Some(_) => {}
        }
        first = false;
        if !named(translator)? && !escaped_class(translator)? {
            range(translator, &missing)?;
        }
    }
}

/// `[:name:]`
fn named(translator: &mut Translator<'_>) -> Result<bool, RegexError> {
    let rest = translator.rest();
    let Some(len) = rest.strip_prefix("[:").and_then(|inner| inner.find(":]")) else {
        return Ok(false);
    };
    let text = &rest[..len + 4];
    let name = &rest[2..len + 2];
    if !NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
        return Err(error(BAD_CLASS, text));
    }
    translator.out.push_str(text);
    translator.at += text.len();
    Ok(true)
}

/// `\d`, `\pN` and their like.
fn escaped_class(translator: &mut Translator<'_>) -> Result<bool, RegexError> {
    let rest = translator.rest();
    let Some(letter) = rest.strip_prefix('\\').and_then(|rest| rest.chars().next()) else {
        return Ok(false);
    };
    if matches!(letter, 'p' | 'P') {
        translator.unicode_class()?;
        return Ok(true);
    }
    let Some(class) = perl_class(letter) else { return Ok(false) };
    let negation = if letter.is_ascii_uppercase() { "^" } else { "" };
    translator.out.push_str(&format!("[{negation}{class}]"));
    translator.at += 2;
    Ok(true)
}

/// One character, or two with a `-` between them.
fn range(translator: &mut Translator<'_>, missing: &RegexError) -> Result<(), RegexError> {
    let start = translator.at;
    let low = character(translator, missing)?;
    let mut high = low;
    let rest = translator.rest();
    if rest.starts_with('-') && rest.len() > 1 && !rest.starts_with("-]") {
        translator.at += 1;
        high = character(translator, missing)?;
        if high < low {
            return Err(error(BAD_CLASS, &translator.source[start..translator.at]));
        }
    }
    translator.literal(low);
    if high != low {
        translator.out.push('-');
        translator.literal(high);
    }
    Ok(())
}

fn character(translator: &mut Translator<'_>, missing: &RegexError) -> Result<char, RegexError> {
    if translator.rest().starts_with('\\') {
        return translator.character();
    }
    translator.next().ok_or_else(|| missing.clone())
}
