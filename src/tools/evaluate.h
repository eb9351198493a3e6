#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "run/metrics.h"
#include "tasks/task.h"

namespace dgc {

struct EvaluateOptions {
  std::vector<std::string> overrides{};  // changes to the run's config, as for `dgc train --set`
  bool best = false;                     // the checkpoint with the lowest validation loss, in the place of the newest
  std::filesystem::path logits{};        // file for logits and labels of images; empty: not written
  ScoringOptions scoring{};
};

struct Evaluation {
  std::filesystem::path checkpoint;
  EvalMetrics metrics;
  std::string weights_xxh64;
};

// Evaluates the newest good checkpoint of a run, or its best one, on its test set, and on the validation set where
// there is one. Throws UserError when the run has no good checkpoint.
Evaluation evaluate_run(const std::filesystem::path& run, const EvaluateOptions&);

}  // namespace dgc
