//! Any text as a value of a parameter, or as the environment of an engine inside a program, is taken or
//! refused in one line.

#![no_main]

use isotherm_live::inside::Settings;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for entry in isotherm_policies::ALL {
        let mut parameters = entry.parameters();
        let keys: Vec<&str> = parameters.iter().map(|(spec, _)| spec.name).collect();
        for key in keys {
            if let Err(error) = parameters.set(key, text) {
                assert!(text.contains('\n') || !error.to_string().contains('\n'), "{error}");
            }
        }
    }
    // A line sets each variable.
    let values: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let _ = Settings::read(|name| {
        let found = values.iter().find(|(variable, _)| name.strip_prefix("ISOTHERM_") == Some(variable));
        found.map(|(_, value)| value.into())
    });
});
