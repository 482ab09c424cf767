//! Expressions.

use super::{DEPTH_MAX, Parser, Result, rule};
use crate::ast::{BinaryOp, DataType, Expr, LogicalOp, VarRef, Wildcard};
use crate::display::quote_ident;
use crate::duration::{DurationError, parse_duration, parse_months};
use crate::error::ParseError;
use crate::regex::translate_regex;
use crate::token::{Tok, Token};

/// Operands, operators and terms that room is made for at once: as many as most conditions have.
const OPERANDS: usize = 4;

/// An expression and how many levels it has.
struct Tree {
    expr: Expr,
    height: u32,
}

impl Tree {
    fn leaf(expr: Expr) -> Self {
        Self { expr, height: 1 }
    }
}

#[derive(Clone, Copy)]
enum Operator {
    Binary(BinaryOp),
    Logical(LogicalOp),
}

impl Operator {
    fn of(tok: Tok) -> Option<Self> {
        let op = match tok {
            Tok::And => return Some(Self::Logical(LogicalOp::And)),
            Tok::Or => return Some(Self::Logical(LogicalOp::Or)),
            Tok::Add => BinaryOp::Add,
            Tok::Sub => BinaryOp::Sub,
            Tok::Mul => BinaryOp::Mul,
            Tok::Div => BinaryOp::Div,
            Tok::Mod => BinaryOp::Mod,
            Tok::BitAnd => BinaryOp::BitAnd,
            Tok::BitOr => BinaryOp::BitOr,
            Tok::BitXor => BinaryOp::BitXor,
            Tok::Eq => BinaryOp::Eq,
            Tok::NotEq => BinaryOp::NotEq,
            Tok::EqRegex => BinaryOp::EqRegex,
            Tok::NotEqRegex => BinaryOp::NotEqRegex,
            Tok::Lt => BinaryOp::Lt,
            Tok::LtEq => BinaryOp::LtEq,
            Tok::Gt => BinaryOp::Gt,
            Tok::GtEq => BinaryOp::GtEq,
            _ => return None,
        };
        Some(Self::Binary(op))
    }

    fn precedence(self) -> u8 {
        match self {
            Self::Binary(op) => op.precedence(),
            Self::Logical(op) => op.precedence(),
        }
    }
}

