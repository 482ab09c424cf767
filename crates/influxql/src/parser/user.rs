//! Users and privileges.

use super::{Parser, Result};
use crate::ast::{Password, Privilege, Statement};
use crate::token::Tok;

impl Parser<'_> {
    pub(super) fn create_user(&mut self) -> Result<Statement> {
        let name = self.ident()?;
        self.expect(Tok::With)?;
        self.expect(Tok::Password)?;
        let password = Password(self.string()?);
        let admin = self.accept(Tok::With);
        if admin {
            self.expect(Tok::All)?;
            self.expect(Tok::Privileges)?;
        }
        Ok(Statement::CreateUser { name, password, admin })
    }

    pub(super) fn set_password(&mut self) -> Result<Statement> {
        self.expect(Tok::Password)?;
        self.expect(Tok::For)?;
        let name = self.ident()?;
        self.expect(Tok::Eq)?;
        Ok(Statement::SetPassword { name, password: Password(self.string()?) })
    }

    pub(super) fn grant(&mut self) -> Result<Statement> {
        let privilege = self.privilege()?;
        if self.on_database_or(Tok::To, privilege)? {
            let database = self.ident()?;
            self.expect(Tok::To)?;
            return Ok(Statement::Grant { privilege, database, user: self.ident()? });
        }
        Ok(Statement::GrantAdmin { user: self.ident()? })
    }

    pub(super) fn revoke(&mut self) -> Result<Statement> {
        let privilege = self.privilege()?;
        if self.on_database_or(Tok::From, privilege)? {
            let database = self.ident()?;
            self.expect(Tok::From)?;
            return Ok(Statement::Revoke { privilege, database, user: self.ident()? });
        }
        Ok(Statement::RevokeAdmin { user: self.ident()? })
    }

    /// Consumes ON, giving true, or `admin`, which only all privileges may have.
    fn on_database_or(&mut self, admin: Tok, privilege: Privilege) -> Result<bool> {
        if self.accept(Tok::On) {
            return Ok(true);
        }
        if privilege != Privilege::All {
            return Err(self.refuse_next("ON"));
        }
        if self.accept(admin) {
            return Ok(false);
        }
        Err(self.refuse_next(&format!("ON, {}", admin.as_str())))
    }

    fn privilege(&mut self) -> Result<Privilege> {
        let token = self.next();
        match token.tok {
            Tok::Read => Ok(Privilege::Read),
            Tok::Write => Ok(Privilege::Write),
            Tok::All => {
                self.accept(Tok::Privileges);
                Ok(Privilege::All)
            }
            _ => Err(self.unexpected(&token, "READ, WRITE, ALL [PRIVILEGES]")),
        }
    }
}
