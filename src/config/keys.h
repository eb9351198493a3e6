#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "config/enum_names.h"
#include "config/key_paths.h"
#include "json/text.h"

// ONE description of every key. Checking, reading, the resolved config, the JSON Schema and the reference in
// configs/README.md all come from it, so they cannot disagree. Defaults are those of the structs that keys are bound
// to.
namespace dgc {

enum class Kind { boolean, integer, number, text, choice, integers, numbers, texts, layers };

struct Key {
  std::string path;  // "optimizer.warmup.epochs"
  std::string doc;   // one line
  Kind kind = Kind::text;
  bool required = false;
  bool nullable = false;
  // Limits of a number, or of each number in a list; above and below are exclusive.
  std::optional<double> minimum, maximum, above, below;
  size_t min_items = 0;
  std::string pattern;               // regular expression for a text (ECMAScript)
  std::string pattern_hint;          // what to say of a text that does not match; "": nothing more
  std::vector<std::string> choices;  // what a choice may be
  std::string selector;              // path of the "type" key that decides whether this key exists; "": none
  std::vector<std::string> types;    // the key exists for these types only; empty: for all
  bool free = false;                 // a run may be resumed with another value
  bool path_on_disk = false;  // the text is a path, seen from the folder in which dgc is started if it is relative

  // Where the value lies in owner, the struct that the table belongs to, and what turns it into JSON and back.
  std::function<void*(void* owner)> find;
  Json (*to_json)(const void* value) = nullptr;
  void (*from_json)(void* value, const Json& checked) = nullptr;

  Json get(const void* owner) const;
  void set(void* owner, const Json& checked) const;

  Key& at_least(double v) { return minimum = v, *this; }
  Key& at_most(double v) { return maximum = v, *this; }
  Key& more_than(double v) { return above = v, *this; }
  Key& less_than(double v) { return below = v, *this; }
  Key& matches(const std::string& regex, const std::string& hint = "") {
    return pattern = regex, pattern_hint = hint, *this;
  }
  Key& must_be_given() { return required = true, *this; }
  Key& items(size_t least) { return min_items = least, *this; }
  Key& only(std::vector<std::string> which) { return types = std::move(which), *this; }
  Key& free_on_resume() { return free = true, *this; }
  Key& is_path() { return path_on_disk = true, *this; }

  bool is_selector() const { return path == selector; }
  bool applies_to(const std::string& type) const;
};

using Keys = std::vector<Key>;

const Keys& config_keys();  // owner: Config
const Keys& layer_keys();   // owner: LayerOptions

// Parts of config_keys().
void add_model_keys(Keys&);
void add_data_keys(Keys&);
void add_training_keys(Keys&);
void add_optimizer_keys(Keys&);
void add_learning_rate_keys(Keys&);
void add_exchange_keys(Keys&);
void add_checkpoint_keys(Keys&);

// Conversion between C++ types and JSON. describe() fills in what the C++ type alone says about a key.
void describe(Key&, bool);
void describe(Key&, int64_t);
void describe(Key&, uint64_t);
void describe(Key&, double);
void describe(Key&, const std::string&);
void describe(Key&, const std::vector<int64_t>&);
void describe(Key&, const std::vector<double>&);
void describe(Key&, const std::vector<std::string>&);
void describe(Key&, const std::vector<LayerOptions>&);
Json layers_to_json(const std::vector<LayerOptions>&);
std::vector<LayerOptions> layers_from_json(const Json&);

template <class T>
struct JsonValue {
  static void describe_key(Key& key) { describe(key, T{}); }
  static Json to(const T& value) { return value; }
  static T from(const Json& json) { return json.get<T>(); }
};

template <class Enum>
requires std::is_enum_v<Enum>
struct JsonValue<Enum> {
  static_assert(names_all_of<Enum>(), "kEnumNames and the enum differ, or two names are the same");

