//! A validator for the part of JSON Schema that the project's schemas use.

use serde_json::Value;

/// Returns every difference between a value and a schema, each with its path.
pub fn problems(schema: &Value, value: &Value) -> Vec<String> {
    let mut validator = Validator { root: schema, problems: Vec::new() };
    validator.check("report", value, schema);
    validator.problems
}

/// Checks a value against the keywords that our schemas use, and reports every difference with its path.
struct Validator<'a> {
    root: &'a Value,
    problems: Vec<String>,
}

impl Validator<'_> {
    fn check(&mut self, path: &str, value: &Value, schema: &Value) {
        for (keyword, rule) in schema.as_object().expect("a schema is an object") {
            match keyword.as_str() {
                "$ref" => {
                    let target = self.root.pointer(rule.as_str().expect("text").trim_start_matches('#'));
                    let target = target.unwrap_or_else(|| panic!("{path}: {rule} does not exist")).clone();
                    self.check(path, value, &target);
                }
                "anyOf" => self.check_any(path, value, rule),
                "type" => self.check_type(path, value, rule),
                "enum" => {
                    self.require(rule.as_array().expect("a list").contains(value), path, "one of the words");
                }
                "minimum" => self.require(
                    !value.is_number() || value.as_f64() >= rule.as_f64(),
                    path,
                    "at least the minimum",
                ),
                "maximum" => self.require(
                    !value.is_number() || value.as_f64() <= rule.as_f64(),
                    path,
                    "at most the maximum",
                ),
                "minItems" | "maxItems" => {
                    let length = value.as_array().map(|items| items.len() as u64);
                    let bound = rule.as_u64();
                    let within = if keyword == "minItems" { length >= bound } else { length <= bound };
                    self.require(within, path, "a list of that length");
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(&format!("{path}[{index}]"), item, rule);
                    }
                }
                "required" => {
                    for name in rule.as_array().expect("a list").iter().filter_map(Value::as_str) {
                        self.require(value.get(name).is_some(), &format!("{path}.{name}"), "present");
                    }
                }
                "properties" | "additionalProperties" => self.check_properties(path, value, schema, keyword),
                "$schema" | "$defs" | "title" | "description" | "unit" => {}
                other => panic!("this test does not know the keyword {other}"),
            }
        }
    }

    fn check_properties(&mut self, path: &str, value: &Value, schema: &Value, keyword: &str) {
        let known = schema.get("properties").unwrap_or(&Value::Null);
        for (name, part) in value.as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            match (keyword, known.get(name), &schema["additionalProperties"]) {
                ("properties", Some(rule), _) => self.check(&path, part, rule),
                ("additionalProperties", None, Value::Bool(false)) => {
                    self.require(false, &path, "documented");
                }
                ("additionalProperties", None, rule) => self.check(&path, part, rule),
                _ => {}
            }
        }
    }

    fn check_any(&mut self, path: &str, value: &Value, rule: &Value) {
        let fits = |schema: &Value| {
            let mut part = Validator { root: self.root, problems: Vec::new() };
            part.check(path, value, schema);
            part.problems.is_empty()
        };
        let any = rule.as_array().is_some_and(|schemas| schemas.iter().any(fits));
        self.require(any, path, "any of what is allowed");
    }

    fn check_type(&mut self, path: &str, value: &Value, rule: &Value) {
        let single = [rule.clone()];
        let allowed = rule.as_array().map_or(&single[..], Vec::as_slice);
        let fits = |name: &Value| match name.as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("null") => value.is_null(),
            Some("integer") => value.is_u64() || value.is_i64(),
            Some("number") => value.is_number(),
            other => panic!("this test does not know the type {other:?}"),
        };
        self.require(allowed.iter().any(fits), path, &format!("of type {rule}"));
    }

    fn require(&mut self, holds: bool, path: &str, what: &str) {
        if !holds {
            self.problems.push(format!("{path} is not {what}"));
        }
    }
}
