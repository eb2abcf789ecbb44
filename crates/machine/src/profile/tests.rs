use std::collections::BTreeSet;

use proptest::prelude::*;

use super::fields::FIELDS;
use super::*;

const PACT: &str = include_str!("../../../../machines/pact.toml");

fn error_of(text: &str) -> String {
    let error = Profile::parse(text, "machines/mine.toml").expect_err(text).to_string();
    assert!(!error.contains('\n') && error.starts_with("machines/mine.toml: "), "{error}");
    error
}

/// Returns PACT's file with one piece of text, which must exist, exchanged.
fn pact_with(from: &str, to: &str) -> String {
    assert!(PACT.contains(from), "{from}");
    PACT.replacen(from, to, 1)
}

#[test]
fn every_builtin_is_valid_and_gives_each_number_a_source() {
    for name in Profile::builtin_names() {
        let profile = Profile::builtin(name).expect(name);
        assert_eq!(profile.name, name);
        assert_eq!(
            profile.tiers.len(),
            if ["xeon-max", "zswap", "zswap-lz4"].contains(&name) { 3 } else { 2 },
            "{name}"
        );
        let summary = profile.summary();
        let given = |field: &Field, tier| !field.optional || (field.get)(&profile, tier).is_some();
        let curves = profile.tiers.iter().filter(|tier| tier.curve.is_some()).count();
        let given = profile.positions().filter(|&(field, tier)| given(field, tier)).count() + curves;
        assert_eq!(summary.numbers.len(), given + 1, "{name}");
        assert_eq!(profile.sources.len(), given, "{name}");
        for number in &summary.numbers {
            assert!(number.source.len() >= 8 && !number.value.is_empty(), "{name}: {number:?}");
        }
    }
}

#[test]
fn the_directory_holds_the_builtins_and_nothing_else() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines");
    let entries = std::fs::read_dir(directory).expect("machines/ is there");
    let name_of = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.expect("readable").file_name().to_string_lossy().into_owned()
    };
    let files: BTreeSet<_> = entries.map(name_of).filter(|name| name != "curves").collect();
    let names: BTreeSet<_> = Profile::builtin_names().map(|name| format!("{name}.toml")).collect();
    assert_eq!(files, names);
}

#[test]
fn numbers_that_papers_print_are_in_force() {
    let pact = Profile::builtin("pact").expect("builtin");
    assert_eq!((pact.tiers[0].latency, pact.tiers[1].latency), (Nanos(90), Nanos(190)));
    assert_eq!((pact.tiers[0].read_bandwidth, pact.core.cores), (52_000_000_000, 10));
    let hybridtier = Profile::builtin("hybridtier").expect("builtin");
    assert_eq!(
        (hybridtier.tiers[1].latency, hybridtier.tiers[1].read_bandwidth),
        (Nanos(124), 34_000_000_000)
    );
    let neomem = Profile::builtin("neomem").expect("builtin");
    assert_eq!((neomem.tiers[0].latency, neomem.tiers[1].latency), (Nanos(119), Nanos(430)));
    assert_eq!(
        (neomem.llc_size, neomem.core.cores, neomem.costs.shootdown_batch),
        (Bytes(60 << 20), 32, 512)
    );
    assert_eq!(Profile::builtin("jenga").expect("builtin").tiers[1].latency, Nanos(300));
    let turin = Profile::builtin("turin").expect("builtin");
    assert_eq!((turin.tiers[0].latency, turin.tiers[1].latency), (Nanos(130), Nanos(250)));
    assert_eq!(turin.tiers[1].read_bandwidth, 48_000_000_000);
    let max = Profile::builtin("xeon-max").expect("builtin");
    assert!(max.tiers[0].latency > max.tiers[1].latency, "HBM is further away and has more bandwidth");
    assert!(max.tiers[0].read_bandwidth > 2 * max.tiers[1].read_bandwidth);
    let intel = Profile::builtin("sapphire-rapids").expect("builtin");
    assert_eq!((intel.tiers[1].latency, intel.tiers[1].read_bandwidth), (Nanos(250), 53_400_000_000));
    assert_eq!((intel.costs.shootdown_batch, turin.costs.shootdown_batch), (512, 512));
}

