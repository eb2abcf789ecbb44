//! Defines how a schema's documentation follows from it: a table for each object, written by the test itself when asked.

use std::fmt::Write;

use serde_json::Value;

/// A schema and the document whose tables say the same for people.
pub struct Documented {
    /// The schema's text.
    pub schema: &'static str,
    /// The document's text: an introduction, the mark, the tables.
    pub document: &'static str,
    /// Where the document is, from the top of the repository.
    pub path: &'static str,
    /// The test binary that checks it.
    pub test: &'static str,
    /// The schema's objects in the order of the document.
    pub objects: &'static [&'static str],
}

impl Documented {
    /// The schema.
    pub fn schema(&self) -> Value {
        serde_json::from_str(self.schema).expect("the schema is JSON")
    }

    fn mark(&self) -> String {
        format!(
            "<!-- From here on written by `ISOTHERM_WRITE_DOCS=1 cargo test -p isotherm-report --test {}`. -->\n",
            self.test
        )
    }

    /// Holds the document to the schema, or, where `ISOTHERM_WRITE_DOCS` is set, writes it.
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
        assert_eq!(tables, expected, "{} is not what its schema says", self.path);
    }

    /// Every object with its fields.
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

/// An object's fields in their order.
pub fn names(definition: &Value) -> Vec<&str> {
    definition["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn kind(field: &Value) -> String {
    if let Some(target) = field["$ref"].as_str() {
        return target.trim_start_matches("#/$defs/").to_owned();
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
