//! Reads and writes profiles as TOML, walking the table of fields so that every error names its path.

use isotherm_core::MAX_TIERS;
use isotherm_core::names::advice;
use toml::{Table, Value};

use super::error::one_line;
use super::fields::Field;
use super::{CURVE, CURVE_VALUE, FACTOR, FROM_CURVE, Profile, ProfileError, TierProfile, curve_path};
use crate::curve::Curve;

const BASE: &str = "a machine's name, or the path of a TOML file from this one's folder";
const ENTRY: &str = "a table such as { value = \"90ns\", source = \"where it comes from\" }";

/// Profiles that may stand behind one another: more are a circle.
const BASES: usize = 8;

/// Returns the text of the file of a path, or why there is none in one line.
type Read<'a> = &'a dyn Fn(&str) -> Result<String, String>;

impl Profile {
    /// Reads a profile from the text of a TOML file, in the format of `docs/reference/machines.md`. `file`
    /// names the text in errors; its stem becomes the profile's name. A base must be a built-in profile, so
    /// that no other file is read.
    ///
    /// # Errors
    /// One line that names the file, the field and what was expected: text that is no TOML, an unknown or
    /// missing field, a value of the wrong unit or out of range, a number without a source, tiers that are
    /// not ordered fastest first, an unknown base.
    pub fn parse(text: &str, file: &str) -> Result<Self, ProfileError> {
        Self::parse_with(text, file, &|_| Err("files are not read here".into()))
    }

    /// As [`Self::parse`]; `read` returns the text of a base that is a file, whose path is relative to this
    /// one's.
    ///
    /// # Errors
    /// As [`Self::parse`], and bases that stand behind one another in a circle.
    pub fn parse_with(text: &str, file: &str, read: Read<'_>) -> Result<Self, ProfileError> {
        parse_behind(text, file, read, &mut Vec::new())
    }

    /// Writes every number with its source, so that [`Self::parse`] returns the same self.
    pub fn to_toml(&self) -> String {
        self.written("", &Self::default())
    }

    /// Writes what differs from a base of at most as many tiers, which the text names.
    pub fn to_toml_over(&self, name: &str, base: &Self) -> String {
        self.written(&format!("base = {}\n", quoted(name)), base)
    }

    fn written(&self, head: &str, base: &Self) -> String {
        let mut text = head.to_owned();
        if self.title != base.title {
            text += &format!("title = {}\n", quoted(&self.title));
        }
        for section in ["core", "llc", "tlb"] {
            text += &headed(&format!("[{section}]"), &self.section(base, section, 0));
        }
        for (index, tier) in self.tiers.iter().enumerate() {
            let before = base.tiers.get(index);
            text += "\n[[tier]]\n";
            if before.is_none_or(|before| before.name != tier.name) {
                text += &format!("name = {}\n", quoted(&tier.name));
            }
            let source = self.sources.get(&curve_path(index));
            let inherited = before.is_some_and(|before| before.curve == tier.curve)
                && base.sources.get(&curve_path(index)) == source;
            if let Some(curve) = tier.curve.as_ref().filter(|_| !inherited) {
                text += &entry(CURVE, &curve.text, source);
            }
            text += &self.section(base, "tier", index);
        }
        for section in ["costs", "device"] {
            text += &headed(&format!("[{section}]"), &self.section(base, section, 0));
        }
        text
    }

