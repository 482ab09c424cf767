//! Databases, retention policies, continuous queries and subscriptions.

use super::select::IntoRule;
use super::{Parser, Result};
use crate::ast::{
    AlterRetentionPolicy, CreateContinuousQuery, CreateDatabase, CreateRetentionPolicy,
    CreateSubscription, DatabasePolicy, DestinationMode, Statement,
};
use crate::duration::DurationText;
use crate::error::ParseError;
use crate::token::Tok;

impl Parser<'_> {
    pub(super) fn create(&mut self) -> Result<Statement> {
        let token = self.next();
        match token.tok {
            Tok::Continuous => {
                self.expect(Tok::Query)?;
                self.create_continuous_query()
            }
            Tok::Database => self.create_database(),
            Tok::User => self.create_user(),
            Tok::Retention => {
                self.expect(Tok::Policy)?;
                self.create_retention_policy()
            }
            Tok::Subscription => self.create_subscription(),
            _ => {
                let expected = "CONTINUOUS, DATABASE, USER, RETENTION, SUBSCRIPTION";
                Err(self.unexpected(&token, expected))
            }
        }
    }

    fn create_database(&mut self) -> Result<Statement> {
        let name = self.ident()?;
        let policy = match self.accept(Tok::With) {
            true => Some(self.database_policy()?),
            false => None,
        };
        Ok(Statement::CreateDatabase(CreateDatabase { name, policy }))
    }

    fn database_policy(&mut self) -> Result<DatabasePolicy> {
        if !matches!(self.peek(), Tok::Duration | Tok::Name | Tok::Replication | Tok::Shard) {
            return Err(self.refuse_next("DURATION, NAME, REPLICATION, SHARD"));
        }
        let mut policy = DatabasePolicy::default();
        if self.accept(Tok::Duration) {
            policy.duration_ns = Some(self.duration_or_inf()?);
        }
        if self.accept(Tok::Replication) {
            policy.replication = Some(self.replication()?);
        }
        if self.accept(Tok::Shard) {
            self.expect(Tok::Duration)?;
            policy.shard_duration_ns = Some(self.duration_or_inf()?);
        }
        if self.accept(Tok::Name) {
            policy.name = Some(self.ident()?);
        }
        Ok(policy)
    }

    fn create_retention_policy(&mut self) -> Result<Statement> {
        let (name, database) = self.name_on_database()?;
        self.expect(Tok::Duration)?;
        let duration_ns = self.duration_or_inf()?;
        self.expect(Tok::Replication)?;
        let replication = self.replication()?;
        let shard_duration_ns = match self.accept(Tok::Shard) {
            true => Some(self.shard_duration()?),
            false => None,
        };
        Ok(Statement::CreateRetentionPolicy(CreateRetentionPolicy {
            name,
            database,
            duration_ns,
            replication,
            shard_duration_ns,
            default: self.accept(Tok::Default),
        }))
    }

    /// `DURATION d` behind SHARD, where INF makes no sense.
    fn shard_duration(&mut self) -> Result<i64> {
        self.expect(Tok::Duration)?;
        if self.peek() == Tok::Inf {
            let token = self.next();
            return Err(self.invalid(token.offset, "invalid duration INF for shard duration"));
        }
        self.duration()
    }

    pub(super) fn alter(&mut self) -> Result<Statement> {
        self.expect(Tok::Retention)?;
        self.expect(Tok::Policy)?;
        let name = match self.accept(Tok::Default) {
            true => "default".to_owned(),
            false => self.ident()?,
        };
        self.expect(Tok::On)?;
        let mut policy = AlterRetentionPolicy {
            name,
            database: self.ident()?,
            duration_ns: None,
            replication: None,
            shard_duration_ns: None,
            default: false,
        };
        let mut options = 0;
        while self.alter_option(&mut policy)? {
            options += 1;
        }
        if options == 0 {
            return Err(self.refuse_next("DURATION, REPLICATION, SHARD, DEFAULT"));
        }
        Ok(Statement::AlterRetentionPolicy(policy))
    }

    /// Reads one option, each at most once in any order; false if there is none.
    fn alter_option(&mut self, policy: &mut AlterRetentionPolicy) -> Result<bool> {
        let tok = self.peek();
        let given = match tok {
            Tok::Duration => policy.duration_ns.is_some(),
            Tok::Replication => policy.replication.is_some(),
            Tok::Shard => policy.shard_duration_ns.is_some(),
            Tok::Default => policy.default,
            _ => return Ok(false),
        };
        let token = self.next();
        if given {
            let message = format!("found duplicate {} option", tok.as_str());
            return Err(self.invalid(token.offset, message));
        }
        match tok {
            Tok::Duration => policy.duration_ns = Some(self.duration_or_inf()?),
            Tok::Replication => policy.replication = Some(self.replication()?),
            Tok::Shard => policy.shard_duration_ns = Some(self.shard_duration()?),
            _ => policy.default = true,
        }
        Ok(true)
    }

    fn create_continuous_query(&mut self) -> Result<Statement> {
        let (name, database) = self.name_on_database()?;
        let (resample_every_ns, resample_for_ns) = match self.accept(Tok::Resample) {
            true => self.resample()?,
            false => (0, 0),
        };
        self.expect(Tok::Begin)?;
        self.expect(Tok::Select)?;
        let select = self.select(IntoRule::Required)?;
        let interval_ns = match select.group_by_interval() {
            Ok(None | Some(0)) if select.is_raw() => 0,
            Ok(None | Some(0)) => return Err(self.group_by_time_missing(None)),
            Ok(Some(ns)) => ns,
            Err(e) if select.is_raw() => return Err(ParseError::Rule(e.to_string())),
            Err(e) => return Err(self.group_by_time_missing(Some(e.to_string()))),
        };
        self.expect(Tok::End)?;
        let min_ns = interval_ns.max(resample_every_ns);
        if resample_for_ns != 0 && resample_for_ns < min_ns {
            return Err(ParseError::ResampleTooShort {
                min: DurationText(min_ns).to_string(),
                got: DurationText(resample_for_ns).to_string(),
            });
        }
        Ok(Statement::CreateContinuousQuery(CreateContinuousQuery {
            name,
            database,
            resample_every_ns,
            resample_for_ns,
            select,
        }))
    }

    /// `[EVERY d] [FOR d]`, of which one is needed; 0 = not given.
    fn resample(&mut self) -> Result<(i64, i64)> {
        let every_ns = if self.accept(Tok::Every) { self.duration()? } else { 0 };
        let for_ns = if self.accept(Tok::For) { self.duration()? } else { 0 };
        if every_ns == 0 && for_ns == 0 {
            return Err(self.refuse_next("EVERY, FOR"));
        }
        Ok((every_ns, for_ns))
    }

    fn create_subscription(&mut self) -> Result<Statement> {
        let (name, database) = self.name_on_database()?;
        let retention_policy = self.dotted_policy()?;
        self.expect(Tok::Destinations)?;
        let mode = match self.next() {
            t if t.tok == Tok::All => DestinationMode::All,
            t if t.tok == Tok::Any => DestinationMode::Any,
            other => return Err(self.unexpected(&other, "ALL, ANY")),
        };
        Ok(Statement::CreateSubscription(CreateSubscription {
            name,
            database,
            retention_policy,
            mode,
            destinations: self.list(Self::string)?,
        }))
    }
}
