//! The privileges of `run` and `attach`: sockets, locks, setuid programs, files (see SECURITY.md), and
//! programs that cannot load `libisotherm.so`. What needs other users is tested as root only.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Folder, RunStats, command, data, hint_faults_work, isotherm, read, shadow};

const AS_NOBODY: [&str; 6] = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"];
/// A session that loads the agent.
const WITH_AGENT: [&str; 5] = ["run", "--shadow", "--quiet", "--source", "hint-faults"];

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("this process");
    let root = status.lines().any(|line| line.starts_with("Uid:\t0\t0\t"));
    if !root {
        eprintln!("skipped: only root can be another user");
    }
    root
}

/// Runs a command as a user without rights.
fn as_nobody(words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(AS_NOBODY).args(words);
    command.stdin(Stdio::null());
    command
}

fn run(mut command: Command) -> RunStats {
    command.output().expect("it starts").into()
}

fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_isotherm"))
}

/// Installs isotherm and its library where every user reaches them, and returns the program.
fn install(folder: &Folder, name: &str) -> String {
    set_mode(folder.path(), 0o755);
    let bin = folder.path().join(name);
    fs::create_dir(&bin).expect("a folder");
    set_mode(&bin, 0o755);
    let library = binary().parent().expect("a folder").join("deps/libisotherm.so");
    fs::copy(library, bin.join("libisotherm.so")).expect("cargo builds it with tests");
    let program = bin.join("isotherm");
    fs::copy(binary(), &program).expect("copied");
    program.display().to_string()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
}

/// Compiles the program that tells what was loaded.
fn loaded(folder: &Folder, compiler: &str, name: &str, options: &[&str]) -> String {
    let program = folder.at(name);
    let mut command = Command::new(compiler);
    command.args(["-O1", "-o", &program]).arg(data("loaded.c")).args(options);
    let status = command.status().unwrap_or_else(|_| panic!("{compiler} is missing: run `make setup`"));
    assert!(status.success());
    program
}

/// Returns what the program of [`loaded`] says about `what`, once for each that ran.
fn told<'a>(ran: &'a RunStats, what: &'a str) -> Vec<&'a str> {
    let said = |line: &'a str| line.strip_prefix(what).map(str::trim);
    ran.out.lines().filter_map(said).collect()
}

/// Item 6 of the attack of 2026: `ISOTHERM_JSON` overwrote a file in root's folder.
#[test]
fn a_setuid_program_ignores_isotherms_variables() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    install(&folder, "lib");
    let library = folder.at("lib/libisotherm.so");
    let rpath = format!("-Wl,--no-as-needed,-rpath,{}", folder.at("lib"));
    let program = loaded(&folder, "cc", "linked", &[&rpath, &library]);
    fs::create_dir(folder.path().join("private")).expect("a folder");
    set_mode(&folder.path().join("private"), 0o700);
    let precious = folder.file("private/precious", "root's");
    let ran = |mode, user: fn(&[&str]) -> Command| {
        set_mode(Path::new(&program), mode);
        let mut command = user(&[&program]);
        command.env("ISOTHERM_POLICY", "hybridtier").env("ISOTHERM_SHADOW", "1");
        command.env("ISOTHERM_SOURCE", "hint-faults").env("ISOTHERM_JSON", &precious);
        let ran = run(command);
        assert_eq!((ran.code, told(&ran, "loaded")), (Some(7), vec!["1"]), "{ran:?}");
        (told(&ran, "secure") == ["1"], ran.err)
    };
    let (secure, errors) = ran(0o4755, as_nobody);
    assert!(secure, "the folder for temporary files must allow setuid programs");
    assert_eq!((fs::read_to_string(&precious).expect("ours").as_str(), errors.as_str()), ("root's", ""));
    let plain: fn(&[&str]) -> Command = |words| Command::new(words[0]);
    assert!(!ran(0o755, plain).0);
    assert_eq!(read(&precious)["policy"], "hybridtier", "root's own program obeys root's variables");
}

/// Item 7 of the attack of 2026: musl's loader ended such programs with status 127.
#[test]
fn programs_of_every_c_library_run() {
    if !hint_faults_work() {
        return;
    }
    let folder = Folder::new();
    let glibc = loaded(&folder, "cc", "glibc", &[]);
    let musl = loaded(&folder, "musl-gcc", "musl", &[]);
    let fixed = loaded(&folder, "cc", "static", &["-static"]);
    let musl_fixed = loaded(&folder, "musl-gcc", "musl-static", &["-static"]);
    let run = |program: &[&str]| {
        let ran = isotherm(&[&WITH_AGENT[..], &["--"], program].concat());
        assert_eq!((ran.code, ran.err.as_str()), (Some(7), ""), "{program:?}");
        ran
    };
    for (program, expected) in [(&glibc, "1"), (&musl, "0"), (&fixed, "0"), (&musl_fixed, "0")] {
        assert_eq!(told(&run(&[program]), "loaded"), [expected], "{program}");
        // As children of a shell, which the agent is in, and of a program that it is not in.
        assert_eq!(told(&run(&["sh", "-c", &format!("{program}; exit $?")]), "loaded"), [expected]);
        assert_eq!(told(&run(&[&musl, program]), "loaded"), ["0", expected], "{program}");
        assert_eq!(told(&run(&[program, &glibc]), "loaded"), [expected, "1"], "{program}");
    }
}

