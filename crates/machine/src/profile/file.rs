//! Reads and writes profiles as TOML, walking the table of fields so that every error names its path.

use isotherm_core::MAX_TIERS;
use isotherm_core::names::advice;
use toml::{Table, Value};

use super::error::one_line;
use super::fields::Field;
use super::{CURVE, CURVE_VALUE, FACTOR, FROM_CURVE, Profile, ProfileError, TierProfile, curve_path};
use crate::curve::Curve;

const ENTRY: &str = "a table such as { value = \"90ns\", source = \"where it comes from\" }";

impl Profile {
    /// Reads a profile from the text of a TOML file, in the format of `docs/reference/machines.md`. `file`
    /// names the text in errors; its stem becomes the profile's name.
    ///
    /// # Errors
    /// One line that names the file, the field and what was expected: text that is no TOML, an unknown or
    /// missing field, a value of the wrong unit or out of range, a number without a source, tiers that are
    /// not ordered fastest first.
    pub fn parse(text: &str, file: &str) -> Result<Self, ProfileError> {
        let table = text.parse::<Table>().map_err(|error| syntax(text, file, &error))?;
        let reader = Reader { file };
        reader.no_others(&table, "", &["title", "core", "llc", "tlb", "tier", "costs", "device"])?;
        let mut profile = Self {
            name: stem(file),
            title: reader.text(&table, "title", "one line that says what machine it is")?,
            ..Self::default()
        };
        for section in ["core", "llc", "tlb", "costs"] {
            let numbers = reader.table(&table, section)?;
            reader.section(&mut profile, numbers, section, 0)?;
        }
        if table.contains_key("device") {
            reader.section(&mut profile, reader.table(&table, "device")?, "device", 0)?;
        }
        for (index, tier) in reader.tiers(&table)?.iter().enumerate() {
            let path = format!("tier.{index}");
            let tier = tier.as_table().ok_or_else(|| reader.unexpected(&path, tier, "a [[tier]]"))?;
            let name = reader.text(tier, &format!("{path}.name"), "what the tier is, such as \"DRAM\"")?;
            profile.tiers.push(TierProfile { name, ..TierProfile::default() });
            reader.curve(&mut profile, tier, index)?;
            reader.section(&mut profile, tier, "tier", index)?;
        }
        profile.check_order(file)?;
        Ok(profile)
    }

    /// Writes every number with its source, so that [`Self::parse`] returns the same self.
    pub fn to_toml(&self) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        let section = |section: &str, tier: usize| -> String {
            let numbers = Field::of(section).filter_map(|field| {
                let value = field.quantity.format((field.get)(self, tier)?);
                let source = self.sources.get(&field.path(tier)).map_or("not given", String::as_str);
                Some(format!(
                    "{} = {{ value = {}, source = {} }}\n",
                    field.name,
                    quoted(&value),
                    quoted(source)
                ))
            });
            numbers.collect()
        };
        let mut text = format!("title = {}\n", quoted(&self.title));
        text.extend(["core", "llc", "tlb"].map(|name| format!("\n[{name}]\n{}", section(name, 0))));
        for (index, tier) in self.tiers.iter().enumerate() {
            text.push_str(&format!("\n[[tier]]\nname = {}\n", quoted(&tier.name)));
            if let Some(curve) = &tier.curve {
                let source = self.sources.get(&curve_path(index)).map_or("not given", String::as_str);
                let (value, source) = (quoted(&curve.text), quoted(source));
                text.push_str(&format!("{CURVE} = {{ value = {value}, source = {source} }}\n"));
            }
            text.push_str(&section("tier", index));
        }
        let last = ["costs", "device"].into_iter().filter(|&name| name != "device" || self.device.is_some());
        text.extend(last.map(|name| format!("\n[{name}]\n{}", section(name, 0))));
        text
    }
}

/// Turns `machines/pact.toml` into `pact`.
fn stem(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    one_line(name.strip_suffix(".toml").unwrap_or(name))
}

fn syntax(text: &str, file: &str, error: &toml::de::Error) -> ProfileError {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    ProfileError::syntax(file, line, error.message())
}

struct Reader<'a> {
    file: &'a str,
}

