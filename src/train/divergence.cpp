#include "train/divergence.h"

#include "tensor/errors.h"

namespace dgc {
namespace {

std::string way_on(const CheckpointStore& store) {
  const auto sound = store.newest_sound();
  return fmt::format(
      "start again with a lower learning_rate.base or with optimizer.clip_norm, and look for such numbers in the data; "
      "{}",
      sound ? "the last good checkpoint is " + sound->string() : "there is no good checkpoint");
}

}  // namespace

void require_progress(const Config& config, const CheckpointStore& store, const Skipped& skipped) {
  if (skipped.exchanges < config.optimizer.max_skipped_steps) return;
  throw_user_error("optimizer.max_skipped_steps: steps {} to {} were all skipped, as gradients were not finite: {}",
                   skipped.step - skipped.in_row + 1, skipped.step, way_on(store));
}

void throw_diverged(const CheckpointStore& store, const Skipped& skipped) {
  const std::string how =
      skipped.in_row > 0
          ? fmt::format("from step {} on gradients were not finite, and all steps up to the last one, {}, were skipped",
                        skipped.step - skipped.in_row + 1, skipped.step)
          : fmt::format("at its end, step {}, its weights, its loss or its perplexity are not finite", skipped.step);
  throw_user_error("the run has diverged: {}: {}", how, way_on(store));
}

}  // namespace dgc
