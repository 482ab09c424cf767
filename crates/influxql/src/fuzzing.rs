//! Entry points for fuzz targets.

use crate::ast::{Expr, Source, Statement};
use crate::{FoldContext, Params, Utc, parse_query, redact, reduce, split_condition};

/// Parses arbitrary bytes; a query that parses must print to text that parses to the same query.
///
/// # Panics
/// When that is not so, which is a bug.
pub fn parse(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let hidden = redact(&text);
    assert_eq!(redact(&hidden).contains("[REDACTED]"), hidden.contains("[REDACTED]"));
    let Ok(query) = parse_query(&text, &Params::new()) else { return };
    let printed = query.to_string();
    if printed.contains("[REDACTED]") {
        return;
    }
    match parse_query(&printed, &Params::new()) {
        Ok(again) => assert_eq!(again, query, "BUG: {text:?} printed as {printed:?}"),
        Err(e) => panic!("BUG: {text:?} printed as {printed:?}, which is refused: {e}"),
    }
}

/// Parses arbitrary bytes, and folds and splits the conditions of what comes out. Folding what was
/// folded must change nothing, and the rest of a condition must know nothing of time.
///
/// # Panics
/// When that is not so, which is a bug.
pub fn conditions(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(query) = parse_query(&text, &Params::new()) else { return };
    for statement in &query.statements {
        match statement {
            Statement::Select(select) | Statement::Explain { select, .. } => select_of(select),
            Statement::Delete { condition: Some(condition), .. }
            | Statement::DropSeries { condition: Some(condition), .. } => check(condition),
            _ => {}
        }
    }
}

fn select_of(select: &crate::ast::SelectStatement) {
    if let Some(condition) = &select.condition {
        check(condition);
    }
    for source in &select.sources {
        source_of(source);
    }
}

fn source_of(source: &Source) {
    match source {
        Source::Measurement(_) => {}
        Source::SubQuery(inner) => select_of(inner),
        Source::Join(join) => join.sides().for_each(|side| source_of(&side.source)),
    }
}

fn check(condition: &Expr) {
    let now_ns = 1_500_000_000_000_000_000;
    let context = FoldContext { now_ns: Some(now_ns), zone: &Utc };
    let folded = reduce(condition.clone(), &context);
    let again = reduce(folded.clone(), &context);
    assert_eq!(again.to_string(), folded.to_string(), "BUG: folding twice differs: {condition}");
    if let Ok((Some(rest), _)) = split_condition(condition, now_ns, &Utc) {
        // `(2 - 1)` is taken for a condition until it is folded.
        let Ok((again, range)) = split_condition(&rest, now_ns, &Utc) else { return };
        assert_eq!(range, crate::TimeRange::default(), "BUG: time is left in {rest}");
        let again = again.map(|rest| rest.to_string());
        assert_eq!(again, Some(rest.to_string()), "BUG: splitting twice differs");
    }
}
