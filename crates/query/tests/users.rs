//! Users and grants as statements.

#[path = "support/database.rs"]
mod support;

use support::Database;

#[test]
fn users_and_their_grants() {
    let db = Database::with_lines("m v=1 1");
    assert_eq!(db.short("SHOW USERS"), ": user admin");
    for statement in [
        "CREATE DATABASE a",
        "CREATE USER zoe WITH PASSWORD 'p' WITH ALL PRIVILEGES",
        "CREATE USER bob WITH PASSWORD 'p'",
        "CREATE USER bob WITH PASSWORD 'p'",
        "GRANT WRITE ON t TO bob",
        "GRANT ALL PRIVILEGES ON a TO bob",
        "REVOKE READ ON a FROM bob",
        "SET PASSWORD FOR bob = 'q'",
    ] {
        assert_eq!(db.short(statement), "", "{statement}");
    }
    assert_eq!(db.short("SHOW USERS"), ": user admin\n\"zoe\" true\n\"bob\" false");
    let grants = ": database privilege\n\"a\" \"WRITE\"\n\"t\" \"WRITE\"";
    assert_eq!(db.short("SHOW GRANTS FOR bob"), grants);
    assert_eq!(db.short("SHOW GRANTS FOR zoe"), ": database privilege");
    for (statement, error) in [
        ("CREATE USER bob WITH PASSWORD 'p'", "user already exists"),
        ("SHOW GRANTS FOR eve", "user not found"),
        ("GRANT READ ON nodb TO bob", "database not found: nodb"),
        ("GRANT ALL TO eve", "user not found"),
        ("DROP USER eve", "user not found"),
    ] {
        assert_eq!(db.short(statement), format!("error: {error}"), "{statement}");
    }
    db.short("GRANT ALL TO bob");
    db.short("REVOKE ALL PRIVILEGES FROM zoe");
    assert_eq!(db.short("SHOW USERS"), ": user admin\n\"zoe\" false\n\"bob\" true");
    db.short("DROP USER zoe");
    assert_eq!(db.short("SHOW USERS"), ": user admin\n\"bob\" true");
}

#[test]
fn a_user_sees_databases_of_some_use() {
    let mut db = Database::with_lines("m v=1 1");
    db.short("CREATE DATABASE a");
    db.short("CREATE DATABASE b");
    db.short("CREATE USER bob WITH PASSWORD 'p'");
    db.short("GRANT READ ON t TO bob");
    db.short("GRANT READ ON a TO bob");
    db.short("REVOKE ALL ON a FROM bob");
    let all = "databases: name\n\"t\"\n\"a\"\n\"b\"";
    assert_eq!(db.short("SHOW DATABASES"), all);
    db.context.user = db.context.catalog.snapshot().user("bob").cloned();
    assert_eq!(db.short("SHOW DATABASES"), "databases: name\n\"t\"");
    db.context.read_only = true;
    assert_eq!(db.short("DROP USER bob"), "error: the server is read-only");
}
