#include "commands/usage_error.h"

#include <fmt/core.h>

#include "json/nearest.h"

namespace dgc {
namespace {

std::string lower_first(std::string text) {
  const bool word = text.size() > 1 && std::isupper(static_cast<unsigned char>(text[1])) == 0;  // false for "CONFIG"
  if (word) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string unknown(CLI::App& app, const std::string& given) {
  if (given.starts_with("-")) return fmt::format("there is no option \"{}\"", given);
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  const std::string meant = nearest(given, names);
  return fmt::format("there is no command \"{}\"{}", given, meant.empty() ? "" : "; did you mean \"" + meant + "\"?");
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
  const std::string what = group && !unread.empty() ? unknown(*command, unread.front()) : lower_first(error.what());
  return fmt::format("{}: {} ({} --help tells more)", name, what, name);
}

}  // namespace dgc
