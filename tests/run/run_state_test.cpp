#include "run/run_state.h"

#include <catch.hpp>
#include <cmath>

#include "tensor/errors.h"

namespace dgc {
namespace {

Manifest manifest_at(int64_t step, const Row& values) {
  return {.step = step, .epoch = 0, .values = values, .files = {}};
}

}  // namespace

TEST_CASE("what a run writes of its state, it reads again") {
  RunState state;
  state.step = 12;
  state.position = 14;
  state.workers = 2;
  state.threads = 3;
  state.skipped = {.step = 12, .in_row = 6, .exchanges = 3};
  state.best = {.loss = 0.25, .step = 8, .since = 2};
  state.best_kept = 4;
  state.sound = false;
  const RunState read = read_run_state(manifest_at(12, to_values(state, true)), "here");
  CHECK(read.step == 12);
  CHECK(read.position == 14);
  CHECK(read.workers == 2);
  CHECK(read.threads == 3);
  CHECK(read.skipped.in_row == 6);
  CHECK(read.skipped.exchanges == 3);
  CHECK(read.best.loss == 0.25);
  CHECK(read.best.step == 8);
  CHECK(read.best.since == 2);
  CHECK(read.best_kept == 4);
  CHECK_FALSE(read.sound);
}

TEST_CASE("what an older checkpoint does not say is as in a run that begins") {
  const RunState state = read_run_state(manifest_at(7, {}), "here", 512);
  CHECK(state.position == 7);
  CHECK(state.skipped.step == 7);
  CHECK(state.steps_per_epoch == 0);
  CHECK(state.threads == -1);
  CHECK(state.loss_scale == 512);
  CHECK(state.sound);
  CHECK(std::isinf(state.best.loss));
  CHECK(state.best_kept == 0);
  const Row values = Row().set("skipped_in_row", int64_t{3}).set("best_step", int64_t{5});
  const RunState older = read_run_state(manifest_at(7, values), "here");
  CHECK(older.skipped.exchanges == 3);  // exchanges were steps
  CHECK(older.best_kept == 5);          // what was best was saved
}

TEST_CASE("a number of a manifest that cannot be is refused with the checkpoint's name and its own") {
  const auto refusal = [](const Row& values) {
    try {
      read_run_state(manifest_at(7, values), "RUN/step-7");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK_THAT(refusal(Row().set("position", int64_t{-1})),
             Catch::StartsWith("checkpoint RUN/step-7: position is -1 in"));
  CHECK_THAT(refusal(Row().set("since_best", std::string("two"))),
             Catch::Contains("RUN/step-7: since_best is no whole number"));
  CHECK_THAT(refusal(Row().set("loss_scale", 0.0)), Catch::Contains("loss_scale is 0 in its manifest"));
  CHECK_THAT(refusal(Row().set("loss_scale", 1e-60)), Catch::Contains("loss_scale is 1e-60 in its manifest"));
}

}  // namespace dgc
