//! Documentation that follows from a schema: a table per object, which the test writes on request.

use std::fmt::Write;

use serde_json::Value;

/// A schema and the document whose tables list its fields.
pub struct Documented {
    /// Text of the schema.
    pub schema: &'static str,
    /// Text of the document: an introduction, the mark, the tables.
    pub document: &'static str,
    /// Path of the document in the repository.
    pub path: &'static str,
    /// Name of the test binary that checks it.
    pub test: &'static str,
    /// Objects of the schema in the document's order.
    pub objects: &'static [&'static str],
}

impl Documented {
    /// Parses the schema.
    pub fn schema(&self) -> Value {
        serde_json::from_str(self.schema).expect("the schema is JSON")
    }

    fn mark(&self) -> String {
        let command = format!("ISOTHERM_WRITE_DOCS=1 cargo test -p isotherm-report --test {}", self.test);
        format!("<!-- From here on written by `{command}`. -->\n")
    }

    /// Compares the document with the schema, or writes it where `ISOTHERM_WRITE_DOCS` is set.
    pub fn check(&self) {
        let (introduction, tables) =
            self.document.split_once(&self.mark()).unwrap_or_else(|| panic!("no mark in {}", self.path));
        let expected = self.tables();
        if tables != expected && std::env::var_os("ISOTHERM_WRITE_DOCS").is_some() {
            let path = format!("{}/../../{}", env!("CARGO_MANIFEST_DIR"), self.path);
            std::fs::write(path, format!("{introduction}{}{expected}", self.mark()))
                .expect("the documentation can be written");
            return;
        }
        assert_eq!(tables, expected, "{} differs from its schema", self.path);
    }

    /// Writes every object with its fields.
    fn tables(&self) -> String {
        let schema = self.schema();
        let known = schema["$defs"].as_object().expect("objects").len();
        assert_eq!(self.objects.len(), known, "an object is missing here");
        let mut text = String::new();
        for &object in self.objects {
            let definition = &schema["$defs"][object];
            let description = definition["description"].as_str().unwrap_or_default();
            let _ = write!(
                text,
                "\n## {object}\n\n{description}\n\n| field | type | unit | meaning |\n|---|---|---|---|\n"
            );
            for name in names(definition) {
                let field = &definition["properties"][name];
                let unit = field["unit"].as_str().unwrap_or("");
                let meaning = field["description"]
                    .as_str()
                    .unwrap_or_else(|| panic!("{object}.{name} is not described"));
                let _ = writeln!(text, "| `{name}` | {} | {unit} | {meaning} |", kind(field));
            }
        }
        text
    }
}

/// Returns an object's fields in their order.
pub fn names(definition: &Value) -> Vec<&str> {
    definition["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn kind(field: &Value) -> String {
    if let Some(target) = field["$ref"].as_str() {
        return target.trim_start_matches("#/$defs/").to_owned();
    }
    if let Some(several) = field["anyOf"].as_array() {
        return several.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match &field["type"] {
        Value::String(name) if name == "array" => format!("array of {}", kind(&field["items"])),
        Value::String(name) if field.get("enum").is_some() => format!("{name}: {}", words(&field["enum"])),
        Value::String(name) => name.clone(),
        several => words(several),
    }
}

fn words(list: &Value) -> String {
    let words: Vec<_> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    words.join(" or ")
}
