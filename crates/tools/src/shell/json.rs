//! JSON as text: indentation that changes no digit, strings escaped as InfluxDB escapes them.

use anyhow::Result;

const STEP: &str = "    ";

/// Indents a document that starts at `depth`. Everything but white space stays as it is.
pub(super) fn indent(json: &str, depth: usize) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = depth;
    let mut in_string = false;
    let mut escaped = false;
    let mut chars = json.chars().filter(|c| *c != '\n').peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&STEP.repeat(depth));
    };
    while let Some(c) = chars.next() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' => {
                out.push(c);
                if let Some(end) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c => {
                in_string = c == '"';
                out.push(c);
            }
        }
    }
    out
}

/// A string as a JSON literal.
pub(super) fn string(text: &str) -> Result<String> {
    let json = serde_json::to_string(text)?;
    Ok(json
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indentation() {
        let text = r#"{"a":[1,{"b:,[":"\"{}"}],"c":{},"d":[]}"#;
        let expected = "{\n    \"a\": [\n        1,\n        {\n            \"b:,[\": \"\\\"{}\"\n        \
                        }\n    ],\n    \"c\": {},\n    \"d\": []\n}";
        assert_eq!(indent(text, 0), expected);
        assert_eq!(indent("[1]", 1), "[\n        1\n    ]");
        assert_eq!(string("a<\"\n").unwrap(), "\"a\\u003c\\\"\\n\"");
    }
}
