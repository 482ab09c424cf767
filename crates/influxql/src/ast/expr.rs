//! Expressions: fields, conditions, dimensions and function arguments.

use crate::time::Timestamp;

/// An expression.
///
/// A run of AND or of OR is one flat [`Expr::Logical`]; everything else with two operands is [`Expr::Binary`]. Parentheses of the
/// text stay as [`Expr::Paren`], so that printing gives back what was written.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// Arithmetic, bitwise or comparison: `lhs op rhs`.
    Binary {
        /// The operator.
        op: BinaryOp,
        /// Left operand.
        lhs: Box<Expr>,
        /// Right operand; an [`Expr::Regex`] exactly when `op` is a regex operator (in parsed trees).
        rhs: Box<Expr>,
    },
    /// `t1 AND t2 AND ..` or `t1 OR t2 OR ..`: at least two terms, none of them a `Logical` of the same operator.
    Logical {
        /// AND or OR.
        op: LogicalOp,
        /// The terms, in the order of the text.
        terms: Vec<Expr>,
    },
    /// A parenthesised expression.
    Paren(Box<Expr>),
    /// A name: field, tag or `time`.
    VarRef(VarRef),
    /// A function call.
    Call(Call),
    /// `DISTINCT name` (the form without parentheses).
    Distinct(String),
    /// `*`, `*::field` or `*::tag`.
    Wildcard(Wildcard),
    /// A regular expression, as source text without the slashes; whether it compiles is checked by the planner.
    Regex(String),
    /// A number with a decimal point.
    Number(f64),
    /// An integer that fits an i64.
    Integer(i64),
    /// An integer beyond i64::MAX.
    Unsigned(u64),
    /// A string, unescaped.
    String(String),
    /// `true` or `false`.
    Boolean(bool),
    /// A duration in nanoseconds.
    Duration(i64),
    /// A number of calendar months: an interval in `GROUP BY time()`, parsed nowhere else. An extension of Nyala.
    Months(u32),
    /// An instant; never parsed, made by folding strings and `now()`.
    Time(Timestamp),
    /// The absence of a value; never parsed, for planners that substitute variables.
    Nil,
}

/// Operators of [`Expr::Binary`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `=`
    Eq,
    /// `!=` (also written `<>`)
    NotEq,
    /// `=~`
    EqRegex,
    /// `!~`
    NotEqRegex,
    /// `<`
    Lt,
    /// `<=`
    LtEq,
    /// `>`
    Gt,
    /// `>=`
    GtEq,
}

impl BinaryOp {
    /// The operator as written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Mod => "%",
            Self::BitAnd => "&",
            Self::BitOr => "|",
            Self::BitXor => "^",
            Self::Eq => "=",
            Self::NotEq => "!=",
            Self::EqRegex => "=~",
            Self::NotEqRegex => "!~",
            Self::Lt => "<",
            Self::LtEq => "<=",
            Self::Gt => ">",
            Self::GtEq => ">=",
        }
    }

    /// Whether the result is a truth value: `= != =~ !~ < <= > >=`.
    pub fn is_comparison(self) -> bool {
        self.precedence() == 3
    }

    /// Whether the right side must be a regex.
    pub fn is_regex(self) -> bool {
        matches!(self, Self::EqRegex | Self::NotEqRegex)
    }

    /// The same comparison with its sides exchanged (`<` for `>`); other operators are returned unchanged.
    pub fn mirrored(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::LtEq => Self::GtEq,
            Self::Gt => Self::Lt,
            Self::GtEq => Self::LtEq,
            other => other,
        }
    }

    /// Binding strength, 3 to 5 (OR is 1, AND is 2); all operators are left associative.
    pub fn precedence(self) -> u8 {
        match self {
            Self::Mul | Self::Div | Self::Mod | Self::BitAnd => 5,
            Self::Add | Self::Sub | Self::BitOr | Self::BitXor => 4,
            _ => 3,
        }
    }
}

/// Operators of [`Expr::Logical`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogicalOp {
    /// `AND`
    And,
    /// `OR`
    Or,
}

impl LogicalOp {
    /// The operator as printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::And => "AND",
            Self::Or => "OR",
        }
    }

    /// Binding strength; see [`BinaryOp::precedence`].
    pub fn precedence(self) -> u8 {
        match self {
            Self::And => 2,
            Self::Or => 1,
        }
    }
}