    /// Writes the numbers of a section that differ from the base's, or have another source.
    fn section(&self, base: &Self, section: &str, tier: usize) -> String {
        let known = section != "tier" || tier < base.tiers.len();
        let number = |field: &Field| {
            let value = (field.get)(self, tier)?;
            let source = self.sources.get(&field.path(tier));
            let inherited = known
                && base.sources.contains_key(&field.path(tier))
                && (field.get)(base, tier) == Some(value)
                && base.sources.get(&field.path(tier)) == source;
            (!inherited).then(|| entry(field.name, &field.quantity.format(value), source))
        };
        Field::of(section).filter_map(number).collect()
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn entry(name: &str, value: &str, source: Option<&String>) -> String {
    let source = source.map_or("not given", String::as_str);
    format!("{name} = {{ value = {}, source = {} }}\n", quoted(value), quoted(source))
}

/// Returns a section with its heading; nothing where it is empty.
fn headed(heading: &str, section: &str) -> String {
    if section.is_empty() { String::new() } else { format!("\n{heading}\n{section}") }
}

/// Parses a profile that stands behind these files, each the base of the one before it.
fn parse_behind(
    text: &str,
    file: &str,
    read: Read<'_>,
    before: &mut Vec<String>,
) -> Result<Profile, ProfileError> {
    let table = text.parse::<Table>().map_err(|error| syntax(text, file, &error))?;
    let reader = Reader { file };
    reader.no_others(&table, "", &["base", "title", "core", "llc", "tlb", "tier", "costs", "device"])?;
    let mut profile = match table.contains_key("base") {
        false => Profile::default(),
        true => {
            before.push(file.into());
            let base = reader.text(&table, "base", BASE)?;
            reader.base(&base, read, before)?
        }
    };
    profile.name = stem(file);
    if profile.title.is_empty() || table.contains_key("title") {
        profile.title = reader.text(&table, "title", "one line that says what machine it is")?;
    }
    let inherits = table.contains_key("base");
    for section in ["core", "llc", "tlb", "costs", "device"] {
        let optional = inherits || section == "device";
        if table.contains_key(section) || !optional {
            reader.section(&mut profile, reader.table(&table, section)?, section, 0)?;
        }
    }
    let tiers = if inherits && !table.contains_key("tier") { &[] } else { reader.tiers(&table)? };
    for (index, tier) in tiers.iter().enumerate() {
        reader.tier(&mut profile, tier, index)?;
    }
    profile.check_order(file)?;
    Ok(profile)
}

/// Returns the path of a file that another one names.
fn beside(file: &str, base: &str) -> String {
    match file.rsplit_once('/') {
        Some((folder, _)) if !base.starts_with('/') => format!("{folder}/{}", base.trim_start_matches("./")),
        _ => base.trim_start_matches("./").into(),
    }
}

/// Returns whether a machine's name is a file's path instead: it ends in `.toml` or contains a `/`.
pub fn is_path(name: &str) -> bool {
    name.ends_with(".toml") || name.contains('/')
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
    /// Returns the profile that this one starts from.
    fn base(&self, base: &str, read: Read<'_>, before: &mut Vec<String>) -> Result<Profile, ProfileError> {
        if !is_path(base) {
            return Profile::builtin(base).map_err(|error| ProfileError::base(self.file, &error.to_string()));
        }
        let path = beside(self.file, base);
        if before.contains(&path) || before.len() >= BASES {
            let circle =
                format!("{path} goes in a circle or through more than {BASES} files; expected {BASE}");
            return Err(ProfileError::base(self.file, &circle));
        }
        let text = read(&path)
            .map_err(|error| ProfileError::base(self.file, &format!("{error}; expected {BASE}")))?;
        parse_behind(&text, &path, read, before)
    }

    /// Reads a tier, which may change one of the base.
    fn tier(&self, profile: &mut Profile, tier: &Value, index: usize) -> Result<(), ProfileError> {
        let path = format!("tier.{index}");
        let tier = tier.as_table().ok_or_else(|| self.unexpected(&path, tier, "a [[tier]]"))?;
        let inherited = index < profile.tiers.len();
        if !inherited {
            profile.tiers.push(TierProfile::default());
        }
        if !inherited || tier.contains_key("name") {
            let expected = "what the tier is, such as \"DRAM\"";
            profile.tiers[index].name = self.text(tier, &format!("{path}.name"), expected)?;
        }
        self.curve(profile, tier, index)?;
        self.section(profile, tier, "tier", index)
    }

    /// Reads every number of a section, which must hold all that the base does not, and no others.
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
        let curve = section == "tier" && profile.tiers[tier].curve.is_some();
        let inherited = profile.sources.clone();
        let needed = |field: &Field| match field.name {
            _ if inherited.contains_key(&field.path(tier)) => false,
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
