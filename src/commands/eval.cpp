#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "commands/commands.h"
#include "commands/decoding_options.h"
#include "commands/option_checks.h"
#include "commands/short_spins.h"
#include "tensor/printable.h"
#include "tools/evaluate.h"

namespace dgc {

namespace {

void print_text(const Evaluation& e) {
  const double valid = *e.metrics.valid_loss, test = e.metrics.test_loss;
  fmt::print("valid loss     {:.4f}   perplexity {:.2f}\n", valid, perplexity(valid));
  fmt::print("test loss      {:.4f}   perplexity {:.2f}\n", test, perplexity(test));
}

void print_speech(const Evaluation& e) {
  const ErrorRates& errors = *e.metrics.errors;
  fmt::print("test loss      {:.4f}\n", e.metrics.test_loss);
  fmt::print("test WER       {:.2f} %\n", 100 * errors.wer);
  fmt::print("test CER       {:.2f} %\n", 100 * errors.cer);
  if (errors.left_out > 0) {
    fmt::print("not in the loss: {} utterances, too short for their transcripts\n", errors.left_out);
  }
}

void print_images(const Evaluation& e) {
  fmt::print("test loss      {:.4f}\n", e.metrics.test_loss);
  fmt::print("test accuracy  {:.2f} %\n", 100 * e.metrics.test_accuracy);
  fmt::print("test top-5     {:.2f} %\n", 100 * e.metrics.test_top5);
}

// Texts of an evaluation, of which some are shown: from all over the set, short and long.
struct Texts {
  std::vector<std::pair<std::string, std::string>> all;

  void print(size_t shown) const {
    for (size_t i = 0; i < std::min(shown, all.size()); ++i) {
      const auto& [said, heard] = all[(2 * i + 1) * all.size() / (2 * std::min(shown, all.size()))];
      fmt::print("\nsaid   {}\nheard  {}\n", printable(said), printable(heard));
    }
  }
};

}  // namespace

void add_eval_command(CLI::App& app) {
  struct Options {
    std::string run;
    size_t show = 0;
    EvaluateOptions evaluate;
    Texts texts;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("eval", "Evaluate a run's newest good checkpoint on its test set");
  command->add_option("RUN", options->run, "run directory")->required();
  command->add_option("--set", options->evaluate.overrides, "override a key of the run's config: --set data.path=DIR")
      ->take_all()
      ->expected(1);
  command->add_option("--logits", options->evaluate.logits,
                      "also write the logits of all test images, fp32 [images, classes], as a safetensors file");
  add_decoding_options(*command, options->evaluate.decoding);
  command->add_option("--show", options->show, "of speech: also print so many texts beside what was said")
      ->check(whole_number(0, 1000000));
  command->footer("Examples:\n  dgc eval runs/quickstart\n  dgc eval runs/quickstart_speech --beam 64 --show 5");
  command->callback([options] {
    restart_with_short_spins();
    if (options->show > 0) {
      options->evaluate.told = [&](const std::string& said, const std::string& heard) {
        options->texts.all.emplace_back(said, heard);
      };
    }
    const Evaluation e = evaluate_run(options->run, options->evaluate);
    fmt::print("checkpoint     {}\n", printable(e.checkpoint.string()));
    if (e.metrics.valid_loss) {
      print_text(e);
    } else if (e.metrics.errors) {
      print_speech(e);
    } else {
      print_images(e);
    }
    fmt::print("weights xxh64  {}\n", e.weights_xxh64);
    options->texts.print(options->show);
  });
}

}  // namespace dgc
