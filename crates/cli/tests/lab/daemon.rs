//! The daemon on a kernel with two tiers: a stable program keeps its hits beside one that uses twice as much
//! memory, all of it alike.

use std::path::Path;

use serde_json::Value;

use crate::support::{BINARY, Lab, target};

/// Looks at the daemon every three seconds: while one program runs with its protection alone, then beside the
/// other.
const SCRIPT: &str = r#"
looks() { for _ in 1 2 3 4 5 6 7 8; do sleep 3; "$isotherm" top --json --socket /run/socket; done; }
sed 's/^protect.*/&\nlimit = "16M"/' "$folder/isotherm.toml" >/run/isotherm.toml
"$isotherm" daemon --config /run/isotherm.toml --socket /run/socket &
daemon=$!
"$folder/stable" planted --size 64M --hot 12.5% --share 90% --operations 600000000 >/dev/null &
stable=$!
looks
cp "$folder/isotherm.toml" /run/isotherm.toml
"$isotherm" daemon --reload --socket /run/socket
"$folder/thrashing" planted --size 128M --hot 50% --share 50% --operations 600000000 >/dev/null &
looks
kill $stable $! $daemon
"#;

const CONFIG: &str = r#"
fast = "32M"
tiers = "0,1"
listen = "off"
policy = "freqtier"
[[group]]
name = "stable"
command = "stable"
protect = "16M"
[[group]]
name = "thrashing"
command = "thrashing"
"#;

/// Returns a group's hits on each tier.
fn hits(status: &Value, group: &str) -> [f64; 2] {
    let groups = status["groups"].as_array().expect("groups");
    let group = groups.iter().find(|one| one["name"] == group).expect("the group");
    [0, 1].map(|tier| group["hits"][tier].as_f64().unwrap_or(0.0))
}

fn ratio(before: [f64; 2], after: [f64; 2]) -> f64 {
    let [fast, slow] = [after[0] - before[0], after[1] - before[1]];
    fast / (fast + slow)
}

#[test]
fn a_stable_program_keeps_its_hits_beside_one_that_uses_all_memory_alike() {
    let Some(lab) = Lab::find_all() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["stable", "thrashing"] {
        std::fs::copy(target(), folder.path().join(name)).expect("a copy");
    }
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("isotherm.toml", CONFIG);
    let place = |path: &Path| path.display().to_string();
    write("script", &format!("isotherm={BINARY}\nfolder={}\n{SCRIPT}", place(folder.path())));
    let options = ["--machine", "small", "--kernel-tiering", "none", "--time-limit", "8min"];
    let guest = lab.run(&options, &["sh", &place(&folder.path().join("script"))]);
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    let output = String::from_utf8(guest.out).expect("text");
    let looks: Vec<Value> = output
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).expect("a status"))
        .collect();
    assert_eq!(looks.len(), 16, "{output}");
    let over =
        |group: &str, from: usize, to: usize| ratio(hits(&looks[from], group), hits(&looks[to], group));
    let (alone, beside) = (over("stable", 3, 7), over("stable", 11, 15));
    let thrashing = over("thrashing", 11, 15);
    eprintln!("stable {alone:.3} alone, {beside:.3} beside the thrashing one, which has {thrashing:.3}");
    // Nine of ten accesses go to 8 MiB.
    assert!(alone > 0.85, "{alone}");
    assert!(beside >= 0.95 * alone, "{beside} of {alone}");
    assert!(thrashing < 0.5, "{thrashing}");
}
