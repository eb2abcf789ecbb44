//! Real programs, natively and observed: the same output and status. One that is not installed is left out,
//! with a line.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::kills::engine;
use super::modes;

/// Seconds after which a script hangs.
const PATIENCE: &str = "240";

/// Programs that must be installed, the first of them giving the name, and a script for `sh -e` in an empty
/// folder. Servers listen on unix sockets there.
const PROGRAMS: [(&[&str], &str); 14] = [
    (
        &["sqlite3"],
        "sqlite3 :memory: 'create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c \
         where x<200000) insert into t select x, x*7919%10007 from c; create index i on t(b); \
         select count(*), sum(a*b), max(b) from t where b>100;'",
    ),
    (
        &["redis-server", "redis-cli"],
        "redis-server --port 0 --unixsocket s --save '' --enable-debug-command yes --logfile log &
         until redis-cli -s s ping >answer 2>&1; do sleep 0.05; done
         seq 1 60000 | sed 's/.*/SET key:& value-&/' | redis-cli -s s --pipe >answer
         redis-cli -s s bgsave >answer
         seq 1 2 60000 | sed 's/.*/DEL key:&/' | redis-cli -s s --pipe >answer
         until redis-cli -s s info persistence | grep -q rdb_bgsave_in_progress:0; do sleep 0.05; done
         redis-cli -s s debug digest; redis-cli -s s dbsize; redis-cli -s s shutdown nosave; wait",
    ),
    (
        &["memcached", "python3"],
        r#"memcached -s m -u root -m 16 & server=$!
until [ -S m ]; do sleep 0.05; done
python3 -c '
import hashlib, socket
s = socket.socket(socket.AF_UNIX); s.connect("m"); f = s.makefile("rwb"); h = hashlib.sha256()
for i in range(4000):
    v = str(i).encode() * 50; f.write(b"set k%d 0 0 %d\r\n%b\r\n" % (i, len(v), v)); f.flush(); h.update(f.readline())
for i in range(4000):
    f.write(b"get k%d\r\n" % i); f.flush()
    while (line := f.readline()) != b"END\r\n": h.update(line)
print(h.hexdigest())'
kill $server; wait $server || echo $?"#,
    ),
    (
        &["python3"],
        r#"python3 -c '
import hashlib, multiprocessing, os, threading
x = {i: str(i) * 9 for i in range(200000)}
f = lambda i: hashlib.sha256("".join(x[j] for j in range(i, 200000, 7)).encode()).hexdigest()
t = [threading.Thread(target=f, args=(i,)) for i in range(6)]; [i.start() for i in t]; [i.join() for i in t]
with multiprocessing.get_context("fork").Pool(3) as p: print(p.map(len, [x[i] for i in range(9)]))
print([f(i) for i in range(4)]); os._exit(5)'"#,
    ),
    (
        &["node"],
        r#"node -e '
const {Worker, isMainThread, parentPort} = require("worker_threads"), {createHash} = require("crypto");
const work = "const {parentPort} = require(\"worker_threads\"); let s = 0; for (let i = 0; i < 40; i++) { \
const a = Array.from({length: 20000}, (_, k) => ({k, v: \"x\" + k * i})); s += a.reduce((x, y) => x + y.v.length, 0); } \
parentPort.postMessage(s);";
Promise.all([1, 2, 3].map(() => new Promise(done => new Worker(work, {eval: true}).on("message", done))))
    .then(sums => console.log(sums, createHash("sha256").update(Buffer.alloc(4e7, 7)).digest("hex")));'"#,
    ),
    (
        &["go"],
        r#"cat >sum.go <<'END'
package main
import ("fmt"; "sync")
func main() {
    var wait sync.WaitGroup; sums := make([]uint64, 8)
    for g := range sums { wait.Add(1); go func() { defer wait.Done()
        for round := uint64(0); round < 20; round++ { m := map[uint64][]byte{}
            for i := uint64(0); i < 20000; i++ { m[i*round] = make([]byte, i%300) }
            for k, v := range m { sums[g] += k * uint64(len(v)) } } }() }
    wait.Wait(); fmt.Println(sums)
}
END
go run sum.go"#,
    ),
    (
        &["java", "javac"],
        r#"cat >Sum.java <<'END'
import java.util.*; import java.util.stream.*;
public class Sum { public static void main(String[] a) {
    long s = IntStream.range(0, 60).parallel().mapToLong(r -> { Map<Integer, String> m = new HashMap<>();
        for (int i = 0; i < 20000; i++) m.put(i, "v" + i * r);
        return m.values().stream().mapToLong(String::hashCode).sum(); }).sum();
    System.out.println(s); System.exit(6); } }
END
javac Sum.java; java -Xmx64m Sum || echo $?"#,
    ),
    (
        &["postgres", "initdb", "psql", "setpriv"],
        r#"chmod 777 .; export LC_ALL=C
as() { if [ $(id -u) = 0 ]; then setpriv --reuid postgres --regid postgres --clear-groups "$@"; else "$@"; fi; }
bin=$(dirname $(readlink -f $(command -v postgres)))
as $bin/initdb -D data --no-sync >answer
as $bin/pg_ctl -D data -w -l data/log -o "-c listen_addresses= -c unix_socket_directories=$PWD" start >answer
as $bin/psql -h $PWD -d postgres -At -c "create table t as select x a, x*7919%10007 b from generate_series(1,200000) x" \
-c "create index on t(b)" -c "select count(*), sum(a::numeric*b), max(b) from t where b > 100" \
-c "select md5(string_agg(a::text, ',' order by b, a)) from t"
as $bin/pg_ctl -D data -w -m fast stop >answer; echo $?"#,
    ),
    (
        &["chromium"],
        "chromium --headless --no-sandbox --disable-gpu --user-data-dir=$PWD/user --dump-dom 'data:text/html,\
         <script>let s=0;for(let i=0;i<3e6;i++)s=(s*31+i)%1000003;document.write(s)</script>' 2>answer",
    ),
    (
        &["musl-gcc"],
        "musl-gcc -O2 -o dynamic $TORTURE/program.c; musl-gcc -static -O2 -o static $TORTURE/program.c
         ./dynamic || echo $?; ./static || echo $?",
    ),
    (
        &["gcc"],
        "gcc -O2 -pthread -o churn $TORTURE/churn.c; ./churn; gcc -static -pthread -o static $TORTURE/churn.c; ./static",
    ),
    (&["unshare", "nsenter"], "unshare -Ur id -u; unshare -m nsenter -t $$ -m id -u || echo $?"),
    (&["gdb", "gcc"], "gcc -g -o p $TORTURE/program.c; gdb -q -batch -ex run ./p 2>answer | grep '^[0-9] '"),
    (
        &["perl"],
        r#"perl -e 'my %h = map { $_ => $_ x 3 } 1..200000; my $s = 0; $s += length for values %h; print "$s\n"; exit 3' || echo $?"#,
    ),
];

