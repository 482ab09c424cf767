//! What a line of input asks for.

/// A line of input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command<'a> {
    Exit,
    Connect(&'a str),
    Auth,
    Help,
    History,
    Settings,
    Format(String),
    Precision(String),
    Consistency(String),
    Pretty,
    Chunked,
    ChunkSize(&'a str),
    Use(&'a str),
    Insert(&'a str),
    /// What to forget; `None`: to say what there is.
    Clear(Option<Clear>),
    /// Anything else is for the server.
    Query(&'a str),
}

/// What `clear` forgets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Clear {
    Database,
    Policy,
}

/// Takes a line apart.
pub(super) fn parse(line: &str) -> Command<'_> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let argument = || rest.split_whitespace().next().unwrap_or("").to_lowercase();
    match word.to_lowercase().as_str() {
        "exit" | "quit" => Command::Exit,
        "connect" => Command::Connect(rest),
        "auth" => Command::Auth,
        "help" => Command::Help,
        "history" => Command::History,
        "settings" => Command::Settings,
        "format" => Command::Format(argument()),
        "precision" => Command::Precision(argument()),
        "consistency" => Command::Consistency(argument()),
        "pretty" => Command::Pretty,
        "chunked" => Command::Chunked,
        "chunk" => match rest.split_once(char::is_whitespace) {
            Some((size, number)) if size.eq_ignore_ascii_case("size") => {
                Command::ChunkSize(number.trim())
            }
            _ => Command::ChunkSize(""),
        },
        "use" => Command::Use(rest),
        "insert" => Command::Insert(rest),
        "clear" => {
            let words: Vec<String> = rest.split_whitespace().map(str::to_lowercase).collect();
            match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["database" | "db"] => Command::Clear(Some(Clear::Database)),
                ["retention", "policy"] | ["rp"] => Command::Clear(Some(Clear::Policy)),
                _ => Command::Clear(None),
            }
        }
        _ => Command::Query(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        assert_eq!(parse(" QUIT "), Command::Exit);
        assert_eq!(parse("use  \"a b\""), Command::Use("\"a b\""));
        assert_eq!(parse("Insert m v=1"), Command::Insert("m v=1"));
        assert_eq!(parse("precision RFC3339"), Command::Precision("rfc3339".to_owned()));
        assert_eq!(parse("chunk size 5"), Command::ChunkSize("5"));
        assert_eq!(parse("clear RP"), Command::Clear(Some(Clear::Policy)));
        assert_eq!(parse("clear all"), Command::Clear(None));
        assert_eq!(parse("select 1"), Command::Query("select 1"));
        assert_eq!(parse(""), Command::Query(""));
        assert_eq!(parse("settings; show"), Command::Query("settings; show"));
    }
}