#[test]
fn a_setuid_program_runs_without_the_agent() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let own = install(&folder, "bin");
    let program = loaded(&folder, "cc", "setuid", &[]);
    set_mode(Path::new(&program), 0o4755);
    let words = [&[own.as_str()], &WITH_AGENT[..], &["--", &program]].concat();
    let mut command = Command::new("setpriv");
    command.args(["--inh-caps=+sys_ptrace", "--ambient-caps=+sys_ptrace"]).args(AS_NOBODY).args(words);
    let ran = run(command);
    assert_eq!((ran.code, ran.err.as_str()), (Some(7), ""), "{ran:?}");
    assert_eq!((told(&ran, "secure"), told(&ran, "loaded")), (vec!["1"], vec!["0"]));
}

/// LD_PRELOAD is a list: a blank in the path of the library meant no agent.
#[test]
fn the_agent_is_loaded_from_a_path_with_a_blank() {
    if !hint_faults_work() {
        return;
    }
    let folder = Folder::new();
    let own = install(&folder, "my tools: $LIB");
    let program = loaded(&folder, "cc", "glibc", &[]);
    let mut words = Command::new(own);
    words.args(WITH_AGENT).args(["--", &program]).stdin(Stdio::null());
    let ran = run(words);
    assert_eq!((ran.code, ran.err.as_str(), told(&ran, "loaded")), (Some(7), "", vec!["1"]), "{ran:?}");
    let link = told(&ran, "preload")[0].rsplit("..").next().expect("a path");
    assert!(link.starts_with('/') && !Path::new(link).exists(), "{link} is removed at the end");
}

#[test]
fn libraries_that_the_user_preloads_stay_preloaded() {
    if !hint_faults_work() {
        return;
    }
    let folder = Folder::new();
    let source = folder.file(
        "mine.c",
        "#include <stdio.h>\n__attribute__((constructor)) static void f(void) \
                                        { puts(\"mine\"); fflush(stdout); }\n",
    );
    let mine = folder.at("mine.so");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o", &mine, &source]).status();
    assert!(built.expect("cc is missing: run `make setup`").success());
    let program = loaded(&folder, "cc", "glibc", &[]);
    let mut with_mine = command(&[&WITH_AGENT[..], &["--", &program]].concat());
    with_mine.env("LD_PRELOAD", &mine);
    let ran = run(with_mine);
    assert_eq!((ran.code, told(&ran, "loaded")), (Some(7), vec!["1"]), "{ran:?}");
    assert_eq!(told(&ran, "mine").len(), 2, "in isotherm and the program: {}", ran.out);
}

/// Returns the session's folder, as a program of the session knows it.
fn session_folder(child: &mut Child) -> PathBuf {
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    let socket = PathBuf::from(line());
    socket.parent().expect("a folder").to_owned()
}

fn session(script: &str) -> Child {
    let script = format!("echo $ISOTHERM_SOCKET; {script}");
    let words = [&WITH_AGENT[..], &["--", "sh", "-c", &script]].concat();
    command(&words).stdout(Stdio::piped()).spawn().expect("it starts")
}

fn signal(name: &str, child: &Child) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(status.expect("kill(1)").success());
}

/// Killed engines left their folders for ever.
#[test]
fn sessions_leave_no_folder_behind() {
    if !hint_faults_work() {
        return;
    }
    let mut ends = session("exit 0");
    let folder = session_folder(&mut ends);
    ends.wait().expect("it ends");
    assert!(!folder.exists(), "{}", folder.display());
    for name in ["-INT", "-TERM", "-HUP", "-QUIT"] {
        let mut ended = session("exec sleep 1000");
        let folder = session_folder(&mut ended);
        assert_eq!(fs::metadata(&folder).expect("a folder").permissions().mode() & 0o777, 0o700);
        let socket = fs::metadata(folder.join("socket")).expect("a socket").permissions().mode();
        assert_eq!(socket & 0o777, 0o600);
        signal(name, &ended);
        ended.wait().expect("it ends");
        assert!(!folder.exists(), "{name}: {}", folder.display());
    }
    let mut killed = session("sleep 3");
    let left = session_folder(&mut killed);
    killed.kill().expect("ours");
    killed.wait().expect("it ends");
    // Until another session starts, here or in a test beside this one.
    session("exit 0").wait().expect("it ends");
    assert!(!left.exists(), "{}", left.display());
}

