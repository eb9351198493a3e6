#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "run/metrics.h"
#include "tasks/task.h"

namespace dgc {

struct EvaluateOptions {
  std::vector<std::string> overrides{};  // of the run's config, as for `dgc train --set`
  std::filesystem::path logits{};        // of images; empty: not written
  ScoringOptions scoring{};
};

struct Evaluation {
  std::filesystem::path checkpoint;
  EvalMetrics metrics;
  std::string weights_xxh64;
};

// Runs the newest good checkpoint of a run over its test set, of text over the validation set too. Throws UserError
// when there is none.
Evaluation evaluate_run(const std::filesystem::path& run, const EvaluateOptions&);

}  // namespace dgc
