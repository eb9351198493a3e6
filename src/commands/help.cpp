#include <fmt/format.h>

#include <memory>

#include "commands/app.h"
#include "commands/commands.h"
#include "json/nearest.h"
#include "tensor/errors.h"
#include "tensor/printable.h"

namespace dgc {
namespace {

const CLI::App& subcommand(const CLI::App& command, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands(nullptr)) {
    if (sub->get_name() == word) return *sub;
    names.push_back(sub->get_name());
  }
  throw_user_error("dgc help: there is no command \"{}\"{}", printable(word), did_you_mean(word, names));
}

}  // namespace

void add_help_command(CLI::App& app) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", "Explain a command, as its --help does");
  command->add_option("COMMAND", *words, "the command, such as train or bench train; none: dgc itself");
  command->footer("Example:\n  dgc help bench train");
  command->callback([words] {
    const auto fresh = make_app();  // not the one that is parsing: it would explain this very command
    const CLI::App* at = fresh.get();
    std::string before;
    for (const std::string& word : *words) {
      before += (before.empty() ? "" : " ") + at->get_name();
      at = &subcommand(*at, word);
    }
    fmt::print("{}", at->help(before));
  });
}

}  // namespace dgc
