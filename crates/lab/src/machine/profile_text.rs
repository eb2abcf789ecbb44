//! Writes a machine profile as TOML, so that other programs read the one in force.

use isotherm_machine::Profile;
use toml::Value;

/// Returns the text, which `Profile::parse` turns into the same profile.
pub(super) fn write(profile: &Profile) -> String {
    let summary = profile.summary();
    let mut text = format!("title = {}\n", quoted(&profile.title));
    for section in ["core", "llc", "tlb"] {
        text.push_str(&format!("\n[{section}]\n"));
        numbers(&mut text, &summary.numbers, &format!("{section}."));
    }
    for (index, tier) in profile.tiers.iter().enumerate() {
        text.push_str(&format!("\n[[tier]]\nname = {}\n", quoted(&tier.name)));
        numbers(&mut text, &summary.numbers, &format!("tier.{index}."));
    }
    text.push_str("\n[costs]\n");
    numbers(&mut text, &summary.numbers, "costs.");
    if profile.device.is_some() {
        text.push_str("\n[device]\n");
        numbers(&mut text, &summary.numbers, "device.");
    }
    text
}

fn numbers(text: &mut String, numbers: &[isotherm_machine::MachineNumber], prefix: &str) {
    for number in numbers {
        // A derived number is not a field.
        if let Some(name) = number.path.strip_prefix(prefix).filter(|_| number.path != "core.instruction") {
            let (value, source) = (quoted(&number.value), quoted(&number.source));
            text.push_str(&format!("{name} = {{ value = {value}, source = {source} }}\n"));
        }
    }
}

fn quoted(text: &str) -> String {
    Value::String(text.into()).to_string()
}
