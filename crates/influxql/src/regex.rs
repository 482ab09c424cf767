//! Regular expressions: Go's syntax checked with Go's texts, and put into that of the `regex` crate.
//!
//! Both descend from RE2 and differ in details: what a `[` inside a class means, whether `{` may
//! stand for itself, `\Q...\E`, and that Go's `\d`, `\s`, `\w` and `\b` know ASCII only. Everything
//! that is not an operator comes out escaped, so nothing is read as one by accident.
//!
//! Not here: matching; limits of size and depth, which the `regex` crate has.

mod class;
mod escape;
#[cfg(test)]
mod tests;

/// Why a text is no regular expression; `Display` is Go's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {problem}: `{part}`")]
pub struct RegexError {
    problem: &'static str,
    part: String,
}

const BAD_CLASS: &str = "invalid character class range";
const BAD_ESCAPE: &str = "invalid escape sequence";
const BAD_PERL: &str = "invalid or unsupported Perl syntax";
const BAD_NAME: &str = "invalid named capture";

/// The largest count of a repetition.
const COUNT_MAX: u32 = 1000;

fn error(problem: &'static str, part: &str) -> RegexError {
    RegexError { problem, part: part.to_owned() }
}

/// The regular expression `source` in the syntax of the `regex` crate.
///
/// # Errors
/// [`RegexError`] if Go would refuse it.
pub fn translate_regex(source: &str) -> Result<String, RegexError> {
    let mut translator = Translator {
        source,
        at: 0,
        out: String::with_capacity(source.len() + 8),
        open_groups: 0,
        has_operand: false,
        last_repetition: None,
        names: Vec::new(),
    };
    while let Some(next) = translator.peek() {
        translator.part(next)?;
    }
    if translator.open_groups > 0 {
        return Err(error("missing closing )", source));
    }
    Ok(translator.out)
}

struct Translator<'a> {
    source: &'a str,
    at: usize,
    out: String,
    open_groups: usize,
    /// Whether something to repeat stands before `at`.
    has_operand: bool,
    /// Where the repetition right before `at` starts.
    last_repetition: Option<usize>,
    names: Vec<&'a str>,
}

impl<'a> Translator<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Adds a character that stands for itself.
    fn literal(&mut self, character: char) {
        if character.is_ascii_punctuation() && character != '_' {
            self.out.push_str(&format!("\\x{:02X}", u32::from(character)));
        } else {
            self.out.push(character);
        }
    }

    /// Handles the operand or operator that starts with `next`.
    fn part(&mut self, next: char) -> Result<(), RegexError> {
        let start = self.at;
        let repeated = self.last_repetition.take();
        match next {
            '*' | '+' | '?' => {
                self.at += 1;
                self.repetition(start, repeated, None)?;
                return Ok(());
            }
            '{' => {
                if let Some((min, max, len)) = counts(self.rest()) {
                    self.at += len;
                    return self.repetition(start, repeated, Some((min, max)));
                }
                self.at += 1;
                self.literal('{');
            }
            '(' => return self.group(),
            '|' => {
                self.at += 1;
                self.out.push('|');
                self.has_operand = false;
                return Ok(());
            }
            ')' => {
                if self.open_groups == 0 {
                    return Err(error("unexpected )", self.source));
                }
                self.at += 1;
                self.open_groups -= 1;
                self.out.push(')');
            }
            '^' | '$' | '.' => {
                self.at += 1;
                self.out.push(next);
            }
            '[' => class::class(self)?,
            '\\' => return self.escaped(),
            other => {
                self.at += other.len_utf8();
                self.literal(other);
            }
        }
        self.has_operand = true;
        Ok(())
    }

    /// A repetition that starts at `start`; the operator itself was read.
    fn repetition(
        &mut self,
        start: usize,
        repeated: Option<usize>,
        count: Option<(u32, Option<u32>)>,
    ) -> Result<(), RegexError> {
        if self.rest().starts_with('?') {
            self.at += 1;
        }
        let operator = &self.source[start..self.at];
        if let Some((min, max)) = count {
            let descends = max.is_some_and(|max| min > max);
            if min > COUNT_MAX || max.is_some_and(|max| max > COUNT_MAX) || descends {
                return Err(error("invalid repeat count", operator));
            }
        }
        if let Some(first) = repeated {
            let both = &self.source[first..self.at];
            return Err(error("invalid nested repetition operator", both));
        }
        if !self.has_operand {
            return Err(error("missing argument to repetition operator", operator));
        }
        self.out.push_str(operator);
        self.last_repetition = Some(start);
        Ok(())
    }

    /// A group, or flags for what follows.
    fn group(&mut self) -> Result<(), RegexError> {
        let rest = self.rest();
        self.has_operand = false;
        if let Some(named) = rest.strip_prefix("(?P<") {
            let Some(len) = named.find('>') else { return Err(error(BAD_NAME, rest)) };
            let name = &named[..len];
            let whole = &rest[..len + 5];
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(legal) {
                return Err(error(BAD_NAME, whole));
            }
            if self.names.contains(&name) {
                return Err(error("duplicate capture group name", name));
            }
            self.names.push(name);
            self.at += whole.len();
            // The name itself plays no part in matching; the crate is stricter about it.
            self.out.push('(');
        } else if rest.starts_with("(?") {
            return self.flags();
        } else {
            self.at += 1;
            self.out.push('(');
        }
        self.open_groups += 1;
        Ok(())
    }

    /// `(?flags)` or `(?flags:`.
    fn flags(&mut self) -> Result<(), RegexError> {
        let start = self.at;
        self.at += 2;
        let (mut negated, mut seen) = (false, false);
        // The crate takes no flag twice: the last mention counts.
        let (mut set, mut cleared) = (String::new(), String::new());
        while let Some(next) = self.next() {
            match next {
                'i' | 'm' | 's' | 'U' => {
                    set.retain(|flag| flag != next);
                    cleared.retain(|flag| flag != next);
                    let flags = if negated { &mut cleared } else { &mut set };
                    flags.push(next);
                    seen = true;
                }
                '-' if !negated => (negated, seen) = (true, false),
                ':' | ')' if seen || !negated => {
                    self.open_groups += usize::from(next == ':');
                    let minus = if cleared.is_empty() { "" } else { "-" };
                    if next == ':' || seen {
                        self.out.push_str(&format!("(?{set}{minus}{cleared}{next}"));
                    }
                    return Ok(());
                }
                _ => return Err(error(BAD_PERL, &self.source[start..self.at])),
            }
        }
        Err(error(BAD_PERL, &self.source[start..]))
    }
}

/// `{min}`, `{min,}` or `{min,max}` at the start of `text`, and its length.
fn counts(text: &str) -> Option<(u32, Option<u32>, usize)> {
    let inner = text.strip_prefix('{')?;
    let len = inner.find('}')?;
    let inner = &inner[..len];
    let number = |digits: &str| {
        let legal = !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
            && (digits.len() == 1 || !digits.starts_with('0'));
        // Digits that do not fit are too many in any case.
        legal.then(|| digits.parse().unwrap_or(u32::MAX))
    };
    let (min, max) = match inner.split_once(',') {
        None => {
            let count = number(inner)?;
            (count, Some(count))
        }
        Some((min, "")) => (number(min)?, None),
        Some((min, max)) => (number(min)?, Some(number(max)?)),
    };
    Some((min, max, len + 2))
}
