//! Who says what a setting is: flags before the environment before the file before the defaults.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::sections::{SECTIONS, Sections};
use super::table::{SETTINGS, Setting};

/// Variables of the environment that are Nyala's start so.
const PREFIX: &str = "NYALA_";
/// Names the configuration file; no setting, because it cannot stand in the file itself.
pub(crate) const CONFIG_VARIABLE: &str = "NYALA_CONFIG";

/// Everything that was said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers {
    /// Flags that were given: name and value.
    pub(crate) flags: Vec<(String, String)>,
    /// The whole environment.
    pub(crate) environment: Vec<(String, String)>,
    /// The file, with its text.
    pub(crate) file: Option<(PathBuf, String)>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Environment(String),
    File(PathBuf),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "flag --{name}"),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// The value that holds for a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) name: &'static str,
    pub(crate) text: String,
    pub(crate) origin: Origin,
}

/// What a setting is called in the environment.
pub(crate) fn environment_name(setting: &Setting) -> String {
    format!("{PREFIX}{}", setting.name.to_ascii_uppercase().replace('-', "_"))
}

impl Layers {
    /// Takes the flags, the environment of this process and the file they name.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn collect(
        flags: Vec<(String, String)>,
        config: Option<&Path>,
    ) -> anyhow::Result<Self> {
        // Values that are not Unicode can be no value of ours; names are compared lossily.
        let environment: Vec<(String, String)> = std::env::vars_os()
            .map(|(name, value)| {
                (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
            })
            .collect();
        let named = environment.iter().find(|(name, _)| name == CONFIG_VARIABLE);
        let path = config.map(Path::to_owned).or_else(|| named.map(|(_, value)| value.into()));
        let file = match path {
            None => None,
            Some(path) => {
                let text = std::fs::read_to_string(&path)
                    .with_context(|| format!("cannot read the configuration {}", path.display()))?;
                Some((path, text))
            }
        };
        Ok(Self { flags, environment, file })
    }

    /// The value of every setting.
    ///
    /// # Errors
    /// The file is no TOML, or it or the environment has a name that is no setting.
    pub(crate) fn resolve(&self) -> anyhow::Result<Vec<Resolved>> {
        self.check_environment()?;
        let file = self.read_file()?;
        Ok(SETTINGS.iter().map(|setting| self.resolve_one(setting, &file)).collect())
    }

    fn resolve_one(&self, setting: &Setting, file: &[(String, String)]) -> Resolved {
        let name = setting.name;
        let variable = environment_name(setting);
        let find = |layer: &[(String, String)], key: &str| {
            layer.iter().find(|(k, _)| k == key).map(|(_, value)| value.clone())
        };
        let (text, origin) = if let Some(text) = find(&self.flags, name) {
            (text, Origin::Flag(name))
        } else if let Some(text) = find(&self.environment, &variable) {
            (text, Origin::Environment(variable))
        } else if let (Some(text), Some((path, _))) = (find(file, name), &self.file) {
            (text, Origin::File(path.clone()))
        } else {
            (setting.default.to_owned(), Origin::Default)
        };
        Resolved { name, text, origin }
    }

    fn check_environment(&self) -> anyhow::Result<()> {
        let known: Vec<String> = SETTINGS.iter().map(environment_name).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).chain([CONFIG_VARIABLE]).collect();
        for (name, _) in &self.environment {
            if name.starts_with(PREFIX) && !known.contains(&name.as_str()) {
                bail!("environment variable {name} is no setting{}", suggestion(name, &known));
            }
        }
        Ok(())
    }

    /// The file as TOML.
    fn table(&self) -> anyhow::Result<Option<(&Path, toml::Table)>> {
        let Some((path, text)) = &self.file else { return Ok(None) };
        let table = text.parse().with_context(|| format!("{} is no TOML", path.display()))?;
        Ok(Some((path, table)))
    }

    /// What the sections of the file say.
    ///
    /// # Errors
    /// A section has something wrong.
    pub(crate) fn sections(&self) -> anyhow::Result<Sections> {
        let Some((path, mut table)) = self.table()? else { return Ok(Sections::default()) };
        table.retain(|key, _| SECTIONS.contains(&key));
        Sections::read(&table).with_context(|| path.display().to_string())
    }

    /// The sections as the file has them.
    ///
    /// # Errors
    /// The file is no TOML.
    pub(crate) fn sections_text(&self) -> anyhow::Result<String> {
        let Some((path, mut table)) = self.table()? else { return Ok(String::new()) };
        table.retain(|key, _| SECTIONS.contains(&key));
        if table.is_empty() {
            return Ok(String::new());
        }
        Ok(format!("\n# file {}\n{}", path.display(), toml::to_string(&table)?))
    }

    /// Names and values of the file, as text.
    fn read_file(&self) -> anyhow::Result<Vec<(String, String)>> {
        let Some((path, table)) = self.table()? else { return Ok(Vec::new()) };
        let known: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
        let mut pairs = Vec::new();
        for (key, value) in table {
            if SECTIONS.contains(&key.as_str()) {
                continue;
            }
            if !known.contains(&key.as_str()) {
                let nearest = suggestion(&key, &known);
                bail!("{}: {key} is no setting{nearest}", path.display());
            }
            let text = match value {
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Float(number) => number.to_string(),
                toml::Value::Boolean(truth) => truth.to_string(),
                other => {
                    let kind = other.type_str();
                    bail!("{}: {key} is a {kind}, not one value", path.display());
                }
            };
            pairs.push((key, text));
        }
        Ok(pairs)
    }
}