#[test]
fn an_instruction_takes_the_inverse_of_clock_times_width() {
    let pact = Profile::builtin("pact").expect("builtin");
    assert_eq!(pact.core.instruction_ps, 227, "1000 / (2.2 x 2)");
    let last = pact.summary().numbers.pop().expect("numbers");
    assert_eq!((last.path.as_str(), last.value.as_str()), ("core.instruction", "227ps"));
}

#[test]
fn an_unknown_machine_is_answered_with_those_there_are() {
    let error = Profile::builtin("cray-1").expect_err("no such machine").to_string();
    let expected = "there is no machine 'cray-1' (a name, or the path of a TOML file); \
                    there are freqtier-cxl1, freqtier-cxl2, hybridtier, jenga, neomem, pact, sapphire-rapids, turin, xeon-max, \
                    zswap, zswap-lz4";
    assert_eq!(error, expected);
}

#[test]
fn mistakes_are_one_line_with_file_field_and_what_was_expected() {
    let check = |from, to, expected: &str| {
        let error = error_of(&pact_with(from, to));
        assert_eq!(error, format!("machines/mine.toml: {expected}"));
    };
    check("cores =", "corez =", "unknown field core.corez of core; did you mean cores?");
    check(
        "[llc]",
        "[cache]",
        "unknown field cache of a profile; there are base, title, core, llc, tlb, tier, costs, device",
    );
    check("\"90ns\"", "\"90\"", "tier.0.latency: '90' is not a duration from 1ns to 1s");
    check("\"90ns\"", "\"0ns\"", "tier.0.latency: '0ns' is not a duration from 1ns to 1s");
    check("\"90ns\"", "\"1.5ns\"", "tier.0.latency: '1.5ns' is not a duration from 1ns to 1s");
    check("\"90ns\"", "\"2 parsecs\"", "tier.0.latency: '2 parsecs' is not a duration from 1ns to 1s");
    check(
        "\"52GB/s\"",
        "\"52GiB/s\"",
        "tier.0.read_bandwidth: '52GiB/s' is not a bandwidth from 1MB/s to 1000TB/s",
    );
    check(
        "factor = { value = \"2\"",
        "factor = { value = \"0.9\"",
        "tier.0.loaded_latency_factor: '0.9' is not a number from 1 to 1000",
    );
    check(
        "\"190ns\"",
        "\"30ns\"",
        "tier.1: 30ns at 23.6GB/s is nearer than the 90ns at 52GB/s of the tier before; tiers stand nearest \
            first, by latency over bandwidth",
    );
    check("value = \"10\", ", "", "core.cores.value is missing; expected a whole number from 1 to 4096");
    check(
        "\"PACT section 5.1: 10 cores a socket\"",
        "\" \"",
        "core.cores.source: ' ' is not where the number comes from",
    );
    check(
        ", source = \"PACT section 5.1: 10 cores a socket\"",
        "",
        "core.cores.source is missing; expected where the number comes from",
    );
    check(
        "sample = {",
        "sample = 7 #",
        "costs.sample: '7' is not a table such as { value = \"90ns\", source = \"where it comes from\" }",
    );
    check("name = \"CXL\"", "", "tier.1.name is missing; expected what the tier is, such as \"DRAM\"");
    check(
        "value = \"10\"",
        "colour = 1",
        "unknown field core.cores.colour of core.cores; there are value, source",
    );
    check(
        "title = \"",
        "title = \"two\\nlines\" #",
        "title: 'two\\nlines' is not one line that says what machine it is",
    );
    check("title = \"", "title = 4 #", "title: '4' is not one line that says what machine it is");
}