fn is_installed(name: &&&str) -> bool {
    let found = Command::new("sh").arg("-c").arg(format!("command -v {name}")).stdout(Stdio::null()).status();
    found.expect("a shell").success()
}

/// Runs a script in an empty folder, natively or by this source with this overhead.
fn run(script: &str, observed: Option<(&str, &str)>) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", PATIENCE]);
    if let Some((source, overhead)) = observed {
        let engine = engine("hybridtier", source, overhead);
        command.arg(engine.get_program()).args(engine.get_args()).arg("--");
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/torture");
    command.args(["sh", "-e", "-c", script]).env("TORTURE", sources).current_dir(folder.path());
    command.stdin(Stdio::null()).output().expect("it starts")
}

#[test]
fn real_programs_end_as_natively() {
    let (mut runs, mut wrong) = (0, Vec::new());
    for (at, (needed, script)) in PROGRAMS.into_iter().enumerate() {
        if let Some(missing) = needed.iter().find(|name| !is_installed(name)) {
            eprintln!("skipped: {}: {missing} is not installed", needed[0]);
            continue;
        }
        let native = run(script, None);
        if native.stdout.is_empty() {
            eprintln!("skipped: {} does not run here: {native:?}", needed[0]);
            continue;
        }
        for (source, overhead) in modes(at, &["hint-faults", "accessed-bits"]) {
            let begun = std::time::Instant::now();
            let observed = run(script, Some((source, overhead)));
            runs += 1;
            eprintln!("{}, {source}, {overhead}: {:.1?}", needed[0], begun.elapsed());
            if (&observed.stdout, observed.status) != (&native.stdout, native.status) {
                wrong.push(format!("{}, {source}, {overhead}: {observed:?}, natively {native:?}", needed[0]));
            }
        }
    }
    eprintln!("real programs: {runs} runs, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
