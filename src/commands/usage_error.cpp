#include "commands/usage_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <regex>
#include <utility>

#include "config/synonyms.h"
#include "json/nearest.h"

namespace dgc {
namespace {

std::string lower_first(std::string text) {
  const bool word = text.size() > 1 && std::isupper(static_cast<unsigned char>(text[1])) == 0;  // false for "CONFIG"
  if (word) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

// In place of the option library's own words.
std::string plain(const std::string& what) {
  static const std::array<std::pair<std::regex, const char*>, 2> kWords = {
      {{std::regex("At Most 1 required but received ([0-9]+)"), "it is given $1 times, and may be given once"},
       {std::regex("1 required [A-Z=]+ missing"), "its value is missing"}}};
  std::string text = what;
  for (const auto& [library, ours] : kWords) text = std::regex_replace(text, library, ours);
  return text;
}

// Of a run's config a command that uses its model reads few keys; the others were for its training.
bool reads_key(const CLI::App& command, const std::string& key) {
  if (command.get_option_no_throw("RUN") == nullptr || key == "device" || key == "threads") return true;
  return command.get_name() == "eval" && (key == "training.eval_batch" || key.starts_with("data."));
}

// Of a letter all long options that begin with it.
std::string options_like(const std::string& name, const std::vector<std::string>& names) {
  if (name.size() > 2) return did_you_mean(name, names);
  std::vector<std::string> meant;
  std::ranges::copy_if(names, std::back_inserter(meant),
                       [&](const std::string& known) { return known.starts_with("-" + name); });
  return meant.empty() ? "" : fmt::format("; did you mean \"{}\"?", fmt::join(meant, "\" or \""));
}

// given: -N, --NAME or --NAME=VALUE. behind: what stands behind it and was not read either.
std::string unknown_option(const CLI::App& app, const std::string& given, const std::string& behind = "") {
  const size_t equals = given.find('=');
  const std::string name = given.substr(0, equals);
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& known : option->get_lnames()) names.push_back("--" + known);
    for (const std::string& letter : option->get_snames()) names.push_back("-" + letter);
  }
  const auto has = [&](const std::string& known) { return std::ranges::find(names, known) != names.end(); };
  if (has(name)) {
    return fmt::format("\"{}\" is in the wrong place: write it behind the command, and before a lone \"--\"", name);
  }
  const std::string key = has("--set") && name.starts_with("--") ? key_called(name.substr(2)) : "";
  if (key.empty()) return fmt::format("there is no option \"{}\"{}", name, options_like(name, names));
  if (!reads_key(app, key)) return fmt::format("there is no option \"{}\"", name);
  // What is no number may be an argument of the command, in the place of a number that was taken for it.
  const bool number = !behind.empty() && std::isdigit(static_cast<unsigned char>(behind[0])) != 0;
  const std::string value = equals != std::string::npos ? given.substr(equals + 1) : number ? behind : "VALUE";
  return fmt::format("there is no option \"{}\"; write --set {}={}", name, key, value);
}

// "too many arguments: b.json; one CONFIG is taken". The value of a --set may stand apart, and is then an argument.
std::string too_many(const CLI::App& command, std::vector<std::string> unread) {
  const CLI::Option* set = command.get_option_no_throw("--set");
  for (const std::string& text : set == nullptr ? CLI::results_t() : set->results()) {
    if (text.find('=') == std::string::npos) return fmt::format("--set {}: write it as KEY=VALUE", text);
  }
  std::erase(unread, "--");
  std::string text = fmt::format("too many arguments: {}", fmt::join(unread, " "));
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) text += fmt::format("; one {} is taken", option->get_name(true));
  }
  return text;
}

std::string unknown(CLI::App& app, const std::string& given) {
  if (given == "--") return "\"--\" is in the wrong place: write it behind the command";
  if (given.starts_with("-")) return unknown_option(app, given);
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  if (std::ranges::find(names, given) != names.end()) {
    return fmt::format("\"{}\" is in the wrong place: write it before a lone \"--\"", given);
  }
  return fmt::format("there is no command \"{}\"{}", given, did_you_mean(given, names));
}

}  // namespace

std::string usage_error(CLI::App& app, const CLI::ParseError& error) {
  CLI::App* command = &app;
  std::string name = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  const std::vector<std::string> unread = app.remaining(true);
  const bool group = !command->get_subcommands(nullptr).empty();  // true for dgc and dgc bench
  const auto is_option = [](const std::string& word) {            // and neither -- nor a number
    return word.size() > 1 && word[0] == '-' && word != "--" && std::isdigit(static_cast<unsigned char>(word[1])) == 0;
  };
  // Behind a lone "--" all words are arguments, but one that is an option was meant as such.
  const auto arguments = std::ranges::find(unread, "--");
  auto option = std::find_if(unread.begin(), arguments, is_option);
  if (option == arguments) {
    option = std::find_if(arguments, unread.end(), [&](const std::string& word) {
      return is_option(word) && command->get_option_no_throw(word.substr(0, word.find('='))) != nullptr;
    });
  }
  std::string what = lower_first(plain(error.what()));
  if (group && !unread.empty()) {
    what = unknown(*command, unread.front());
  } else if (option != unread.end()) {
    what = unknown_option(*command, *option, option + 1 != unread.end() ? *(option + 1) : "");
  } else if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    what = too_many(*command, unread);
  }
  return fmt::format("{}: {} ({} --help tells more)", name, what, name);
}

}  // namespace dgc
