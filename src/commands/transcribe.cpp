#include "tools/transcribe.h"

#include <fmt/core.h>

#include <memory>

#include "commands/commands.h"
#include "commands/decoding_options.h"
#include "commands/overrides.h"
#include "commands/short_spins.h"
#include "commands/standard_output.h"
#include "json/text.h"
#include "tensor/printable.h"

namespace dgc {

void add_transcribe_command(CLI::App& app) {
  struct Options {
    std::string run;
    std::vector<std::string> files;
    TranscribeOptions transcribe;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("transcribe", "Write down what a speech model hears in recordings");
  command->add_option("RUN", options->run, "run directory")->required();
  command->add_option("FILE", options->files, "recordings: WAV, FLAC or SPHERE, mono, of any rate")->required();
  command->add_flag("--json", options->json, "print one JSON object a line for each recording");
  add_decoding_options(*command, options->transcribe.decoding);
  add_overrides(*command, options->transcribe.overrides, "override a key of the run's config: --set device=cpu");
  command->footer(
      "Prints the text, a line for each recording; of several, behind the file's name. A recording that cannot be used "
      "is\nnamed, and the others follow; the exit code is then 2.\n\n"
      "Examples:\n  dgc transcribe runs/quickstart_speech hello.wav\n"
      "  dgc transcribe runs/quickstart_speech *.flac --beam 64 --lm words.arpa --word-weight 0.5 --word-bonus 1\n\n"
      "A recording that is longer than the run's data.max_seconds is refused: --set data.max_seconds=120 takes it, "
      "and\nthe memory it needs.");
  command->callback([options] {
    restart_with_short_spins();
    transcribe(options->run, options->files, options->transcribe,
               [&](const std::string& file, const std::string& text) {
                 if (options->json) return print_json(json_text({{"file", file}, {"text", text}}));
                 fmt::print("{}{}\n", options->files.size() > 1 ? printable(file) + ": " : "", printable(text));
               });
  });
}

}  // namespace dgc
