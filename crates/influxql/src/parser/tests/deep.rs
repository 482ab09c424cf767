//! Long and deeply nested texts on a small stack.

use crate::visit::{any, rewrite, var_refs};
use crate::{
    DEPTH_MAX, Expr, FoldContext, NESTING_MAX, Params, Query, Statement, Utc, parse_expr,
    parse_query, reduce, split_condition,
};

fn on_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(test);
    thread.expect("a thread").join().expect("no panic");
}

fn parse(text: &str) -> Result<Query, String> {
    parse_query(text, &Params::new()).map_err(|e| e.to_string())
}

fn too_deep(max: u32) -> String {
    format!("query is nested too deeply: at most {max} levels are allowed")
}

/// Does with a tree whatever can be done with it.
fn use_up(query: &Query) {
    let printed = query.to_string();
    assert_eq!(parse(&printed).as_ref(), Ok(query));
    assert!(!format!("{query:?}").is_empty());
    let Some(Statement::Select(select)) = query.statements.first() else { panic!("no select") };
    let copy = select.clone();
    assert!(copy == *select);
    for expr in copy.fields.into_iter().map(|f| f.expr).chain(copy.condition) {
        let _ = split_condition(&expr, 0, &Utc);
        assert!(!any(&expr, &mut |e| *e == Expr::Nil));
        let _ = var_refs(&expr).len();
        let expr = rewrite(expr, &mut |e| e);
        let _ = reduce(expr, &FoldContext::default());
    }
}

#[test]
fn a_hundred_thousand_terms() {
    for op in ["OR", "AND"] {
        on_small_stack(move || {
            let terms: Vec<String> = (0..100_000).map(|i| format!("host = 'h{i}'")).collect();
            let condition = terms.join(&format!(" {op} "));
            let query = parse(&format!("SELECT a FROM m WHERE {condition}")).expect("valid");
            use_up(&query);
            let expr = parse_expr(&condition, &Params::new()).expect("valid");
            assert_eq!(expr.to_string(), condition);
            let (rest, _) = split_condition(&expr, 0, &Utc).expect("valid");
            assert_eq!(rest, Some(expr));
        });
    }
}

#[test]
fn a_hundred_thousand_mixed_terms() {
    on_small_stack(|| {
        let terms: Vec<String> =
            (0..50_000).map(|i| format!("a = {i} AND (b = {i} OR time > {i})")).collect();
        let query = parse(&format!("SELECT a FROM m WHERE {}", terms.join(" OR "))).expect("valid");
        use_up(&query);
    });
}

/// A select with `levels` times `open` and `close` around an operand of its field and of its condition.
fn wrapped(open: &str, close: &str, levels: u32) -> String {
    let (open, close) = (open.repeat(levels as usize), close.repeat(levels as usize));
    format!("SELECT {open}a{close} FROM m WHERE {open}a{close} = 1 OR b = 2")
}

#[test]
fn as_deep_as_allowed() {
    for (open, close, levels, max) in [
        ("(", ")", NESTING_MAX, NESTING_MAX),
        ("f(", ")", NESTING_MAX, NESTING_MAX),
        ("-(", ")", NESTING_MAX, NESTING_MAX),
        ("a * (1 + ", ")", DEPTH_MAX / 3 - 1, NESTING_MAX),
        ("", " + a", DEPTH_MAX - 3, DEPTH_MAX),
    ] {
        let within = wrapped(open, close, levels);
        on_small_stack(move || use_up(&parse(&within).expect("valid")));
        let beyond = [wrapped(open, close, DEPTH_MAX + 1), wrapped(open, close, 50_000)];
        on_small_stack(move || {
            for text in &beyond {
                assert_eq!(parse(text), Err(too_deep(max)), "{open}a{close}");
            }
        });
    }
}

#[test]
fn chains_on_chains_do_not_add_up_to_more() {
    on_small_stack(|| {
        let chain = " + a".repeat(300);
        let text = format!("SELECT (a{chain}){chain} FROM m");
        assert_eq!(parse(&text), Err(too_deep(DEPTH_MAX)));
    });
}

#[test]
fn subqueries() {
    let nested = |levels: u32| {
        let open = "SELECT a FROM (".repeat(levels as usize);
        format!("{open}SELECT a FROM m{}", ")".repeat(levels as usize))
    };
    on_small_stack(move || {
        use_up(&parse(&nested(NESTING_MAX / 5)).expect("valid"));
        assert_eq!(parse(&nested(NESTING_MAX / 5 + 1)), Err(too_deep(NESTING_MAX)));
        assert_eq!(parse(&nested(50_000)), Err(too_deep(NESTING_MAX)));
    });
}

#[test]
fn a_million_bytes_of_one_thing() {
    on_small_stack(|| {
        for part in [
            "(", "'", "\"", "a.", "a,", "-", "/", "/*", "--", "\n", ";", "$", "::", "\\", "1", "f(",
        ] {
            for start in ["", "SELECT ", "SELECT a FROM ", "SELECT a FROM m WHERE "] {
                let text = format!("{start}{}", part.repeat(100_000));
                let _ = parse(&text);
            }
        }
    });
}