impl Parser<'_> {
    /// An expression with operators of any precedence.
    pub(super) fn expr(&mut self) -> Result<Expr> {
        Ok(self.tree()?.expr)
    }

    /// Operators wait on a stack until one that binds no tighter follows; the stack never holds more than one per precedence.
    fn tree(&mut self) -> Result<Tree> {
        let first = self.operand()?;
        let Some(mut op) = Operator::of(self.peek()) else { return Ok(first) };
        let mut operands = Vec::with_capacity(OPERANDS);
        operands.push(first);
        let mut waiting: Vec<Operator> = Vec::with_capacity(OPERANDS);
        loop {
            self.next();
            while let Some(top) = waiting.pop_if(|top| top.precedence() >= op.precedence()) {
                self.apply(top, &mut operands)?;
            }
            waiting.push(op);
            operands.push(match op {
                Operator::Binary(op) if op.is_regex() => {
                    Tree::leaf(Expr::Regex(self.required_regex_text()?))
                }
                _ => self.operand()?,
            });
            match Operator::of(self.peek()) {
                Some(next) => op = next,
                None => break,
            }
        }
        while let Some(top) = waiting.pop() {
            self.apply(top, &mut operands)?;
        }
        Ok(operands.pop().expect("BUG: operators left one operand"))
    }

    /// Replaces the last two operands by their combination.
    fn apply(&self, op: Operator, operands: &mut Vec<Tree>) -> Result<()> {
        let rhs = operands.pop().expect("BUG: an operator has a right operand");
        let lhs = operands.pop().expect("BUG: an operator has a left operand");
        let tree = match op {
            Operator::Logical(op) => join(op, lhs, rhs),
            Operator::Binary(op) => {
                // `a / -f` must stay a quotient when it is printed and read again.
                let rhs = match rhs.expr {
                    Expr::Binary { .. } if op.precedence() == BinaryOp::Mul.precedence() => {
                        Tree { expr: Expr::Paren(Box::new(rhs.expr)), height: rhs.height + 1 }
                    }
                    _ => rhs,
                };
                Tree {
                    height: 1 + lhs.height.max(rhs.height),
                    expr: Expr::binary(op, lhs.expr, rhs.expr),
                }
            }
        };
        check_height(tree.height)?;
        operands.push(tree);
        Ok(())
    }

    /// What stands between operators.
    fn operand(&mut self) -> Result<Tree> {
        let tok = self.peek();
        let token = self.next();
        match tok {
            Tok::LeftParen => {
                let inner = self.nested(1, Self::tree)?;
                self.expect(Tok::RightParen)?;
                Ok(Tree { expr: Expr::Paren(Box::new(inner.expr)), height: inner.height + 1 })
            }
            Tok::Ident if self.peek_raw() == Tok::LeftParen => {
                self.next();
                self.call(&token.text)
            }
            Tok::Ident => Ok(Tree::leaf(Expr::VarRef(self.var_ref(token)?))),
            Tok::Distinct => self.distinct(),
            Tok::Mul => Ok(Tree::leaf(Expr::Wildcard(self.wildcard()?))),
            Tok::Add | Tok::Sub => self.signed(tok == Tok::Sub),
            _ => Ok(Tree::leaf(self.literal(token)?)),
        }
    }

    fn literal(&mut self, token: Token<'_>) -> Result<Expr> {
        Ok(match token.tok {
            Tok::String => Expr::String(token.text.into_owned()),
            Tok::True => Expr::Boolean(true),
            Tok::False => Expr::Boolean(false),
            Tok::Regex => Expr::Regex(self.regex_text(token)?),
            Tok::Number => match token.text.parse::<f64>() {
                Ok(n) if n.is_finite() => Expr::Number(n),
                _ => return Err(self.invalid(token.offset, "unable to parse number")),
            },
            Tok::Integer => match (token.text.parse(), token.text.parse()) {
                (Ok(n), _) => Expr::Integer(n),
                (_, Ok(n)) => Expr::Unsigned(n),
                _ => return Err(self.invalid(token.offset, "unable to parse integer")),
            },
            Tok::DurationVal => self.duration_literal(&token.text)?,
            Tok::BoundParam => {
                let name = token.text.strip_prefix('$').unwrap_or(&token.text);
                return Err(match name {
                    "" => rule("empty bound parameter"),
                    _ => ParseError::MissingParameter(name.to_owned()),
                });
            }
            _ => return Err(self.unexpected(&token, "identifier, string, number, bool")),
        })
    }

    fn duration_literal(&self, text: &str) -> Result<Expr> {
        let refused = |e: DurationError| ParseError::Rule(e.to_string());
        if self.calendar
            && let Some(months) = parse_months(text).map_err(refused)?
        {
            return Ok(Expr::Months(months));
        }
        parse_duration(text).map(Expr::Duration).map_err(refused)
    }

    /// What follows a sign. Literals take it up; anything else is multiplied by 1 or -1.
    fn signed(&mut self, minus: bool) -> Result<Tree> {
        let allowed = matches!(
            self.peek(),
            Tok::Number | Tok::Integer | Tok::DurationVal | Tok::LeftParen | Tok::Ident
        );
        if !allowed {
            return Err(self.refuse_next("identifier, number, duration, ("));
        }
        let operand = self.operand()?;
        let sign = if minus { -1 } else { 1 };
        let expr = match operand.expr {
            Expr::Number(n) => Expr::Number(n * f64::from(sign)),
            Expr::Integer(n) => Expr::Integer(n.wrapping_mul(i64::from(sign))),
            Expr::Duration(ns) => Expr::Duration(ns.wrapping_mul(i64::from(sign))),
            Expr::Unsigned(n) if minus && n == i64::MIN.unsigned_abs() => Expr::Integer(i64::MIN),
            Expr::Unsigned(n) if minus => {
                return Err(ParseError::Rule(format!("constant -{n} underflows int64")));
            }
            Expr::Unsigned(n) => Expr::Unsigned(n),
            expr => {
                let height = operand.height + 1;
                check_height(height)?;
                let expr = Expr::binary(BinaryOp::Mul, Expr::Integer(i64::from(sign)), expr);
                return Ok(Tree { expr, height });
            }
        };
        Ok(Tree::leaf(expr))
    }

    /// The arguments of a call whose opening parenthesis is consumed.
    fn call(&mut self, name: &str) -> Result<Tree> {
        let name = name.to_ascii_lowercase();
        let (args, height) = self.nested(1, Self::args)?;
        Ok(Tree { expr: Expr::call(name, args), height: height + 1 })
    }

    fn args(&mut self) -> Result<(Vec<Expr>, u32)> {
        let (mut args, mut height) = (Vec::new(), 0);
        loop {
            let arg = match self.optional_regex()? {
                Some(regex) => Tree::leaf(regex),
                None if args.is_empty() && self.accept(Tok::RightParen) => return Ok((args, 0)),
                None => self.tree()?,
            };
            height = height.max(arg.height);
            args.push(arg.expr);
            if !self.accept(Tok::Comma) {
                self.expect(Tok::RightParen)?;
                return Ok((args, height));
            }
        }
    }

    /// `DISTINCT(..)` is a call; `DISTINCT name`, with the space, is a form of its own.
    fn distinct(&mut self) -> Result<Tree> {
        match self.peek_raw() {
            Tok::LeftParen => {
                self.next();
                self.call("distinct")
            }
            Tok::Whitespace => Ok(Tree::leaf(Expr::Distinct(self.ident()?))),
            _ => Err(self.refuse_next("(, identifier")),
        }
    }

    fn wildcard(&mut self) -> Result<Wildcard> {
        if self.peek_raw() != Tok::DoubleColon {
            return Ok(Wildcard::Any);
        }
        self.next_raw();
        match self.next_raw() {
            Token { tok: Tok::Field, .. } => Ok(Wildcard::Field),
            Token { tok: Tok::Tag, .. } => Ok(Wildcard::Tag),
            other => Err(self.unexpected(&other, "field, tag")),
        }
    }

    /// A name that starts with `first`, with its cast.
    fn var_ref(&mut self, first: Token<'_>) -> Result<VarRef> {
        let name = match self.peek_raw() {
            Tok::Dot => self.segments(first.text.into_owned())?.names.join("."),
            _ => first.text.into_owned(),
        };
        let data_type = match self.peek_raw() {
            Tok::DoubleColon => {
                self.next_raw();
                Some(self.cast()?)
            }
            _ => None,
        };
        Ok(VarRef { name, data_type })
    }

    fn cast(&mut self) -> Result<DataType> {
        const TYPES: [DataType; 5] = [
            DataType::Float,
            DataType::Integer,
            DataType::Unsigned,
            DataType::String,
            DataType::Boolean,
        ];
        let token = self.next_raw();
        match token.tok {
            Tok::Field => Ok(DataType::AnyField),
            Tok::Tag => Ok(DataType::Tag),
            Tok::Ident => TYPES
                .into_iter()
                .find(|t| token.text.eq_ignore_ascii_case(t.as_str()))
                .ok_or_else(|| {
                    let expected = "float, integer, unsigned, string, boolean, field, tag";
                    self.unexpected(&token, expected)
                }),
            _ => Err(self.unexpected(&token, "float, integer, string, boolean, field, tag")),
        }
    }

    /// A regex if one stands here. A slash is a regex in this place even before a star, so that a comment cannot stand here.
    pub(super) fn optional_regex(&mut self) -> Result<Option<Expr>> {
        Ok(self.optional_regex_text()?.map(Expr::Regex))
    }

    /// The source text of [`Self::optional_regex`].
    pub(super) fn optional_regex_text(&mut self) -> Result<Option<String>> {
        debug_assert!(self.peeked.is_none(), "BUG: a token was looked at where a regex can stand");
        if matches!(self.lexer.peek_byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.next_raw();
        }
        match self.lexer.peek_byte() {
            Some(b'/') => {}
            Some(b'$') if self.peek_raw() == Tok::Regex => {
                let token = self.next();
                return self.regex_text(token).map(Some);
            }
            _ => return Ok(None),
        }
        self.consumed_start = self.lexer.offset();
        let token = self.lexer.regex();
        if token.tok == Tok::BadRegex {
            return Err(self.invalid(token.offset, "bad regex: "));
        }
        self.regex_text(token).map(Some)
    }

    pub(super) fn required_regex_text(&mut self) -> Result<String> {
        match self.optional_regex_text()? {
            Some(regex) => Ok(regex),
            None => Err(self.refuse_next("regex")),
        }
    }

    fn regex_text(&self, token: Token<'_>) -> Result<String> {
        if let Err(error) = translate_regex(&token.text) {
            return Err(self.invalid(token.offset, error.to_string()));
        }
        Ok(token.text.into_owned())
    }

    /// Names separated by dots, the first of which is consumed.
    pub(super) fn segments(&mut self, first: String) -> Result<Segments> {
        let mut names = vec![first];
        let mut open = false;
        while self.peek_raw() == Tok::Dot {
            self.next();
            match self.lexer.peek_byte() {
                Some(b'/' | b':') => {
                    open = true;
                    break;
                }
                Some(b'.') => names.push(String::new()),
                _ => names.push(self.ident()?),
            }
        }
        if names.len() > 3 {
            let printed: Vec<String> = names
                .iter()
                .enumerate()
                .map(|(i, name)| match name.as_str() {
                    "" if i > 0 => String::new(),
                    name if i + 1 == names.len() => quote_ident(name).to_string(),
                    name => quote_ident(name).always().to_string(),
                })
                .collect();
            let message = format!("too many segments in {}", printed.join("."));
            return Err(self.invalid(0, message));
        }
        Ok(Segments { names, open })
    }
}

/// A dotted name.
pub(super) struct Segments {
    /// One to three names; the middle one may be empty.
    pub(super) names: Vec<String>,
    /// Whether it ends in a dot, before a regex or a colon.
    pub(super) open: bool,
}

/// Makes a flat run of AND or OR. Only the left side can be such a run: parentheses are nodes of their own.
fn join(op: LogicalOp, lhs: Tree, rhs: Tree) -> Tree {
    match lhs.expr {
        Expr::Logical { op: run, mut terms } if run == op => {
            terms.push(rhs.expr);
            Tree { expr: Expr::Logical { op, terms }, height: lhs.height.max(rhs.height + 1) }
        }
        expr => {
            let height = 1 + lhs.height.max(rhs.height);
            let mut terms = Vec::with_capacity(OPERANDS);
            terms.extend([expr, rhs.expr]);
            Tree { expr: Expr::Logical { op, terms }, height }
        }
    }
}

fn check_height(height: u32) -> Result<()> {
    if height > DEPTH_MAX { Err(ParseError::TooDeep { max: DEPTH_MAX }) } else { Ok(()) }
}
