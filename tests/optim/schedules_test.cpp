#include <catch.hpp>
#include <cmath>

#include "optim/lr_schedule.h"
#include "optim/sparsity_schedule.h"
#include "tests/support/all_of.h"

using namespace dgc;

TEST_CASE("sparsity rises by phases of equal length", "[schedule]") {
  SparsitySchedule s;
  s.warmup.epochs = 4;
  CHECK(sparsity_at(s, 0) == 0.75);
  CHECK(sparsity_at(s, 0.999) == 0.75);
  CHECK(sparsity_at(s, 1) == 0.9375);
  CHECK(sparsity_at(s, 2.5) == 0.984375);
  CHECK(sparsity_at(s, 3.999) == 0.996);
  CHECK(sparsity_at(s, 4) == 0.999);
  CHECK(sparsity_at(s, 100) == 0.999);
  s.warmup.epochs = 1;  // PTB: all phases in the first epoch
  CHECK(sparsity_at(s, 0.3) == 0.9375);
  CHECK(sparsity_at(s, 0.99) == 0.996);
  CHECK(sparsities_of(s) == std::vector{0.75, 0.9375, 0.984375, 0.996, 0.999});
  s.final = 0.99;  // no phase is sparser
  CHECK(sparsity_at(s, 0.6) == 0.984375);
  CHECK(sparsity_at(s, 0.99) == 0.99);
  CHECK(sparsities_of(s) == std::vector{0.75, 0.9375, 0.984375, 0.99});
  s.final = 0.999;
  s.warmup.epochs = 0;
  CHECK(sparsity_at(s, 0) == 0.999);
  CHECK(sparsities_of(s) == std::vector{0.999});
  s.warmup.epochs = 2;
  s.warmup.sparsity = {};
  CHECK(sparsity_at(s, 0) == 0.999);
}

TEST_CASE("learning rates by hand", "[schedule]") {
  LrSchedule s;
  s.base = 0.4;
  s.epochs = 10;
  CHECK(learning_rate_at(s, 3) == 0.4);

  s.type = LrSchedule::Type::step;
  s.milestones = {2, 5};
  CHECK(learning_rate_at(s, 1.99) == 0.4);
  CHECK(learning_rate_at(s, 2) == Approx(0.04));
  CHECK(learning_rate_at(s, 9) == Approx(0.004));

  s.type = LrSchedule::Type::cosine;
  s.end = 0.1;
  CHECK(learning_rate_at(s, 0) == Approx(0.4));
  CHECK(learning_rate_at(s, 5) == Approx(0.25));
  CHECK(learning_rate_at(s, 2.5) == Approx(0.1 + 0.15 * (1 + std::sqrt(0.5))));
  CHECK(learning_rate_at(s, 10) == Approx(0.1));
  CHECK(learning_rate_at(s, 11) == Approx(0.1));

  s.type = LrSchedule::Type::polynomial;
  s.power = 2;
  CHECK(learning_rate_at(s, 5) == Approx(0.1 + 0.3 * 0.25));
  CHECK(learning_rate_at(s, 12) == Approx(0.1));

  s.type = LrSchedule::Type::exponential;
  s.factor = 0.5;
  CHECK(learning_rate_at(s, 0.99) == 0.4);
  CHECK(learning_rate_at(s, 1) == Approx(0.2));
  CHECK(learning_rate_at(s, 3.5) == Approx(0.05));
}

TEST_CASE("warm-up is a straight line to the schedule's value", "[schedule]") {
  LrSchedule s;
  s.base = 1;
  s.warmup_epochs = 4;
  s.warmup_from = 0.2;
  CHECK(learning_rate_at(s, 0) == Approx(0.2));
  CHECK(learning_rate_at(s, 2) == Approx(0.6));
  CHECK(learning_rate_at(s, 4) == 1);
}

TEST_CASE("a schedule spreads over all epochs where more of them give a step another rate", "[schedule]") {
  LrSchedule s;
  s.type = GENERATE(from_range(test::all_of<LrSchedule::Type>()));
  s.epochs = 4;
  s.milestones = {1};
  LrSchedule longer = s;
  longer.epochs = 8;
  CHECK(spreads_over_epochs(s.type) == (learning_rate_at(s, 2) != learning_rate_at(longer, 2)));
}

TEST_CASE("plateau: the rate falls when the loss stops falling", "[schedule]") {
  LrSchedule s;
  s.type = LrSchedule::Type::plateau;
  s.base = 20;
  s.factor = 0.25;
  s.patience = 1;
  s.threshold = 0.01;
  s.end = 0.5;
  PlateauState state;
  const auto see = [&](double loss) {
    state = plateau_after(s, state, loss);
    return learning_rate_at(s, 0, state);
  };
  CHECK(see(10) == 20);
  CHECK(see(9) == 20);
  CHECK(see(8.95) == 20);         // less than 1 % better: the first bad one is tolerated
  CHECK(see(std::nan("")) == 5);  // the second is not
  CHECK(see(8.95) == 5);          // counting starts anew
  CHECK(see(8) == 5);
  CHECK(see(8) == 5);
  CHECK(see(8) == 1.25);
  CHECK(see(8) == 1.25);
  CHECK(see(8) == 0.5);  // not below end
}

TEST_CASE("plateau: other schedules count no evaluations", "[schedule]") {
  LrSchedule s;
  s.type = GENERATE(LrSchedule::Type::constant, LrSchedule::Type::cosine);
  PlateauState state;
  for (const double loss : {3.0, 2.0, 2.0, 2.0}) state = plateau_after(s, state, loss);
  CHECK(std::isinf(state.best));
  CHECK(state.bad == 0);
  CHECK(state.plateaus == 0);
}
