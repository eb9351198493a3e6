#include <fmt/core.h>
#include <fmt/format.h>

#include <array>
#include <memory>

#include "commands/app.h"
#include "commands/commands.h"
#include "commands/option_checks.h"
#include "config/table.h"

namespace dgc {
namespace {

// What may follow a command's words, with its description.
struct Word {
  std::string text, meaning;
};

std::vector<Word> subcommands(const CLI::App& command) {
  std::vector<Word> words;
  for (const CLI::App* sub : command.get_subcommands(nullptr))
    words.push_back({sub->get_name(), sub->get_description()});
  return words;
}

std::vector<Word> options(const CLI::App& command) {
  std::vector<Word> words;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_snames()) words.push_back({"-" + name, option->get_description()});
    for (const std::string& name : option->get_lnames()) words.push_back({"--" + name, option->get_description()});
  }
  return words;
}

// The patterns of both shells' `case`: "dgc train" | "dgc bench" | "dgc bench train" ...
std::string subcommand_patterns(const std::vector<Command>& commands) {
  std::vector<std::string> quoted;
  for (const Command& command : commands) {
    if (command.name.find(' ') != std::string::npos) quoted.push_back(fmt::format("\"{}\"", command.name));
  }
  return fmt::format("{}", fmt::join(quoted, " | "));
}

std::string bash_words(const std::vector<Word>& words) {
  std::string list;
  for (const Word& word : words) list += (list.empty() ? "" : " ") + word.text;
  return fmt::format("\"{}\"", list);
}

// What is neither a command nor an option is left to bash, which offers files.
std::string bash_completion(const CLI::App& app) {
  const std::vector<Command> commands = commands_of(app);
  std::string cases;
  for (const auto& [name, command] : commands) {
    cases += fmt::format("    \"{}\") commands={} options={} ;;\n", name, bash_words(subcommands(*command)),
                         bash_words(options(*command)));
  }
  return fmt::format(R"(# Made by `dgc completion bash`.
_dgc() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} command=dgc commands options word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$command $word" in
      {}) command="$command $word" ;;
    esac
  done
  case $command in
{}  esac
  if [[ $current == -* ]]; then commands=$options; fi
  COMPREPLY=($(compgen -W "$commands" -- "$current"))
}}
complete -o default -F _dgc dgc
)",
                     subcommand_patterns(commands), cases);
}

std::string zsh_words(const std::vector<Word>& words) {
  std::string list;
  for (const Word& word : words) {
    std::string quoted;
    for (const char c : word.text + ":" + word.meaning) {
      if (c == '\'') {
        quoted += "'\\''";
      } else {
        quoted += c;
      }
    }
    list += fmt::format("{}'{}'", list.empty() ? "" : " ", quoted);
  }
  return list;
}

std::string zsh_completion(const CLI::App& app) {
  const std::vector<Command> commands = commands_of(app);
  std::string cases;
  for (const auto& [name, command] : commands) {
    cases += fmt::format("  (\"{}\")\n    commands=({})\n    options=({}) ;;\n", name, zsh_words(subcommands(*command)),
                         zsh_words(options(*command)));
  }
  return fmt::format(R"(#compdef dgc
# Made by `dgc completion zsh`.
local command=dgc word
local -a commands options
for word in "${{(@)words[2,CURRENT-1]}}"; do
  case "$command $word" in
    ({}) command="$command $word" ;;
  esac
done
case $command in
{}esac
if [[ $words[CURRENT] == -* ]]; then
  _describe -o option options
elif (( $#commands )); then
  _describe command commands
else
  _files
fi
)",
                     subcommand_patterns(commands), cases);
}

struct Shell {
  const char* name;
  std::string (*script)(const CLI::App&);
};
constexpr std::array kShells = {Shell{"bash", bash_completion}, Shell{"zsh", zsh_completion}};

}  // namespace

void add_completion_command(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print what makes a shell complete commands and options");
  command->add_option("SHELL", *shell, "bash or zsh")->required()->check(one_of(names_of(kShells)));
  command->footer(
      "Examples:\n  dgc completion bash > ~/.local/share/bash-completion/completions/dgc\n"
      "  dgc completion zsh > ~/.zfunc/_dgc      # a folder of zsh's $fpath");
  command->callback([&app, shell] { fmt::print("{}", row_named(kShells, *shell).script(app)); });
}

}  // namespace dgc
