//! SHOW.

use super::{Parser, Result};
use crate::ast::{
    Cardinality, CardinalityBy, ShowCardinality, ShowCardinalityBy, ShowFieldKeys,
    ShowMeasurements, ShowSeries, ShowTagKeys, ShowTagValues, Statement, TagKeyMatch,
};
use crate::token::Tok;

impl Parser<'_> {
    /// A SHOW whose keyword is consumed; LIMIT and OFFSET, which InfluxDB knows for some of them, for all.
    pub(super) fn show(&mut self) -> Result<Statement> {
        let statement = self.show_statement()?;
        if !statement.may_be_limited() {
            return Ok(statement);
        }
        let limit = self.optional_count(Tok::Limit)?;
        let offset = self.optional_count(Tok::Offset)?;
        if limit == 0 && offset == 0 {
            return Ok(statement);
        }
        Ok(Statement::Limited { statement: Box::new(statement), limit, offset })
    }

    fn show_statement(&mut self) -> Result<Statement> {
        const EXPECTED: &str = "CONTINUOUS, DATABASES, DIAGNOSTICS, FIELD, GRANTS, MEASUREMENT, MEASUREMENTS, QUERIES, \
             RETENTION, SERIES, SHARD, SHARDS, STATS, SUBSCRIPTIONS, TAG, USERS";
        let token = self.next();
        match token.tok {
            Tok::Cardinality => self.cardinality_by(),
            Tok::Continuous => self.show_continuous(),
            Tok::Databases => Ok(Statement::ShowDatabases),
            Tok::Diagnostics => Ok(Statement::ShowDiagnostics { module: self.module()? }),
            Tok::Field => self.show_field(),
            Tok::Grants => {
                self.expect(Tok::For)?;
                Ok(Statement::ShowGrants { user: self.ident()? })
            }
            Tok::Measurement => self.key_cardinality(Cardinality::Measurement),
            Tok::Measurements => self.show_measurements(),
            Tok::Queries => Ok(Statement::ShowQueries),
            Tok::Retention => {
                self.expect(Tok::Policies)?;
                Ok(Statement::ShowRetentionPolicies { database: self.on_database()? })
            }
            Tok::Series => self.show_series(),
            Tok::Shard => {
                self.expect(Tok::Groups)?;
                Ok(Statement::ShowShardGroups)
            }
            Tok::Shards => Ok(Statement::ShowShards),
            Tok::Stats => Ok(Statement::ShowStats { module: self.module()? }),
            Tok::Subscriptions => Ok(Statement::ShowSubscriptions),
            Tok::Tag => self.show_tag(),
            Tok::Users => Ok(Statement::ShowUsers),
            _ => Err(self.unexpected(&token, EXPECTED)),
        }
    }

    fn show_continuous(&mut self) -> Result<Statement> {
        let token = self.next();
        match token.tok {
            Tok::Queries => Ok(Statement::ShowContinuousQueries),
            Tok::Query if self.accept_word("status") => Ok(Statement::ShowContinuousQueryStatus),
            _ => Err(self.unexpected(&token, "QUERIES")),
        }
    }

    /// `[FOR 'module']`
    fn module(&mut self) -> Result<Option<String>> {
        if self.accept(Tok::For) { Ok(Some(self.string()?)) } else { Ok(None) }
    }

    fn show_field(&mut self) -> Result<Statement> {
        let token = self.next();
        match token.tok {
            Tok::Key => self.key_cardinality(Cardinality::FieldKey),
            Tok::Keys => Ok(Statement::ShowFieldKeys(ShowFieldKeys {
                database: self.on_database()?,
                sources: self.measurements_clause()?,
                order_by: self.order_by(false)?,
                limit: self.optional_count(Tok::Limit)?,
                offset: self.optional_count(Tok::Offset)?,
            })),
            _ => Err(self.unexpected(&token, "KEY, KEYS")),
        }
    }

    fn show_tag(&mut self) -> Result<Statement> {
        let token = self.next();
        match token.tok {
            Tok::Key => self.key_cardinality(Cardinality::TagKey),
            Tok::Keys => Ok(Statement::ShowTagKeys(ShowTagKeys {
                database: self.on_database()?,
                sources: self.measurements_clause()?,
                condition: self.condition()?,
                order_by: self.order_by(false)?,
                limit: self.optional_count(Tok::Limit)?,
                offset: self.optional_count(Tok::Offset)?,
                series_limit: self.optional_count(Tok::Slimit)?,
                series_offset: self.optional_count(Tok::Soffset)?,
            })),
            Tok::Values => self.show_tag_values(),
            _ => Err(self.unexpected(&token, "KEY, KEYS, VALUES")),
        }
    }

    fn show_measurements(&mut self) -> Result<Statement> {
        let database = self.on_database()?;
        let source = match self.accept(Tok::With) {
            true => {
                self.expect(Tok::Measurement)?;
                // Either operator takes a name or a regex.
                if !self.accept(Tok::Eq) && !self.accept(Tok::EqRegex) {
                    return Err(self.refuse_next("=, =~"));
                }
                Some(self.measurement()?)
            }
            false => None,
        };
        Ok(Statement::ShowMeasurements(ShowMeasurements {
            database,
            source,
            condition: self.condition()?,
            order_by: self.order_by(false)?,
            limit: self.optional_count(Tok::Limit)?,
            offset: self.optional_count(Tok::Offset)?,
        }))
    }

    fn show_series(&mut self) -> Result<Statement> {
        let exact = self.accept(Tok::Exact);
        if self.accept(Tok::Cardinality) {
            return self.cardinality(Cardinality::Series, exact);
        }
        if exact {
            return Err(self.refuse_next("CARDINALITY"));
        }
        Ok(Statement::ShowSeries(ShowSeries {
            database: self.on_database()?,
            sources: self.measurements_clause()?,
            condition: self.condition()?,
            order_by: self.order_by(false)?,
            limit: self.optional_count(Tok::Limit)?,
            offset: self.optional_count(Tok::Offset)?,
        }))
    }

    fn show_tag_values(&mut self) -> Result<Statement> {
        let exact = self.accept(Tok::Exact);
        if exact {
            self.expect(Tok::Cardinality)?;
        }
        let cardinality = exact || self.accept(Tok::Cardinality);
        let database = self.on_database()?;
        let sources = self.measurements_clause()?;
        let key = self.tag_key_match()?;
        let condition = self.condition()?;
        if cardinality {
            return Ok(Statement::ShowCardinality(ShowCardinality {
                of: Cardinality::TagValues(key),
                exact,
                database,
                sources,
                condition,
                dimensions: self.dimensions()?,
                limit: self.optional_count(Tok::Limit)?,
                offset: self.optional_count(Tok::Offset)?,
            }));
        }
        Ok(Statement::ShowTagValues(ShowTagValues {
            database,
            sources,
            key,
            condition,
            order_by: self.order_by(false)?,
            limit: self.optional_count(Tok::Limit)?,
            offset: self.optional_count(Tok::Offset)?,
        }))
    }

    /// `WITH KEY ..`
    fn tag_key_match(&mut self) -> Result<TagKeyMatch> {
        self.expect(Tok::With)?;
        self.expect(Tok::Key)?;
        let token = self.next();
        match token.tok {
            Tok::In => {
                self.expect(Tok::LeftParen)?;
                let keys = self.list(Self::ident)?;
                self.expect(Tok::RightParen)?;
                Ok(TagKeyMatch::In(keys))
            }
            Tok::Eq => Ok(TagKeyMatch::Eq(self.ident()?)),
            Tok::NotEq => Ok(TagKeyMatch::NotEq(self.ident()?)),
            Tok::EqRegex => Ok(TagKeyMatch::Regex(self.required_regex_text()?)),
            Tok::NotEqRegex => Ok(TagKeyMatch::NotRegex(self.required_regex_text()?)),
            _ => Err(self.unexpected(&token, "IN, =, =~")),
        }
    }

    fn key_cardinality(&mut self, of: Cardinality) -> Result<Statement> {
        let exact = self.accept(Tok::Exact);
        let expected = if exact { "CARDINALITY" } else { "EXACT, CARDINALITY" };
        self.expect_as(Tok::Cardinality, expected)?;
        self.cardinality(of, exact)
    }

    /// `[ON db] [FROM m, ..] BY ..` behind `SHOW CARDINALITY`.
    fn cardinality_by(&mut self) -> Result<Statement> {
        let database = self.on_database()?;
        let sources = self.measurements_clause()?;
        self.expect(Tok::By)?;
        let by = match self.next() {
            token if token.tok == Tok::Measurement => CardinalityBy::Measurement,
            token if token.tok == Tok::Tag => self.tag_part()?,
            other => return Err(self.unexpected(&other, "MEASUREMENT, TAG")),
        };
        Ok(Statement::ShowCardinalityBy(ShowCardinalityBy {
            by,
            database,
            sources,
            limit: self.optional_count(Tok::Limit)?,
            offset: self.optional_count(Tok::Offset)?,
        }))
    }

    /// `KEY` or `VALUE`, which is no keyword.
    fn tag_part(&mut self) -> Result<CardinalityBy> {
        let token = self.next();
        match token.tok {
            Tok::Key => Ok(CardinalityBy::TagKey),
            Tok::Ident if token.text.eq_ignore_ascii_case("value") => Ok(CardinalityBy::TagValue),
            _ => Err(self.unexpected(&token, "KEY, VALUE")),
        }
    }

    /// The clauses behind `CARDINALITY`.
    fn cardinality(&mut self, of: Cardinality, exact: bool) -> Result<Statement> {
        Ok(Statement::ShowCardinality(ShowCardinality {
            of,
            exact,
            database: self.on_database()?,
            sources: self.measurements_clause()?,
            condition: self.condition()?,
            dimensions: self.dimensions()?,
            limit: self.optional_count(Tok::Limit)?,
            offset: self.optional_count(Tok::Offset)?,
        }))
    }
}
