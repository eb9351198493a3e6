#include "config/check.h"

#include <algorithm>
#include <set>

#include "config/check_value.h"
#include "config/key_paths.h"
#include "config/objects.h"
#include "config/synonyms.h"
#include "json/nearest.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

class Checker {
 public:
  Checker(const Keys& keys, const Json& root, const std::string& shown, const Origin& origin)
      : keys_(keys), root_(root), shown_(shown), origin_(origin) {}

  void run() {
    if (!root_.is_object()) refuse("", fmt::format("must be an object, not {}", json_type_name(root_)));
    for (const Key& key : keys_) {
      if (key.is_selector()) check_selector(key);
    }
    walk(root_, "");
    for (const Key& key : keys_) {
      if (key.required && applies(key) && !find_path(root_, key.path))
        refuse(key.path, "missing; " + expected_words(key));
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& path, const std::string& sentence) const {
    origin_.refuse(path.empty() ? shown_ : join_path(shown_, path), sentence);
  }

  bool applies(const Key& key) const { return key.applies_to(selected_type(key, root_)); }

  // Selectors are checked before all other keys: a section whose type is unknown has unknown keys too, but the type is
  // the mistake.
  void check_selector(const Key& key) const {
    const std::string section = section_of(key.path);
    const Json* holder = section.empty() ? &root_ : find_path(root_, section);
    if (holder && !holder->is_object()) {
      refuse(section, fmt::format("must be an object, not {}", json_type_name(*holder)));
    }
    const Json* value = find_path(root_, key.path);
    if (!value && !holder) refuse_unknown_sections();
    if (!value) refuse(key.path, "missing; " + expected_words(key));
    check_value(key, *value, join_path(shown_, key.path), origin_);
  }

  // Where a section is missing, another name may have been meant for it.
  void refuse_unknown_sections() const {
    for (const auto& [name, value] : root_.items()) {
      if (!find(name) && !is_section(name)) refuse_unknown("", name, name);
    }
  }

  void walk(const Json& object, const std::string& at) const {
    if (!object.is_object()) refuse(at, fmt::format("must be an object, not {}", json_type_name(object)));
    for (const auto& [name, value] : object.items()) {
      const std::string path = join_path(at, name);
      if (name.empty()) refuse(at, "a key cannot be empty");
      // A name with a dot could pass for a path of the table.
      if (name.find('.') != std::string::npos) refuse(path, "a key cannot have a dot; put objects inside one another");
      const Key* key = find(path);
      if (key) {
        check_value(*key, value, join_path(shown_, path), origin_);
      } else if (is_section(path)) {
        walk(value, path);
      } else {
        refuse_unknown(at, name, path);
      }
    }
  }

  const Key* find(const std::string& path) const {
    for (const Key& key : keys_) {
      if (key.path == path && applies(key)) return &key;
    }
    return nullptr;
  }

  bool is_section(const std::string& path) const {
    return std::any_of(keys_.begin(), keys_.end(),
                       [&](const Key& key) { return is_inside(key.path, path) && applies(key); });
  }

  [[noreturn]] void refuse_unknown(const std::string& at, const std::string& name, const std::string& path) const {
    std::vector<std::string> here, inside, anywhere, leaves;
    for (const Key& key : keys_) {
      if (!applies(key) && (key.path == path || is_inside(key.path, path))) refuse_other_type(key, path);
      if (!applies(key)) continue;
      if (is_inside(key.path, at)) {
        inside.push_back(key.path);
        const std::string sibling = name_below(key.path, at);
        if (std::find(here.begin(), here.end(), sibling) == here.end()) here.push_back(sibling);
      }
      anywhere.push_back(key.path);
      leaves.push_back(last_name(key.path));
    }
    std::string meant = key_with_underscores(at, name);
    if (meant.empty() && name == "name" && !at.empty()) meant = selector_in(at);
    if (meant.empty()) meant = key_of_synonym(name, inside);
    if (meant.empty()) meant = key_of_synonym(name, anywhere);
    if (meant.empty()) meant = nearest(name, here);
    const auto elsewhere = std::find(leaves.begin(), leaves.end(), last_name(name));
    if (meant.empty() && elsewhere != leaves.end()) meant = anywhere[static_cast<size_t>(elsewhere - leaves.begin())];
    refuse(path, meant.empty() ? "unknown key; here there are " + quoted(here)
                               : fmt::format("unknown key; did you mean \"{}\"?", meant));
  }

  // The key that would have this name were its sections not apart: warmup_epochs is warmup.epochs.
  std::string key_with_underscores(const std::string& at, const std::string& name) const {
    for (const Key& key : keys_) {
      if (!applies(key) || !is_inside(key.path, at)) continue;
      std::string below = key.path.substr(at.empty() ? 0 : at.size() + 1);
      std::ranges::replace(below, '.', '_');
      if (below == name) return key.path;
    }
    return "";
  }

  // The section's "type", which other programs call a name; "" where it has none.
  std::string selector_in(const std::string& section) const {
    const auto found = std::ranges::find_if(
        keys_, [&](const Key& key) { return key.is_selector() && section_of(key.path) == section; });
    return found == keys_.end() ? "" : found->path;
  }

  // Only called with keys that do not apply.
  [[noreturn]] void refuse_other_type(const Key& key, const std::string& path) const {
    std::set<std::string> types;
    for (const Key& other : keys_) {
      if (other.path == path || is_inside(other.path, path)) types.insert(other.types.begin(), other.types.end());
    }
    const std::string selector = join_path(shown_, key.selector), type = selected_type(key, root_);
    std::string fix = "leave it out";
    if (std::ranges::any_of(origin_.overrides, [&](const auto& set) { return set.first == selector; })) {
      fix += fmt::format(", or replace the whole section: --set '{}={{\"type\": \"{}\", ...}}'", section_of(selector),
                         type);
    }
    refuse(path, fmt::format("belongs to {} {}, and this is \"{}\"; {}", selector, quoted({types.begin(), types.end()}),
                             type, fix));
  }

  const Keys& keys_;
  const Json& root_;
  const std::string& shown_;
  const Origin& origin_;
};

}  // namespace

void Origin::refuse(const std::string& path, const std::string& sentence) const {
  std::string where = file;
  for (const auto& [set, text] : overrides) {
    if (path == set || is_inside(path, set) || is_inside(set, path) || path.starts_with(set + "["))
      where = "--set " + text;
  }
  throw UserError(path.empty() ? where + ": " + sentence : where + ": " + path + ": " + sentence);
}

void check_object(const Keys& keys, const Json& object, const std::string& shown, const Origin& origin) {
  Checker(keys, object, shown, origin).run();
}

}  // namespace dgc
