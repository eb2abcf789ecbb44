//! Guests start from a snapshot that the first of their kind leaves in the cache.

use std::hash::Hasher;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;
use twox_hash::XxHash64;

use crate::support::{Lab, fed, target};

/// Makes a cache with the lab's files and without snapshots.
fn fresh_cache() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let ours = isotherm_lab::cache::Cache::find().expect("the lab is set up");
    std::fs::create_dir(folder.path().join("lab")).expect("a folder");
    for name in ["kernel", "root"] {
        symlink(ours.root().join(name), folder.path().join("lab").join(name)).expect("a link");
    }
    folder
}

fn snapshots(cache: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(cache.join("lab/snapshots")).expect("the folder of snapshots");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

/// Returns the result of a run, and whether its guest started from a snapshot.
fn run(lab: &Lab, cache: &Path) -> (Vec<u8>, Value, bool) {
    let folder = lab.new_folder();
    let at = ["--folder", folder.to_str().expect("a path in UTF-8")];
    let options = ["--machine", "chmu", "--kernel-tiering", "none", "--start", "slow", "--json"];
    let program = [&target(), "planted", "--size", "16M", "--operations", "1000000"];
    let mut command = Lab::command("run", &[&options[..], &at].concat(), &program);
    let guest = fed(command.env("ISOTHERM_CACHE", cache), &[]);
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    let result: Value = serde_json::from_str(&guest.err).expect("our result alone");
    let command = std::fs::read_to_string(folder.join("command")).expect("QEMU's command line");
    (guest.out, result["runs"][0].clone(), command.contains("-incoming"))
}

/// Returns the names of a result's fields, also of those within, but for the kernel's counters that grew.
fn kinds(value: &Value) -> Vec<String> {
    let mut all = Vec::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        all.push(name.clone());
        if name != "vmstat" && name != "moves" {
            all.extend(kinds(value).into_iter().map(|kind| format!("{name}.{kind}")));
        }
    }
    all
}

#[test]
fn the_second_guest_starts_from_a_snapshot_and_counts_as_the_first() {
    let Some(lab) = Lab::find() else { return };
    let cache = fresh_cache();
    let (first_output, first, restored) = run(&lab, cache.path());
    assert!(!restored && snapshots(cache.path()).len() == 1, "{:?}", snapshots(cache.path()));
    let (output, second, restored) = run(&lab, cache.path());
    assert!(restored && snapshots(cache.path()).len() == 1, "{:?}", snapshots(cache.path()));
    assert_eq!((first_output, kinds(&first)), (output, kinds(&second)));
    for field in ["/measured/accesses", "/measured/modelled_ns", "/measured/device/reads"] {
        let [first, second] = [&first, &second].map(|run| run.pointer(field).and_then(Value::as_f64));
        let (Some(first), Some(second)) = (first, second) else { panic!("{field}: {second:?}") };
        assert!((0.98..1.02).contains(&(second / first)), "{field}: {first} after a boot, {second}");
    }
}

#[test]
fn a_spoiled_snapshot_is_told_in_one_line_and_the_guest_boots() {
    let Some(_) = Lab::find() else { return };
    let cache = fresh_cache();
    let told = || -> Vec<String> {
        let options = ["--machine", "small", "--kernel-tiering", "none", "--quiet", "--time-limit", "90s"];
        let mut command = Lab::command("run", &options, &["echo", "42"]);
        let guest = fed(command.env("ISOTHERM_CACHE", cache.path()), &[]);
        assert_eq!((guest.code, &guest.out[..]), (Some(0), &b"42\n"[..]), "{}", guest.err);
        guest.err.lines().map(Into::into).collect()
    };
    assert_eq!(told(), [""; 0]);
    let [snapshot] = &snapshots(cache.path())[..] else { panic!("one snapshot") };
    let mut bytes = std::fs::read(snapshot).expect("the snapshot");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    // One with a wrong byte, and one that is whole but no snapshot.
    let junk = [&b"junk"[..], &{
        let mut hash = XxHash64::with_seed(0);
        hash.write(b"junk");
        hash.finish().to_le_bytes()
    }]
    .concat();
    for (spoiled, problem) in [(bytes, "its checksum is wrong"), (junk, "migration stream")] {
        std::fs::write(snapshot, spoiled).expect("it is writable");
        let lines = told();
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert!(line.contains("cannot start from this snapshot") && line.contains(problem), "{line}");
        // A good one has replaced it.
        assert_eq!(told(), [""; 0]);
    }
}
