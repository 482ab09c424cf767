//! What FROM lists: sources, or one join of several. An extension of Nyala.
//!
//! Its words are no keywords: they mean something only behind a source, where InfluxDB takes no name,
//! so that names like them stay names everywhere.

use super::{Parser, Result, rule};
use crate::ast::{Join, JoinKind, JoinSide, Source};
use crate::token::Tok;

impl Parser<'_> {
    /// Sources separated by commas, or a join.
    pub(super) fn sources(&mut self) -> Result<Vec<Source>> {
        let sources = self.list(Self::joined_source)?;
        if sources.len() > 1 && sources.iter().any(|source| matches!(source, Source::Join(_))) {
            return Err(rule("a JOIN is the only source of its FROM: join in a subquery"));
        }
        Ok(sources)
    }

    fn joined_source(&mut self) -> Result<Source> {
        let source = self.source()?;
        let alias = self.alias()?;
        let Some(kind) = self.join_kind()? else {
            return if alias.is_some() { Err(self.refuse_next("JOIN")) } else { Ok(source) };
        };
        let first = named(source, alias)?;
        let mut join = Join { first, others: vec![(kind, self.side()?)], using: self.using()? };
        while let Some(kind) = self.join_kind()? {
            join.others.push((kind, self.side()?));
            let using = self.using()?;
            if join.using.is_some() && using.is_some() && join.using != using {
                return Err(rule(
                    "all joins of a FROM have the same USING: join by other tags in a subquery",
                ));
            }
            join.using = using.or(join.using);
        }
        Ok(Source::Join(Box::new(join)))
    }

    fn side(&mut self) -> Result<JoinSide> {
        let source = self.source()?;
        let alias = self.alias()?;
        named(source, alias)
    }

    fn alias(&mut self) -> Result<Option<String>> {
        if self.accept(Tok::As) { Ok(Some(self.ident()?)) } else { Ok(None) }
    }

    /// `[INNER | LEFT [OUTER] | FULL [OUTER]] JOIN`
    fn join_kind(&mut self) -> Result<Option<JoinKind>> {
        if self.accept_word("join") {
            return Ok(Some(JoinKind::Inner));
        }
        let kinds =
            [("inner", JoinKind::Inner), ("left", JoinKind::Left), ("full", JoinKind::Full)];
        for (word, kind) in kinds {
            if self.accept_word(word) {
                if kind != JoinKind::Inner {
                    self.accept_word("outer");
                }
                let is_join = self.accept_word("join");
                return if is_join { Ok(Some(kind)) } else { Err(self.refuse_next("JOIN")) };
            }
        }
        Ok(None)
    }

    /// `[USING ( [tag, ..] )]`
    fn using(&mut self) -> Result<Option<Vec<String>>> {
        if !self.accept_word("using") {
            return Ok(None);
        }
        self.expect(Tok::LeftParen)?;
        let is_empty = self.peek() == Tok::RightParen;
        let tags = if is_empty { Vec::new() } else { self.list(Self::ident)? };
        self.expect(Tok::RightParen)?;
        Ok(Some(tags))
    }

    pub(super) fn accept_word(&mut self, word: &str) -> bool {
        let hit = self.peek() == Tok::Ident && self.peek_text().eq_ignore_ascii_case(word);
        if hit {
            self.next();
        }
        hit
    }
}

/// A side, which must have a name.
fn named(source: Source, alias: Option<String>) -> Result<JoinSide> {
    let side = JoinSide { source, alias };
    match (&side.source, side.name()) {
        (Source::Measurement(measurement), _) if measurement.plain_name().is_none() => {
            Err(rule("a JOIN takes one measurement on each side, not a regular expression"))
        }
        (_, None) => Err(rule("a subquery that is joined needs a name: (SELECT ...) AS name")),
        _ => Ok(side),
    }
}
