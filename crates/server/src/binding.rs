//! The `params` of a query: JSON to values that `$name` stands for.

use std::collections::BTreeMap;

use influxql::Param;
use serde_json::value::RawValue;

/// An object whose values are still text: the text of a number says what it becomes.
type Object = BTreeMap<String, Box<RawValue>>;

/// Reads the `params` parameter; an empty text binds nothing.
///
/// # Errors
/// The text of the refusal.
pub(crate) fn bound_values(text: &str) -> Result<influxql::Params, String> {
    if text.is_empty() {
        return Ok(influxql::Params::new());
    }
    // As with Go's decoder only the first value counts, and null is an empty object.
    let first = serde_json::Deserializer::from_str(text).into_iter::<Option<Object>>().next();
    match first {
        Some(Ok(object)) => object
            .unwrap_or_default()
            .into_iter()
            .map(|(name, value)| Ok((name, param(value.get())?)))
            .collect(),
        Some(Err(error)) if error.is_eof() => {
            Err("error parsing query parameters: unexpected EOF".to_owned())
        }
        Some(Err(error)) => Err(format!("error parsing query parameters: {error}")),
        None => Err("error parsing query parameters: EOF".to_owned()),
    }
}

/// A value, or an object that says what kind of token its value is.
fn param(json: &str) -> Result<Param, String> {
    if !json.starts_with('{') {
        return simple(json);
    }
    let object: Object = parse(json)?;
    let mut entries = object.into_iter();
    match (entries.next(), entries.next()) {
        (Some((kind, value)), None) => Ok(Param::of_kind(&kind, simple(value.get())?)),
        _ => Ok(Param::not_one_entry()),
    }
}

fn simple(json: &str) -> Result<Param, String> {
    Ok(match json.as_bytes().first() {
        Some(b't' | b'f') => Param::Boolean(parse(json)?),
        Some(b'"') => Param::String(parse(json)?),
        Some(b'n') => Param::unsupported("<nil>"),
        Some(b'[') => Param::unsupported("[]interface {}"),
        Some(b'{') => Param::unsupported("map[string]interface {}"),
        _ => number(json)?,
    })
}

/// A number: with a point it is a float, otherwise an integer.
fn number(text: &str) -> Result<Param, String> {
    let refused = |function: &str, why: &str| {
        format!("error parsing json value: strconv.{function}: parsing \"{text}\": {why}")
    };
    if text.contains('.') {
        return match text.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Param::Float(float)),
            _ => Err(refused("ParseFloat", "value out of range")),
        };
    }
    text.parse::<i64>().map(Param::Integer).map_err(|_| {
        let digits = text.strip_prefix('-').unwrap_or(text).bytes().all(|b| b.is_ascii_digit());
        refused("ParseInt", if digits { "value out of range" } else { "invalid syntax" })
    })
}

fn parse<'a, T: serde::Deserialize<'a>>(json: &'a str) -> Result<T, String> {
    serde_json::from_str(json).map_err(|error| format!("error parsing query parameters: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(json: &str) -> Param {
        param(json).unwrap()
    }

    #[test]
    fn values() {
        assert_eq!(one("\"a'b\""), Param::String("a'b".to_owned()));
        assert_eq!(one("5"), Param::Integer(5));
        assert_eq!(one("-5.5"), Param::Float(-5.5));
        assert_eq!(one("true"), Param::Boolean(true));
        assert_eq!(one("{\"ident\":\"m\"}"), Param::Identifier("m".to_owned()));
        assert_eq!(one("{\"duration\":\"1h\"}"), Param::Duration("1h".to_owned()));
        assert_eq!(one("{\"a\":1,\"b\":2}"), Param::not_one_entry());
        assert!(matches!(one("[1]"), Param::Invalid(_)));
        assert!(matches!(one("null"), Param::Invalid(_)));
    }

    #[test]
    fn texts_that_are_refused() {
        assert_eq!(bound_values("").unwrap(), influxql::Params::new());
        assert!(bound_values("{}").is_ok());
        let refused = |text: &str| bound_values(text).unwrap_err();
        assert_eq!(refused("{\"a\""), "error parsing query parameters: unexpected EOF");
        assert!(refused("[]").starts_with("error parsing query parameters: "));
        assert_eq!(refused(" "), "error parsing query parameters: EOF");
        assert_eq!(
            refused("{\"a\":99999999999999999999}"),
            "error parsing json value: strconv.ParseInt: parsing \"99999999999999999999\": value out \
             of range"
        );
        assert!(refused("{\"a\":1.5e999}").contains("ParseFloat"));
        assert!(refused("{\"a\":1e3}").contains("invalid syntax"));
    }
}
