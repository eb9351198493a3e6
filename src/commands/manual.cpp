#include <fmt/core.h>

#include "commands/app.h"
#include "commands/commands.h"
#include "run/version.h"

namespace dgc {
namespace {

// Escapes text for troff: hyphens can be copied, and no line begins like a request.
std::string roff(const std::string& text) {
  std::string escaped;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
    line_begins = c == '\n';
  }
  return escaped;
}

std::string option_text(const CLI::Option& option) {
  const std::string name = option.get_positional() ? option.get_name(true) : option.get_name(false, true);
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(name), roff(CLI::Formatter().make_option_opts(&option)),
                     roff(option.get_description()));
}

std::string command_text(const Command& command) {
  std::string text = fmt::format(".SS {}\n{}\n", roff(command.name), roff(command.app->get_description()));
  for (const CLI::Option* option : command.app->get_options()) text += option_text(*option);
  if (!command.app->get_footer().empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(command.app->get_footer()));
  return text;
}

std::string man_page(const CLI::App& app) {
  std::string page = fmt::format(
      ".TH DGC 1 \"\" \"dgc {}\" \"User Commands\"\n"
      ".SH NAME\ndgc \\- train neural networks with Deep Gradient Compression\n"
      ".SH SYNOPSIS\n.B dgc\n.I COMMAND\n[\\fIOPTIONS\\fR]\n"
      ".SH COMMANDS\n",
      roff(program_version()));
  for (const Command& command : commands_of(app)) page += command_text(command);
  return page;
}

}  // namespace

void add_manual_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("manual", "Print the man page, which is made from every command's help");
  command->footer("Example:\n  dgc manual | man -l -");
  command->callback([&app] { fmt::print("{}", man_page(app)); });
}

}  // namespace dgc
