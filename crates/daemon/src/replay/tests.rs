use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;

use serde_json::Value;

use super::*;
use crate::daemon::Client;
use crate::log::{parse_time, tests as logged};

fn replay(directory: &Path, from_us: i64, to_us: i64) -> Replay {
    let mut replay = Replay::new(LogReader::open(directory).expect("a log"), from_us);
    assert!(replay.advance(to_us).expect("a log"));
    replay
}

#[test]
fn a_replay_ends_with_the_state_the_daemon_had() {
    let folder = tempfile::tempdir().expect("a folder");
    logged::write(folder.path(), 1..200);
    let at = |second: u64| ((logged::START + second) * 1_000_000) as i64;
    let shown = replay(folder.path(), at(30), at(150));
    assert_eq!(*shown.state(), logged::status(150));
    let moments = shown.past().moments("database", 0.0).expect("the group");
    let seconds: Vec<f64> = moments["moments"]
        .as_array()
        .expect("moments")
        .iter()
        .map(|one| one[0].as_f64().expect("a time"))
        .collect();
    assert_eq!((seconds[0], seconds.len(), seconds[120]), (30.0, 121, 150.0));
    assert_eq!(shown.past().heat("database").expect("the group")["columns"], 6);
    assert_eq!(
        shown.answer("mappings database"),
        format!("ok\n{}", serde_json::to_string(&logged::mappings()).expect("JSON"))
    );
    assert!(shown.answer("group database limit 4G").starts_with("error: a replay cannot be changed"));

    // In steps it is the same, and so is nothing.
    let mut stepped = Replay::new(LogReader::open(folder.path()).expect("a log"), at(30));
    for second in (30..=150).step_by(10) {
        assert!(stepped.advance(at(second)).expect("a log"));
    }
    assert_eq!(
        (stepped.state(), stepped.past().moments("batch", 0.0)),
        (shown.state(), shown.past().moments("batch", 0.0))
    );
    assert!(
        !Replay::new(LogReader::open(folder.path()).expect("a log"), at(500))
            .advance(at(600))
            .expect("a log")
    );
}

#[test]
fn a_daemon_that_was_started_again_goes_on_from_the_first() {
    let mut lives = Lives::default();
    let state = |start: u64, second: u64| {
        let status = logged::status(second);
        MachineStatus { started_unix_s: start, ..status }
    };
    let mut joined = |start, second| {
        let mut status = state(start, second);
        lives.join(&mut status);
        (status.started_unix_s, status.time_ns.as_seconds(), status.cpu_ns.0 / 1_000_000)
    };
    assert_eq!(
        [joined(100, 5), joined(100, 50), joined(160, 2), joined(160, 9)],
        [(100, 5.0, 5), (100, 50.0, 50), (100, 62.0, 52), (100, 69.0, 59)]
    );
}

#[test]
fn the_page_and_the_socket_show_it() {
    let folder = tempfile::tempdir().expect("a folder");
    logged::write(folder.path(), 1..100);
    let begin = parse_time("2026-11-26T03:00:10").expect("a time");
    let to = parse_time("2026-11-26T03:01:30").expect("a time");
    let address = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let socket = folder.path().join("socket");
    let get = |path: &str| {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
    };
    let show = |speed: Option<f64>, view: View<'_>, look: &dyn Fn()| {
        let (ready, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let replay = Replay::new(LogReader::open(folder.path()).expect("a log"), begin);
            let (ready, ended) = (&ready, &ended);
            let serving = scope.spawn(move || replay.serve(to, speed, view, ready, ended));
            while !ready.load(Relaxed) {
                assert!(!serving.is_finished(), "it serves");
            }
            look();
            ended.store(true, Relaxed);
            serving.join().expect("no panic").expect("served");
        });
    };
    show(None, View::Page(address), &|| {
        assert!(get("/").contains("</html>"));
        let until = Instant::now() + Duration::from_secs(20);
        let time = || serde_json::from_str::<Value>(&get("/status.json")).expect("JSON")["time_ns"].as_u64();
        while time() != Some(90_000_000_000) {
            assert!(Instant::now() < until, "{:?}", time());
        }
        let moments: Value =
            serde_json::from_str(&get("/history.json?group=database&since=0")).expect("JSON");
        assert_eq!(moments["moments"].as_array().map(Vec::len), Some(81));
    });
    // Played, it has not come to its end after a moment.
    show(Some(10.0), View::Socket(&socket), &|| {
        let mut client = Client::connect(&socket).expect("it listens");
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let status: MachineStatus =
                serde_json::from_str(&client.ask("status").expect("an answer")).expect("JSON");
            if status.time_ns > Nanos(12 * Nanos::SECOND.0) {
                break assert!(status.time_ns < Nanos(80 * Nanos::SECOND.0), "{status:?}");
            }
            assert!(Instant::now() < until, "{status:?}");
        }
    });
}

