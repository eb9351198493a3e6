#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "commands/commands.h"
#include "commands/decoding_options.h"
#include "commands/option_checks.h"
#include "commands/overrides.h"
#include "commands/short_spins.h"
#include "commands/standard_output.h"
#include "tensor/printable.h"
#include "tools/evaluate.h"

namespace dgc {

namespace {

void print(const char* what, const std::string& value) { fmt::print("{:<27}{}\n", what, value); }

std::string text_of(const Metric& metric, double value) {
  return std::isfinite(value) ? metric.text(value) : "not finite";
}

void warn_of_divergence(const Measures& measures) {
  for (const auto& [metric, value] : measures.all()) {
    if (metric->is_lost(value)) spdlog::warn("the {} is not finite: the model has diverged", metric->name);
  }
}

// Texts of an evaluation. The texts shown come from all over the set, so that there are short and long ones.
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
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("eval", "Evaluate a run's newest good checkpoint, or its best one, on its test set");
  command->add_option("RUN", options->run, "run directory")->required();
  add_overrides(*command, options->evaluate.overrides, "override a key of the run's config: --set data.path=DIR");
  command->add_flag("--best", options->evaluate.best,
                    "the checkpoint with the lowest validation loss, which checkpoint.best keeps, not the newest");
  command
      ->add_option(
          "--logits", options->evaluate.logits,
          "also write the logits of all test images, fp32 [images, classes], and their labels, int64 [images], "
          "as a safetensors file, in the order of class folders by name and in each of files by name, both by bytes; "
          "other data sets in their files' order")
      ->check(output_file());
  add_decoding_options(*command, options->evaluate.scoring.decoding);
  CLI::Option* show =
      command->add_option("--show", options->show, "of speech: also print so many texts beside what was said")
          ->check(whole_number(0, 1000000));
  command->add_flag("--json", options->json, "print one JSON object, with the names of metrics.jsonl")->excludes(show);
  command->footer(
      "Examples:\n  dgc eval runs/quickstart\n  dgc eval runs/quickstart_speech --beam 64 --show 5\n"
      "  dgc eval runs/quickstart --json\n\n"
      "Computes in fp32 on any machine, whatever the run's `precision`: a run in tf32, bf16 or fp16 has evaluated\n"
      "itself in that, so its last row differs in the last digits.");
  command->callback([options] {
    restart_with_short_spins();
    if (options->show > 0) {
      options->evaluate.scoring.told = [&](const std::string& said, const std::string& heard) {
        options->texts.all.emplace_back(said, heard);
      };
    }
    const Evaluation e = evaluate_run(options->run, options->evaluate);
    warn_of_divergence(e.metrics.measures);
    if (options->json) {
      Row row = to_row(e.metrics);
      row.set("checkpoint", e.checkpoint.string()).set("weights_xxh64", e.weights_xxh64);
      print_json(to_json_line(row));
      return;
    }
    print("checkpoint", printable(e.checkpoint.string()));
    for (const auto& [metric, value] : e.metrics.measures.all()) {
      if (metric->unit != Metric::Unit::count || value > 0) print(metric->name, text_of(*metric, value));
    }
    print("weights xxh64", e.weights_xxh64);
    options->texts.print(options->show);
  });
}

}  // namespace dgc
