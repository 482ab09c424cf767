//! Tokens to tree: recursive descent over statements and clauses, an operator stack for expressions.
//!
//! Invariants
//! - [`NESTING_MAX`] and [`DEPTH_MAX`] bound the recursion of the parser and of whatever walks its trees, so that no text can exhaust a
//!   stack. Runs of AND and OR are flat and count for one level.
//! - Every alternative is decided by one token; nothing is read twice.
//!
//! Not here: words for the tree (ast), checks that need the whole statement (crate `query`).

mod clause;
mod define;
mod expr;
mod join;
mod select;
mod show;
mod statement;
mod user;

use crate::ast::{Expr, Query, Statement};
use crate::error::ParseError;
use crate::lexer::Lexer;
use crate::params::Params;
use crate::position::position;
use crate::token::{Tok, Token};

/// How deep an expression may be: every pair of parentheses, call and arithmetic or comparison operator adds a level. Recursion over
/// parsed expressions goes no deeper.
pub const DEPTH_MAX: u32 = 500;

/// How deep parentheses, calls and subqueries may nest, which is how deep the parser recurses. Less than [`DEPTH_MAX`], because a
/// level needs kilobytes of stack here in an unoptimised build.
pub const NESTING_MAX: u32 = 200;

/// A subquery needs as much stack as this many parentheses.
const SUBQUERY_LEVELS: u32 = 5;

type Result<T> = std::result::Result<T, ParseError>;

/// Parses a list of statements separated by semicolons; `$name` takes its value from `params`.
pub fn parse_query(text: &str, params: &Params) -> Result<Query> {
    let mut parser = Parser::new(text, params);
    let mut statements = Vec::new();
    loop {
        while parser.accept(Tok::Semicolon) {}
        if parser.peek() == Tok::Eof {
            return Ok(Query { statements });
        }
        statements.push(parser.statement()?);
        if !matches!(parser.peek(), Tok::Semicolon | Tok::Eof) {
            return Err(parser.refuse_next(";"));
        }
    }
}

/// Parses exactly one statement, such as the stored text of a continuous query.
pub fn parse_statement(text: &str, params: &Params) -> Result<Statement> {
    let mut parser = Parser::new(text, params);
    let statement = parser.statement()?;
    parser.finish()?;
    Ok(statement)
}

/// Parses exactly one expression, such as a condition.
pub fn parse_expr(text: &str, params: &Params) -> Result<Expr> {
    let mut parser = Parser::new(text, params);
    let expr = parser.expr()?;
    parser.finish()?;
    Ok(expr)
}

/// The state of a parse.
struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    params: &'a Params,
    /// A token that was looked at; white space before it is gone.
    peeked: Option<Token<'a>>,
    /// Byte offset of the peeked token.
    peeked_start: usize,
    /// Byte offset of the last token consumed that was not white space, for errors that point back.
    consumed_start: usize,
    /// Levels of nesting around the current token.
    nesting: u32,
    /// Whether durations may be calendar months.
    calendar: bool,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, params: &'a Params) -> Self {
        Self {
            text,
            lexer: Lexer::new(text),
            params,
            peeked: None,
            peeked_start: 0,
            consumed_start: 0,
            nesting: 0,
            calendar: false,
        }
    }

    /// Nothing but white space and comments may follow.
    fn finish(&mut self) -> Result<()> {
        match self.peek() {
            Tok::Eof => Ok(()),
            _ => Err(self.refuse_next("EOF")),
        }
    }

    /// Reads a token, a bound value in place of a parameter.
    fn scan(&mut self) -> Token<'a> {
        let mut token = self.lexer.next();
        if token.tok == Tok::BoundParam
            && let Some(param) = self.params.get(&token.text[1..])
        {
            (token.tok, token.text) = param.token();
        }
        token
    }

    /// Reads the last consumed token once more.
    fn consumed(&self) -> Token<'a> {
        let mut parser = Self::new(self.text, self.params);
        parser.lexer.seek(self.consumed_start);
        match parser.lexer.peek_byte() {
            Some(b'/') => parser.lexer.regex(),
            _ => parser.scan(),
        }
    }

    /// Makes the next token the peeked one, white space and comments included.
    fn peek_raw(&mut self) -> Tok {
        if let Some(token) = &self.peeked {
            return token.tok;
        }
        self.peeked_start = self.lexer.offset();
        let token = self.scan();
        let tok = token.tok;
        self.peeked = Some(token);
        tok
    }

    /// The kind of the next token; white space and comments before it are consumed.
    #[inline]
    fn peek(&mut self) -> Tok {
        match &self.peeked {
            Some(token) if !matches!(token.tok, Tok::Whitespace | Tok::Comment) => token.tok,
            _ => self.peek_far(),
        }
    }

    fn peek_far(&mut self) -> Tok {
        loop {
            match self.peeked.as_ref().map(|token| token.tok) {
                Some(Tok::Whitespace | Tok::Comment) => self.peeked = None,
                Some(tok) => return tok,
                None => {
                    self.lexer.skip_blanks();
                    self.peek_raw();
                }
            }
        }
    }

    /// The text of the next token.
    fn peek_text(&mut self) -> &str {
        self.peek();
        self.peeked.as_ref().map_or("", |t| &t.text)
    }

    /// The position of the next token as errors name it.
    fn peek_offset(&mut self) -> usize {
        self.peek();
        self.peeked.as_ref().map_or(0, |t| t.offset)
    }

    /// The next token, whatever it is.
    fn next_raw(&mut self) -> Token<'a> {
        self.peek_raw();
        self.peeked.take().expect("BUG: a peeked token is there")
    }

    /// The next token that is neither white space nor comment.
    fn next(&mut self) -> Token<'a> {
        self.peek();
        self.consumed_start = self.peeked_start;
        self.next_raw()
    }

    fn accept(&mut self, tok: Tok) -> bool {
        let hit = self.peek() == tok;
        if hit {
            self.next();
        }
        hit
    }

    fn expect(&mut self, tok: Tok) -> Result<()> {
        self.expect_as(tok, tok.as_str()).map(drop)
    }

    fn expect_as(&mut self, tok: Tok, expected: &str) -> Result<Token<'a>> {
        if self.peek() == tok { Ok(self.next()) } else { Err(self.refuse_next(expected)) }
    }

    fn ident(&mut self) -> Result<String> {
        Ok(self.expect_as(Tok::Ident, "identifier")?.text.into_owned())
    }

    fn string(&mut self) -> Result<String> {
        Ok(self.expect_as(Tok::String, "string")?.text.into_owned())
    }

    /// One or more of what `item` reads, separated by commas.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.accept(Tok::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Runs `read` one or more levels deeper.
    fn nested<T>(&mut self, levels: u32, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.nesting + levels > NESTING_MAX {
            return Err(ParseError::TooDeep { max: NESTING_MAX });
        }
        self.nesting += levels;
        let result = read(self);
        self.nesting -= levels;
        result
    }

    fn refuse_next(&mut self, expected: &str) -> ParseError {
        let token = self.next();
        self.unexpected(&token, expected)
    }

    fn unexpected(&self, found: &Token<'_>, expected: &str) -> ParseError {
        ParseError::Unexpected {
            found: found.display().to_owned(),
            expected: expected.to_owned(),
            position: position(self.text, found.offset),
        }
    }

    fn invalid(&self, offset: usize, message: impl Into<String>) -> ParseError {
        ParseError::Invalid { message: message.into(), position: position(self.text, offset) }
    }
}

fn rule(message: &str) -> ParseError {
    ParseError::Rule(message.to_owned())
}

#[cfg(test)]
mod tests;