/// Types of values and of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// 64-bit float.
    Float,
    /// Signed 64-bit integer.
    Integer,
    /// Unsigned 64-bit integer.
    Unsigned,
    /// UTF-8 string.
    String,
    /// Truth value.
    Boolean,
    /// Instant.
    Time,
    /// Span of time.
    Duration,
    /// A tag (always a string).
    Tag,
    /// A field of whatever type.
    AnyField,
}

impl DataType {
    /// The name used in casts, error texts and `SHOW FIELD KEYS`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::Integer => "integer",
            Self::Unsigned => "unsigned",
            Self::String => "string",
            Self::Boolean => "boolean",
            Self::Time => "time",
            Self::Duration => "duration",
            Self::Tag => "tag",
            Self::AnyField => "field",
        }
    }
}

/// A reference to a field, a tag or `time`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VarRef {
    /// The name; segments written with dots are joined with dots.
    pub name: String,
    /// The `::type` behind it.
    pub data_type: Option<DataType>,
}

impl VarRef {
    /// A reference without a cast.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), data_type: None }
    }

    /// Whether this is the time column (in any case, as conditions accept it).
    pub fn is_time(&self) -> bool {
        self.name.eq_ignore_ascii_case("time")
    }
}

/// A function call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Function name in lower case.
    pub name: String,
    /// Arguments.
    pub args: Vec<Expr>,
}

/// Which columns a `*` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wildcard {
    /// `*`
    Any,
    /// `*::field`
    Field,
    /// `*::tag`
    Tag,
}

impl Expr {
    /// `lhs op rhs`.
    pub fn binary(op: BinaryOp, lhs: Expr, rhs: Expr) -> Self {
        Self::Binary { op, lhs: Box::new(lhs), rhs: Box::new(rhs) }
    }

    /// A name without a cast.
    pub fn var(name: impl Into<String>) -> Self {
        Self::VarRef(VarRef::new(name))
    }

    /// A call; `name` must be in lower case.
    pub fn call(name: impl Into<String>, args: Vec<Expr>) -> Self {
        Self::Call(Call { name: name.into(), args })
    }

    /// Joins `terms` by `op` and keeps the form flat: nested runs of the same operator are spliced in. `None` without terms, the
    /// term itself when there is one.
    pub fn logical(op: LogicalOp, terms: impl IntoIterator<Item = Expr>) -> Option<Self> {
        let mut flat = Vec::new();
        for term in terms {
            match term {
                Self::Logical { op: inner, terms } if inner == op => flat.extend(terms),
                term => flat.push(term),
            }
        }
        if flat.len() > 1 { Some(Self::Logical { op, terms: flat }) } else { flat.pop() }
    }

    /// Whether this is a single value rather than something to compute.
    pub fn is_literal(&self) -> bool {
        matches!(
            self,
            Self::Regex(_)
                | Self::Number(_)
                | Self::Integer(_)
                | Self::Unsigned(_)
                | Self::String(_)
                | Self::Boolean(_)
                | Self::Duration(_)
                | Self::Months(_)
                | Self::Time(_)
                | Self::Nil
        )
    }

    /// The expression inside any number of parentheses.
    pub fn without_parens(&self) -> &Self {
        let mut expr = self;
        while let Self::Paren(inner) = expr {
            expr = inner;
        }
        expr
    }

    /// The type name InfluxDB shows for this node in error texts, such as `*influxql.StringLiteral`.
    pub fn influx_type_name(&self) -> &'static str {
        match self {
            Self::Binary { .. } | Self::Logical { .. } => "*influxql.BinaryExpr",
            Self::Paren(_) => "*influxql.ParenExpr",
            Self::VarRef(_) => "*influxql.VarRef",
            Self::Call(_) => "*influxql.Call",
            Self::Distinct(_) => "*influxql.Distinct",
            Self::Wildcard(_) => "*influxql.Wildcard",
            Self::Regex(_) => "*influxql.RegexLiteral",
            Self::Number(_) => "*influxql.NumberLiteral",
            Self::Integer(_) => "*influxql.IntegerLiteral",
            Self::Unsigned(_) => "*influxql.UnsignedLiteral",
            Self::String(_) => "*influxql.StringLiteral",
            Self::Boolean(_) => "*influxql.BooleanLiteral",
            Self::Duration(_) | Self::Months(_) => "*influxql.DurationLiteral",
            Self::Time(_) => "*influxql.TimeLiteral",
            Self::Nil => "*influxql.NilLiteral",
        }
    }
}
