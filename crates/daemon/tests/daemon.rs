//! A daemon from its start to its end, on real processes in shadow mode. One test, for it receives the
//! signals of its process.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use isotherm_core::machine_status::{GroupStatus, MachineStatus, MappingStatus};
use isotherm_core::{Bytes, Nanos};
use isotherm_daemon::daemon::{Client, Daemon, GuestClaim, Paths};
use isotherm_daemon::log::LogReader;
use isotherm_daemon::replay::{Replay, View};
use isotherm_linux::process::{Pid, ProcRoot, ProcessStat};

/// A program that sleeps under a name of its own; it is ended on drop.
struct Program(Child);

impl Program {
    fn start(path: &Path) -> Self {
        Self(Command::new(path).arg("600").spawn().expect("it starts"))
    }

    fn state(&self) -> u8 {
        ProcessStat::read(&ProcRoot::default(), Pid(self.0.id()), &mut Vec::new()).expect("it runs").state
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Copies `sleep` to a name that no other program has.
fn sleeper(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(format!("{name}-{}", std::process::id()));
    std::fs::copy("/bin/sleep", &path).expect("sleep is there");
    path
}

fn name(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

/// Asks until the answer is right, or fails.
#[track_caller]
fn until<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn status(socket: &Path) -> Option<MachineStatus> {
    let text = Client::connect(socket).ok()?.ask("status").ok()?;
    Some(serde_json::from_str(&text).expect("a status"))
}

/// Returns the page at an address as a browser has drawn it after some seconds.
fn browse(address: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let browser = std::env::var("ISOTHERM_CHROMIUM").unwrap_or_else(|_| "chromium".into());
    let quiet =
        ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"];
    let output = Command::new(&browser)
        .args(quiet)
        .arg(format!("--user-data-dir={}", folder.path().display()))
        .args(["--virtual-time-budget=4000", "--dump-dom", address])
        .output()
        .unwrap_or_else(|error| panic!("{browser}: {error}; run `make setup`, it installs Chromium"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn group<'a>(status: &'a MachineStatus, name: &str) -> &'a GroupStatus {
    status.groups.iter().find(|group| group.name == name).expect("a group")
}

#[test]
fn a_daemon_shares_memory_reloads_and_leaves_programs_as_they_were() {
    let folder = tempfile::tempdir().expect("a folder");
    let [quiet, busy] = ["quiet", "busy"].map(|name| sleeper(folder.path(), name));
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let log = folder.path().join("log");
    let config = |quiet_limit: &str, more: &str| {
        let [quiet, busy] = [&quiet, &busy].map(|path| name(path));
        let log = log.display();
        format!(
            "fast = \"8M\"\nshadow = true\nlisten = \"{free}\"\ninterval = \"200ms\"\npolicy = \"first-touch\"\n\
             log = \"{log}\"\n\
             [[group]]\nname = \"quiet\"\ncommand = \"{quiet}\"\n{quiet_limit}\n\
             [[group]]\nname = \"busy\"\ncommand = \"{busy}\"\nprotect = \"1M\"\n{more}\n"
        )
    };
    let paths = Paths { config: folder.path().join("isotherm.toml"), socket: folder.path().join("socket") };
    std::fs::write(&paths.config, config("limit = \"16K\"", "")).expect("written");
    let programs = [Program::start(&quiet), Program::start(&busy)];
    let latencies = |_: &str| Ok(vec![Nanos(100), Nanos(250)]);
    let daemon = {
        let paths = paths.clone();
        std::thread::spawn(move || Daemon::start(paths, latencies)?.run())
    };

    // Programs are found and counted; limits hold, and the sum of shares is never above the fast memory.
    let seen = until("both programs are followed", || {
        let status = status(&paths.socket)?;
        let known = |group: &GroupStatus| group.programs.len() == 1 && group.fast() > Bytes(0);
        status.groups.iter().all(known).then_some(status)
    });
    assert_eq!((seen.fast_bytes, seen.shadow), (Bytes(8 << 20), true));
    assert!(seen.groups.iter().map(|group| group.share_bytes).sum::<Bytes>() <= seen.fast_bytes);
    let limited = until("the limit holds", || {
        let status = status(&paths.socket)?;
        (group(&status, "quiet").fast() == Bytes(16 << 10)).then_some(status)
    });
    assert_eq!(group(&limited, "quiet").share_bytes, Bytes(16 << 10));
    assert!(group(&limited, "quiet").slow() > Bytes(0), "the rest of its memory is slow");

    // A program that starts later joins its group, and leaves it at its end.
    let another = Program::start(&busy);
    let count = |wanted: usize| {
        until("programs come and go", || {
            (group(&status(&paths.socket)?, "busy").programs.len() == wanted).then_some(())
        });
    };
    count(2);
    drop(another);
    count(1);

    // A file with a mistake changes nothing and is refused with its line; a good one takes effect.
    std::fs::write(&paths.config, config("", "weight = \"much\"")).expect("written");
    let refused = Client::connect(&paths.socket).expect("it listens").ask("reload").expect_err("a mistake");
    assert!(refused.contains("isotherm.toml:15: "), "{refused}");
    assert_eq!(
        group(&status(&paths.socket).expect("it answers"), "quiet").limit_bytes,
        Some(Bytes(16 << 10))
    );
    std::fs::write(&paths.config, config("", "weight = 3")).expect("written");
    Client::connect(&paths.socket).expect("it listens").ask("reload").expect("valid");
    until("the limit is gone", || {
        let status = status(&paths.socket)?;
        let (quiet, busy) = (group(&status, "quiet"), group(&status, "busy"));
        (quiet.limit_bytes.is_none() && quiet.share_bytes > Bytes(16 << 10) && busy.weight == 3.0)
            .then_some(())
    });

    // A run that joins gets a share.
    let claim = GuestClaim { mapped: Bytes(1 << 20), slow: 2.0, ..GuestClaim::default() };
    let line = format!("join 7 {}", serde_json::to_string(&claim).expect("plain data"));
    until("the run has a share", || {
        let answer = Client::connect(&paths.socket).ok()?.ask(&line).expect("a claim");
        (answer != "fast 0").then_some(())
    });

    // Metrics are served, but not under another machine's name.
    let get = |host: &str| {
        let mut stream = TcpStream::connect(free).expect("it listens");
        stream.write_all(format!("GET /metrics HTTP/1.0\r\n{host}\r\n").as_bytes()).expect("sent");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("an answer");
        page
    };
    let page = get("");
    assert!(page.starts_with("HTTP/1.0 200") && page.contains("openmetrics-text"), "{page}");
    assert!(page.contains("isotherm_programs{group=\"busy\"} 1.0"), "{page}");
    assert!(get("Host: rebound.example\r\n").starts_with("HTTP/1.0 403"));
    assert!(get("Host: localhost:9467\r\n").starts_with("HTTP/1.0 200"));

    // So is the memory by address, once somebody has asked, and the page, which draws in a browser.
    until("the memory by address is known", || {
        let text = Client::connect(&paths.socket).ok()?.ask("mappings busy").expect("a group");
        let known: Vec<MappingStatus> = serde_json::from_str(&text).expect("mappings");
        let program = programs[1].0.id();
        known.iter().any(|one| one.pid == program && !one.cells.is_empty()).then_some(())
    });
    Client::connect(&paths.socket).expect("it listens").ask("mappings none").expect_err("no such group");
    let page = browse(&format!("http://{free}/"));
    for part in ["busy</option>", ">quiet</td>", ">first-touch</td>", "data-drawn=\"true\"", &name(&quiet)] {
        assert!(page.contains(part), "{part} is not in {page:.4000}");
    }

    // A million bytes without a line's end are refused, and others are still answered.
    let mut rude = UnixStream::connect(&paths.socket).expect("it listens");
    rude.set_write_timeout(Some(Duration::from_secs(10))).expect("a time");
    let sent = rude.write_all(&vec![b'a'; 1_000_000]);
    assert!(sent.is_err() || rude.read(&mut [0]).is_ok_and(|length| length == 0), "the client is dropped");
    status(&paths.socket).expect("it answers");

    // SIGTERM ends the daemon; the programs sleep on.
    let own = std::process::id().to_string();
    assert!(Command::new("kill").args(["-TERM", &own]).status().expect("kill").success());
    daemon.join().expect("no panic").expect("an ordinary end");
    assert!(!paths.socket.exists(), "its socket is removed");
    assert_eq!(programs.each_ref().map(Program::state), [b'S'; 2]);

    // Its log is drawn by the same page.
    let reader = LogReader::open(&log).expect("a log");
    let (begin, end) = reader.span().expect("a log");
    let mut replay = Replay::new(reader, begin);
    assert!(replay.advance(end).expect("a log"), "the daemon ran then");
    let (ready, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    // Another program may have taken the daemon's port since.
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let page = std::thread::scope(|scope| {
        let serving = scope.spawn(|| replay.serve(end, None, View::Page(free), &ready, &ended));
        until("the page is served", || (ready.load(Relaxed) || serving.is_finished()).then_some(()));
        let page = browse(&format!("http://{free}/"));
        ended.store(true, Relaxed);
        serving.join().expect("no panic").expect("an ordinary end");
        page
    });
    for part in ["busy</option>", ">quiet</td>", ">first-touch</td>", "data-drawn=\"true\"", &name(&quiet)] {
        assert!(page.contains(part), "{part} is not in {page:.4000}");
    }
}
