//! Random trees, in the form the parser gives them, must survive printing and parsing.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::*;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z_][a-z0-9_]{0,5}".boxed(),
        "[ -~]{1,6}".boxed(),
        "[a-z\"\\\\\n'.\u{e9}]{0,5}".boxed(),
        prop::sample::select(vec!["select", "FROM", "time", "true", "fill", "Key"])
            .prop_map(str::to_owned)
            .boxed(),
    ]
}

/// A name that is not taken for an absent one.
fn full_name() -> impl Strategy<Value = String> {
    name().prop_filter("absent", |s| !s.is_empty())
}

fn text() -> impl Strategy<Value = String> {
    "[ -~\n\u{e9}]{0,8}"
}

fn regex() -> impl Strategy<Value = String> {
    // A backslash at the end would escape the closing slash, a star at the start is refused.
    "([a-z/.]|\\[[a-z/.]\\]|\\\\[dwsAz/.]){0,6}"
}

fn literal() -> impl Strategy<Value = Expr> {
    prop_oneof![
        any::<i64>().prop_map(Expr::Integer),
        (1 << 63..=u64::MAX).prop_map(Expr::Unsigned),
        prop::num::f64::NORMAL.prop_map(Expr::Number),
        (-1e6..1e6).prop_map(Expr::Number),
        (-i64::MAX..=i64::MAX).prop_map(Expr::Duration),
        any::<bool>().prop_map(Expr::Boolean),
        text().prop_map(Expr::String),
    ]
}

fn var_ref() -> impl Strategy<Value = Expr> {
    let types = vec![
        DataType::Float,
        DataType::Integer,
        DataType::Unsigned,
        DataType::String,
        DataType::Boolean,
        DataType::Tag,
        DataType::AnyField,
    ];
    (name(), option::weighted(0.3, prop::sample::select(types)))
        .prop_map(|(name, data_type)| Expr::VarRef(VarRef { name, data_type }))
}

/// What the parser gives for `lhs op rhs`: operands that bind too weakly have parentheses.
fn binary(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr {
    let lhs = parenthesised(lhs, op.precedence());
    Expr::binary(op, lhs, parenthesised(rhs, op.precedence() + 1))
}

fn parenthesised(expr: Expr, precedence_min: u8) -> Expr {
    let precedence = match &expr {
        Expr::Binary { op, .. } => op.precedence(),
        Expr::Logical { op, .. } => op.precedence(),
        _ => u8::MAX,
    };
    if precedence < precedence_min { Expr::Paren(Box::new(expr)) } else { expr }
}

fn call_name() -> impl Strategy<Value = String> {
    "[a-z_][a-z0-9_]{0,6}".prop_filter("keyword", |s| token::keyword(s).is_none())
}

/// Expressions of a field list.
fn arithmetic() -> impl Strategy<Value = Expr> {
    use BinaryOp::{Add, BitAnd, BitOr, BitXor, Div, Mod, Mul, Sub};
    let leaf = prop_oneof![
        3 => literal().boxed(),
        3 => var_ref().boxed(),
        1 => name().prop_map(Expr::Distinct).boxed(),
        1 => prop::sample::select(vec![Wildcard::Any, Wildcard::Field, Wildcard::Tag])
            .prop_map(Expr::Wildcard)
            .boxed(),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let ops = prop::sample::select(vec![Add, Sub, Mul, Div, Mod, BitAnd, BitOr, BitXor]);
        let arg = prop_oneof![4 => inner.clone(), 1 => regex().prop_map(Expr::Regex)];
        prop_oneof![
            (ops, inner.clone(), inner.clone()).prop_map(|(op, l, r)| binary(op, l, r)),
            (call_name(), vec(arg, 0..4)).prop_map(|(name, args)| Expr::call(name, args)),
            inner.prop_map(|e| Expr::Paren(Box::new(e))),
        ]
    })
}

fn condition() -> impl Strategy<Value = Expr> {
    use BinaryOp::{Eq, EqRegex, Gt, GtEq, Lt, LtEq, NotEq, NotEqRegex};
    let comparison =
        (prop::sample::select(vec![Eq, NotEq, Lt, LtEq, Gt, GtEq]), arithmetic(), arithmetic());
    let leaf = prop_oneof![
        comparison.prop_map(|(op, l, r)| binary(op, l, r)),
        (prop::sample::select(vec![EqRegex, NotEqRegex]), var_ref(), regex())
            .prop_map(|(op, l, r)| Expr::binary(op, l, Expr::Regex(r))),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let op = prop::sample::select(vec![LogicalOp::And, LogicalOp::Or]);
        prop_oneof![
            (op, vec(inner.clone(), 2..5)).prop_map(|(op, terms)| {
                let terms = terms.into_iter().map(|t| parenthesised(t, op.precedence() + 1));
                Expr::Logical { op, terms: terms.collect() }
            }),
            inner.prop_map(|e| Expr::Paren(Box::new(e))),
        ]
    })
}

