//! SELECT.

use super::{Parser, Result, SUBQUERY_LEVELS, rule};
use crate::ast::{Expr, Field, Fill, IntoTarget, Measurement, SelectStatement, Source, TargetName};
use crate::error::ParseError;
use crate::position::position;
use crate::token::Tok;
use crate::visit;

/// Whether a SELECT has an INTO.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IntoRule {
    Required,
    Optional,
    Forbidden,
}

impl Parser<'_> {
    /// A SELECT whose keyword is consumed.
    pub(super) fn select(&mut self, into: IntoRule) -> Result<Box<SelectStatement>> {
        let fields = self.list(Self::field)?;
        let into = self.optional_target(into)?;
        self.expect(Tok::From)?;
        let sources = self.sources()?;
        let condition = self.condition()?;
        let dimensions = self.dimensions()?;
        // On either side of fill(), which belongs to GROUP BY.
        let early = self.having()?;
        let fill = self.fill()?;
        let having = if early.is_some() { early } else { self.having()? };
        Ok(Box::new(SelectStatement {
            fields,
            into,
            sources,
            condition,
            dimensions,
            fill,
            having,
            order_by: self.order_by(true)?,
            limit: self.optional_count(Tok::Limit)?,
            offset: self.optional_count(Tok::Offset)?,
            series_limit: self.optional_count(Tok::Slimit)?,
            series_offset: self.optional_count(Tok::Soffset)?,
            time_zone: self.time_zone()?,
        }))
    }

    fn field(&mut self) -> Result<Field> {
        let expr = match self.optional_regex()? {
            Some(regex) => regex,
            None => {
                let offset = self.peek_offset();
                let expr = self.expr()?;
                if let Some(operator) = condition_operator(&expr) {
                    let position = position(self.text, offset);
                    return Err(ParseError::OperatorInSelect { operator, position });
                }
                expr
            }
        };
        let alias = if self.accept(Tok::As) { Some(self.ident()?) } else { None };
        // An empty name is none.
        let alias = alias.filter(|alias| !alias.is_empty());
        Ok(Field { expr, alias })
    }

    fn optional_target(&mut self, into: IntoRule) -> Result<Option<IntoTarget>> {
        if self.peek() != Tok::Into {
            return match into {
                IntoRule::Required => Err(self.refuse_next("INTO")),
                _ => Ok(None),
            };
        }
        if into == IntoRule::Forbidden {
            return Err(self.refuse_next("FROM"));
        }
        self.next();
        let first = self.ident()?;
        let mut path = self.segments(first)?;
        let name = if path.open && path.names.len() < 3 && self.peek_raw() == Tok::Colon {
            self.next();
            self.expect(Tok::Measurement)?;
            TargetName::SourceName
        } else {
            TargetName::Name(path.names.pop().expect("BUG: a path has a name"))
        };
        let retention_policy = path.names.pop().filter(|s| !s.is_empty());
        let database = path.names.pop().filter(|s| !s.is_empty());
        Ok(Some(IntoTarget { database, retention_policy, name }))
    }

    pub(super) fn source(&mut self) -> Result<Source> {
        if let Some(regex) = self.optional_regex_text()? {
            return Ok(Source::Measurement(Measurement::matching(regex)));
        }
        if !self.accept(Tok::LeftParen) {
            return self.named_measurement().map(Source::Measurement);
        }
        self.expect(Tok::Select)?;
        let select = self.nested(SUBQUERY_LEVELS, |p| p.select(IntoRule::Forbidden))?;
        self.expect(Tok::RightParen)?;
        Ok(Source::SubQuery(select))
    }

    /// `[HAVING condition]`; the word is no keyword, so that names like it stay names.
    fn having(&mut self) -> Result<Option<Expr>> {
        if self.peek() != Tok::Ident || !self.peek_text().eq_ignore_ascii_case("having") {
            return Ok(None);
        }
        self.next();
        self.expr().map(Some)
    }

    fn fill(&mut self) -> Result<Fill> {
        if self.peek() != Tok::Ident || !self.peek_text().eq_ignore_ascii_case("fill") {
            return Ok(Fill::Null);
        }
        let Expr::Call(call) = self.expr()? else {
            return Err(rule("fill must be a function call"));
        };
        let [arg] = call.args.as_slice() else {
            return Err(rule("fill requires an argument, e.g.: 0, null, none, previous, linear"));
        };
        match arg {
            Expr::VarRef(v) if v.data_type.is_none() => match v.name.as_str() {
                "null" => Ok(Fill::Null),
                "none" => Ok(Fill::None),
                "previous" => Ok(Fill::Previous),
                "linear" => Ok(Fill::Linear),
                _ => Err(rule("expected number argument in fill()")),
            },
            Expr::Integer(n) => Ok(Fill::Integer(*n)),
            Expr::Number(n) => Ok(number_fill(*n)),
            _ => Err(rule("expected number argument in fill()")),
        }
    }

    fn time_zone(&mut self) -> Result<Option<String>> {
        if self.peek() != Tok::Ident || !self.peek_text().eq_ignore_ascii_case("tz") {
            return Ok(None);
        }
        let Expr::Call(mut call) = self.expr()? else {
            return Err(rule("tz must be a function call"));
        };
        if call.args.len() != 1 {
            return Err(rule("tz requires exactly one argument"));
        }
        match call.args.pop() {
            Some(Expr::String(name)) => Ok(Some(name)),
            _ => Err(rule("expected string argument in tz()")),
        }
    }
}

/// Whole numbers that a float holds exactly fill like integers.
fn number_fill(n: f64) -> Fill {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if n.fract() == 0.0 && n.abs() <= EXACT_MAX { Fill::Integer(n as i64) } else { Fill::Number(n) }
}

/// The outermost operator of `expr` that only a condition may have.
fn condition_operator(expr: &Expr) -> Option<&'static str> {
    visit::find_map(expr, &mut |e| match e {
        Expr::Binary { op, .. } if op.is_comparison() => Some(op.as_str()),
        Expr::Logical { op, .. } => Some(op.as_str()),
        _ => None,
    })
}