impl Reader<'_> {
    /// Reads every number of a section, which must hold them all and no others.
    fn section(
        &self,
        profile: &mut Profile,
        table: &Table,
        section: &str,
        tier: usize,
    ) -> Result<(), ProfileError> {
        let mut known: Vec<_> = Field::of(section).map(|field| field.name).collect();
        let path = if section == "tier" { format!("tier.{tier}.") } else { format!("{section}.") };
        if section == "tier" {
            known.splice(0..0, ["name", CURVE]);
        }
        self.no_others(table, &path, &known)?;
        let curve = table.contains_key(CURVE);
        let needed = |field: &Field| match field.name {
            FACTOR => !curve,
            name if curve && FROM_CURVE.contains(&name) => false,
            _ => !field.optional,
        };
        for field in Field::of(section).filter(|&field| needed(field) || table.contains_key(field.name)) {
            let (amount, source) = self.number(table, field, &field.path(tier))?;
            profile.assign(field, tier, amount, source);
        }
        Ok(())
    }

    /// Reads a tier's curve, if it has one.
    fn curve(&self, profile: &mut Profile, table: &Table, tier: usize) -> Result<(), ProfileError> {
        let Some(entry) = table.get(CURVE) else { return Ok(()) };
        let path = curve_path(tier);
        let (text, source) = self.entry(entry, &path, CURVE_VALUE)?;
        let curve = Curve::parse(&text, self.file, &path)?;
        if table.contains_key(FACTOR) {
            let path = format!("tier.{tier}.{FACTOR}");
            return Err(ProfileError::curve(self.file, &path, "a tier with a curve has none"));
        }
        profile.assign_curve(tier, curve, source);
        Ok(())
    }

    fn number(&self, table: &Table, field: &Field, path: &str) -> Result<(f64, String), ProfileError> {
        let expected = field.quantity.expected();
        let entry = table.get(field.name).ok_or_else(|| self.missing(path, &expected))?;
        let (text, source) = self.entry(entry, path, &expected)?;
        let amount = field
            .quantity
            .parse(&text)
            .ok_or_else(|| ProfileError::unexpected(self.file, path, &text, &expected))?;
        Ok((amount, source))
    }

    /// Reads a value and its source.
    fn entry(&self, entry: &Value, path: &str, expected: &str) -> Result<(String, String), ProfileError> {
        let entry = entry.as_table().ok_or_else(|| self.unexpected(path, entry, ENTRY))?;
        self.no_others(entry, &format!("{path}."), &["value", "source"])?;
        let value = entry.get("value").ok_or_else(|| self.missing(&format!("{path}.value"), expected))?;
        Ok((plain(value), self.text(entry, &format!("{path}.source"), "where the number comes from")?))
    }

    /// Reads a non-empty string of one line; the key is the path's last part.
    fn text(&self, table: &Table, path: &str, expected: &str) -> Result<String, ProfileError> {
        let key = path.rsplit('.').next().unwrap_or(path);
        let value = table.get(key).ok_or_else(|| self.missing(path, expected))?;
        match value.as_str().map(str::trim) {
            Some(text) if !text.is_empty() && one_line(text) == text => Ok(text.into()),
            _ => Err(self.unexpected(path, value, expected)),
        }
    }

    fn table<'t>(&self, table: &'t Table, key: &str) -> Result<&'t Table, ProfileError> {
        let value = table.get(key).ok_or_else(|| self.missing(key, &format!("a section [{key}]")))?;
        value.as_table().ok_or_else(|| self.unexpected(key, value, &format!("a section [{key}]")))
    }

    fn tiers<'t>(&self, table: &'t Table) -> Result<&'t [Value], ProfileError> {
        let expected = "at least one [[tier]]";
        let value = table.get("tier").ok_or_else(|| self.missing("tier", expected))?;
        let tiers = value.as_array().ok_or_else(|| self.unexpected("tier", value, expected))?;
        if (1..=MAX_TIERS).contains(&tiers.len()) {
            return Ok(tiers);
        }
        let expected = format!("a number of tiers from 1 to {MAX_TIERS}");
        Err(ProfileError::unexpected(self.file, "tier", &tiers.len().to_string(), &expected))
    }

    fn no_others(&self, table: &Table, path: &str, known: &[&str]) -> Result<(), ProfileError> {
        let Some(other) = table.keys().find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
        let section = if path.is_empty() { "a profile" } else { path.trim_end_matches('.') };
        let advice = advice(other, known.iter().copied());
        Err(ProfileError::unknown(self.file, &format!("{path}{other}"), section, &advice))
    }

    fn missing(&self, path: &str, expected: &str) -> ProfileError {
        ProfileError::missing(self.file, path, expected)
    }

    fn unexpected(&self, path: &str, value: &Value, expected: &str) -> ProfileError {
        ProfileError::unexpected(self.file, path, &plain(value), expected)
    }
}

/// Returns a value as the user wrote it, a string without its quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}
