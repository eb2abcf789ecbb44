//! Real programs run under the library and check themselves, or behave as without it.

mod support;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use support::{compile, example, has, library, preloaded, succeed};

/// Asserts that a command behaves under the library as without it.
fn same(program: &str, arguments: &[&str]) {
    if has(program) {
        let alone = succeed(Command::new(program).args(arguments));
        assert_eq!(succeed(preloaded(program).args(arguments)), alone, "{program} {arguments:?}");
        assert!(!alone.is_empty(), "{program} prints something");
    }
}

#[test]
fn python_with_threads_and_processes() {
    const SCRIPT: &str = "
import hashlib, multiprocessing, sqlite3, subprocess, sys, threading, ctypes, os
results = [None] * 8
def work(k): results[k] = hashlib.sha256(''.join(str(i * k) for i in range(20000)).encode()).hexdigest()
threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(results)
database = sqlite3.connect(':memory:')
database.execute('create table t(a, b)')
database.executemany('insert into t values(?, ?)', ((i, str(i) * 5) for i in range(20000)))
print(database.execute('select sum(a), max(b), count(distinct length(b)) from t').fetchone())
print(subprocess.run([sys.executable, '-c', 'print(sum(range(1000)))'], capture_output=True).stdout)
with multiprocessing.get_context('fork').Pool(3) as pool: print(sum(pool.map(len, ['x' * i for i in range(3000)])))
libc = ctypes.CDLL(None); libc.strdup.restype = ctypes.c_void_p
block = libc.strdup(b'hello'); print(ctypes.string_at(block)); libc.free(ctypes.c_void_p(block))
for i in range(20):
    child = os.fork()
    if child == 0: x = [str(i) for i in range(5000)]; os._exit(len(x) % 250)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";
    same("python3", &["-c", SCRIPT]);
}

#[test]
fn sqlite_sorts_and_joins() {
    let query = "create table t(a, b); insert into t select value, hex(value * 7919 % 10007) from generate_series(1, 50000);
        create index i on t(b); select count(*), sum(x.a), max(y.b) from t x join t y on x.b = y.b where x.a < 2000;
        pragma integrity_check;";
    same("sqlite3", &[":memory:", query]);
}

#[test]
fn node_collects_garbage() {
    let script = "let m = new Map(); for (let i = 0; i < 200000; i++) m.set('k' + i % 5000, {i, b: Buffer.alloc(i % 100)});
        console.log(m.size, require('zlib').deflateSync(Buffer.alloc(100000, 'abc')).length);
        Promise.all([1, 2, 3].map(i => new Promise(r => setTimeout(() => r(i), 5)))).then(a => console.log(a.join()))";
    same("node", &["-e", script]);
}

#[test]
fn git_makes_the_same_commit() {
    if !has("git") {
        return;
    }
    let commit = |preload: bool| {
        let folder = tempfile::tempdir().expect("a folder");
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.current_dir(folder.path()).args(arguments);
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
            for (who, what) in [("AUTHOR", "a"), ("COMMITTER", "c")] {
                command.env(format!("GIT_{who}_NAME"), what).env(format!("GIT_{who}_EMAIL"), what);
                command.env(format!("GIT_{who}_DATE"), "2020-01-01T00:00:00Z");
            }
            if preload {
                command.env("LD_PRELOAD", library());
            }
            succeed(&mut command)
        };
        git(&["init", "-q"]);
        for file in 0..200 {
            let text: String = (0..file * 10).map(|line| format!("line {line}\n")).collect();
            std::fs::write(folder.path().join(format!("f{file}")), text).expect("a file");
        }
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "all"]);
        git(&["gc", "-q"]);
        git(&["fsck", "--strict"]);
        git(&["log", "--format=%H %T"])
    };
    assert_eq!(commit(true), commit(false));
}

#[test]
fn the_compiler_makes_the_same_object() {
    if !has("g++") {
        return;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/map.cpp");
    let object = |command: &mut Command| {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("map.o");
        succeed(command.args(["-O2", "-c"]).arg(&source).arg("-o").arg(&target));
        std::fs::read(target).expect("an object")
    };
    assert_eq!(object(&mut preloaded("g++")), object(&mut Command::new("g++")));
}

#[test]
fn maps_operators_and_exceptions_of_cxx() {
    if !has("g++") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "map.cpp", &[]);
    let alone = succeed(&mut Command::new(&program));
    assert!(alone.ends_with("1 1 1\n"), "aligned, thrown, null: {alone}");
    assert_eq!(succeed(&mut preloaded(&program)), alone);
}

#[test]
fn a_rust_program() {
    let output = succeed(preloaded(example("alloc-stress")).args(["20000", "4", "1000"]));
    assert!(output.starts_with("ok 80000 calls"), "{output}");
}

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn redis_saves_and_loads_what_it_holds() {
    if !(has("redis-server") && has("redis-cli") && has("redis-benchmark")) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let start = |preload: bool| {
        let mut command = if preload { preloaded("redis-server") } else { Command::new("redis-server") };
        command
            .args(["--port", "0", "--save", "", "--enable-debug-command", "yes", "--unixsocket"])
            .arg(&socket);
        let child = command.arg("--dir").arg(folder.path()).stdout(Stdio::null()).spawn().expect("a server");
        let server = Server(child);
        let alive = || cli(&socket, &["ping"]) == "PONG\n";
        assert!(
            (0..300).any(|_| alive() || {
                std::thread::sleep(Duration::from_millis(50));
                false
            }),
            "no answer"
        );
        server
    };
    let server = start(true);
    let load = ["-q", "-n", "5000", "-r", "2000", "-P", "16", "-t", "set,lpush,hset,zadd,spop,sadd"];
    succeed(Command::new("redis-benchmark").arg("-s").arg(&socket).args(load));
    let digest = cli(&socket, &["debug", "digest"]);
    assert!(digest.len() > 40, "{digest}");
    assert_eq!(cli(&socket, &["debug", "reload"]), "OK\n");
    assert_eq!(cli(&socket, &["debug", "digest"]), digest, "after a reload");
    // The child of a fork saves it.
    cli(&socket, &["bgsave"]);
    let saved = || cli(&socket, &["info", "persistence"]).contains("rdb_bgsave_in_progress:0");
    assert!(
        (0..300).any(|_| saved() || {
            std::thread::sleep(Duration::from_millis(50));
            false
        }),
        "not saved"
    );
    assert!(cli(&socket, &["info", "persistence"]).contains("rdb_last_bgsave_status:ok"));
    drop(server);
    let _server = start(false);
    assert_eq!(cli(&socket, &["debug", "digest"]), digest, "loaded without the library");
}

fn cli(socket: &Path, arguments: &[&str]) -> String {
    let output = Command::new("redis-cli").arg("-s").arg(socket).args(arguments).output().expect("redis-cli");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
