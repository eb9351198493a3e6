#include <catch.hpp>
#include <nlohmann/json.hpp>

#include "config/keys.h"
#include "paths.h"
#include "tests/config/example.h"
#include "tests/support/shipped.h"

using namespace dgc;

namespace {

const Json& schema() {
  static const Json parsed = Json::parse(json_schema());
  return parsed;
}

// Just enough of draft 2020-12 for our own schema; throws on a keyword it does not know, so it cannot pass unread.
bool valid(const Json& s, const Json& v) {
  for (const auto& [word, rule] : s.items()) {
    const auto number = [&] { return v.is_number() ? v.get<double>() : 0; };
    if (word == "$schema" || word == "title" || word == "description" || word == "default") continue;
    if (word == "type") {
      const auto is = [&](const std::string& t) {
        return (t == "object" && v.is_object()) || (t == "array" && v.is_array()) || (t == "string" && v.is_string()) ||
               (t == "number" && v.is_number()) || (t == "integer" && v.is_number_integer()) ||
               (t == "boolean" && v.is_boolean()) || (t == "null" && v.is_null());
      };
      if (rule.is_string() ? !is(rule) : std::none_of(rule.begin(), rule.end(), is)) return false;
    } else if (word == "const") {
      if (v != rule) return false;
    } else if (word == "enum") {
      if (std::find(rule.begin(), rule.end(), v) == rule.end()) return false;
    } else if (word == "oneOf") {
      if (std::count_if(rule.begin(), rule.end(), [&](const Json& one) { return valid(one, v); }) != 1) return false;
    } else if (word == "properties") {
      for (const auto& [name, value] : v.items()) {
        if (rule.contains(name) && !valid(rule[name], value)) return false;
      }
    } else if (word == "additionalProperties") {
      for (const auto& [name, value] : v.items()) {
        if (!s["properties"].contains(name)) return false;
      }
    } else if (word == "required") {
      for (const auto& name : rule) {
        if (!v.contains(name.get<std::string>())) return false;
      }
    } else if (word == "items") {
      if (!std::all_of(v.begin(), v.end(), [&](const Json& item) { return valid(rule, item); })) return false;
    } else if (word == "minItems") {
      if (v.size() < rule.get<size_t>()) return false;
    } else if (word == "minimum") {
      if (v.is_number() && number() < rule.get<double>()) return false;
    } else if (word == "maximum") {
      if (v.is_number() && number() > rule.get<double>()) return false;
    } else if (word == "exclusiveMinimum") {
      if (v.is_number() && number() <= rule.get<double>()) return false;
    } else if (word == "exclusiveMaximum") {
      if (v.is_number() && number() >= rule.get<double>()) return false;
    } else if (word != "pattern") {
      throw std::runtime_error("keyword " + word);
    }
  }
  return true;
}

bool valid(const std::string& text) { return valid(schema(), Json::parse(text)); }

}  // namespace

TEST_CASE("the schema accepts every shipped config, resolved or not", "[config]") {
  for (const std::string& file : test::shipped_configs()) {
    CAPTURE(file);
    CHECK(valid(read_text_file(file, 1 << 24)));
    CHECK(valid(resolved_json(load_config(file))));
  }
}

TEST_CASE("the schema refuses what the program refuses", "[config]") {
  REQUIRE(valid(test::kExample));
  const std::vector<std::pair<std::string, std::string>> changes = {{"\"momentum\"", "\"momentun\""},
                                                                    {"\"dgc\"", "\"sgd\""},
                                                                    {"\"depth\": 20, ", ""},
                                                                    {"0.999", "1"},
                                                                    {"0.9375", "1"},
                                                                    {"\"epochs\": 30", "\"epochs\": 30.5"},
                                                                    {"\"epochs\": 30", "\"epochs\": 0"},
                                                                    {"\"base\": 0.1", "\"base\": 0"},
                                                                    {"\"type\": \"step\", ", ""},
                                                                    {"[0.75, 0.9375]", "[]"},
                                                                    {"\"max_steps\": null", "\"max_steps\": \"5\""}};
  for (const auto& [from, to] : changes) {
    CAPTURE(from, to);
    const std::string text = test::replaced(test::kExample, from, to);
    CHECK_FALSE(valid(text));
    CHECK(test::refusal([&] { parse_config(text, "run.json"); }) != "");
  }
}

TEST_CASE("a config may say where its schema is", "[config]") {
  const std::string text = test::replaced(test::kExample, "{", "{\"$schema\": \"dgc.schema.json\", ");
  CHECK(valid(text));
  CHECK(resolved_json(parse_config(text, "run.json")) == resolved_json(parse_config(test::kExample, "run.json")));
}

TEST_CASE("every key has a meaning and a type to belong to", "[config]") {
  for (const Keys* keys : {&config_keys(), &layer_keys()}) {
    for (const Key& key : *keys) {
      CAPTURE(key.path);
      CHECK_FALSE(key.doc.empty());
      CHECK(key.doc.find('|') == std::string::npos);  // would break the table in README.md
      const auto selector = std::find_if(keys->begin(), keys->end(),
                                         [&](const Key& k) { return k.is_selector() && k.path == key.selector; });
      for (const auto& type : key.types) {
        REQUIRE(selector != keys->end());
        CHECK(std::find(selector->choices.begin(), selector->choices.end(), type) != selector->choices.end());
      }
    }
  }
}
