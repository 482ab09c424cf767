//! Structural comparison of two documents.
//!
//! Order of keys does not matter. Two whole numbers must be equal to the last digit; other numbers may differ
//! by a relative tolerance; and a number written as a float (`22.0`) is not equal to the same one written
//! as an integer, because a typed client would see the difference.

use std::fmt;

use super::Json;

/// Where two documents differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Path from the root: `results[0].series[0].values[3][1]`.
    pub path: String,
    /// What the first document has there, in short.
    pub expected: String,
    /// What the second document has there, in short.
    pub actual: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, got {}", self.path, self.expected, self.actual)
    }
}

const SHOWN_CHARACTERS_MAX: usize = 160;

/// The first `limit` differences, in document order. `tolerance` is relative.
#[must_use]
pub fn differences(
    expected: &Json,
    actual: &Json,
    tolerance: f64,
    limit: usize,
) -> Vec<Difference> {
    let mut comparison = Comparison { tolerance, limit, path: Vec::new(), found: Vec::new() };
    comparison.compare(expected, actual);
    comparison.found
}

enum Step {
    Key(String),
    Index(usize),
}

struct Comparison {
    tolerance: f64,
    limit: usize,
    path: Vec<Step>,
    found: Vec<Difference>,
}

impl Comparison {
    fn compare(&mut self, expected: &Json, actual: &Json) {
        if self.found.len() >= self.limit {
            return;
        }
        match (expected, actual) {
            (Json::Array(expected), Json::Array(actual)) => self.arrays(expected, actual),
            (Json::Object(expected), Json::Object(actual)) => self.objects(expected, actual),
            (Json::Number(a), Json::Number(b)) if numbers_agree(a, b, self.tolerance) => {}
            _ if expected == actual => {}
            _ => self.report(shown(expected), shown(actual)),
        }
    }

    fn arrays(&mut self, expected: &[Json], actual: &[Json]) {
        if expected.len() != actual.len() {
            let describe = |elements: &[Json]| {
                format!("{} elements {}", elements.len(), shown(&Json::Array(elements.to_vec())))
            };
            self.report(describe(expected), describe(actual));
        }
        for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
            self.path.push(Step::Index(index));
            self.compare(expected, actual);
            self.path.pop();
        }
    }

    fn objects(&mut self, expected: &[(String, Json)], actual: &[(String, Json)]) {
        for (key, value) in expected {
            self.path.push(Step::Key(key.clone()));
            match actual.iter().find(|(name, _)| name == key) {
                Some((_, other)) => self.compare(value, other),
                None => self.report(shown(value), "nothing".to_owned()),
            }
            self.path.pop();
        }
        for (key, value) in actual {
            if !expected.iter().any(|(name, _)| name == key) {
                self.path.push(Step::Key(key.clone()));
                self.report("nothing".to_owned(), shown(value));
                self.path.pop();
            }
        }
    }

    fn report(&mut self, expected: String, actual: String) {
        if self.found.len() >= self.limit {
            return;
        }
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Key(key) if path.is_empty() => path.push_str(key),
                Step::Key(key) => path.push_str(&format!(".{key}")),
                Step::Index(index) => path.push_str(&format!("[{index}]")),
            }
        }
        if path.is_empty() {
            path.push_str("document");
        }
        self.found.push(Difference { path, expected, actual });
    }
}

fn shown(value: &Json) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

fn numbers_agree(expected: &str, actual: &str, tolerance: f64) -> bool {
    if expected == actual {
        return true;
    }
    let whole = |digits: &str| !digits.contains(['.', 'e', 'E']);
    if whole(expected) && whole(actual) {
        return false;
    }
    // A float is written without a fraction when it has none.
    let needless = |digits: &str| digits.ends_with(".0");
    if needless(expected) != needless(actual) {
        return false;
    }
    match (expected.parse::<f64>(), actual.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() <= tolerance * a.abs().max(b.abs()),
        _ => false,
    }
}
