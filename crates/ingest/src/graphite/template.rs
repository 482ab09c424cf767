//! Templates, and the tree that finds the one of a path.

use std::collections::BTreeMap;

/// Text between joined nodes where nobody says.
const DEFAULT_TEMPLATE: &str = "measurement*";

/// What the nodes of a path are, by their position.
#[derive(Clone, Debug)]
pub(super) struct Template {
    text: String,
    parts: Vec<Part>,
    /// Tags that the template gives.
    tags: Vec<(String, String)>,
    separator: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Measurement,
    /// This node and all behind it.
    MeasurementRest,
    Field,
    FieldRest,
    Tag(String),
    Skipped,
}

/// What a template makes of a path. Empty: it has none.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) measurement: String,
    pub(super) field: String,
    pub(super) tags: BTreeMap<String, String>,
}

impl Template {
    fn new(text: &str, tags: Vec<(String, String)>, separator: &str) -> Result<Self, String> {
        let parts: Vec<Part> = text
            .split('.')
            .map(|part| match part {
                "measurement" => Part::Measurement,
                "measurement*" => Part::MeasurementRest,
                "field" => Part::Field,
                "field*" => Part::FieldRest,
                "" => Part::Skipped,
                tag => Part::Tag(tag.to_owned()),
            })
            .collect();
        // Words that only begin so count as well, and are tags all the same.
        if !text.split('.').any(|part| part.starts_with("measurement")) {
            return Err(format!("no measurement specified for template. {text:?}"));
        }
        if parts.contains(&Part::MeasurementRest) && parts.contains(&Part::FieldRest) {
            return Err(format!(
                "either 'field*' or 'measurement*' can be used in each template (but not both \
                 together): {text:?}"
            ));
        }
        let (text, separator) = (text.to_owned(), separator.to_owned());
        Ok(Self { text, parts, tags, separator })
    }

    pub(super) fn apply(&self, path: &str) -> Result<Named, String> {
        if self.parts == [Part::MeasurementRest] && self.separator == "." && self.tags.is_empty() {
            // Cut and joined again it is what it was.
            return Ok(Named { measurement: path.to_owned(), ..Named::default() });
        }
        let nodes: Vec<&str> = path.split('.').collect();
        let mut measurement: Vec<&str> = Vec::new();
        let mut field = String::new();
        let mut tags: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (key, value) in &self.tags {
            tags.entry(key).or_default().push(value);
        }
        for (at, (part, node)) in self.parts.iter().zip(&nodes).enumerate() {
            match part {
                Part::Measurement => measurement.push(node),
                Part::Field if !field.is_empty() => {
                    let text = &self.text;
                    return Err(format!(
                        "'field' can only be used once in each template: {text:?}"
                    ));
                }
                Part::Field => (*node).clone_into(&mut field),
                Part::Tag(key) => tags.entry(key).or_default().push(node),
                Part::Skipped => {}
                Part::FieldRest => {
                    field = nodes[at..].join(&self.separator);
                    break;
                }
                Part::MeasurementRest => {
                    measurement.extend(&nodes[at..]);
                    break;
                }
            }
        }
        let joined =
            |(key, values): (&str, Vec<&str>)| (key.to_owned(), values.join(&self.separator));
        Ok(Named {
            measurement: measurement.join(&self.separator),
            field,
            tags: tags.into_iter().map(joined).collect(),
        })
    }
}

/// The templates by their filters.
#[derive(Clone, Debug)]
pub(super) struct Matcher {
    root: Node,
    default: Template,
}

#[derive(Clone, Debug, Default)]
struct Node {
    template: Option<Template>,
    children: BTreeMap<String, Node>,
}

impl Matcher {
    pub(super) fn new(templates: &[String], separator: &str) -> Result<Self, String> {
        let mut root = Node::default();
        let mut default = Template::new(DEFAULT_TEMPLATE, Vec::new(), ".")?;
        let mut filters: Vec<&str> = Vec::new();
        for (position, entry) in templates.iter().enumerate() {
            let (filter, text, tags) = split(entry, position)?;
            if filters.contains(&filter) {
                return Err(format!("duplicate filter '{filter}' found at position: {position}"));
            }
            filters.push(filter);
            let template = Template::new(text, tags, separator)?;
            if filter.is_empty() {
                default = template;
            } else {
                let leaf = filter.split('.').fold(&mut root, |node, value| {
                    node.children.entry(value.to_owned()).or_default()
                });
                leaf.template = Some(template);
            }
        }
        Ok(Self { root, default })
    }

    /// The template of the filter that fits the front of a path best: literal nodes before any, and
    /// without looking back.
    pub(super) fn find(&self, path: &str) -> &Template {
        let mut node = &self.root;
        for value in path.split('.') {
            let child = node.children.get(value).or_else(|| node.children.get("*"));
            let Some(child) = child else { break };
            node = child;
        }
        node.template.as_ref().unwrap_or(&self.default)
    }
}

/// Filter (empty: none), template and tags of an entry.
fn split(entry: &str, position: usize) -> Result<(&str, &str, Vec<(String, String)>), String> {
    let words: Vec<&str> = entry.split_whitespace().collect();
    let format = || format!("invalid template format: '{entry}'");
    let tags = |list: &str| list.split(',').map(tag).collect::<Result<Vec<_>, _>>();
    match words[..] {
        [] => Err(format!("missing template at position: {position}")),
        [template] => Ok(("", template, Vec::new())),
        [template, list] if list.contains('=') => Ok(("", template, tags(list)?)),
        [filter, template] => Ok((filter, template, Vec::new())),
        [filter, template, list] if list.contains('=') => Ok((filter, template, tags(list)?)),
        _ => Err(format()),
    }
}

/// `key=value`.
pub(super) fn tag(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty());
    let (key, value) = parts.ok_or_else(|| format!("invalid template tags: '{text}'"))?;
    Ok((key.to_owned(), value.to_owned()))
}
