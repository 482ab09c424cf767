//! Names of result columns.

use std::collections::HashMap;

use crate::ast::{Expr, Field};
use crate::visit;

/// The name of a field's column before clashes are resolved: its alias, or what [`expr_name`] gives.
pub fn field_name(field: &Field) -> String {
    match &field.alias {
        Some(alias) => alias.clone(),
        None => expr_name(&field.expr),
    }
}

/// The name of an expression: a name or function by itself, those of an arithmetic expression joined by `_`; a literal, wildcard
/// or regex has none (the empty name).
pub fn expr_name(expr: &Expr) -> String {
    match expr.without_parens() {
        Expr::VarRef(v) => v.name.clone(),
        Expr::Call(call) => call.name.clone(),
        Expr::Distinct(_) => "distinct".to_owned(),
        expr @ (Expr::Binary { .. } | Expr::Logical { .. }) => {
            let mut names: Vec<&str> = Vec::new();
            visit::walk(expr, &mut |e| {
                match e {
                    Expr::VarRef(v) => names.push(&v.name),
                    Expr::Call(call) => names.push(&call.name),
                    _ => {}
                }
                !matches!(e, Expr::Call(_))
            });
            names.join("_")
        }
        _ => String::new(),
    }
}

/// The names of the columns behind `time`, one for each field.
///
/// Aliases come first and may repeat; another name that is taken gets the first free `_1`, `_2`, ... Wildcards, and the tag
/// arguments of top() and bottom(), must have become fields before.
pub fn column_names(fields: &[Field]) -> Vec<String> {
    let mut next_suffix: HashMap<String, u64> = HashMap::new();
    for alias in fields.iter().filter_map(|f| f.alias.as_ref()) {
        next_suffix.insert(alias.clone(), 1);
    }
    fields
        .iter()
        .map(|field| match &field.alias {
            Some(alias) => alias.clone(),
            None => unique_name(expr_name(&field.expr), &mut next_suffix),
        })
        .collect()
}

/// `name`, or the first `name_n` that is free, from the suffix where the last search ended.
fn unique_name(name: String, next_suffix: &mut HashMap<String, u64>) -> String {
    let Some(first) = next_suffix.get(&name).copied() else {
        next_suffix.insert(name.clone(), 1);
        return name;
    };
    let (suffix, unique) = (first..=u64::MAX)
        .map(|n| (n, format!("{name}_{n}")))
        .find(|(_, unique)| !next_suffix.contains_key(unique))
        .expect("BUG: fewer than 2^64 columns");
    next_suffix.insert(name, suffix + 1);
    next_suffix.insert(unique.clone(), 1);
    unique
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Params, Statement, parse_statement};

    fn names(fields: &str) -> Vec<String> {
        let text = format!("SELECT {fields} FROM m");
        match parse_statement(&text, &Params::new()).expect("valid") {
            Statement::Select(s) => column_names(&s.fields),
            _ => unreachable!(),
        }
    }

    #[test]
    fn names_of_fields() {
        for (fields, expected) in [
            ("f", &["f"][..]),
            ("f::float", &["f"]),
            ("a.b", &["a.b"]),
            ("mean(f)", &["mean"]),
            ("MEAN(f)", &["mean"]),
            ("derivative(mean(f), 1s)", &["derivative"]),
            ("a + b", &["a_b"]),
            ("a + b * 2 - mean(c)", &["a_b_mean"]),
            ("(a + (b)) / 2", &["a_b"]),
            ("-f", &["f"]),
            ("((f))", &["f"]),
            ("count(x) * 2", &["count"]),
            ("5 + f", &["f"]),
            ("DISTINCT f", &["distinct"]),
            ("f AS g", &["g"]),
            ("*", &[""]),
            ("1", &[""]),
        ] {
            assert_eq!(names(fields), expected, "{fields}");
        }
    }

    #[test]
    fn clashes() {
        for (fields, expected) in [
            ("f, f", &["f", "f_1"][..]),
            ("f, f, f", &["f", "f_1", "f_2"]),
            ("f, f_1, f", &["f", "f_1", "f_2"]),
            ("f, g AS f", &["f_1", "f"]),
            ("a AS x, b AS x", &["x", "x"]),
            ("f AS f_1, f, f", &["f_1", "f", "f_2"]),
            ("mean(a), mean(b), mean(c)", &["mean", "mean_1", "mean_2"]),
            ("f, f, f_1", &["f", "f_1", "f_1_1"]),
        ] {
            assert_eq!(names(fields), expected, "{fields}");
        }
    }
}
