//! The guest's settings and the script that starts its program.

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

use crate::job::{Job, PolicyRun, Start, Task};
use crate::kernel_tiering::Mechanism;
use crate::layout::physical_ranges;
use crate::machine::Machine;
use crate::snapshot;

/// Folder in the guest for the lab's files.
const PLACE: &str = "/run/isotherm-lab";
/// Program's cgroup, which the guest has created.
const GROUP: &str = "/sys/fs/cgroup/lab";

/// Returns what the guest must know to boot, as variables of a shell.
pub(crate) fn machine_settings(machine: &Machine, packed: bool, modules: &[String]) -> String {
    let ranges = physical_ranges(machine);
    let last = machine.nodes.len() - 1;
    variables([
        ("MODULES", modules.join(" ")),
        ("PAUSE", either(snapshot::possible(machine), "1", "")),
        ("CXL", either(machine.has_cxl(), "1", "")),
        ("ROOT", either(packed, "packed", "9p")),
        ("HUGE_PAGES", machine.huge_pages.name().into()),
        ("FAST_NODE", "0".into()),
        ("SLOW_NODE", last.to_string()),
        ("ALL_NODES", format!("0-{last}")),
        ("FAST_RANGES", range_words(&ranges[0])),
        ("SLOW_RANGES", range_words(&ranges[last])),
        ("ZSWAP", machine.zswap.map_or("", |zswap| zswap.compressor.name()).into()),
        ("ZSWAP_BYTES", machine.zswap.map_or(0, |zswap| zswap.swap.0).to_string()),
    ])
}

/// Returns what the guest must know to do its job, as variables of a shell.
pub(crate) fn job_settings(machine: &Machine, job: &Job) -> String {
    let (kernel, demotes) = (job.tiering.kernel(), job.tiering.demotes());
    let start = match job.start {
        Start::FirstTouch => String::new(),
        Start::Slow => (machine.nodes.len() - 1).to_string(),
        Start::Fast => "0".into(),
    };
    variables([
        ("TASK", either(job.task == Task::Shell, "shell", "program")),
        ("MGLRU", either(kernel.multi_generational, "y", "n")),
        ("DEMOTION", demotes.to_string()),
        ("NUMA_BALANCING", either(kernel.mechanism == Mechanism::NumaBalancing, "2", "0")),
        ("DAMON", either(kernel.mechanism == Mechanism::Damon, "1", "")),
        ("CLOCK_RATIO", job.clock_ratio.to_string()),
        ("START_NODES", start),
        ("ROOM", job.room.iter().map(|bytes| bytes.0.to_string()).collect::<Vec<_>>().join(" ")),
    ])
}

fn either(condition: bool, yes: &str, no: &str) -> String {
    if condition { yes } else { no }.to_owned()
}

fn variables<const N: usize>(values: [(&str, String); N]) -> String {
    values.into_iter().map(|(name, value)| format!("{name}='{value}'\n")).collect()
}

/// Joins ranges as `start-end` in decimal, separated by spaces.
fn range_words(ranges: &[Range<u64>]) -> String {
    ranges.iter().map(|range| format!("{}-{}", range.start, range.end)).collect::<Vec<_>>().join(" ")
}

/// Returns the commands by which the guest's shell becomes the program, or a shell for a person.
pub(crate) fn program(job: &Job) -> Vec<u8> {
    let place = |name: &str| OsString::from(format!("{PLACE}/{name}"));
    let mut words: Vec<OsString> = vec![place("busybox"), "env".into(), "-i".into()];
    let variable = |(name, value): &(OsString, OsString)| [name.as_os_str(), value].join(OsStr::new("="));
    words.extend(job.environment.iter().map(variable));
    words.push(OsString::from(format!("ISOTHERM_LAB_STARTED={PLACE}/started")));
    if let PolicyRun::Engine { isotherm, options, demotion } = &job.tiering {
        words.extend(isotherm.iter().cloned());
        words.push("run".into());
        if *demotion {
            // Where the kernel's LRU makes room, the cgroup must be known before the program exists.
            words.extend(["--cgroup".into(), GROUP.into()]);
        }
        words.extend(options.iter().cloned());
        words.extend(["--quiet".into(), "--summary".into(), place("share/engine.json"), "--".into()]);
    }
    words.extend([place("busybox"), "sh".into(), place("enter")]);
    // The words of isotherm, which the program before it starts once.
    let counting = job.counting.as_ref().filter(|_| matches!(job.task, Task::Program(_)));
    words.push(counting.map_or(0, |counting| counting.isotherm.len()).to_string().into());
    match &job.task {
        Task::Program(command) => {
            if let Some(counting) = counting {
                words.extend(counting.isotherm.iter().cloned());
                words.extend(["lab", "measure", "--"].map(OsString::from));
            }
            if let PolicyRun::Inside { library, settings, .. } = &job.tiering {
                // Set for the program alone, so that the programs before it are not tiered.
                words.extend([place("busybox"), "env".into()]);
                words.extend(settings.iter().map(variable));
                words.push(variable(&("ISOTHERM_JSON".into(), place("share/engine.json"))));
                words.push(variable(&("LD_PRELOAD".into(), library.into())));
            }
            words.extend(command.iter().cloned());
        }
        Task::Shell => words.extend(["/bin/sh".into(), "-i".into()]),
        Task::Commands => words.push("/bin/sh".into()),
    }
    let mut script = b"cd ".to_vec();
    script.extend(quoted(job.directory.as_os_str()));
    script.extend(b" || exit 126\nexec");
    for word in &words {
        script.push(b' ');
        script.extend(quoted(word));
    }
    script.push(b'\n');
    script
}