/// The events are as the format's description demands ("Trace Event Format"), and as Perfetto imports them.
#[test]
fn a_trace_shows_moves_phases_and_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    logged::write(folder.path(), 1..61);
    let reader = LogReader::open(folder.path()).expect("a log");
    let json: Value =
        serde_json::from_str(&perfetto(&reader, i64::MIN, i64::MAX).expect("a log")).expect("JSON");
    let events = json["traceEvents"].as_array().expect("events");
    let of = |phase: &'static str| events.iter().filter(move |event| event["ph"] == phase);
    for event in events {
        let phase = event["ph"].as_str().expect("a phase");
        assert!(
            ["M", "C", "X", "i"].contains(&phase) && event["pid"].is_u64() && event["name"].is_string(),
            "{event}"
        );
        assert!(phase == "M" || event["ts"].as_u64().is_some_and(|time| time <= 60_000_000), "{event}");
        assert!(phase != "X" || event["dur"].is_u64() && event["tid"].is_u64(), "{event}");
        assert!(
            phase != "C" || event["args"].as_object().is_some_and(|args| args.values().all(Value::is_number)),
            "{event}"
        );
        assert!(phase != "i" || event["s"] == "p", "{event}");
    }
    let named = |what: &str| -> Vec<&str> {
        of("M")
            .filter(|event| event["name"] == what)
            .map(|event| event["args"]["name"].as_str().expect("a name"))
            .collect()
    };
    assert_eq!(named("process_name"), ["database", "batch"]);
    assert!(named("thread_name").contains(&"post\"gres"));
    // Pages move in every tenth second, and slices of a track do not overlap.
    let slices = |pid: u64, track: u32| -> Vec<(&str, u64, u64)> {
        let these = of("X").filter(|event| event["pid"] == pid && event["tid"] == track);
        let slice = |event: &'_ Value| {
            (event["ts"].as_u64().expect("a time"), event["dur"].as_u64().expect("a time"))
        };
        these
            .map(|event| {
                (event["name"].as_str().expect("a name"), slice(event).0, slice(event).0 + slice(event).1)
            })
            .collect()
    };
    let moves = slices(1, 3);
    assert_eq!((moves.len(), moves[0]), (6, ("7 up, 0 down", 8_000_000, 9_000_000)));
    let phases: Vec<&str> = slices(1, 2).iter().map(|slice| slice.0).collect();
    assert_eq!(phases[..4], ["starting", "steady", "moving", "steady"]);
    for track in [1, 2, 3, 7, 8] {
        for pid in [1, 2] {
            let slices = slices(pid, track);
            assert!(slices.windows(2).all(|pair| pair[0].2 <= pair[1].1), "{slices:?}");
        }
    }
    assert_eq!(slices(1, 7), [("post\"gres", 0, 59_000_000)]);
    let instants: Vec<&str> = of("i").map(|event| event["name"].as_str().expect("a name")).collect();
    assert!(instants.contains(&"post\"gres (8) went") && instants.contains(&"late"), "{instants:?}");
    let ratio = of("C").find(|event| event["name"] == "hit ratio (%)").expect("a counter");
    assert_eq!(ratio["args"]["fast"], 90.0);
}