#[test]
fn every_number_and_every_section_is_required() {
    for field in FIELDS.iter().filter(|field| !field.optional) {
        let name = format!("\n{} = ", field.name);
        let error = error_of(&pact_with(&name, &format!("\n# {} = ", field.name)));
        assert!(error.contains(&format!("{} is missing; expected", field.path(0))), "{error}");
    }
    assert!(error_of("title = 'x'").contains("core is missing; expected a section [core]"));
    let without_tiers = PACT.split("[[tier]]").next().expect("a head").to_owned()
        + &PACT[PACT.find("[costs]").expect("costs")..];
    assert!(error_of(&without_tiers).contains("tier is missing; expected at least one [[tier]]"));
    let error = error_of(&format!("tier = []\n{without_tiers}"));
    assert!(error.contains("tier: '0' is not a number of tiers from 1 to 16"), "{error}");
}

#[test]
fn text_that_is_no_toml_names_its_line() {
    assert!(error_of("title = 'x'\n[core\n").starts_with("machines/mine.toml: line 2: "));
}

/// Returns PACT's file with a curve in place of its fast tier's numbers.
fn with_curve(value: &str, more: &str) -> String {
    let tier = &PACT[PACT.find("[[tier]]").expect("a tier")..];
    let tier = &tier[..tier[1..].find("[[tier]]").expect("a second tier")];
    let curve =
        format!("[[tier]]\nname = \"DRAM\"\ncurve = {{ value = {value}, source = \"a test\" }}\n{more}\n\n");
    pact_with(tier, &curve)
}

#[test]
fn a_curve_gives_what_the_profile_does_not() {
    let text = with_curve("'xeon-5218-ddr4'", "read_bandwidth = { value = '50GB/s', source = 'a test' }");
    let profile = Profile::parse(&text, "mine.toml").expect("valid");
    let tier = &profile.tiers[0];
    assert_eq!((tier.latency, tier.loaded_latency_factor), (Nanos(89), None));
    assert_eq!((tier.read_bandwidth, tier.write_bandwidth), (50_000_000_000, 43_250_000_000));
    let numbers = profile.summary().numbers;
    let shown = |path: &str| {
        let number = numbers.iter().find(|number| number.path == path).expect(path);
        (number.value.as_str(), number.source.as_str())
    };
    assert_eq!(shown("tier.0.curve"), ("xeon-5218-ddr4", "a test"));
    assert_eq!(shown("tier.0.latency"), ("89ns", "derived: from the curve of the tier"));
    assert!(!numbers.iter().any(|number| number.path == "tier.0.loaded_latency_factor"));
    assert_eq!(Profile::parse(&profile.to_toml(), "mine.toml").expect("its own text"), profile);
}

#[test]
fn a_profile_may_hold_a_curve_itself() {
    let text = with_curve("\"\"\"100,0,80\n100,50,90\n 100, 60,150\"\"\"", "");
    let mut profile = Profile::parse(&text, "mine.toml").expect("valid");
    let curve = profile.tiers[0].curve.clone().expect("given");
    assert_eq!(
        (curve.text.as_str(), profile.tiers[0].latency),
        ("100,0,80; 100,50,90; 100,60,150", Nanos(80))
    );
    assert_eq!(
        (profile.tiers[0].read_bandwidth, profile.tiers[0].write_bandwidth),
        (60_000_000_000, 60_000_000_000)
    );
    assert_eq!(Profile::parse(&profile.to_toml(), "mine.toml").expect("its own text"), profile);
    profile.set("tier.0.loaded_latency_factor", "2").expect("valid");
    assert_eq!(profile.tiers[0].curve, None, "the factor takes its place");
    assert!(!profile.sources.contains_key("tier.0.curve"));
    profile.set("tier.0.curve", "xeon-8480-ddr5").expect("valid");
    assert_eq!((profile.tiers[0].latency, profile.tiers[0].loaded_latency_factor), (Nanos(115), None));
    assert!(!profile.sources.contains_key("tier.0.loaded_latency_factor"));
}