/// `attach` without rights learned nothing and ended with status 0.
#[test]
fn attach_without_rights_is_refused() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let own = install(&folder, "bin");
    let mut target = Command::new("sleep").arg("1000").spawn().expect("sleep");
    let id = target.id().to_string();
    let ran = run(as_nobody(&[&own, "attach", "--shadow", "--quiet", "--for", "1s", &id]));
    target.kill().expect("ours");
    target.wait().expect("it ends");
    assert!(ran.refused(2).contains("CAP_SYS_PTRACE"));
}

/// Without the capability hint faults were chosen all the same, and nothing was observed.
#[test]
fn a_user_without_the_capability_gets_another_source() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let own = install(&folder, "bin");
    set_mode(folder.path(), 0o777);
    let summary = folder.at("summary.json");
    let ran =
        run(as_nobody(&[&own, "run", "--shadow", "--quiet", "--summary", &summary, "--", "sleep", "1"]));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let sources = &read(&summary)["sources"];
    assert!(sources[0]["name"].is_string() && sources[0]["name"] != "hint-faults", "{sources}");
    let ran = run(as_nobody(&[&[own.as_str()], &WITH_AGENT[..], &["--", "true"]].concat()));
    assert!(ran.refused(2).contains("CAP_SYS_PTRACE"));
}

/// Item 15 of the attack of 2026: `attach` by a thread's number passed the lock, and two engines ran.
#[test]
fn a_threads_number_stands_for_its_process() {
    let folder = Folder::new();
    let summary = folder.at("summary.json");
    let (give, number) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let own = fs::read_link("/proc/thread-self").expect("its number");
        give.send(own.file_name().expect("a name").to_string_lossy().into_owned()).expect("sent");
        let _ = ended.recv();
    });
    let (process, thread_number) = (std::process::id().to_string(), number.recv().expect("a number"));
    assert_ne!(process, thread_number);
    let attach = |id: &str, time: &str, more: &[&str]| {
        let options = ["attach", "--shadow", "--quiet", "--policy", "first-touch", "--for", time];
        command(&[&options[..], more, &[id]].concat())
    };
    let mut first = attach(&process, "20s", &[]).spawn().expect("it starts");
    let path = format!(" {} ", first.id());
    let deadline = Instant::now() + Duration::from_secs(20);
    while !fs::read_to_string("/proc/locks").expect("locks").contains(&path) {
        assert!(Instant::now() < deadline, "it takes the lock");
        std::thread::sleep(Duration::from_millis(20));
    }
    let second = run(attach(&thread_number, "1s", &[])).refused(1);
    assert!(second.contains(&format!("process {process} is tiered by process {}", first.id())), "{second}");
    first.kill().expect("ours");
    first.wait().expect("it ends");
    let alone = run(attach(&thread_number, "1s", &["--summary", &summary]));
    assert_eq!((alone.code, alone.err.as_str()), (Some(0), ""));
    assert_eq!(read(&summary)["program"][0], process.as_str());
    drop(end);
    thread.join().expect("it ends");
}

/// Item 14 of the attack of 2026: with umask 000 others could reach root's engine.
#[test]
fn the_control_socket_is_for_its_user_alone() {
    let folder = Folder::new();
    let socket = folder.at("control");
    let line = format!(
        "umask 000; exec {} run --shadow --quiet --policy first-touch --control {socket} -- \
         stat -c %a {socket}",
        binary().display()
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).stdin(Stdio::null());
    assert_eq!(run(shell).ok(), "600\n");
    assert!(!Path::new(&socket).exists());
}

/// Bad paths were found after the program had ended, and replaced its status.
#[test]
fn outputs_are_opened_before_the_program_starts() {
    let folder = Folder::new();
    let (missing, proof) = (folder.at("no/such/folder/summary"), folder.at("proof"));
    for option in ["--summary", "--report"] {
        let ran = isotherm(&["run", "--shadow", "--quiet", option, &missing, "--", "touch", &proof]);
        assert!(ran.refused(2).contains(&missing), "{option}");
        assert!(!Path::new(&proof).exists(), "nothing has run");
        // A full device is found at the end only.
        let ran = isotherm(&["run", "--shadow", "--quiet", option, "/dev/full", "--", "sh", "-c", "exit 42"]);
        assert!(ran.refused(42).contains("/dev/full"));
    }
    let kept = folder.file("kept", "an older summary");
    shadow(&kept, &[], &["no-such-command"]).refused(127);
    assert_eq!(fs::read_to_string(&kept).expect("kept"), "an older summary");
    shadow(&folder.at("new"), &[], &["no-such-command"]).refused(127);
    assert!(!Path::new(&folder.at("new")).exists(), "nothing was written");
}

/// A reader of standard error that has gone replaced the program's status.
#[test]
fn a_closed_standard_error_changes_nothing() {
    let mut run = command(&["run", "--shadow", "--", "sh", "-c", "sleep 0.1; exit 42"]);
    let mut child = run.stderr(Stdio::piped()).spawn().expect("it starts");
    drop(child.stderr.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(42));
}
