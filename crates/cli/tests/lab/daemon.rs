//! The daemon on a kernel with two tiers: fair shares beside none, and programs that fork and change their
//! cgroup while their pages move.

use std::path::Path;

use isotherm_shares::jain;
use serde_json::Value;

use crate::support::{BINARY, Lab, target};

/// Takes all but so many MiB of the fast node away, and runs programs under engines that share nothing.
const ALONE: &str = r#"
leave() {
    node=/sys/devices/system/node/node0
    free=$(awk '/MemFree/ { print int($4 / 1024) }' $node/meminfo)
    echo $(((free - $1) / 2)) >$node/hugepages/hugepages-2048kB/nr_hugepages
}
alone() {
    name=$1
    shift
    exec "$isotherm" run --quiet --policy freqtier --tiers 0,1 --fast 32M --control "/run/$name" --daemon /run/none \
        -- "$folder/$name" "$@"
}
"#;

/// Looks every three seconds: while one program runs with its protection alone, then beside the other, then
/// beside the other without a daemon.
const SCRIPT: &str = r#"
looks() {
    until "$isotherm" top --json --socket "$1" >/dev/null 2>&1; do sleep 1; done
    for _ in 1 2 3 4 5 6 7 8; do sleep 3; "$isotherm" top --json --socket "$1"; done
}
sed 's/^protect.*/&\nlimit = "16M"/' "$folder/isotherm.toml" >/run/isotherm.toml
"$isotherm" daemon --config /run/isotherm.toml --socket /run/socket &
daemon=$!
"$folder/stable" planted --size 64M --hot 12.5% --share 90% --operations 600000000 >/dev/null &
stable=$!
looks /run/socket
cp "$folder/isotherm.toml" /run/isotherm.toml
"$isotherm" daemon --reload --socket /run/socket
"$folder/thrashing" planted --size 128M --hot 50% --share 50% --operations 600000000 >/dev/null &
looks /run/socket
kill $stable $! $daemon
wait

leave 36
alone thrashing planted --size 128M --hot 50% --share 50% --operations 600000000 >/dev/null &
thrashing=$!
sleep 9
alone stable planted --size 64M --hot 12.5% --share 90% --operations 600000000 >/dev/null &
looks /run/stable
kill $thrashing $!
wait
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

fn figure(status: &Value, group: &str, of: impl Fn(&Value) -> &Value) -> f64 {
    let groups = status["groups"].as_array().expect("groups");
    let group = groups.iter().find(|one| one["name"] == group).expect("the group");
    of(group).as_f64().unwrap_or(0.0)
}

/// Returns a group's hits on each tier.
fn hits(status: &Value, group: &str) -> [f64; 2] {
    [0, 1].map(|tier| figure(status, group, |one| &one["hits"][tier]))
}

fn traffic(status: &Value, group: &str) -> f64 {
    ["promotions", "demotions"].map(|kind| figure(status, group, |one| &one["traffic"][kind])).iter().sum()
}

fn ratio(before: [f64; 2], after: [f64; 2]) -> f64 {
    let [fast, slow] = [after[0] - before[0], after[1] - before[1]];
    fast / (fast + slow)
}

/// Runs a script in a guest, with the names of programs that it may start; returns its lines.
fn lines(lab: &Lab, programs: &[&str], config: &str, script: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    for name in programs {
        std::fs::copy(target(), folder.path().join(name)).expect("a copy");
    }
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("isotherm.toml", config);
    let place = |path: &Path| path.display().to_string();
    write("script", &format!("isotherm={BINARY}\nfolder={}\n{ALONE}{script}", place(folder.path())));
    let options = ["--machine", "small", "--kernel-tiering", "none", "--time-limit", "8min"];
    let guest = lab.run(&options, &["sh", &place(&folder.path().join("script"))]);
    assert_eq!(guest.code, Some(0), "{}", guest.err);
    let output = String::from_utf8(guest.out).expect("text");
    output.lines().map(str::to_owned).collect()
}

fn statuses(lines: &[String]) -> Vec<Value> {
    let json = lines.iter().filter(|line| line.starts_with('{'));
    json.map(|line| serde_json::from_str(line).expect("a status")).collect()
}

#[test]
fn a_stable_program_keeps_its_hits_beside_one_that_uses_all_memory_alike() {
    let Some(lab) = Lab::find_all() else { return };
    let lines = lines(&lab, &["stable", "thrashing"], CONFIG, SCRIPT);
    let looks = statuses(&lines);
    assert_eq!(looks.len(), 24, "{lines:?}");
    let over =
        |group: &str, from: usize, to: usize| ratio(hits(&looks[from], group), hits(&looks[to], group));
    let (alone, beside, without) = (over("stable", 3, 7), over("stable", 11, 15), over("run", 19, 23));
    let thrashing = over("thrashing", 11, 15);
    eprintln!(
        "stable {alone:.3} alone, {beside:.3} beside the thrashing one, which has {thrashing:.3}; \
         {without:.3} without the daemon"
    );
    // Nine of ten accesses go to 8 MiB.
    assert!(alone > 0.85, "{alone}");
    assert!(beside >= 0.95 * alone, "{beside} of {alone}");
    assert!(thrashing < 0.5, "{thrashing}");
    // The thrashing group moves its own pages: the stable one moves no more than before.
    let moved =
        |group: &str, from: usize, to: usize| traffic(&looks[to], group) - traffic(&looks[from], group);
    let stable = [moved("stable", 3, 7), moved("stable", 11, 15)];
    eprintln!(
        "pages moved between four looks: stable {stable:?} alone and beside the thrashing one, which moved {}",
        moved("thrashing", 11, 15)
    );
    assert!(stable[1] <= stable[0], "{stable:?}");
}

