#include "commands/usage_error.h"

#include <fmt/core.h>

#include <algorithm>

#include "json/nearest.h"

namespace dgc {
namespace {

std::string lower_first(std::string text) {
  const bool word = text.size() > 1 && std::isupper(static_cast<unsigned char>(text[1])) == 0;  // false for "CONFIG"
  if (word) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string unknown_option(const CLI::App& app, const std::string& given) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  if (std::ranges::find(names, given) != names.end()) {
    return fmt::format("\"{}\" is in the wrong place: write it behind the command, and before a lone \"--\"", given);
  }
  return fmt::format("there is no option \"{}\"{}", given, did_you_mean(given, names));
}

std::string unknown(CLI::App& app, const std::string& given) {
  if (given.starts_with("-")) return unknown_option(app, given.substr(0, given.find('=')));
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
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
  const auto is_option = [](const std::string& word) { return word.size() > 2 && word.starts_with("--"); };
  const auto option = std::ranges::find_if(unread, is_option);
  std::string what = lower_first(error.what());
  if (group && !unread.empty()) {
    what = unknown(*command, unread.front());
  } else if (option != unread.end()) {
    what = unknown_option(*command, option->substr(0, option->find('=')));
  }
  return fmt::format("{}: {} ({} --help tells more)", name, what, name);
}

}  // namespace dgc
