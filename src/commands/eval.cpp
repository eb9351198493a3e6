#include <fmt/core.h>

#include <memory>

#include "commands/commands.h"
#include "train/evaluate.h"

namespace dgc {

namespace {

void print_text(const Evaluation& e) {
  const double valid = *e.metrics.valid_loss, test = e.metrics.test_loss;
  fmt::print("valid loss     {:.4f}   perplexity {:.2f}\n", valid, perplexity(valid));
  fmt::print("test loss      {:.4f}   perplexity {:.2f}\n", test, perplexity(test));
  fmt::print("weights xxh64  {}\n", e.weights_xxh64);
}

}  // namespace

void add_eval_command(CLI::App& app) {
  struct Options {
    std::string run;
    EvaluateOptions evaluate;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("eval", "Evaluate a run's newest good checkpoint on its test set");
  command->add_option("RUN", options->run, "run directory")->required();
  command->add_option("--set", options->evaluate.overrides, "override a key of the run's config: --set data.path=DIR")
      ->take_all()
      ->expected(1);
  command->add_option("--logits", options->evaluate.logits,
                      "also write the logits of all test images, fp32 [images, classes], as a safetensors file");
  command->footer("Example:\n  dgc eval runs/quickstart");
  command->callback([options] {
    const Evaluation e = evaluate_run(options->run, options->evaluate);
    fmt::print("checkpoint     {}\n", e.checkpoint.string());
    if (e.metrics.valid_loss) return print_text(e);
    fmt::print("test loss      {:.4f}\n", e.metrics.test_loss);
    fmt::print("test accuracy  {:.2f} %\n", 100 * e.metrics.test_accuracy);
    fmt::print("test top-5     {:.2f} %\n", 100 * e.metrics.test_top5);
    fmt::print("weights xxh64  {}\n", e.weights_xxh64);
  });
}

}  // namespace dgc
