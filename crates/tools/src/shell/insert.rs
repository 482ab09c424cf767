//! `insert [into [db.]rp] LINE`, and names as `use` has them.

pub(super) const USAGE: &str = "INSERT [INTO [<database>.]<retention policy>] <line protocol>";

/// Where a line goes, and the line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Insert<'a> {
    pub(super) database: Option<String>,
    pub(super) policy: Option<String>,
    pub(super) line: &'a str,
}

/// Takes apart what follows `insert`; `None` if there is no line.
pub(super) fn parse(text: &str) -> Option<Insert<'_>> {
    let into = text.split_once(char::is_whitespace).filter(|(w, _)| w.eq_ignore_ascii_case("into"));
    let Some((_, rest)) = into else {
        let line = Some(text).filter(|line| !line.is_empty());
        return line.map(|line| Insert { database: None, policy: None, line });
    };
    let (first, rest) = name(rest.trim_start())?;
    let (database, policy, rest) = match rest.strip_prefix('.') {
        None => (None, first, rest),
        Some(rest) => {
            let (second, rest) = name(rest)?;
            (Some(first), second, rest)
        }
    };
    let line = rest.strip_prefix(char::is_whitespace)?.trim_start();
    Some(Insert { database, policy: Some(policy), line }).filter(|insert| !insert.line.is_empty())
}

/// `name[.name]`, and nothing else.
pub(super) fn qualified(text: &str) -> Option<(String, Option<String>)> {
    let (first, rest) = name(text)?;
    if rest.is_empty() {
        return Some((first, None));
    }
    let (second, rest) = name(rest.strip_prefix('.')?)?;
    rest.is_empty().then_some((first, Some(second)))
}

/// A name, quoted or not, and what follows it.
fn name(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|c: char| c == '.' || c.is_whitespace()).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        return (!name.is_empty()).then(|| (name.to_owned(), rest));
    };
    let mut name = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((name, &quoted[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => name.push('\n'),
                escaped => name.push(escaped),
            },
            c => name.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_lines_go() {
        let insert = |text| {
            let Insert { database, policy, line } = parse(text)?;
            Some((database.unwrap_or_default(), policy.unwrap_or_default(), line))
        };
        let expect = |db: &str, rp: &str, line| Some((db.to_owned(), rp.to_owned(), line));
        assert_eq!(insert("m v=1"), expect("", "", "m v=1"));
        assert_eq!(insert("INTO rp m v=1"), expect("", "rp", "m v=1"));
        assert_eq!(insert("into d.rp m v=1"), expect("d", "rp", "m v=1"));
        assert_eq!(insert("into \"d.\\\"x\".\"r p\" m v=1"), expect("d.\"x", "r p", "m v=1"));
        assert_eq!(insert("into,a=b v=1"), expect("", "", "into,a=b v=1"));
        assert_eq!(insert(""), None);
        assert_eq!(insert("into rp"), None);
        assert_eq!(insert("into \"rp m v=1"), None);
    }

    #[test]
    fn names() {
        assert_eq!(qualified("a"), Some(("a".to_owned(), None)));
        assert_eq!(qualified("\"a.b\".c"), Some(("a.b".to_owned(), Some("c".to_owned()))));
        assert_eq!(qualified(""), None);
        assert_eq!(qualified("a b"), None);
        assert_eq!(qualified("a.b.c"), None);
    }
}