  static void describe_key(Key& key) {
    key.kind = Kind::choice;
    key.choices.assign(kEnumNames<Enum>.begin(), kEnumNames<Enum>.end());
  }
  static Json to(Enum value) { return enum_name(value); }
  static Enum from(const Json& json) {
    const auto& names = kEnumNames<Enum>;
    return static_cast<Enum>(std::find(names.begin(), names.end(), json.get<std::string>()) - names.begin());
  }
};

template <class T>
struct JsonValue<std::optional<T>> {
  static void describe_key(Key& key) {
    JsonValue<T>::describe_key(key);
    key.nullable = true;
  }
  static Json to(const std::optional<T>& value) { return value ? JsonValue<T>::to(*value) : Json(nullptr); }
  static std::optional<T> from(const Json& json) {
    return json.is_null() ? std::nullopt : std::optional<T>(JsonValue<T>::from(json));
  }
};

template <>
struct JsonValue<std::vector<LayerOptions>> {
  static void describe_key(Key& key) { describe(key, std::vector<LayerOptions>{}); }
  static Json to(const std::vector<LayerOptions>& value) { return layers_to_json(value); }
  static std::vector<LayerOptions> from(const Json& json) { return layers_from_json(json); }
};

// Adds the keys of a Struct, which is the table's owner or lies somewhere in it:
//   auto optimizer = Section<Config>(keys).section("optimizer", &Config::optimizer);
//   optimizer.add("momentum", &OptimizerOptions::momentum, "...").at_least(0);
template <class Struct>
class Section {
 public:
  // The owner's own keys, at the top.
  explicit Section(Keys& keys) : keys_(keys), find_([](void* owner) { return owner; }) {}

  // Adds the key that decides which other keys of the section exist. Must be called first.
  template <class Part, class T>
  Key& select(const std::string& name, T Part::*member, const std::string& doc) {
    selector_ = join_path(prefix_, name);
    return add(name, member, doc).must_be_given();
  }
  // Adds the same kind of key for a string that must be one of `choices`, the names of a table.
  template <class Part>
  Key& select(const std::string& name, std::string Part::*member, std::vector<std::string> choices,
              const std::string& doc) {
    Key& key = select(name, member, doc);
    key.kind = Kind::choice;
    key.choices = std::move(choices);
    return key;
  }

  template <class Part, class T>
  Key& add(const std::string& name, T Part::*member, const std::string& doc) const {
    Key key;
    key.path = join_path(prefix_, name);
    key.doc = doc;
    key.selector = selector_;
    key.types = types_;
    JsonValue<T>::describe_key(key);
    key.find = find(member);
    key.to_json = [](const void* value) { return JsonValue<T>::to(*static_cast<const T*>(value)); };
    key.from_json = [](void* value, const Json& json) { *static_cast<T*>(value) = JsonValue<T>::from(json); };
    keys_.push_back(std::move(key));
    return keys_.back();
  }

  template <class Part, class T>
  Section<T> section(const std::string& name, T Part::*member) const {
    Section<T> inner = part(member);
    inner.prefix_ = join_path(prefix_, name);
    return inner;
  }

  // Keys of a member that is a struct in C++ and no section of its own in JSON.
  template <class Part, class T>
  Section<T> part(T Part::*member) const {
    Section<T> inner(keys_);
    inner.prefix_ = prefix_;
    inner.find_ = find(member);
    inner.selector_ = selector_;
    inner.types_ = types_;
    return inner;
  }

  // This section, for keys that exist for these types only.
  Section only(const std::vector<std::string>& types) const {
    Section section = *this;
    section.types_ = types;
    return section;
  }

 private:
  template <class>
  friend class Section;

  template <class Part, class T>
  std::function<void*(void*)> find(T Part::*member) const {
    return [outer = find_, member](void* owner) -> void* { return &(static_cast<Struct*>(outer(owner))->*member); };
  }

  Keys& keys_;
  std::string prefix_;
  std::function<void*(void* owner)> find_;  // the Struct in the owner
  std::string selector_;
  std::vector<std::string> types_;
};

// Adds the keys of "data" that only speech models have.
void add_speech_data_keys(const Section<DataOptions>& data);

}  // namespace dgc