/// Equal programs that start one after another, each in a group: looks at them twice.
const EQUAL: &str = r#"
measure() {
    for name in one two three; do
        $1 $name planted --size 32M --hot 25% --share 90% --operations 9000000000 >/dev/null &
        started="$started $!"
        sleep 6
    done
    for _ in 1 2; do
        sleep 12
        for socket in $2; do "$isotherm" top --json --socket "/run/$socket"; done
    done
    kill $started
}
plain() { name=$1; shift; exec "$folder/$name" "$@"; }
"$isotherm" daemon --config "$folder/isotherm.toml" --socket /run/socket &
daemon=$!
measure plain socket
kill $daemon
wait
leave 28
started=
measure alone "one two three"
wait
"#;

const THREE: &str = r#"
fast = "24M"
tiers = "0,1"
listen = "off"
policy = "freqtier"
[[group]]
name = "one"
command = "one"
[[group]]
name = "two"
command = "two"
[[group]]
name = "three"
command = "three"
"#;

/// Returns how many times longer than with all memory fast an access takes between two looks, by the
/// latencies of the machine `small`. Groups are not sampled alike, so accesses are no measure of time.
fn slowdown(before: &Value, after: &Value, group: &str) -> f64 {
    let profile = isotherm_machine::Profile::builtin("freqtier-cxl1").expect("built in");
    let [fast, slow] = [0, 1].map(|tier| profile.tiers[tier].latency.0 as f64);
    let ratio = ratio(hits(before, group), hits(after, group));
    ratio + (1.0 - ratio) * slow / fast
}

#[test]
fn equal_programs_are_slowed_alike() {
    let Some(lab) = Lab::find_all() else { return };
    let lines = lines(&lab, &["one", "two", "three"], THREE, EQUAL);
    let looks = statuses(&lines);
    assert_eq!(looks.len(), 8, "{lines:?}");
    let with = ["one", "two", "three"].map(|group| slowdown(&looks[0], &looks[1], group));
    let without = [2, 3, 4].map(|look| slowdown(&looks[look], &looks[look + 3], "run"));
    let (fair, unfair) = (jain(&with), jain(&without));
    eprintln!("slowdowns {with:.3?} with the daemon, {without:.3?} without");
    eprintln!("Jain's index of slowdowns: {fair:.4} with, {unfair:.4} without");
    assert!(fair >= 0.95, "{with:?}");
}

/// A program that forks, whose hot pages change, goes from cgroup to cgroup and back; then two runs without a
/// daemon share the fast tier.
const MOVING: &str = r#"
mkdir -p /run/groups
mount -t cgroup2 cgroup /run/groups
mkdir -p /run/groups/test/a /run/groups/test/b
"$isotherm" daemon --config "$folder/isotherm.toml" --socket /run/socket &
daemon=$!
# Its children share its memory; all check at their end what is in it.
"$folder/mover" planted --size 48M --hot 12.5% --share 90% --move-after 9 --children 2 --seconds 100 >/dev/null &
mover=$!
for _ in 1 2 3 4; do
    for group in a b; do
        for pid in $(pidof mover); do echo $pid >/run/groups/test/$group/cgroup.procs; done
        # On an emulated processor, beside three busy programs, a round of the daemon takes seconds.
        for second in 1 2 3 4 5 6 7 8 9 10 11 12; do
            sleep 1
            look=$("$isotherm" top --json --socket /run/socket)
            found=$(echo "$look" | grep -o "\"cgroup\":\"/test/$group\"" | wc -l)
            [ $second -lt 3 ] || [ $found -lt 3 ] || break
        done
        echo "$look"
    done
done
wait $mover && echo intact
kill $daemon
wait

for name in one two; do
    "$isotherm" run --quiet --policy freqtier --tiers 0,1 --control "/run/$name" --daemon /run/none \
        -- "$folder/mover" planted --size 32M --hot 12.5% --share 90% --seconds 15 >/dev/null &
    runs="$runs $!"
done
sleep 10
for name in one two; do "$isotherm" top --json --socket "/run/$name"; done
for run in $runs; do wait $run && echo intact; done
"#;

const GROUPS: &str = r#"
fast = "12M"
tiers = "0,1"
listen = "off"
policy = "freqtier"
interval = "500ms"
[[group]]
name = "a"
cgroup = "/test/a"
[[group]]
name = "b"
cgroup = "/test/b"
"#;

#[test]
fn programs_fork_and_change_their_cgroup_while_pages_move_and_two_runs_share() {
    let Some(lab) = Lab::find_all() else { return };
    let lines = lines(&lab, &["mover"], GROUPS, MOVING);
    let intact = lines.iter().filter(|line| *line == "intact").count();
    assert_eq!(intact, 3, "the memory of all is as they wrote it: {lines:?}");
    let looks = statuses(&lines);
    assert_eq!(looks.len(), 10, "{lines:?}");
    let mut moved = 0.0;
    for (look, group) in looks[..8].iter().zip(["a", "b"].into_iter().cycle()) {
        let groups = look["groups"].as_array().expect("groups");
        for one in groups {
            let programs = one["programs"].as_array().map_or(0, Vec::len);
            assert_eq!(programs > 0, one["name"] == group, "it is in one group, {group}: {look}");
        }
        moved += traffic(look, group);
    }
    assert!(moved > 1000.0, "its pages moved: {moved}");
    let shares: Vec<f64> =
        looks[8..].iter().map(|look| look["fast_bytes"].as_f64().expect("bytes")).collect();
    assert_eq!(shares[0], shares[1], "two runs have equal parts of the fast tier");
}
