// Man page and completion: made from the options, so that none is missing.
#include <catch.hpp>

#include "commands/app.h"
#include "tests/commands/program.h"

namespace dgc {
namespace {

using namespace test;
using Catch::Contains;

std::string without(std::string text, char unwanted) {
  std::erase(text, unwanted);
  return text;
}

// From `begin` to `end`, or to the text's end.
std::string stretch(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t at = text.find(begin);
  if (at == std::string::npos) return "";
  const size_t behind = text.find(end, at + begin.size());
  return text.substr(at, behind == std::string::npos ? behind : behind - at);
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace

TEST_CASE("man page and completion have every command and option") {
  const Program dgc;
  const std::string manual = without(dgc.run({"manual"}).out, '\\');
  const std::string bash = dgc.run({"completion", "bash"}).out;
  const std::string zsh = dgc.run({"completion", "zsh"}).out;
  const auto app = make_app();
  const std::vector<Command> commands = commands_of(*app);
  REQUIRE(commands.size() > 12);
  for (const auto& [name, command] : commands) {
    const std::string section = stretch(manual, ".SS " + name + "\n", "\n.SS ");
    const std::string bash_case = stretch(bash, "    \"" + name + "\") ", " ;;");
    const std::string zsh_case = stretch(zsh, "  (\"" + name + "\")\n", " ;;");
    CAPTURE(name, section, bash_case, zsh_case);
    CHECK_THAT(section, Contains(command->get_description()));
    for (const CLI::Option* option : command->get_options()) CHECK_THAT(section, Contains(option->get_description()));
    for (const std::string& option : option_names(*command)) {
      CHECK_THAT(section, Contains(option));
      CHECK_THAT(bash_case, Contains(option));
      CHECK_THAT(zsh_case, Contains("'" + option + ":"));
    }
    for (const CLI::App* sub : command->get_subcommands(nullptr)) {
      CHECK_THAT(bash_case, Contains(sub->get_name()));
      CHECK_THAT(zsh_case, Contains("'" + sub->get_name() + ":"));
    }
  }
}

TEST_CASE("bash completes commands and options") {
  const auto [words, offered] = GENERATE(table<std::string, std::string>({
      {"dgc tr", "train transcribe\n"},
      {"dgc -", "-h --help --version\n"},
      {"dgc bench ''", "dgc train data convolutions\n"},
      {"dgc bench train --re", "--repeats\n"},
      {"dgc train x.json --max", "--max-restarts\n"},
      {"dgc pr", "predict\n"},
      {"dgc predict run --j", "--json\n"},
      {"dgc report run --f", "--follow\n"},
      {"dgc train ''", "\n"},  // bash offers files
      {"dgc train train ''", "\n"},
  }));
  CAPTURE(words);
  const Program dgc;
  dgc.write("complete", dgc.run({"completion", "bash"}).out);
  Child bash(dgc.folder(),
             {"--norc", "-c",
              "source ./complete; COMP_WORDS=(" + words +
                  "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _dgc; echo ${COMPREPLY[@]}"},
             "bash");
  CHECK(bash.wait() == 0);
  CHECK(bash.out() == offered);
  CHECK(bash.err().empty());
}

TEST_CASE("there is completion for bash and zsh alone") {
  const Program dgc;
  const Result fish = dgc.run({"completion", "fish"});
  CHECK(fish.code == 2);
  CHECK_THAT(fish.err, Contains("SHELL") && Contains("\"fish\" is none of bash, zsh"));
  CHECK_THAT(dgc.run({"completion", "bsh"}).err, Contains("did you mean \"bash\"?"));
}

}  // namespace dgc
