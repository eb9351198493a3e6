#include "run/resumable.h"

#include <algorithm>

#include "config/config.h"
#include "kernels/backend.h"
#include "run/run_directory.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// Why results depend on a key that people expect to be free to change, or that is free with other settings; empty: no
// such reason.
std::string why_not(const std::string& key, const Config& made_with, const Config& now) {
  // 0 leaves the number to the machine, and Rank::restore() looks at what that came to. Another number of workers has
  // other bits anyway.
  const bool as_many = made_with.workers() == now.workers();
  if (key == "threads" && made_with.threads > 0 && now.threads > 0 && as_many && is_cpu(now.device)) {
    return "as another number of threads splits sums in other places, and rounds them otherwise";
  }
  // The number of a GPU does not matter.
  if (key == "device" && is_cpu(made_with.device) != is_cpu(now.device)) return "as a GPU rounds otherwise than a CPU";
  // The loss of an evaluation depends on its batches in the last digits: products of other sizes round otherwise.
  if (key == "training.eval_batch" && heeds_losses(now.learning_rate.type)) {
    return "as the last digits of an evaluation's loss depend on it, and the rates of learning_rate.type on that loss";
  }
  if (key == "training.eval_batch" && now.training.stop_after) {
    return "as the last digits of an evaluation's loss depend on it, and training.stop_after on that loss";
  }
  if (key == "training.epochs" && spreads_over_epochs(now.learning_rate.type)) {
    return "as learning_rate.type is one that spreads the rates over all epochs, and the steps made so far would have "
           "had others";
  }
  if (key == "exchange.transport" && now.optimizer.dgc.algorithm == ExchangeAlgorithm::split_reduce) {
    return "as a dense sum takes all of what workers selected, and \"split_reduce\" otherwise the largest sums alone";
  }
  return "";
}

}  // namespace

void require_resumable(const std::filesystem::path& run, const Config& made_with, const Config& now) {
  std::vector<ConfigDifference> differences = config_differences(made_with, now);
  // A reason why a key is not free may lie in another key, which is then alike in both configs.
  std::ranges::stable_partition(differences, [](const auto& d) { return !is_free_on_resume(d.path); });
  for (const ConfigDifference& d : differences) {
    const std::string why = why_not(d.path, made_with, now);
    if (why.empty() && is_free_on_resume(d.path)) continue;
    throw_user_error(
        "{}: was started with {} = {} and cannot be resumed with {}{}{}; give the same --set again, or resume with the "
        "run's own config (dgc train {} --resume), or start a new run with --out",
        run.string(), d.path, d.a.empty() ? "nothing" : d.a, d.b.empty() ? "nothing" : d.b, why.empty() ? "" : ", ",
        why, (run / kConfigFile).string());
  }
}

}  // namespace dgc