#[test]
fn a_curve_that_cannot_be_is_one_line_of_error() {
    let check = |value: &str, more: &str, expected: &str| {
        let error = error_of(&with_curve(value, more));
        assert!(error.starts_with(&format!("machines/mine.toml: {expected}")), "{error}");
    };
    check("'none'", "", "tier.0.curve: there is no curve 'none'; there are cxl-model,");
    check("7", "", "tier.0.curve: there is no curve '7'; there are");
    check("'100,0,80; 100,50,70'", "", "tier.0.curve: point 2: 70 ns at 100 % reads are below the 80 ns");
    let factor = "loaded_latency_factor = { value = 2, source = 'a test' }";
    check("'cxl-model'", factor, "tier.0.loaded_latency_factor: a tier with a curve has none");
    let error = error_of(&pact_with("loaded_latency_factor =", "# factor ="));
    assert!(error.contains("tier.0.loaded_latency_factor is missing; expected a number from 1"), "{error}");
    let text = pact_with("name = \"DRAM\"", "name = \"DRAM\"\ncurve = \"cxl-model\"");
    assert!(
        error_of(&text).contains("tier.0.curve: 'cxl-model' is not a table such as"),
        "{}",
        error_of(&text)
    );
}

/// Parses a profile whose bases are these files.
fn parse_beside(text: &str, files: &[(&str, &str)]) -> Result<Profile, ProfileError> {
    let read = |path: &str| {
        let file = files.iter().find(|(name, _)| *name == path);
        file.map(|(_, text)| (*text).to_owned()).ok_or_else(|| format!("{path}: no such file"))
    };
    Profile::parse_with(text, "folder/mine.toml", &read)
}

#[test]
fn a_profile_with_a_base_holds_only_what_differs() {
    let text = r#"
base = "pact"
[core]
cores = { value = 24, source = "lscpu" }
[[tier]]
[[tier]]
name = "my CXL"
latency = { value = "240ns", source = "measured" }
"#;
    let mine = Profile::parse(text, "mine.toml").expect("a profile");
    let mut expected = Profile::builtin("pact").expect("builtin");
    expected.set_from("core.cores", "24", "lscpu").expect("in range");
    expected.set_from("tier.1.latency", "240ns", "measured").expect("in range");
    (expected.name, expected.tiers[1].name) = ("mine".into(), "my CXL".into());
    assert_eq!(mine, expected);
    let titled = Profile::parse("title = \"Mine\"\nbase = \"pact\"", "mine.toml").expect("a profile");
    assert_eq!((titled.title.as_str(), titled.tiers.len()), ("Mine", 2));
    // A tier that the base lacks must be whole.
    let third = format!("{text}[[tier]]\nname = \"far\"\n");
    let error = Profile::parse(&third, "mine.toml").expect_err("no numbers").to_string();
    assert!(error.contains("tier.2.latency is missing"), "{error}");
}

#[test]
fn what_differs_from_a_base_is_written_and_read_again() {
    for name in ["pact", "turin", "neomem"] {
        let base = Profile::builtin(name).expect("builtin");
        let mut mine = base.clone();
        mine.name = "mine".into();
        mine.set_from("tier.1.latency", "444ns", "measured: a \"test\"").expect("in range");
        mine.set_from("core.cores", "3", "lscpu").expect("in range");
        let text = mine.to_toml_over(name, &base);
        assert_eq!(text.matches("value = ").count(), 2, "{text}");
        assert_eq!(Profile::parse(&text, "mine.toml"), Ok(mine), "{text}");
    }
}

#[test]
fn a_tier_of_the_base_may_change_between_a_curve_and_a_factor() {
    let tier = |base: &str, entry: &str| {
        let text = format!("base = \"{base}\"\n[[tier]]\n[[tier]]\n{entry}\n");
        Profile::parse(&text, "mine.toml").expect(entry).tiers.remove(1)
    };
    let curve = tier("pact", "curve = { value = \"vistara-cxl\", source = \"a test\" }");
    assert!(curve.curve.is_some() && curve.loaded_latency_factor.is_none());
    assert_ne!(curve.latency, Nanos(190), "the curve's");
    let factor = tier("turin", "loaded_latency_factor = { value = 2, source = \"a test\" }");
    assert!(factor.curve.is_none() && factor.loaded_latency_factor == Some(2.0));
    assert!(tier("turin", "").curve.is_some());
}