fn quoted(word: &OsStr) -> Vec<u8> {
    let parts: Vec<_> = word.as_bytes().split(|&byte| byte == b'\'').collect();
    [&b"'"[..], &parts.join(&b"'\\''"[..]), b"'"].concat()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;
    use std::process::Command;

    use isotherm_core::Bytes;

    use super::*;
    use crate::LabError;
    use crate::job::Counting;
    use crate::kernel_tiering::KernelTiering;

    fn job(tiering: PolicyRun) -> Job {
        Job {
            task: Task::Program(vec!["sort".into(), "it's".into()]),
            tiering,
            start: Start::Slow,
            clock_ratio: 7,
            room: vec![Bytes(1 << 20), Bytes(3 << 20)],
            counting: None,
            environment: vec![("A".into(), "b c".into())],
            directory: "/tmp".into(),
        }
    }

    #[test]
    fn settings_say_what_the_kernel_does() -> Result<(), LabError> {
        let machine = Machine::builtin("small")?;
        let text =
            |name: &str| Ok::<_, LabError>(job_settings(&machine, &job(PolicyRun::Kernel(name.parse()?))));
        let numab = text("numab-lru")?;
        for line in ["NUMA_BALANCING='2'", "DEMOTION='true'", "MGLRU='n'", "DAMON=''", "START_NODES='1'"] {
            assert!(numab.contains(line), "{line} in {numab}");
        }
        let damon = text("damon")?;
        for line in ["DAMON='1'", "DEMOTION='false'", "CLOCK_RATIO='7'", "ROOM='1048576 3145728'"] {
            assert!(damon.contains(line), "{line} in {damon}");
        }
        let machine = machine_settings(&machine, false, &["9p".into()]);
        for line in ["FAST_RANGES='0-402653184'", "MODULES='9p'", "PAUSE='1'", "ROOT='9p'", "CXL=''"] {
            assert!(machine.contains(line), "{line} in {machine}");
        }
        Ok(())
    }

    #[test]
    fn the_engine_stands_before_the_program() {
        let options = vec!["--policy".into(), "lru".into()];
        let tiering =
            PolicyRun::Engine { isotherm: vec!["/usr/bin/isotherm".into()], options, demotion: true };
        let text = String::from_utf8_lossy(&program(&job(tiering))).into_owned();
        let expected = "'/usr/bin/isotherm' 'run' '--cgroup' '/sys/fs/cgroup/lab' '--policy' 'lru' '--quiet' '--summary' '/run/isotherm-lab/share/engine.json' \
            '--' '/run/isotherm-lab/busybox' 'sh' '/run/isotherm-lab/enter' '0' 'sort' 'it'\\''s'\n";
        assert!(text.starts_with("cd '/tmp' || exit 126\nexec ") && text.ends_with(expected), "{text}");
    }

    #[test]
    fn an_engine_inside_is_in_the_environment_of_the_program_alone() {
        let settings = vec![("ISOTHERM_POLICY".into(), "lru".into())];
        let tiering = PolicyRun::Inside { library: "/lib/i.so".into(), settings, demotion: false };
        let counting = Counting { plugin: "/p.so".into(), isotherm: vec!["/usr/bin/isotherm".into()] };
        let text =
            String::from_utf8_lossy(&program(&Job { counting: Some(counting), ..job(tiering) })).into_owned();
        let expected = "/enter' '1' '/usr/bin/isotherm' 'lab' 'measure' '--' '/run/isotherm-lab/busybox' 'env' 'ISOTHERM_POLICY=lru' \
            'ISOTHERM_JSON=/run/isotherm-lab/share/engine.json' 'LD_PRELOAD=/lib/i.so' 'sort' 'it'\\''s'\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn counting_begins_right_before_the_program() {
        let counting = Counting { plugin: "/p.so".into(), isotherm: vec!["/usr/bin/isotherm".into()] };
        let job = Job { counting: Some(counting), ..job(PolicyRun::Kernel(KernelTiering::NONE)) };
        let text = String::from_utf8_lossy(&program(&job)).into_owned();
        assert!(text.contains("/enter' '1' '/usr/bin/isotherm' 'lab' 'measure' '--' 'sort'"), "{text}");
        let shell = String::from_utf8_lossy(&program(&Job { task: Task::Shell, ..job })).into_owned();
        assert!(shell.contains("/enter' '0' '/bin/sh'"), "{shell}");
    }

    proptest::proptest! {
        #[test]
        fn a_shell_reads_any_word_back(word in "[^\0]{0,40}") {
            let mut script = b"printf %s ".to_vec();
            script.extend(quoted(OsStr::new(&word)));
            let output = Command::new("sh").arg("-c").arg(OsString::from_vec(script)).output();
            proptest::prop_assert_eq!(output.map(|output| output.stdout).ok(), Some(word.into_bytes()));
        }
    }
}
