//! Mathematical functions on columns.

use model::{Column, FieldType, Scalar, Values};

use crate::exec::column::{both, cast, missing, repeated, type_of};

/// A function from numbers to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MathFunction {
    Abs,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Atan2,
    Exp,
    Log,
    Ln,
    Log2,
    Log10,
    Sqrt,
    Pow,
    Floor,
    Ceil,
    Round,
}

impl MathFunction {
    /// The function called `name`.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "abs" => Self::Abs,
            "sin" => Self::Sin,
            "cos" => Self::Cos,
            "tan" => Self::Tan,
            "asin" => Self::Asin,
            "acos" => Self::Acos,
            "atan" => Self::Atan,
            "atan2" => Self::Atan2,
            "exp" => Self::Exp,
            "log" => Self::Log,
            "ln" => Self::Ln,
            "log2" => Self::Log2,
            "log10" => Self::Log10,
            "sqrt" => Self::Sqrt,
            "pow" => Self::Pow,
            "floor" => Self::Floor,
            "ceil" => Self::Ceil,
            "round" => Self::Round,
            _ => return None,
        })
    }

    /// Number of arguments.
    pub(crate) fn arity(self) -> usize {
        if matches!(self, Self::Atan2 | Self::Log | Self::Pow) { 2 } else { 1 }
    }

    /// Whether integers stay integers.
    pub(crate) fn keeps_type(self) -> bool {
        matches!(self, Self::Abs | Self::Floor | Self::Ceil | Self::Round)
    }

    /// Whether only floats are accepted.
    pub(crate) fn needs_float(self) -> bool {
        matches!(self, Self::Asin | Self::Acos)
    }

    /// The value for constant arguments, if they are numbers that the function takes.
    pub(crate) fn of_constants(self, args: &[Scalar]) -> Option<Scalar> {
        let fits = |arg: &Scalar| match arg.field_type() {
            FieldType::Float => true,
            other => other.is_numeric() && !self.needs_float(),
        };
        if args.len() != self.arity() || !args.iter().all(fits) {
            return None;
        }
        let value = self.apply(args.iter().map(|arg| repeated(arg, 1)).collect());
        match value.values {
            Values::Float(values) => values.first().map(|value| Scalar::Float(*value)),
            Values::Integer(values) => values.first().map(|value| Scalar::Integer(*value)),
            Values::Unsigned(values) => values.first().map(|value| Scalar::Unsigned(*value)),
            _ => None,
        }
    }

    /// The values for columns of arguments, as many as [`MathFunction::arity`] says.
    pub(crate) fn apply(self, mut args: Vec<Column>) -> Column {
        let rows = args[0].len();
        if args.iter().any(|arg| !type_of(&arg.values).is_numeric()) {
            return missing(FieldType::Float, rows);
        }
        if self.arity() == 2 {
            let second = cast(args.swap_remove(1), FieldType::Float);
            let first = cast(args.swap_remove(0), FieldType::Float);
            return self.binary(&first, &second);
        }
        let mut arg = args.swap_remove(0);
        if self.keeps_type() && type_of(&arg.values) != FieldType::Float {
            if let (Self::Abs, Values::Integer(values)) = (self, &mut arg.values) {
                values.iter_mut().for_each(|v| *v = v.wrapping_abs());
            }
            return arg;
        }
        let mut arg = cast(arg, FieldType::Float);
        if let Values::Float(values) = &mut arg.values {
            self.unary(values);
        }
        arg
    }

    fn unary(self, values: &mut [f64]) {
        let function = match self {
            Self::Abs => f64::abs,
            Self::Sin => f64::sin,
            Self::Cos => f64::cos,
            Self::Tan => f64::tan,
            Self::Asin => f64::asin,
            Self::Acos => f64::acos,
            Self::Atan => f64::atan,
            Self::Exp => f64::exp,
            Self::Ln => f64::ln,
            Self::Log2 => f64::log2,
            Self::Log10 => f64::log10,
            Self::Sqrt => f64::sqrt,
            Self::Floor => f64::floor,
            Self::Ceil => f64::ceil,
            Self::Round => f64::round,
            Self::Atan2 | Self::Log | Self::Pow => panic!("BUG: {self:?} takes two arguments"),
        };
        values.iter_mut().for_each(|v| *v = function(*v));
    }

    fn binary(self, a: &Column, b: &Column) -> Column {
        let function = match self {
            Self::Atan2 => f64::atan2,
            Self::Pow => f64::powf,
            Self::Log => |x: f64, base: f64| x.ln() / base.ln(),
            _ => panic!("BUG: {self:?} takes one argument"),
        };
        let (Values::Float(x), Values::Float(y)) = (&a.values, &b.values) else {
            panic!("BUG: cast to floats before");
        };
        let values = x.iter().zip(y).map(|(x, y)| function(*x, *y)).collect();
        let validity = both(a.validity.as_ref(), b.validity.as_ref());
        Column { values: Values::Float(values), validity }
    }
}