fn measurement() -> impl Strategy<Value = Measurement> {
    let name = prop_oneof![
        3 => name().prop_map(MeasurementName::Name),
        1 => regex().prop_map(MeasurementName::Regex),
    ];
    (option::of(full_name()), option::of(full_name()), name).prop_map(
        |(database, retention_policy, name)| Measurement { database, retention_policy, name },
    )
}

fn into_target() -> impl Strategy<Value = IntoTarget> {
    let path = (option::of(full_name()), option::of(full_name()));
    (path, option::of(name())).prop_map(|((database, retention_policy), name)| {
        let name = match name {
            Some(name) => TargetName::Name(name),
            None if database.is_none() && retention_policy.is_none() => {
                TargetName::Name(String::new())
            }
            None => TargetName::SourceName,
        };
        IntoTarget { database, retention_policy, name }
    })
}

fn order_by() -> impl Strategy<Value = Vec<SortField>> {
    let name = prop_oneof![Just(None), Just(Some("time".to_owned()))];
    vec((name, any::<bool>()).prop_map(|(name, ascending)| SortField { name, ascending }), 0..2)
}

fn order_by_columns() -> impl Strategy<Value = Vec<SortField>> {
    let name = name().prop_map(Some);
    let field = (name, any::<bool>()).prop_map(|(name, ascending)| SortField { name, ascending });
    prop_oneof![2 => order_by().boxed(), 1 => vec(field, 1..4).boxed()]
}

fn fill() -> impl Strategy<Value = Fill> {
    prop_oneof![
        Just(Fill::Null),
        Just(Fill::None),
        Just(Fill::Previous),
        Just(Fill::Linear),
        any::<i64>().prop_map(Fill::Integer),
        (-1e3..1e3).prop_filter("whole", |n: &f64| n.fract() != 0.0).prop_map(Fill::Number),
    ]
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 1 => 0..=i64::MAX as u64]
}

fn field() -> impl Strategy<Value = Field> {
    let expr = prop_oneof![4 => arithmetic(), 1 => regex().prop_map(Expr::Regex)];
    (expr, option::weighted(0.3, full_name())).prop_map(|(expr, alias)| Field { expr, alias })
}

fn dimensions() -> impl Strategy<Value = Vec<Expr>> {
    let months = 0..=duration::MONTHS_MAX;
    let time = months.prop_map(|months| Expr::call("time", vec![Expr::Months(months)]));
    vec(prop_oneof![3 => arithmetic(), 1 => regex().prop_map(Expr::Regex), 1 => time], 0..3)
}

fn select() -> impl Strategy<Value = SelectStatement> {
    let plain = select_from(measurement().prop_map(Source::Measurement).boxed());
    plain.prop_recursive(2, 6, 2, |inner| {
        let source = prop_oneof![
            inner.prop_map(|s| Source::SubQuery(Box::new(s))).boxed(),
            measurement().prop_map(Source::Measurement).boxed(),
        ];
        select_from(source.boxed())
    })
}

/// A join of some of these sources.
fn join(source: BoxedStrategy<Source>) -> impl Strategy<Value = Source> {
    let side = |(source, alias)| {
        let mut side = JoinSide { source, alias };
        if side.name().is_none() {
            side.alias = Some("a".to_owned());
        }
        if let Source::Measurement(measurement) = &mut side.source
            && measurement.plain_name().is_none()
        {
            measurement.name = MeasurementName::Name("m".to_owned());
        }
        side
    };
    let side = (source, option::of(name())).prop_map(side).boxed();
    let kind = prop::sample::select(vec![JoinKind::Inner, JoinKind::Left, JoinKind::Full]);
    let using = option::of(vec(name(), 0..3));
    (side.clone(), vec((kind, side), 1..3), using)
        .prop_map(|(first, others, using)| Source::Join(Box::new(Join { first, others, using })))
}