#[test]
fn a_base_may_be_a_file_beside_the_profile() {
    let base = pact_with("\"190ns\"", "\"300ns\"");
    let files = [("folder/base.toml", base.as_str()), ("folder/sub/more.toml", "base = \"../base.toml\"")];
    let more = ("folder/sub/../base.toml", base.as_str());
    let found = parse_beside("base = \"./base.toml\"", &files).expect("a profile");
    assert_eq!((found.name.as_str(), found.tiers[1].latency), ("mine", Nanos(300)));
    let found = parse_beside("base = \"sub/more.toml\"", &[files[0], files[1], more]).expect("a profile");
    assert_eq!(found.tiers[1].latency, Nanos(300));
}

#[test]
fn a_base_that_cannot_be_is_one_line_of_error() {
    let refused = |text: &str, files: &[(&str, &str)], words: &[&str]| {
        let error = parse_beside(text, files).expect_err(text).to_string();
        assert!(!error.contains('\n') && error.starts_with("folder/"), "{error}");
        assert!(words.iter().all(|word| error.contains(word)), "{words:?} in {error}");
    };
    refused("base = \"pcat\"", &[], &["mine.toml: base:", "no machine 'pcat'", "pact"]);
    refused("base = \"x.toml\"", &[], &["mine.toml: base:", "folder/x.toml: no such file", "expected"]);
    refused("base = 5", &[], &["base: '5' is not a machine's name"]);
    refused("base = \"mine.toml\"", &[], &["folder/mine.toml goes in a circle"]);
    let other = ("folder/other.toml", "base = \"mine.toml\"");
    refused("base = \"other.toml\"", &[other], &["folder/other.toml: base:", "in a circle"]);
    refused("base = \"other.toml\"", &[("folder/other.toml", "title")], &["folder/other.toml: line 1"]);
    // A path that grows with each step is not the same again.
    let read = |_: &str| Ok("base = \"../a/b.toml\"".to_owned());
    let error = Profile::parse_with("base = \"../a/b.toml\"", "a/b.toml", &read).expect_err("endless");
    assert!(error.to_string().contains("more than 8 files"), "{error}");
    // Without a reader only built-in profiles are bases.
    let error = error_of("base = \"/etc/passwd\"");
    assert!(error.contains("base: files are not read here"), "{error}");
}

#[test]
fn numbers_may_stand_without_quotes_where_they_have_no_unit() {
    let profile = Profile::parse(&pact_with("\"10\"", "12"), "mine.toml").expect("a plain count");
    assert_eq!((profile.core.cores, profile.name.as_str()), (12, "mine"));
}

#[test]
fn one_tier_and_five_tiers_are_machines_too() {
    let (head, rest) = PACT.split_at(PACT.find("[[tier]]").expect("tiers"));
    let (tiers, costs) = rest.split_at(rest.find("[costs]").expect("costs"));
    let slow = &tiers[tiers.rfind("[[tier]]").expect("a second tier")..];
    for copies in [0, 1, 4, 15] {
        let text = format!("{head}{}{}{costs}", tiers.replace(slow, ""), slow.repeat(copies));
        assert_eq!(Profile::parse(&text, "mine.toml").expect("valid").tiers.len(), copies + 1);
    }
}

#[test]
fn a_capacity_may_be_given() {
    let capacity = "name = \"CXL\"\ncapacity = { value = \"64GiB\", source = \"dmidecode\" }";
    let mut profile = Profile::parse(&pact_with("name = \"CXL\"", capacity), "mine.toml").expect("valid");
    assert_eq!((profile.tiers[0].capacity, profile.tiers[1].capacity), (None, Some(Bytes(64 << 30))));
    profile.set("tier.0.capacity", "8GiB").expect("in range");
    let shown = profile.summary().numbers.into_iter().filter(|number| number.path.ends_with("capacity"));
    let shown: Vec<_> = shown.map(|number| (number.path, number.value)).collect();
    assert_eq!(
        shown,
        [("tier.0.capacity".into(), "8GiB".into()), ("tier.1.capacity".into(), "64GiB".to_string())]
    );
}

