//! Presets: named sets of values that replace defaults, such as those of a published artifact.

use super::{ParameterError, Parameters, Spec, Value};

/// The key by which a preset is chosen, as in `--set hybridtier.preset=artifact`.
pub const PRESET_KEY: &str = "preset";
/// The name of the table's own defaults, as a preset.
pub const DEFAULT_PRESET: &str = "default";

/// A named set of values that replace defaults. The user's settings take precedence, in any order.
#[derive(Debug)]
pub struct Preset {
    /// Its name, in kebab case.
    pub name: &'static str,
    /// The source of its values.
    pub source: &'static str,
    /// Its purpose, in one sentence.
    pub help: &'static str,
    /// Parameters and their values, as a user writes them.
    pub values: &'static [(&'static str, &'static str)],
}

impl Preset {
    /// Returns a parameter's value before the user sets it: this preset's or its default.
    /// Panics if that is no valid value: a mistake in the table.
    pub(super) fn value_of(preset: Option<&Self>, group: &str, spec: &Spec) -> Value {
        let ours = preset.and_then(|preset| preset.values.iter().find(|value| value.0 == spec.name));
        let text = ours.map_or(spec.default, |value| value.1);
        spec.parse(text).unwrap_or_else(|| panic!("{group}.{}: invalid default '{text}'", spec.name))
    }
}

impl Parameters {
    /// Returns every parameter at its default, with presets to choose from.
    /// Panics if a default or a preset's value is not valid: a mistake in the table, which any test finds.
    pub fn with_presets(group: &str, specs: &'static [Spec], presets: &'static [Preset]) -> Self {
        for preset in presets {
            let known = |&(key, _): &(&str, &str)| specs.iter().any(|spec| spec.name == key);
            assert!(
                preset.values.iter().all(known),
                "{group}: preset {} sets what there is not",
                preset.name
            );
            specs.iter().for_each(|spec| _ = Preset::value_of(Some(preset), group, spec));
        }
        Self {
            group: group.into(),
            specs: specs.iter().collect(),
            presets,
            preset: None,
            values: specs.iter().map(|spec| Preset::value_of(None, group, spec)).collect(),
            set: vec![false; specs.len()],
        }
    }

    /// Adds shared parameters, which no preset sets.
    /// Panics if a default is not valid: a mistake in the table.
    #[must_use]
    pub fn and(mut self, specs: &'static [Spec]) -> Self {
        self.specs.extend(specs);
        self.values.extend(specs.iter().map(|spec| Preset::value_of(None, &self.group, spec)));
        self.set.resize(self.specs.len(), false);
        self
    }

    /// Returns the name of the preset in force; `None` if there are none to choose from.
    pub fn preset(&self) -> Option<&'static str> {
        let chosen = self.preset.map_or(DEFAULT_PRESET, |preset| preset.name);
        (!self.presets.is_empty()).then_some(chosen)
    }

    /// Returns the presets beside the defaults.
    pub fn presets(&self) -> &'static [Preset] {
        self.presets
    }

    /// Takes a preset's values for the parameters that the user has not set.
    pub(super) fn choose_preset(&mut self, name: &str) -> Result<(), ParameterError> {
        let chosen = self.presets.iter().find(|preset| preset.name == name);
        if chosen.is_none() && name != DEFAULT_PRESET {
            let names: Vec<_> = self.presets.iter().map(|preset| preset.name).collect();
            return Err(ParameterError::Invalid {
                group: self.group.clone(),
                key: PRESET_KEY,
                text: name.into(),
                expected: format!("one of {DEFAULT_PRESET}, {}", names.join(", ")),
            });
        }
        self.preset = chosen;
        for ((value, spec), set) in self.values.iter_mut().zip(&self.specs).zip(&self.set) {
            if !set {
                *value = Preset::value_of(chosen, &self.group, spec);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::SPECS;
    use super::super::{Parameters, Scale};
    use super::*;
    use crate::Nanos;

    const PRESETS: &[Preset] = &[
        Preset { name: "small", source: "test", help: "Less.", values: &[("batch", "2000")] },
        Preset {
            name: "wide",
            source: "test",
            help: "More.",
            values: &[("batch", "1M"), ("counter_bits", "8")],
        },
    ];

    fn parameters(settings: &[(&str, &str)]) -> Parameters {
        let mut parameters = Parameters::with_presets("test", SPECS, PRESETS);
        settings.iter().for_each(|(key, text)| parameters.set(key, text).expect("valid"));
        parameters
    }

    fn batch_and_bits(parameters: &Parameters) -> (u64, &'static str) {
        match (parameters.value("batch"), parameters.value("counter_bits")) {
            (Some(Value::Count(batch)), Some(Value::Choice(bits))) => (batch, bits),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_preset_replaces_defaults_and_leaves_the_rest() {
        let wide = parameters(&[("preset", "wide")]);
        assert_eq!(batch_and_bits(&wide), (1_000_000, "8"));
        assert_eq!(wide.value("window"), Some(Value::Duration(Nanos(60_000_000_000))));
        assert_eq!(wide.preset(), Some("wide"));
        assert_eq!(parameters(&[]).preset(), Some("default"));
    }

    #[test]
    fn what_the_user_sets_stands_above_a_preset_in_either_order() {
        for settings in [[("preset", "wide"), ("batch", "500")], [("batch", "500"), ("preset", "wide")]] {
            let set = parameters(&settings);
            assert_eq!(batch_and_bits(&set), (500, "8"));
        }
    }

    #[test]
    fn the_last_preset_counts_and_leaves_nothing_of_the_one_before() {
        let small = parameters(&[("preset", "wide"), ("preset", "small")]);
        assert_eq!(batch_and_bits(&small), (2000, "4"));
        let back = parameters(&[("preset", "wide"), ("preset", "default")]);
        assert_eq!(batch_and_bits(&back), (100_000, "4"));
    }

    #[test]
    fn presets_scale_as_defaults_do() {
        let mut wide = parameters(&[("preset", "wide")]);
        wide.scale(Scale { footprint: 1000.0, time: 1.0 });
        assert_eq!(wide.value("batch"), Some(Value::Count(1000)));
    }

    #[test]
    fn an_unknown_preset_is_answered_with_those_there_are() {
        let error = parameters(&[]).set("preset", "paper").expect_err("there is none").to_string();
        assert_eq!(error, "test.preset: 'paper' is not one of default, small, wide");
        let error = parameters(&[]).set("bach", "1").expect_err("there is none").to_string();
        assert_eq!(error, "test has no parameter 'bach'; it has batch, window, counter_bits, preset");
        let error = Parameters::new("test", SPECS).set("preset", "small").expect_err("none").to_string();
        assert_eq!(error, "test has no parameter 'preset'; it has batch, window, counter_bits");
    }

    #[test]
    #[should_panic(expected = "sets what there is not")]
    fn a_preset_of_an_unknown_parameter_is_found_when_it_is_built() {
        const WRONG: &[Preset] = &[Preset { name: "x", source: "", help: "", values: &[("bach", "1")] }];
        Parameters::with_presets("test", SPECS, WRONG);
    }
}
