//! Selected expressions become expressions over slots: functions first, then plain columns.

use std::cmp::Ordering;

use hashbrown::{HashMap, HashSet};
use influxql::{BinaryOp, Call, DataType, Expr, Field, VarRef};
use model::{FieldType, Name, Scalar};

use super::{AuxPlan, CallPlan, ColumnKind, Output, Source, types};
use crate::QueryError;
use crate::exec::expression::{ArithmeticOp, Expression, MathFunction};
use crate::functions::transform::{Leaf, Transform, split};
use crate::functions::{self, Function};

/// What a SELECT computes.
pub(crate) struct Lowered {
    pub calls: Vec<CallPlan>,
    pub aux: Vec<AuxPlan>,
    pub outputs: Vec<Output>,
}

/// Lowers annotated, expanded and type-checked fields.
///
/// # Errors
/// [`QueryError::Invalid`] for a function of fields it does not take.
pub(crate) fn lower(fields: Vec<Field>, sources: &[Source]) -> Result<Lowered, QueryError> {
    let fields = with_column_args(fields, sources);
    let columns = influxql::names::column_names(&fields);
    let mut slots = Slots {
        calls: Vec::new(),
        calls_over: HashMap::new(),
        aux: Vec::new(),
        known_aux: HashSet::new(),
        sources,
    };
    for field in &fields {
        slots.collect(&field.expr)?;
    }
    slots.aux.sort_by(aux_order);
    let mut outputs = Vec::with_capacity(fields.len());
    for (field, column) in fields.into_iter().zip(columns) {
        outputs.push(Output {
            column: column.into(),
            reference: influxql::names::field_name(&field),
            data_type: types::of_expr(&field.expr)?,
            expression: slots.expression(&field.expr),
        });
    }
    Ok(Lowered { calls: slots.calls, aux: slots.aux, outputs })
}

/// The fields, with those that `top()` and `bottom()` bring along behind them.
fn with_column_args(fields: Vec<Field>, sources: &[Source]) -> Vec<Field> {
    let mut all = Vec::with_capacity(fields.len());
    for field in fields {
        let args = match &field.expr {
            Expr::Call(call) if matches!(call.name.as_str(), "top" | "bottom") => {
                Function::of(call).column_args().to_vec()
            }
            _ => Vec::new(),
        };
        all.push(field);
        all.extend(args.into_iter().map(|name| {
            let data_type = types::of_name(&name, sources);
            Field::new(Expr::VarRef(VarRef { name, data_type }))
        }));
    }
    all
}

fn aux_order(a: &AuxPlan, b: &AuxPlan) -> Ordering {
    (&a.name, rank(a.kind)).cmp(&(&b.name, rank(b.kind)))
}

fn rank(kind: ColumnKind) -> u8 {
    match kind {
        ColumnKind::Field(field_type) => 1 + field_type as u8,
        ColumnKind::Tag => 7,
        ColumnKind::Unknown => 0,
    }
}

/// Of thousands of each one is found without looking at all.
struct Slots<'a> {
    calls: Vec<CallPlan>,
    /// Places in `calls` of those over a field.
    calls_over: HashMap<Name, Vec<usize>>,
    aux: Vec<AuxPlan>,
    /// What is in `aux`.
    known_aux: HashSet<AuxPlan>,
    sources: &'a [Source],
}

