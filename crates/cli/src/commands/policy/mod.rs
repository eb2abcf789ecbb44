//! `isotherm policy new`: a crate outside of the source tree with a policy to begin with.

use std::fs;
use std::path::Path;

use crate::args::PolicyVerb;
use crate::failure::Failure;
use crate::output::print;

/// Returns sources of a crate of this repository by their paths in the new crate.
macro_rules! sources {
    ($($folder:literal: $($file:literal)*;)*) => {
        &[$($((
            concat!("isotherm/", $folder, "/src/", $file),
            include_str!(concat!("../../../../", $folder, "/src/", $file)),
        ),)*)*]
    };
}

/// The interface that a policy is written against: the vocabulary without what only hosts need, and the macro
/// that exports.
const SOURCES: &[(&str, &str)] = sources! {
    "core":
        "access.rs" "batch.rs" "device.rs" "histogram.rs" "host.rs" "interleave.rs" "lib.rs"
        "parameters/mod.rs" "parameters/preset.rs" "parameters/typed.rs" "plan.rs" "policy.rs" "signals.rs"
        "units.rs";
    "policy": "abi.rs" "lib.rs" "library.rs" "memory.rs";
};

/// The files around them, in which `@name@` and such are filled in.
const TEMPLATES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("template/Cargo.toml")),
    ("README.md", include_str!("template/README.md")),
    (".gitignore", "/target\n"),
    ("src/lib.rs", include_str!("template/lib.rs")),
    ("isotherm/core/Cargo.toml", include_str!("template/core.toml")),
    ("isotherm/policy/Cargo.toml", include_str!("template/policy.toml")),
];

/// The policy to begin with: the guide's example, of this type.
const EXAMPLE: &str = include_str!("../../../../../docs/guide/examples/twice.rs");
const EXAMPLE_TYPE: &str = "Twice";

/// The most characters of a name, as those of libraries.
const LONGEST_NAME: usize = 40;

pub(crate) fn run(verb: &PolicyVerb) -> Result<(), Failure> {
    let PolicyVerb::New { name } = verb;
    check(name)?;
    let folder = Path::new(name);
    fs::create_dir(folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::usage_at(folder, "is there already; expected a new name")
        }
        _ => Failure::usage_at(folder, error),
    })?;
    write(folder, name).inspect_err(|_| _ = fs::remove_dir_all(folder))?;
    print(&format!(
        "{name}: the policy is in {name}/src/policy.rs; {name}/README.md says how to run it.\n\
         Build it: (cd {name} && cargo build --release)\n\
         Try it:   isotherm simulate --policy {name}/target/release/{},first-touch,oracle --workload gups \
         --max-accesses 5M\n",
        library(name)
    ))
}

/// Checks that the name can be a policy's, and is free.
fn check(name: &str) -> Result<(), Failure> {
    let part =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let letter = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !letter || !name.split('-').all(part) || name.len() > LONGEST_NAME {
        return Err(Failure::Usage(format!(
            "{name}: expected a name such as hot-twice: a lower-case letter, then letters, digits and single \
             hyphens, at most {LONGEST_NAME}"
        )));
    }
    match isotherm_policies::find(name) {
        Ok(_) => Err(Failure::Usage(format!("{name}: there is a policy of that name; expected another"))),
        Err(_) => Ok(()),
    }
}

fn write(folder: &Path, name: &str) -> Result<(), Failure> {
    let kind = type_name(name);
    let filled = |text: &str| {
        text.replace("@name@", name)
            .replace("@type@", &kind)
            .replace("@library@", &library(name))
            .replace("@version@", env!("CARGO_PKG_VERSION"))
    };
    let file = |place: &str, text: &str| {
        let path = folder.join(place);
        let parent = path.parent().map_or(Ok(()), fs::create_dir_all);
        parent.and_then(|()| fs::write(&path, text)).map_err(|error| Failure::failed_at(&path, error))
    };
    SOURCES.iter().try_for_each(|(place, text)| file(place, text))?;
    TEMPLATES.iter().try_for_each(|(place, text)| file(place, &filled(text)))?;
    file("src/policy.rs", &EXAMPLE.replace(EXAMPLE_TYPE, &kind))
}

/// Returns the library's file name, which cargo derives of the package's name.
fn library(name: &str) -> String {
    format!("lib{}_policy.so", name.replace('-', "_"))
}

/// Returns the type's name: the policy's in camel case, unless the example uses that for something else.
fn type_name(name: &str) -> String {
    let capital = |part: &str| part[..1].to_ascii_uppercase() + &part[1..];
    let kind: String = name.split('-').map(capital).collect();
    let used = EXAMPLE.split(|c: char| !c.is_alphanumeric()).any(|word| word == kind);
    if used && kind != EXAMPLE_TYPE { kind + "Policy" } else { kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_called_like_policies_and_like_nothing_that_the_example_uses() {
        let names = ["twice", "hot-twice", "x2", "a-1", "view", "page-id", "settings", "policy"];
        let types =
            ["Twice", "HotTwice", "X2", "A1", "ViewPolicy", "PageIdPolicy", "SettingsPolicy", "PolicyPolicy"];
        assert_eq!(names.map(type_name), types);
    }

    #[test]
    fn names_that_cannot_be_a_policys_are_refused() {
        for name in ["", "-", "Twice", "2twice", "a--b", "a-", "a_b", "a/b", "..", "ä", &"a".repeat(41)] {
            assert_eq!(check(name).expect_err(name).code(), 2);
        }
        assert!(check("lru").expect_err("taken").to_string().contains("there is a policy"));
        assert!(check(&"a".repeat(40)).is_ok());
    }
}
