//! Compressed memory behind two nodes: the guest's kernel stores what fits in neither, and brings it back.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::support::{Lab, ok, root, target};
use crate::tiering::check_moves;

/// More memory than the nodes have for it: 64 MiB of the fast one, and 128 MiB less what the kernel takes.
const PROGRAM: [&str; 9] =
    ["btree", "--size", "192M", "--hot", "12.5%", "--share", "90%", "--operations", "600000"];

/// Writes the machine with another compressor beside the runs.
fn machine(lab: &Lab, compressor: &str) -> PathBuf {
    let text = std::fs::read_to_string(root().join("lab/machines/zswap.toml")).expect("the machine");
    let text = text.replace("compressor = \"zstd\"", &format!("compressor = \"{compressor}\""));
    let folder = lab.new_folder();
    std::fs::create_dir(&folder).expect("a folder");
    let file = folder.join(format!("{compressor}.toml"));
    std::fs::write(&file, text).expect("written");
    file
}

/// Runs the program; returns the run's result after checking its output.
fn run(lab: &Lab, compressor: &str, tiering: &[&str], outside: &[u8]) -> Value {
    let machine = machine(lab, compressor);
    let machine = ["--machine", machine.to_str().expect("a path in UTF-8")];
    let options = ["--fast", "64M", "--json", "--time-limit", "8min"];
    let target = target();
    let guest =
        lab.run(&[&machine[..], tiering, &options].concat(), &[&[target.as_str()], &PROGRAM[..]].concat());
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    assert_eq!(guest.out, outside);
    let result: Value = serde_json::from_str(guest.err.lines().last().expect("our result")).expect("JSON");
    let run = result["runs"][0].clone();
    eprintln!("{} {compressor}: {}", run["tiering"], run["counts"]["zswap"]);
    run
}

#[test]
fn what_fits_in_no_node_is_compressed_and_comes_back_whole() {
    let Some(lab) = Lab::find_all() else { return };
    let outside = ok(Command::new(target()).args(PROGRAM));
    let count = |run: &Value, name: &str| run["counts"]["zswap"][name].as_u64().expect(name);
    let ratio = |run: &Value| 4096.0 * count(run, "most_pages") as f64 / count(run, "most_bytes") as f64;
    let mut ratios = Vec::new();
    for (compressor, tiering) in [
        ("zstd", ["--kernel-tiering", "none"]),
        ("lz4", ["--kernel-tiering", "none"]),
        ("lz4", ["--policy", "lru"]),
    ] {
        let run = run(&lab, compressor, &tiering, &outside);
        assert_eq!(run["counts"]["zswap"]["compressor"], compressor);
        assert!(count(&run, "stored") > 4096 && count(&run, "loaded") > 1024, "{}", run["counts"]);
        assert_eq!(count(&run, "written_back"), 0);
        ratios.push(ratio(&run));
        if tiering[0] == "--policy" {
            check_moves(&run, 1000);
            let engine = &run["engine"];
            let bytes = |name: &str| engine[name].as_u64().expect("bytes");
            let (swapped, zswapped) = (bytes("swapped_bytes"), bytes("zswapped_bytes"));
            let refused = &engine["traffic"]["refused"];
            eprintln!("{swapped} bytes in swap, {zswapped} in zswap; refused: {refused}");
            // All of it is in zswap, and more at the end of its last look than before the first.
            assert!(swapped > 4096 * 4096 && zswapped * 10 > swapped * 9, "{swapped}, {zswapped}");
        }
    }
    // Half of a leaf is keys in order, the other half random values.
    assert!(ratios[0] > ratios[1] && ratios[1] > 1.1 && ratios[0] < 2.5, "{ratios:?}");
}
