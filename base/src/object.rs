//! JSON as it was meant: no list in the place of an object, no key twice in one.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// What is read of an object alone. A struct is read of a list as well, by the order of its fields, which nobody means.
///
/// ```
/// #[derive(serde::Deserialize)]
/// struct Span { start: u64, end: u64 }
/// let read = |json| serde_json::from_str::<base::object::Object<Span>>(json);
/// assert_eq!(read(r#"{"end": 3, "start": 1}"#).unwrap().0.end, 3);
/// assert!(read("[1, 3]").is_err_and(|error| error.to_string().contains("expected an object")));
/// ```
#[derive(Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Only(PhantomData))
    }
}

struct Only<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Only<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// A value in none of whose objects a key stands twice. Elsewhere the last of them counts.
///
/// ```
/// let read = |json| serde_json::from_str::<base::object::Distinct>(json);
/// assert_eq!(read(r#"[{"a": 1}, {"a": 2.5}]"#).unwrap().0, serde_json::json!([{"a": 1}, {"a": 2.5}]));
/// assert!(read(r#"{"a": 1, "a": 2}"#).is_err_and(|error| error.to_string().contains("the key \"a\" stands there twice")));
/// ```
#[derive(Debug)]
pub struct Distinct(pub Value);

/// An object that is [`Distinct`].
#[derive(Debug)]
pub struct DistinctObject(pub Map<String, Value>);

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Anything)
    }
}

impl<'de> Deserialize<'de> for DistinctObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Keys)
    }
}

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = DistinctObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DistinctObject, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} stands there twice")));
            }
            object.insert(key, map.next_value::<Distinct>()?.0);
        }
        Ok(DistinctObject(object))
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = Distinct;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Distinct, E> {
        Ok(Distinct(Value::Null))
    }

    fn visit_bool<E>(self, holds: bool) -> Result<Distinct, E> {
        Ok(Distinct(Value::Bool(holds)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Distinct, E> {
        Ok(Distinct(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Distinct, E> {
        Ok(Distinct(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Distinct, E> {
        Ok(Distinct(Number::from_f64(number).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Distinct, E> {
        Ok(Distinct(text.into()))
    }

    fn visit_string<E>(self, text: String) -> Result<Distinct, E> {
        Ok(Distinct(Value::String(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Distinct, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Distinct>()? {
            list.push(item.0);
        }
        Ok(Distinct(Value::Array(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Distinct, A::Error> {
        Keys.visit_map(map).map(|object| Distinct(Value::Object(object.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_serde_unless_a_key_stands_twice_in_an_object() {
        let all =
            r#"{"null": null, "list": [true, -3, 18446744073709551615, 0.25, "täxt"], "in": {"list": []}}"#;
        let found: Distinct = serde_json::from_str(all).unwrap();
        assert_eq!(found.0, serde_json::from_str::<Value>(all).unwrap());
        let object: DistinctObject = serde_json::from_str(all).unwrap();
        assert_eq!(Value::Object(object.0), found.0);
        for (twice, key) in
            [(r#"{"a": {"b": 1, "c": 2, "b": 1}}"#, "b"), (r#"{"a": [], "x": 1, "a": []}"#, "a")]
        {
            let error = serde_json::from_str::<DistinctObject>(twice).unwrap_err().to_string();
            assert!(error.contains(&format!("the key {key:?} stands there twice at line 1")), "{error}");
        }
        assert!(serde_json::from_str::<DistinctObject>("[1]").is_err());
    }
}
