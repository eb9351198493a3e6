#include <algorithm>

#include "config/config.h"
#include "config/key_paths.h"
#include "config/keys.h"

// The table of keys as JSON Schema (https://json-schema.org/draft/2020-12).
namespace dgc {
namespace {

Json object_schema(const Keys& keys, const std::string& section, const std::string& type);

// A section with a "type" has one variant per type, so that an editor offers and accepts only that type's keys.
Json section_schema(const Keys& keys, const std::string& section) {
  const std::string selector = section.empty() ? "type" : section + ".type";
  for (const Key& key : keys) {
    if (key.path != selector || !key.is_selector()) continue;
    Json variants = Json::array();
    for (const std::string& type : key.choices) variants.push_back(object_schema(keys, section, type));
    return {{"description", key.doc}, {"oneOf", variants}};
  }
  return object_schema(keys, section, "");
}

void add_range(Json& schema, const Key& key) {
  const auto bound = [&](const char* name, const std::optional<double>& value) {
    if (!value) return;
    const auto whole = static_cast<int64_t>(*value);
    schema[name] = static_cast<double>(whole) == *value ? Json(whole) : Json(*value);
  };
  bound("minimum", key.minimum);
  bound("exclusiveMinimum", key.above);
  bound("maximum", key.maximum);
  bound("exclusiveMaximum", key.below);
}

Json type_schema(const Key& key) {
  Json schema = Json::object();
  switch (key.kind) {
    case Kind::boolean:
      schema["type"] = "boolean";
      break;
    case Kind::integer:
      schema["type"] = "integer";
      break;
    case Kind::number:
      schema["type"] = "number";
      break;
    case Kind::text:
      schema["type"] = "string";
      break;
    case Kind::choice:
      schema["enum"] = key.choices;
      break;
    case Kind::texts: {
      Json item = {{"type", "string"}};
      if (!key.pattern.empty()) item["pattern"] = "^(?:" + key.pattern + ")$";
      schema = {{"type", "array"}, {"items", item}};
      break;
    }
    case Kind::integers:
    case Kind::numbers: {
      Json item = {{"type", key.kind == Kind::integers ? "integer" : "number"}};
      add_range(item, key);
      schema = {{"type", "array"}, {"items", item}};
      break;
    }
    case Kind::layers:
      schema = {{"type", "array"}, {"items", section_schema(layer_keys(), "")}};
      break;
  }
  return schema;
}

Json key_schema(const Key& key, const std::string& type) {
  if (key.is_selector()) return {{"const", type}};
  Json schema = type_schema(key);
  if (key.nullable) schema["type"] = {schema["type"], "null"};
  if (key.kind == Kind::integer || key.kind == Kind::number) add_range(schema, key);
  if (key.min_items > 0) schema["minItems"] = key.min_items;
  if (key.kind == Kind::text && !key.pattern.empty()) schema["pattern"] = "^(?:" + key.pattern + ")$";
  schema["description"] = key.doc;
  return schema;
}

Json object_schema(const Keys& keys, const std::string& section, const std::string& type) {
  const bool layer = &keys == &layer_keys();
  const Config config;
  const LayerOptions layer_defaults;
  Json properties = Json::object(), required = Json::array();
  for (const Key& key : keys) {
    const std::string name = name_below(key.path, section);
    // A section with a type, and its subsections, have only keys that belong to that type.
    if (name.empty() || (!type.empty() && !key.applies_to(type))) continue;
    const std::string path = join_path(section, name);
    if (key.path == path) {
      properties[name] = key_schema(key, type);
      if (key.required) {
        required.push_back(name);
      } else {
        const void* owner = layer ? static_cast<const void*>(&layer_defaults) : &config;
        properties[name]["default"] = key.get(owner);
      }
    } else {
      if (!properties.contains(name)) {
        properties[name] = type.empty() ? section_schema(keys, path) : object_schema(keys, path, type);
        if (key.is_selector()) required.push_back(name);
      }
      const bool always = key.required && (key.types.empty() || !type.empty());
      if (always && std::find(required.begin(), required.end(), name) == required.end()) required.push_back(name);
    }
  }
  Json schema = {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = required;
  return schema;
}

}  // namespace

std::string json_schema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "dgc config"}};
  schema.update(section_schema(config_keys(), ""));
  schema["properties"]["$schema"] = {{"type", "string"}};
  return json_text(schema, 2) + "\n";
}

}  // namespace dgc