impl Slots<'_> {
    /// Notes every function and every plain name of `expr`.
    fn collect(&mut self, expr: &Expr) -> Result<(), QueryError> {
        match expr {
            Expr::VarRef(var) => {
                let aux = aux_of(var);
                if self.known_aux.insert(aux.clone()) {
                    self.aux.push(aux);
                }
            }
            Expr::Call(call) if MathFunction::by_name(&call.name).is_none() => {
                self.add_call(self.call(call)?);
            }
            Expr::Distinct(name) => {
                self.add_call(self.call(&distinct_call(name, self.sources))?);
            }
            _ => {
                for child in influxql::visit::children(expr) {
                    self.collect(child)?;
                }
            }
        }
        Ok(())
    }

    fn add_call(&mut self, call: CallPlan) {
        if self.place_of(&call).is_none() {
            self.calls_over.entry(Name::clone(&call.field)).or_default().push(self.calls.len());
            self.calls.push(call);
        }
    }

    fn place_of(&self, call: &CallPlan) -> Option<usize> {
        let places = self.calls_over.get(&call.field)?;
        places.iter().copied().find(|at| self.calls[*at] == *call)
    }

    fn call(&self, call: &Call) -> Result<CallPlan, QueryError> {
        let (transforms, leaf) = split(call);
        let (function, argument) = match leaf {
            Leaf::Call(call) => (Function::of(call), functions::argument(call)),
            Leaf::Field(field) => (Function::Values, Some(field)),
        };
        let unknown = VarRef::new("");
        let (name, data_type) = match argument {
            Some(Expr::VarRef(var)) => (var.name.as_str(), var.data_type),
            Some(Expr::Distinct(name)) => (name.as_str(), types::of_name(name, self.sources)),
            _ => (unknown.name.as_str(), None),
        };
        let input = match data_type {
            // A tag is no input, unless it is one of a subquery's rows, which is a text whatever it is cast to.
            Some(_) if self.is_tag_of_rows(name) => Some(FieldType::String),
            Some(DataType::Tag) => self.is_output(name).then_some(FieldType::String),
            Some(other) => types::field_type(other),
            None => None,
        };
        let typed = |input: Option<FieldType>| {
            let result = function.result_type(input.unwrap_or(FieldType::Float))?;
            let shown =
                transforms.iter().try_fold(result, |shown, step| step.result_type(shown))?;
            Ok::<_, QueryError>((input, result, shown))
        };
        let (input, result, shown) = match typed(input) {
            // A cast that gives no value in any source says nothing of the function.
            Err(_) if input.is_some_and(|wanted| !self.is_readable(name, wanted)) => typed(None),
            other => other,
        }?;
        let is_fixed =
            transforms.last().map_or(function.has_fixed_type(), Transform::has_fixed_type);
        let is_known = data_type.is_some() || is_fixed;
        Ok(CallPlan { function, field: name.into(), input, result, transforms, shown, is_known })
    }

    /// Whether some source has values for the field `name` that can be read as `wanted`.
    fn is_readable(&self, name: &str, wanted: FieldType) -> bool {
        let fits =
            |stored: FieldType| stored == wanted || (stored.is_numeric() && wanted.is_numeric());
        self.is_output(name)
            || self.is_tag_of_rows(name)
            || self.sources.iter().any(|source| match source {
                Source::Measurement(measurement) => {
                    measurement.schema.field_type(name).is_some_and(fits)
                }
                Source::Subquery(_) | Source::Join(_) => false,
            })
    }

    /// Whether rows of a subquery or join have a tag of this name, and no source has a column of it.
    fn is_tag_of_rows(&self, name: &str) -> bool {
        let has_tag = |source: &Source| match source {
            Source::Measurement(_) => false,
            Source::Subquery(inner) => inner.has_tag(name),
            Source::Join(join) => join.has_tag(name),
        };
        types::of_name(name, self.sources) == Some(DataType::Tag)
            && !self.is_output(name)
            && self.sources.iter().any(has_tag)
    }

    fn is_output(&self, name: &str) -> bool {
        self.sources.iter().any(|source| match source {
            Source::Measurement(_) => false,
            Source::Subquery(inner) => {
                inner.select.outputs.iter().any(|output| output.reference == name)
            }
            Source::Join(join) => join.column(name).is_some(),
        })
    }

    /// The expression over the slots that were collected.
    fn expression(&self, expr: &Expr) -> Expression {
        match expr {
            Expr::VarRef(var) => {
                let aux = aux_of(var);
                let at = self.aux.binary_search_by(|other| aux_order(other, &aux));
                Expression::Slot(self.calls.len() + at.expect("BUG: every name was collected"))
            }
            Expr::Call(call) => match MathFunction::by_name(&call.name) {
                Some(function) => Expression::Math {
                    function,
                    args: call.args.iter().map(|arg| self.expression(arg)).collect(),
                },
                None => self.call_slot(call),
            },
            Expr::Distinct(name) => self.call_slot(&distinct_call(name, self.sources)),
            Expr::Paren(inner) => self.expression(inner),
            Expr::Binary { op, lhs, rhs } => match arithmetic(*op) {
                Some(op) => Expression::Binary {
                    op,
                    lhs: Box::new(self.expression(lhs)),
                    rhs: Box::new(self.expression(rhs)),
                },
                None => Expression::Missing,
            },
            literal => constant(literal).map_or(Expression::Missing, Expression::Constant),
        }
    }

    fn call_slot(&self, call: &Call) -> Expression {
        let at = self.call(call).ok().and_then(|call| self.place_of(&call));
        Expression::Slot(at.expect("BUG: every call was collected"))
    }
}

fn aux_of(var: &VarRef) -> AuxPlan {
    let kind = match var.data_type {
        Some(DataType::Tag) => ColumnKind::Tag,
        Some(other) => types::field_type(other).map_or(ColumnKind::Unknown, ColumnKind::Field),
        None => ColumnKind::Unknown,
    };
    AuxPlan { name: Name::from(var.name.as_str()), kind }
}

fn distinct_call(name: &str, sources: &[Source]) -> Call {
    let data_type = types::of_name(name, sources);
    let var = Expr::VarRef(VarRef { name: name.to_owned(), data_type });
    Call { name: "distinct".to_owned(), args: vec![var] }
}

/// The operator as one that makes values.
pub(crate) fn arithmetic(op: BinaryOp) -> Option<ArithmeticOp> {
    Some(match op {
        BinaryOp::Add => ArithmeticOp::Add,
        BinaryOp::Sub => ArithmeticOp::Sub,
        BinaryOp::Mul => ArithmeticOp::Mul,
        BinaryOp::Div => ArithmeticOp::Div,
        BinaryOp::Mod => ArithmeticOp::Mod,
        BinaryOp::BitAnd => ArithmeticOp::BitAnd,
        BinaryOp::BitOr => ArithmeticOp::BitOr,
        BinaryOp::BitXor => ArithmeticOp::BitXor,
        _ => return None,
    })
}

/// The value of a literal that can be stored.
pub(crate) fn constant(expr: &Expr) -> Option<Scalar> {
    Some(match expr {
        Expr::Number(v) => Scalar::Float(*v),
        Expr::Integer(v) => Scalar::Integer(*v),
        Expr::Unsigned(v) => Scalar::Unsigned(*v),
        Expr::Boolean(v) => Scalar::Boolean(*v),
        Expr::String(v) => Scalar::String(v.as_str().into()),
        _ => return None,
    })
}
