//! Texts of help.

pub(super) const HELP: &str = "\
Commands of the shell:
  connect <host[:port]>         speak to another server
  auth                          ask for a user's name and password
  use <db>[.<policy>]           statements and lines are for this database and policy
  clear [db|rp]                 forget the database or the policy
  insert [into [db.]rp] <line>  write a line of line protocol
  format column|csv|json        how answers look
  precision rfc3339|h|m|s|ms|u|ns
                                how times look, and what those of inserted lines count
  pretty                        indent JSON, or not
  chunked                       receive long answers in parts, or not
  chunk size <rows>             length of those parts; 0 leaves it to the server
  consistency any|one|quorum|all
                                sent along with lines
  settings                      what is in force
  history                       what was entered before
  help                          this
  exit, quit, Ctrl-D            leave

Everything else is InfluxQL for the server, such as
  SHOW DATABASES
  SHOW MEASUREMENTS
  SHOW TAG KEYS FROM \"cpu\"
  SHOW FIELD KEYS FROM \"cpu\"
  SELECT mean(\"usage\") FROM \"cpu\" WHERE time > now() - 1h GROUP BY time(1m)
Tab completes keywords, databases and measurements. Ctrl-C ends a statement.
";

pub(super) const CLEAR: &str = "\
clear database, clear db: forget the database and its retention policy
clear retention policy, clear rp: forget the retention policy
";