fn select_from(source: BoxedStrategy<Source>) -> BoxedStrategy<SelectStatement> {
    let joined = join(source.clone()).prop_map(|join| vec![join]);
    let sources = prop_oneof![3 => vec(source, 1..3).boxed(), 1 => joined.boxed()];
    let what = (vec(field(), 1..4), sources, option::of(condition()), dimensions());
    let having = option::weighted(0.3, condition());
    let how = (fill(), order_by_columns(), count(), count(), count(), count(), option::of(text()));
    (what, how, having)
        .prop_map(|((fields, sources, condition, dimensions), how, having)| SelectStatement {
            fields,
            into: None,
            sources,
            condition,
            dimensions,
            fill: how.0,
            having,
            order_by: how.1,
            limit: how.2,
            offset: how.3,
            series_limit: how.4,
            series_offset: how.5,
            time_zone: how.6,
        })
        .boxed()
}

fn select_into() -> impl Strategy<Value = Box<SelectStatement>> {
    (select(), option::of(into_target()))
        .prop_map(|(s, into)| Box::new(SelectStatement { into, ..s }))
}

fn tag_key_match() -> impl Strategy<Value = TagKeyMatch> {
    prop_oneof![
        name().prop_map(TagKeyMatch::Eq),
        name().prop_map(TagKeyMatch::NotEq),
        vec(name(), 1..4).prop_map(TagKeyMatch::In),
        regex().prop_map(TagKeyMatch::Regex),
        regex().prop_map(TagKeyMatch::NotRegex),
    ]
}

fn cardinality() -> impl Strategy<Value = Statement> {
    let of = prop_oneof![
        Just(Cardinality::Series),
        Just(Cardinality::Measurement),
        Just(Cardinality::TagKey),
        Just(Cardinality::FieldKey),
        tag_key_match().prop_map(Cardinality::TagValues),
    ];
    let clauses =
        (option::of(full_name()), vec(measurement(), 0..3), option::of(condition()), dimensions());
    (of, any::<bool>(), clauses, count(), count()).prop_map(
        |(of, exact, clauses, limit, offset)| {
            Statement::ShowCardinality(ShowCardinality {
                of,
                exact,
                database: clauses.0,
                sources: clauses.1,
                condition: clauses.2,
                dimensions: clauses.3,
                limit,
                offset,
            })
        },
    )
}

fn show() -> impl Strategy<Value = Statement> {
    let clauses = (
        (option::of(full_name()), vec(measurement(), 0..3), option::of(condition()), order_by()),
        (count(), count(), count(), count()),
        (option::of(measurement()), tag_key_match()),
    );
    (0..5, clauses).prop_map(|(kind, clauses)| {
        let ((database, sources, condition, order_by), counts, (source, key)) = clauses;
        let (limit, offset, series_limit, series_offset) = counts;
        match kind {
            0 => Statement::ShowMeasurements(ShowMeasurements {
                database,
                source,
                condition,
                order_by,
                limit,
                offset,
            }),
            1 => Statement::ShowSeries(ShowSeries {
                database,
                sources,
                condition,
                order_by,
                limit,
                offset,
            }),
            2 => Statement::ShowTagKeys(ShowTagKeys {
                database,
                sources,
                condition,
                order_by,
                limit,
                offset,
                series_limit,
                series_offset,
            }),
            3 => Statement::ShowTagValues(ShowTagValues {
                database,
                sources,
                key,
                condition,
                order_by,
                limit,
                offset,
            }),
            _ => Statement::ShowFieldKeys(ShowFieldKeys {
                database,
                sources,
                order_by,
                limit,
                offset,
            }),
        }
    })
}

fn duration() -> impl Strategy<Value = i64> {
    prop_oneof![0..=i64::MAX, (0..10_000_i64).prop_map(|s| s * 1_000_000_000)]
}