/// A hint at the known name that is most like `name`, if one is.
fn suggestion(name: &str, known: &[&str]) -> String {
    let likeness = |other: &&&str| (strsim::jaro_winkler(name, other) * 1e6) as u64;
    match known.iter().max_by_key(likeness) {
        Some(nearest) if strsim::jaro_winkler(name, nearest) > 0.8 => {
            format!("; did you mean {nearest}?")
        }
        _ => "; `nyala serve --help` lists them".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    fn value_of(layers: &Layers, name: &str) -> (String, Origin) {
        let resolved = layers.resolve().unwrap().into_iter().find(|r| r.name == name).unwrap();
        (resolved.text, resolved.origin)
    }

    #[test]
    fn the_stronger_layer_wins() {
        let path = PathBuf::from("n.toml");
        let mut layers = Layers {
            flags: vec![pair("http-bind", "flag")],
            environment: vec![pair("NYALA_HTTP_BIND", "env"), pair("HOME", "/root")],
            file: Some((path.clone(), "http-bind = \"file\"\nmax-connections = 7\n".to_owned())),
        };
        let bind = |layers: &Layers| value_of(layers, "http-bind");
        assert_eq!(bind(&layers), ("flag".to_owned(), Origin::Flag("http-bind")));
        layers.flags.clear();
        let variable = Origin::Environment("NYALA_HTTP_BIND".to_owned());
        assert_eq!(bind(&layers), ("env".to_owned(), variable));
        layers.environment.clear();
        assert_eq!(bind(&layers), ("file".to_owned(), Origin::File(path.clone())));
        assert_eq!(value_of(&layers, "max-connections"), ("7".to_owned(), Origin::File(path)));
        layers.file = None;
        assert_eq!(bind(&layers), ("127.0.0.1:8086".to_owned(), Origin::Default));
    }

    #[test]
    fn unknown_names_are_errors() {
        let env = |name| Layers { environment: vec![pair(name, "x")], ..Layers::default() };
        let file = |text: &str| Layers {
            file: Some(("n.toml".into(), text.to_owned())),
            ..Layers::default()
        };
        let refused = |layers: Layers| layers.resolve().unwrap_err().to_string();
        assert_eq!(
            refused(env("NYALA_HTP_BIND")),
            "environment variable NYALA_HTP_BIND is no setting; did you mean NYALA_HTTP_BIND?"
        );
        assert_eq!(
            refused(file("memorylimit = 1")),
            "n.toml: memorylimit is no setting; did you mean memory-limit?"
        );
        assert!(refused(file("zzz = 1")).contains("`nyala serve --help` lists them"));
        assert_eq!(refused(file("data-dir = [1]")), "n.toml: data-dir is a array, not one value");
        assert_eq!(refused(file("data-dir = ")), "n.toml is no TOML");
    }
}