#[test]
fn what_is_written_is_read_again() {
    for name in Profile::builtin_names() {
        let mut profile = Profile::builtin(name).expect(name);
        profile.set_from("tier.1.k", "171ns", "measured: \"here\", +-3 %").expect("valid");
        let again = Profile::parse(&profile.to_toml(), name).expect(name);
        assert_eq!(again, profile, "{name}");
        assert_eq!((again.tiers[0].k, again.tiers[1].k), (None, Some(Nanos(171))));
    }
    let error =
        Profile::builtin("pact").expect("builtin").set_from("tier.2.k", "1ns", "x").expect_err("no tier");
    assert!(error.to_string().contains("tier.2.k"), "{error}");
}

#[test]
fn setting_a_number_changes_it_and_says_so() {
    let mut profile = Profile::builtin("pact").expect("builtin");
    profile.set("tier.1.latency", "200ns").expect("valid");
    profile.set("core.frequency", "4.4GHz").expect("valid");
    profile.set("costs.sample", "0ns").expect("costs may be switched off");
    profile.check().expect("still ordered");
    assert_eq!((profile.tiers[1].latency, profile.core.instruction_ps), (Nanos(200), 114));
    let numbers = profile.summary().numbers;
    let set: Vec<_> = numbers.iter().filter(|number| number.source == "set by the user").collect();
    let shown: Vec<_> = set.iter().map(|number| (number.path.as_str(), number.value.as_str())).collect();
    assert_eq!(shown, [("core.frequency", "4.4GHz"), ("tier.1.latency", "200ns"), ("costs.sample", "0ns")]);
}

#[test]
fn units_are_read_as_they_are_written() {
    let mut profile = Profile::builtin("pact").expect("builtin");
    let mut read = |path: &str, text: &str| {
        profile.set(path, text).expect(text);
        let (field, tier) = Field::find(path, 2).expect(path);
        (field.get)(&profile, tier).expect("just set")
    };
    for (text, nanos) in [("7ns", 7.0), ("1.1us", 1100.0), ("2ms", 2e6), ("1 s", 1e9), ("1_500ns", 1500.0)] {
        assert_eq!(read("costs.sample", text), nanos, "{text}");
    }
    for (text, bytes) in
        [("65536B", 65536.0), ("8KiB", 8192.0), ("1.5MiB", 1_572_864.0), ("1GiB", 1_073_741_824.0)]
    {
        assert_eq!(read("llc.size", text), bytes, "{text}");
    }
    for (text, rate) in
        [("5000000B/s", 5e6), ("5000kB/s", 5e6), ("5MB/s", 5e6), ("19.2GB/s", 19.2e9), ("1TB/s", 1e12)]
    {
        assert_eq!(read("tier.1.read_bandwidth", text), rate, "{text}");
    }
    assert_eq!((read("core.frequency", "800MHz"), read("core.frequency", "2.4GHz")), (8e8, 2.4e9));
    assert_eq!((read("costs.reserve", "12.5%"), read("core.instructions_per_cycle", "0.5")), (0.125, 0.5));
    for text in
        ["", "ns", ".ns", "1e3ns", "-1ns", "+1ns", "nan", "inf", "1..2ns", "1ns ns", "1NS", "\u{0661}ns"]
    {
        assert!(profile.set("costs.sample", text).is_err(), "{text}");
    }
}

#[test]
fn each_field_is_a_place_of_its_own() {
    let before = Profile::builtin("pact").expect("builtin");
    for (index, field) in FIELDS.iter().enumerate() {
        let mut profile = before.clone();
        let changed = field.quantity.range().1;
        profile.assign(field, 0, changed, "a test".into());
        for (other_index, other) in FIELDS.iter().enumerate() {
            let expected = if other_index == index { Some(changed) } else { (other.get)(&before, 0) };
            assert_eq!(
                (other.get)(&profile, 0),
                expected,
                "{} after setting {}",
                other.path(0),
                field.path(0)
            );
        }
    }
}

