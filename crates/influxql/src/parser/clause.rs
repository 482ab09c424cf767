//! Clauses that several statements share.

use super::{Parser, Result, rule};
use crate::ast::{Expr, Measurement, MeasurementName, SortField};
use crate::duration::parse_duration;
use crate::token::Tok;

impl Parser<'_> {
    /// `[ON database]`
    pub(super) fn on_database(&mut self) -> Result<Option<String>> {
        if self.accept(Tok::On) { Ok(Some(self.ident()?)) } else { Ok(None) }
    }

    /// `[FROM measurement, ..]`
    pub(super) fn measurements_clause(&mut self) -> Result<Vec<Measurement>> {
        if self.accept(Tok::From) { self.list(Self::measurement) } else { Ok(Vec::new()) }
    }

    /// `[WHERE condition]`
    pub(super) fn condition(&mut self) -> Result<Option<Expr>> {
        if self.accept(Tok::Where) { Ok(Some(self.expr()?)) } else { Ok(None) }
    }

    /// `[GROUP BY dimension, ..]`
    pub(super) fn dimensions(&mut self) -> Result<Vec<Expr>> {
        if !self.accept(Tok::Group) {
            return Ok(Vec::new());
        }
        self.expect(Tok::By)?;
        self.calendar = true;
        let dimensions = self.list(|p| match p.optional_regex()? {
            Some(regex) => Ok(regex),
            None => p.expr(),
        });
        self.calendar = false;
        dimensions
    }

    /// `[ORDER BY time]`, and with `columns` any other columns.
    pub(super) fn order_by(&mut self, columns: bool) -> Result<Vec<SortField>> {
        const TIME_ONLY: &str = "only ORDER BY time supported at this time";
        if !self.accept(Tok::Order) {
            return Ok(Vec::new());
        }
        self.expect(Tok::By)?;
        let first = match self.peek() {
            tok @ (Tok::Asc | Tok::Desc) => {
                self.next();
                SortField { name: None, ascending: tok == Tok::Asc }
            }
            Tok::Ident => {
                let field = self.sort_field()?;
                if !columns && field.name.as_deref() != Some("time") {
                    return Err(rule(TIME_ONLY));
                }
                field
            }
            _ => return Err(self.refuse_next("identifier, ASC, DESC")),
        };
        let mut fields = vec![first];
        while self.accept(Tok::Comma) {
            fields.push(self.sort_field()?);
        }
        let is_bare = fields.first().is_some_and(|first| first.name.is_none());
        if fields.len() > 1 && (is_bare || !columns) {
            return Err(rule(TIME_ONLY));
        }
        Ok(fields)
    }

    fn sort_field(&mut self) -> Result<SortField> {
        let name = Some(self.ident()?);
        let ascending = match self.peek() {
            tok @ (Tok::Asc | Tok::Desc) => {
                self.next();
                tok == Tok::Asc
            }
            _ => true,
        };
        Ok(SortField { name, ascending })
    }

    /// `[LIMIT n]` and its kin; a number too large is the largest there is.
    pub(super) fn optional_count(&mut self, clause: Tok) -> Result<u64> {
        if !self.accept(clause) {
            return Ok(0);
        }
        let token = self.expect_as(Tok::Integer, "integer")?;
        if token.text.starts_with('-') {
            return Err(self.invalid(token.offset, format!("{} must be >= 0", clause.as_str())));
        }
        Ok(token.text.parse().unwrap_or(u64::MAX).min(i64::MAX as u64))
    }

    /// A regex, or what [`Self::named_measurement`] reads.
    pub(super) fn measurement(&mut self) -> Result<Measurement> {
        match self.optional_regex_text()? {
            Some(regex) => Ok(Measurement::matching(regex)),
            None => self.named_measurement(),
        }
    }

    /// `name`, `rp.name`, `db.rp.name`, `db..name`; behind a dot the name may be a regex.
    pub(super) fn named_measurement(&mut self) -> Result<Measurement> {
        let first = self.ident()?;
        let mut path = self.segments(first)?;
        let regex = match path.open && path.names.len() < 3 {
            true => self.optional_regex_text()?,
            false => None,
        };
        let name = match regex {
            Some(regex) => MeasurementName::Regex(regex),
            None => MeasurementName::Name(path.names.pop().expect("BUG: a path has a name")),
        };
        let retention_policy = path.names.pop().filter(|s| !s.is_empty());
        let database = path.names.pop().filter(|s| !s.is_empty());
        Ok(Measurement { database, retention_policy, name })
    }

    /// An integer in `1..=i32::MAX`.
    pub(super) fn replication(&mut self) -> Result<u32> {
        const MAX: u32 = i32::MAX as u32;
        let token = self.expect_as(Tok::Integer, "integer")?;
        let Ok(n) = token.text.parse::<i64>() else {
            let message = format!("strconv.Atoi: parsing \"{}\": value out of range", token.text);
            return Err(self.invalid(token.offset, message));
        };
        match u32::try_from(n) {
            Ok(n @ 1..=MAX) => Ok(n),
            _ => {
                let message = format!("invalid value {n}: must be 1 <= n <= {MAX}");
                Err(self.invalid(token.offset, message))
            }
        }
    }

    /// The number of a shard or query.
    pub(super) fn id(&mut self) -> Result<u64> {
        let token = self.expect_as(Tok::Integer, "integer")?;
        token.text.parse().map_err(|_| {
            let problem =
                if token.text.starts_with('-') { "invalid syntax" } else { "value out of range" };
            let message = format!("strconv.ParseUint: parsing \"{}\": {problem}", token.text);
            self.invalid(token.offset, message)
        })
    }

    /// A duration or `INF`, which is 0.
    pub(super) fn duration_or_inf(&mut self) -> Result<i64> {
        if self.accept(Tok::Inf) { Ok(0) } else { self.duration() }
    }

    pub(super) fn duration(&mut self) -> Result<i64> {
        let token = self.expect_as(Tok::DurationVal, "duration")?;
        parse_duration(&token.text).map_err(|e| self.invalid(token.offset, e.to_string()))
    }
}
