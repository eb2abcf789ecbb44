use super::*;

const WHOLE: &str = r#"
fast = "8G"
policy = "hybridtier"
overhead = "1%"
interval = "2s"

[[group]]
name = "database"
cgroup = ["/system.slice/postgresql*.service", "/system.slice/redis.service"]
policy = "isotherm"
protect = "2G"
limit = "50%"
weight = 3
rate = "1G"

[[group]]
name = "batch"
user = "batch"
command = "python*"
set = "hybridtier.batch=5000"

[[group]]
name = "desktop"
mode = "excluded"
"#;

#[test]
fn groups_have_their_settings_and_those_of_all() {
    let config = Config::parse(WHOLE).expect("valid");
    assert_eq!(
        (config.fast, config.interval),
        (Some(Size::Bytes(Bytes(8 << 30))), Nanos(2 * Nanos::SECOND.0))
    );
    let [database, batch, desktop] = &config.groups[..] else { panic!("three groups") };
    assert_eq!((database.policy.entry.name, batch.policy.entry.name), ("isotherm", "hybridtier"));
    assert_eq!((database.protect, database.limit), (Size::Bytes(Bytes(2 << 30)), Some(Size::Share(0.5))));
    assert_eq!((database.weight, batch.weight, batch.overhead), (3.0, 1.0, Some(0.01)));
    assert_eq!(database.rate, Some(Bytes(1 << 30)));
    assert_eq!(batch.policy.parameters.value("batch").map(|value| value.to_string()), Some("5000".into()));
    assert_eq!((batch.mode, desktop.mode), (Mode::Tiered, Mode::Excluded));
    assert_eq!(config.listen, Listen::Address(SocketAddr::from(([127, 0, 0, 1], DEFAULT_PORT))));
}

#[test]
fn every_mistake_has_its_line_and_a_reason() {
    for (text, line, reason) in [
        ("fast = \"much\"", 1, "fast: expected a size such as 4G or 25%, found 'much'"),
        ("\nfats = \"8G\"", 2, "unknown field `fats`"),
        ("listen = \"0.0.0.0:80\"", 1, "allow_remote"),
        ("listen = \"here\"", 1, "listen: expected ADDRESS:PORT"),
        ("interval = \"1ms\"", 1, "interval: expected a time from"),
        ("policy = \"hybridteir\"", 1, "did you mean hybridtier"),
        ("policy = \"belady\"", 1, "only the simulator"),
        ("[[group]]\nname = \"a b\"", 2, "name: expected at most 64 letters"),
        ("[[group]]\nname = \"a\"\n\n[[group]]\nname = \"a\"", 5, "named twice"),
        ("[[group]]\nname = \"a\"\nweight = 0.0", 3, "weight: expected a number"),
        ("[[group]]\nname = \"a\"\nprotect = \"2G\"\nlimit = \"1G\"", 4, "below the group's protection, 2G"),
        ("[[group]]\nname = \"a\"\nlimit = \"1X\"", 3, "limit: expected a size"),
        ("[[group]]\nname = \"a\"\nmode = \"frozen\"", 3, "frozen"),
        ("[[group]]\nname = \"a\"\noverhead = \"60%\"", 3, "overhead: expected a share"),
        ("[[group]]\nname = \"a\"\ncgroup = \"system.slice\"", 3, "cgroup: expected a path"),
        ("[[group]]\nname = \"a\"\nset = \"isotherm.nothing=1\"", 3, "nothing"),
        ("[[group]]\nname = \"a\"\nset = \"freqtier.batch=1\"", 3, "expected isotherm.KEY=VALUE"),
        ("fast = \"1G\"\n[[group]]\nname = \"a\"\nprotect = \"2G\"", 2, "protect 2G together"),
        ("[[group]]\ncommand = \"a\"", 1, "missing field `name`"),
        ("fast = ", 1, ""),
    ] {
        let (found, why) = Config::parse(text).expect_err(text);
        assert_eq!(found, Some(line), "{text}: {why}");
        assert!(why.contains(reason) && !why.contains('\n'), "{text}: {why}");
    }
}

#[test]
fn an_error_names_file_and_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("isotherm.toml");
    std::fs::write(&path, "\n\nfast = 1").expect("written");
    let error = Config::read(&path).expect_err("no text").to_string();
    assert!(error.starts_with(&format!("{}:3: ", path.display())), "{error}");
    std::fs::write(&path, vec![b'#'; 2 << 20]).expect("written");
    assert!(Config::read(&path).expect_err("too long").to_string().contains("at most 1M"));
    let error = Config::read(&folder.path().join("none")).expect_err("no file").to_string();
    assert!(error.contains("none: No such file"), "{error}");
}

#[test]
fn the_log_is_where_the_service_keeps_its_state_unless_the_file_says_otherwise() {
    let place = |text: &str, state: Option<&str>| {
        let log = Config::parse(text).expect("valid").log;
        log.bounds(state.map(OsStr::new))
            .map(|bounds| (bounds.directory, bounds.size, bounds.age.as_seconds()))
    };
    let week = 168.0 * 3600.0;
    assert_eq!(place("", None), None);
    assert_eq!(place("", Some("/a:/b")), Some(("/a".into(), Bytes(256 << 20), week)));
    assert_eq!(place("log = \"off\"", Some("/a")), None);
    let set = "log = \"/c\"\nlog_size = \"8M\"\nlog_age = \"2h\"";
    assert_eq!(place(set, Some("/a")), Some(("/c".into(), Bytes(8 << 20), 7200.0)));
    for wrong in ["log = \"here\"", "log_size = \"1K\"", "log_age = \"1s\""] {
        let (line, why) = Config::parse(wrong).expect_err(wrong);
        assert!(line == Some(1) && why.starts_with(&wrong[..3]) && why.contains("expected"), "{why}");
    }
}
