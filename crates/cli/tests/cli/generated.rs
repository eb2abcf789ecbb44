//! Completions and man pages, generated from the command line's definition.

use crate::support::{Folder, isotherm};

const VERBS: [&str; 8] =
    ["record", "simulate", "policies", "machines", "workloads", "trace", "completions", "man"];

#[test]
fn each_shell_gets_a_completion_that_knows_the_verbs() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = isotherm(&["completions", shell]).ok();
        for verb in VERBS {
            assert!(script.contains(verb), "{shell}: {verb}");
        }
    }
}

#[test]
fn bash_accepts_its_completion() {
    let folder = Folder::new();
    let script = folder.file("isotherm.bash", isotherm(&["completions", "bash"]).ok());
    let check = format!("source {script}; complete -p isotherm");
    let output = std::process::Command::new("bash").args(["-c", &check]).output().expect("bash");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_man_page_is_written_for_each_verb() {
    let folder = Folder::new();
    let pages = folder.at("man");
    isotherm(&["man", &pages]).ok();
    for verb in VERBS {
        let page = folder.path().join("man").join(format!("isotherm-{verb}.1"));
        let text = std::fs::read_to_string(&page).expect("a page");
        assert!(text.contains(".TH") && text.contains(".SH"), "{}", page.display());
    }
    assert!(folder.path().join("man/isotherm.1").exists());
}

#[test]
fn help_names_every_verb_and_the_units_of_options() {
    let help = isotherm(&["--help"]).ok();
    assert!(VERBS.iter().all(|verb| help.contains(verb)), "{help}");
    let record = isotherm(&["record", "--help"]).ok();
    assert!(record.contains("bytes; K, M, G") && record.contains("ms, s, min, h"), "{record}");
    assert!(isotherm(&["--version"]).ok().starts_with("isotherm "));
}

/// Names of policies, workloads and machines had to be typed from memory.
#[test]
fn completions_know_policies_workloads_and_machines() {
    let folder = Folder::new();
    let script = folder.file("isotherm.bash", isotherm(&["completions", "bash"]).ok());
    let completed = |line: &[&str]| {
        let words = line.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let count = line.len();
        let ask = format!(
            "source {script}; COMP_WORDS=({words}); COMP_CWORD={last}; \
             _isotherm isotherm \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[{before}]}}\"; \
             echo \"${{COMPREPLY[@]}}\"",
            last = count - 1,
            before = count - 2,
        );
        let output = std::process::Command::new("bash").args(["-c", &ask]).output().expect("bash");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    for (line, expected) in [
        (&["isotherm", "simulate", "--policy", "hyb"][..], "hybridtier"),
        (&["isotherm", "simulate", "--policy", "bela"], "belady"),
        (&["isotherm", "run", "--policy", "bela"], ""),
        (&["isotherm", "simulate", "--workload", "gup"], "gups"),
        (&["isotherm", "size", "--machine", "tur"], "turin"),
        (&["isotherm", "lab", "run", "--machine", "two"], "two-tier"),
        (&["isotherm", "lab", "compare", "--policies", "freq"], "freqtier"),
        (&["isotherm", "policies", "freq"], "freqtier"),
        (&["isotherm", "workloads", "btr"], "btree"),
        (&["isotherm", "machines", "pac"], "pact"),
    ] {
        assert_eq!(completed(line), expected, "{line:?}");
    }
}
