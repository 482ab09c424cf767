//! Choosing the statement by its first words; the statements about data that are not SELECT or SHOW.

use super::select::IntoRule;
use super::{Parser, Result};
use crate::ast::{Expr, Measurement, Statement};
use crate::token::{Tok, Token};

impl Parser<'_> {
    pub(super) fn statement(&mut self) -> Result<Statement> {
        const EXPECTED: &str =
            "SELECT, DELETE, SHOW, CREATE, DROP, EXPLAIN, GRANT, REVOKE, ALTER, SET, KILL";
        let token = self.next();
        match token.tok {
            Tok::Select => Ok(Statement::Select(self.select(IntoRule::Optional)?)),
            Tok::Delete => {
                let (sources, condition) = self.deletion()?;
                Ok(Statement::Delete { sources, condition })
            }
            Tok::Show => self.show(),
            Tok::Create => self.create(),
            Tok::Drop => self.drop_statement(),
            Tok::Explain => self.explain(),
            Tok::Grant => self.grant(),
            Tok::Revoke => self.revoke(),
            Tok::Alter => self.alter(),
            Tok::Set => self.set_password(),
            Tok::Kill => self.kill(),
            // No keyword, so that names may be called so.
            Tok::Ident if token.text.eq_ignore_ascii_case("run") => self.run(&token, EXPECTED),
            _ => Err(self.unexpected(&token, EXPECTED)),
        }
    }

    fn explain(&mut self) -> Result<Statement> {
        let analyze = self.accept(Tok::Analyze);
        self.expect(Tok::Select)?;
        Ok(Statement::Explain { analyze, select: self.select(IntoRule::Optional)? })
    }

    /// `[FROM ..] [WHERE ..]` of DELETE and DROP SERIES, which need one of the two.
    pub(super) fn deletion(&mut self) -> Result<(Vec<Measurement>, Option<Expr>)> {
        if !matches!(self.peek(), Tok::From | Tok::Where) {
            return Err(self.refuse_next("FROM, WHERE"));
        }
        let sources = self.measurements_clause()?;
        // These errors have always named the start of the text.
        if sources.iter().any(|m| m.retention_policy.is_some()) {
            return Err(self.invalid(0, "retention policy not supported"));
        }
        if sources.iter().any(|m| m.database.is_some()) {
            return Err(self.invalid(0, "database not supported"));
        }
        Ok((sources, self.condition()?))
    }

    /// `CONTINUOUS QUERY name ON database [WHERE ..]` behind the word RUN.
    fn run(&mut self, run: &Token<'_>, expected: &str) -> Result<Statement> {
        if !self.accept(Tok::Continuous) {
            return Err(self.unexpected(run, expected));
        }
        self.expect(Tok::Query)?;
        let (name, database) = self.name_on_database()?;
        Ok(Statement::RunContinuousQuery { name, database, condition: self.condition()? })
    }

    fn kill(&mut self) -> Result<Statement> {
        self.expect(Tok::Query)?;
        let id = self.id()?;
        let host = if self.accept(Tok::On) { Some(self.ident()?) } else { None };
        Ok(Statement::KillQuery { id, host })
    }

    fn drop_statement(&mut self) -> Result<Statement> {
        const EXPECTED: &str =
            "CONTINUOUS, DATABASE, MEASUREMENT, RETENTION, SERIES, SHARD, SUBSCRIPTION, USER";
        let token = self.next();
        match token.tok {
            Tok::Continuous => {
                self.expect(Tok::Query)?;
                let (name, database) = self.name_on_database()?;
                Ok(Statement::DropContinuousQuery { name, database })
            }
            Tok::Database => Ok(Statement::DropDatabase { name: self.ident()? }),
            Tok::Measurement => Ok(Statement::DropMeasurement { name: self.ident()? }),
            Tok::Retention => {
                self.expect(Tok::Policy)?;
                let (name, database) = self.name_on_database()?;
                Ok(Statement::DropRetentionPolicy { name, database })
            }
            Tok::Series => {
                let (sources, condition) = self.deletion()?;
                Ok(Statement::DropSeries { sources, condition })
            }
            Tok::Shard => Ok(Statement::DropShard { id: self.id()? }),
            Tok::Subscription => {
                let (name, database) = self.name_on_database()?;
                let retention_policy = self.dotted_policy()?;
                Ok(Statement::DropSubscription { name, database, retention_policy })
            }
            Tok::User => Ok(Statement::DropUser { name: self.ident()? }),
            _ => Err(self.unexpected(&token, EXPECTED)),
        }
    }

    /// `name ON database`
    pub(super) fn name_on_database(&mut self) -> Result<(String, String)> {
        let name = self.ident()?;
        self.expect(Tok::On)?;
        Ok((name, self.ident()?))
    }

    /// `.policy` right behind a database.
    pub(super) fn dotted_policy(&mut self) -> Result<String> {
        let dot = self.next_raw();
        if dot.tok != Tok::Dot {
            return Err(self.unexpected(&dot, "."));
        }
        self.ident()
    }

    /// The error for a continuous query without `GROUP BY time()`, placed at the last token of its SELECT.
    pub(super) fn group_by_time_missing(&self, reason: Option<String>) -> crate::ParseError {
        let expected = match reason {
            Some(reason) => format!("GROUP BY time(...), {reason}"),
            None => "GROUP BY time(...)".to_owned(),
        };
        self.unexpected(&self.consumed(), &expected)
    }
}
