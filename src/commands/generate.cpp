#include "tools/generate.h"

#include <fmt/core.h>

#include <memory>

#include "commands/commands.h"
#include "commands/option_checks.h"
#include "commands/overrides.h"
#include "commands/short_spins.h"
#include "commands/standard_output.h"
#include "json/text.h"
#include "tensor/printable.h"

namespace dgc {

void add_generate_command(CLI::App& app) {
  struct Options {
    std::string run;
    GenerateOptions generate;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("generate", "Let a language model go on from a prompt");
  command->add_option("RUN", options->run, "run directory")->required();
  command->add_option("--prompt", options->generate.prompt, "what the text begins with (default: nothing)");
  command->add_option("--words", options->generate.words, "words to add, ends of lines counted")
      ->check(whole_number(0, 1000000))
      ->capture_default_str();
  command
      ->add_option("--temperature", options->generate.temperature, "below 1: likelier words; 0: always the likeliest")
      ->check(number(0, 1000))
      ->capture_default_str();
  command->add_option("--seed", options->generate.seed, "another one: other words")
      ->check(whole_number(0, INT64_MAX))
      ->capture_default_str();
  command->add_flag("--json", options->json, "print one JSON object, once all is written");
  add_overrides(*command, options->generate.overrides, "override a key of the run's config: --set device=cpu");
  command->footer("Example:\n  dgc generate runs/quickstart_lm --prompt \"in the beginning\" --words 60");
  command->callback([options] {
    restart_with_short_spins();
    std::string whole;  // for --json
    bool line_begins = true;
    generate(options->run, options->generate, [&](std::string_view word) {
      const bool line_ends = word == "<eos>";
      const std::string blank = line_begins || line_ends ? "" : " ";
      line_begins = line_ends;
      if (options->json) {
        whole += line_ends ? "\n" : blank + std::string(word);
      } else {
        fmt::print("{}{}", blank, line_ends ? "\n" : printable(word));
      }
    });
    if (options->json) {
      print_json(json_text({{"prompt", options->generate.prompt}, {"text", whole}}));
    } else if (!line_begins) {
      fmt::print("\n");
    }
  });
}

}  // namespace dgc