#[test]
fn setting_what_does_not_exist_or_does_not_fit_changes_nothing() {
    let mut profile = Profile::builtin("pact").expect("builtin");
    for path in
        ["tier.2.latency", "tier.latency", "tier.-1.latency", "core", "", "core.instruction", "llc.colour"]
    {
        let error = profile.set(path, "1ns").expect_err(path).to_string();
        assert!(error.starts_with(&format!("pact: unknown field {path} of the machine; ")), "{error}");
        assert!(error.contains("tier.1.latency") && !error.contains("tier.2.name"), "{error}");
    }
    let error = profile.set("tier.1.latency", "fast").expect_err("no duration").to_string();
    assert_eq!(error, "pact: tier.1.latency: 'fast' is not a duration from 1ns to 1s");
    assert_eq!(profile, Profile::builtin("pact").expect("builtin"));
}

#[test]
fn order_is_checked_after_the_last_setting() {
    let mut profile = Profile::builtin("pact").expect("builtin");
    profile.set("tier.0.latency", "500ns").expect("in range");
    let error = profile.check().expect_err("slower than the second tier").to_string();
    assert_eq!(
        error,
        "pact: tier.1: 190ns at 23.6GB/s is nearer than the 500ns at 52GB/s of the tier before; tiers stand \
            nearest first, by latency over bandwidth"
    );
    profile.set("tier.1.latency", "400ns").expect("in range");
    profile.check().expect("ordered again");
}

#[test]
fn more_than_the_core_model_holds_is_refused_and_not_cut() {
    let mut profile = Profile::builtin("pact").expect("it comes with Isotherm");
    for field in ["core.miss_registers", "core.store_buffer", "core.l2_registers"] {
        profile.set(field, "128").expect("in range");
        profile.set(field, "129").expect_err("out of range");
    }
}

proptest! {
    #[test]
    fn garbage_is_an_error_of_one_line(text in "\\PC{0,200}", file in "\\PC{0,20}") {
        if let Err(error) = Profile::parse(&text, &file) {
            prop_assert!(!error.to_string().contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_mutated_profile_is_read_or_refused_in_one_line(
        at in 0..PACT.len(),
        length in 0..40_usize,
        insert in prop_oneof!["\\PC{0,12}", "[\\[\\]{}=\"\n.0-9a-z]{0,12}", Just("9".repeat(400))],
    ) {
        let keep = |index: usize| {
            (0..=index.min(PACT.len())).rev().find(|&i| PACT.is_char_boundary(i)).unwrap_or(0)
        };
        let text = format!("{}{insert}{}", &PACT[..keep(at)], &PACT[keep(at + length)..]);
        match Profile::parse(&text, "mine.toml") {
            Err(error) => prop_assert!(!error.to_string().contains('\n'), "{error}"),
            Ok(profile) => {
                profile.check().expect("a profile that was read is in order");
                prop_assert!(profile.core.instruction_ps > 0);
            }
        }
    }

    #[test]
    fn what_the_summary_shows_sets_the_same_number(field in 0..FIELDS.len(), share in 0.0..1.0_f64) {
        let field = &FIELDS[field];
        let (low, high) = field.quantity.range();
        let amount = low + (high - low) * share.powi(8);
        let mut profile = Profile::builtin("pact").expect("builtin");
        profile.assign(field, 0, amount, "a test".into());
        let stored = (field.get)(&profile, 0).expect("just set");
        let text = field.quantity.format(stored);
        profile.set(&field.path(0), &text).expect("its own text");
        let again = (field.get)(&profile, 0).expect("just set");
        prop_assert!((again - stored).abs() <= 1e-9 * stored.abs().max(1.0), "{text}: {stored} became \
            {again}");
    }
}
