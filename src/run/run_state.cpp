#include "run/run_state.h"

#include <limits>
#include <optional>

#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr const char* kBestKept = "best_kept";
constexpr const char* kSkippedExchanges = "skipped_exchanges";
constexpr int64_t kMostWorkers = 1 << 20, kMostThreads = 1 << 20;
constexpr Bounds kAny = {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};

// Calls each(key, value) or each(key, value, bounds) in the order of the manifest.
template <typename State, typename Each>
void for_each_value(State& state, const Each& each) {
  each("workers", state.workers, Bounds{1, kMostWorkers});
  each("threads", state.threads, Bounds{0, kMostThreads});
  each("steps_per_epoch", state.steps_per_epoch, kAny);  // Rank::restore() compares it with the data's
  each("position", state.position, Bounds{});
  each("flushed", state.flushed);
  each("owes_evaluation", state.owes_evaluation);
  each("unexchanged_steps", state.unexchanged, Bounds{});
  each("loss_scale", state.loss_scale);
  each("good_steps", state.good_steps, Bounds{0, std::numeric_limits<uint32_t>::max()});
  each("skipped", state.skipped_last);
  each("skipped_in_row", state.skipped.in_row, Bounds{});
  each(kSkippedExchanges, state.skipped.exchanges, Bounds{});
  each("sound", state.sound);
  each("wall_seconds", state.wall_seconds);
  each("plateau_best", state.plateau.best);
  each("plateau_bad", state.plateau.bad, Bounds{});
  each("plateaus", state.plateau.plateaus, Bounds{});
}

template <typename State, typename Each>
void for_each_value_of_best(State& state, const Each& each) {
  each("best_loss", state.best.loss);
  each("best_step", state.best.step, Bounds{});
  each(kBestKept, state.best_kept, Bounds{});
  each("since_best", state.best.since, Bounds{});
}

struct ToRow {
  Row& row;

  template <typename T>
  void operator()(const char* key, T value) const {
    row.set(key, value);
  }
  void operator()(const char* key, float value) const { row.set(key, static_cast<double>(value)); }
  void operator()(const char* key, int64_t value, Bounds) const { row.set(key, value); }
};

// Leaves alone what the manifest lacks.
struct FromManifest {
  const Row& values;
  const std::string& where;

  void operator()(const char* key, bool& value) const { value = values.boolean(key).value_or(value); }
  void operator()(const char* key, double& value) const { value = values.number(key).value_or(value); }
  void operator()(const char* key, float& value) const {
    const double read = values.number(key).value_or(value);
    if (!(read >= std::numeric_limits<float>::min() && read <= std::numeric_limits<float>::max())) {
      throw_user_error("checkpoint {}: {} is {} in its manifest, and can only be positive; take an earlier checkpoint",
                       where, key, read);
    }
    value = static_cast<float>(read);
  }
  void operator()(const char* key, int64_t& value, Bounds bounds) const {
    if (values.find(key) == nullptr) return;
    const std::optional<int64_t> read = values.integer(key);
    if (!read) {
      throw_user_error("checkpoint {}: {} is no whole number in its manifest; take an earlier checkpoint", where, key);
    }
    require_within(where, key, *read, bounds);
    value = *read;
  }
};

}  // namespace

void require_within(const std::string& where, const char* key, int64_t value, Bounds bounds) {
  if (value >= bounds.least && value <= bounds.most) return;
  throw_user_error("checkpoint {}: {} is {} in its manifest, and can only be from {} to {}; take an earlier checkpoint",
                   where, key, value, bounds.least, bounds.most);
}

Row to_values(const RunState& state, bool seeks_best) {
  Row values;
  for_each_value(state, ToRow{values});
  if (seeks_best) for_each_value_of_best(state, ToRow{values});
  return values;
}

RunState read_run_state(const Manifest& manifest, const std::string& where, float first_loss_scale) {
  require_within(where, "step", manifest.step, {});
  RunState state;
  state.step = state.position = state.skipped.step = manifest.step;
  state.loss_scale = first_loss_scale;
  for_each_value(state, FromManifest{manifest.values, where});
  for_each_value_of_best(state, FromManifest{manifest.values, where});
  // Checkpoints of earlier versions have no key of their own where both are the same.
  if (manifest.values.find(kSkippedExchanges) == nullptr) state.skipped.exchanges = state.skipped.in_row;
  if (manifest.values.find(kBestKept) == nullptr) state.best_kept = state.best.step;
  return state;
}

RunState read_run_state(const Checkpoint& checkpoint, float first_loss_scale) {
  return read_run_state(checkpoint.manifest(), checkpoint.path().string(), first_loss_scale);
}

}  // namespace dgc