fn define() -> impl Strategy<Value = Statement> {
    let options = (option::of(duration()), option::of(1..=i32::MAX as u32), option::of(duration()));
    let names = (name(), name(), name());
    (0..12, names, options, any::<bool>(), vec(text(), 1..3), any::<u64>()).prop_map(
        |(kind, (name, database, retention_policy), options, flag, destinations, id)| {
            let (duration_ns, replication, shard_duration_ns) = options;
            match kind {
                0 => {
                    let policy = DatabasePolicy {
                        duration_ns,
                        replication,
                        shard_duration_ns,
                        name: Some(database),
                    };
                    Statement::CreateDatabase(CreateDatabase {
                        name,
                        policy: flag.then_some(policy),
                    })
                }
                1 => Statement::CreateRetentionPolicy(CreateRetentionPolicy {
                    name,
                    database,
                    duration_ns: duration_ns.unwrap_or(0),
                    replication: replication.unwrap_or(1),
                    shard_duration_ns,
                    default: flag,
                }),
                2 => Statement::AlterRetentionPolicy(AlterRetentionPolicy {
                    name,
                    database,
                    duration_ns,
                    replication: Some(replication.unwrap_or(1)),
                    shard_duration_ns,
                    default: flag,
                }),
                3 => Statement::CreateSubscription(CreateSubscription {
                    name,
                    database,
                    retention_policy,
                    mode: if flag { DestinationMode::All } else { DestinationMode::Any },
                    destinations,
                }),
                4 => Statement::DropSubscription { name, database, retention_policy },
                5 => Statement::Grant { privilege: Privilege::All, database, user: name },
                6 => Statement::Revoke { privilege: Privilege::Write, database, user: name },
                7 => Statement::KillQuery { id, host: flag.then_some(name) },
                8 => Statement::DropRetentionPolicy { name, database },
                9 => Statement::Limited {
                    statement: Box::new(Statement::ShowGrants { user: name }),
                    limit: id / 2,
                    offset: 1,
                },
                10 => Statement::ShowCardinalityBy(ShowCardinalityBy {
                    by: if flag { CardinalityBy::TagKey } else { CardinalityBy::TagValue },
                    database: flag.then_some(name).filter(|name| !name.is_empty()),
                    sources: Vec::new(),
                    limit: id / 2,
                    offset: 0,
                }),
                11 => Statement::Limited {
                    statement: Box::new(Statement::ShowContinuousQueryStatus),
                    limit: id / 2,
                    offset: 1,
                },
                _ => Statement::ShowStats { module: flag.then_some(name) },
            }
        },
    )
}

fn continuous_query() -> impl Strategy<Value = Statement> {
    let names = (name(), name());
    let durations = (duration(), duration(), 1..i64::MAX);
    (names, durations, select(), into_target()).prop_map(|(names, durations, select, into)| {
        let (resample_every_ns, resample_for_ns, interval_ns) = durations;
        let mut select = SelectStatement { into: Some(into), ..select };
        let time = Expr::call("time", vec![Expr::Duration(interval_ns)]);
        select.dimensions.insert(0, time);
        let resample_for_ns = match resample_for_ns {
            0 => 0,
            ns => ns.max(interval_ns).max(resample_every_ns),
        };
        Statement::CreateContinuousQuery(CreateContinuousQuery {
            name: names.0,
            database: names.1,
            resample_every_ns,
            resample_for_ns,
            select: Box::new(select),
        })
    })
}

fn run() -> impl Strategy<Value = Statement> {
    (name(), name(), option::of(condition())).prop_map(|(name, database, condition)| {
        Statement::RunContinuousQuery { name, database, condition }
    })
}

fn deletion() -> impl Strategy<Value = Statement> {
    let bare =
        measurement().prop_map(|m| Measurement { database: None, retention_policy: None, ..m });
    (vec(bare, 1..3), option::of(condition()), any::<bool>()).prop_map(
        |(sources, condition, drop)| {
            if drop {
                Statement::DropSeries { sources, condition }
            } else {
                Statement::Delete { sources, condition }
            }
        },
    )
}

fn statement() -> impl Strategy<Value = Statement> {
    prop_oneof![
        4 => select_into().prop_map(Statement::Select).boxed(),
        1 => (any::<bool>(), select_into())
            .prop_map(|(analyze, select)| Statement::Explain { analyze, select })
            .boxed(),
        1 => show().boxed(),
        1 => cardinality().boxed(),
        2 => define().boxed(),
        1 => continuous_query().boxed(),
        1 => run().boxed(),
        1 => deletion().boxed(),
    ]
}

proptest! {
    #[test]
    fn print_then_parse(statements in vec(statement(), 0..3)) {
        let query = Query { statements };
        let printed = query.to_string();
        prop_assert_eq!(parse_query(&printed, &Params::new()), Ok(query), "{}", printed);
    }

    #[test]
    fn expressions(expr in condition()) {
        let printed = expr.to_string();
        prop_assert_eq!(parse_expr(&printed, &Params::new()), Ok(expr), "{}", printed);
    }

    /// Printing never depends on parentheses being nodes already.
    #[test]
    fn expressions_without_their_parentheses(expr in condition()) {
        let bare = visit::rewrite(expr, &mut |e| match e {
            Expr::Paren(inner) => *inner,
            e => e,
        });
        let printed = bare.to_string();
        let again = parse_expr(&printed, &Params::new()).expect("valid");
        let again = visit::rewrite(again, &mut |e| match e {
            Expr::Paren(inner) => *inner,
            e => e,
        });
        prop_assert_eq!(again, bare, "{}", printed);
    }

    #[test]
    fn conditions_split_without_panic(expr in condition(), now_ns in any::<i64>()) {
        let _ = split_condition(&expr, now_ns, &Utc);
    }
}
