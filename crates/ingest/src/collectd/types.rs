//! `types.db`: which numbers a type has, by name.

use std::collections::HashMap;

use super::packet::ValueList;

/// The types that are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypesDb {
    types: HashMap<String, Vec<String>>,
}

impl TypesDb {
    /// Adds the types of a file: `name source:KIND:min:max, ...` a line.
    ///
    /// # Errors
    /// Which line is none.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split([' ', '\t', ',']).filter(|word| !word.is_empty());
            let Some(name) = words.next() else { continue };
            let source = |word: &str| {
                let parts: Vec<&str> = word.split(':').collect();
                let known = matches!(
                    parts.get(1).copied(),
                    Some("GAUGE" | "COUNTER" | "DERIVE" | "ABSOLUTE")
                );
                (parts.len() == 4 && known && !parts[0].is_empty()).then(|| parts[0].to_owned())
            };
            let sources: Option<Vec<String>> = words.map(source).collect();
            let sources = sources.filter(|sources| !sources.is_empty());
            let bad = || format!("line {}: not a type: {line}", at + 1);
            self.types.insert(name.to_owned(), sources.ok_or_else(bad)?);
        }
        Ok(())
    }

    /// The names of a list's values; `None`: the type is not known. Without any types values are
    /// called `value`, or by their number if there are several.
    pub(super) fn names(&self, list: &ValueList<'_>) -> Option<Vec<String>> {
        if self.types.is_empty() {
            return Some(match list.values.len() {
                1 => vec!["value".to_owned()],
                count => (0..count).map(|at| at.to_string()).collect(),
            });
        }
        self.types.get(list.type_name).cloned()
    }
}
