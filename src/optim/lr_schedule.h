#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace dgc {

// The learning rate as a function of the epoch, which is a fraction while an epoch runs (step / steps per epoch).
struct LrSchedule {
  enum class Type {
    constant,     // base
    step,         // base * factor^(milestones passed)
    cosine,       // from base to end along half a cosine
    polynomial,   // end + (base - end) * (1 - epoch / epochs)^power
    plateau,      // base * factor^(plateaus met), at least end
    exponential,  // base * factor^(whole epochs)
  };
  Type type = Type::constant;
  double base = 0.1;
  double epochs = 1;               // cosine, polynomial: length of the training
  std::vector<double> milestones;  // step: epochs, increasing
  double factor = 0.1;             // step, plateau, exponential
  double power = 1;                // polynomial
  double end = 0;                  // cosine, polynomial, plateau
  int64_t patience = 0;            // plateau: evaluations without improvement that are tolerated
  double threshold = 1e-4;         // plateau: relative improvement that counts
  double warmup_epochs = 0;        // any kind: at first a straight line from warmup_from to the schedule's value
  double warmup_from = 0;          // a learning rate
  bool operator==(const LrSchedule&) const = default;
};

// Whether rates depend on LrSchedule::epochs: with more of them, steps already made would have had other rates.
bool spreads_over_epochs(LrSchedule::Type);

// Whether rates depend on the losses of evaluations.
bool heeds_losses(LrSchedule::Type);

// What a plateau schedule has seen. Other schedules have no state. Checkpoints save the state.
struct PlateauState {
  double best = std::numeric_limits<double>::infinity();
  int64_t bad = 0;       // evaluations since the best one, or since the last plateau
  int64_t plateaus = 0;  // plateaus met so far
};

double learning_rate_at(const LrSchedule& schedule, double epoch, const PlateauState& plateau = {});

// The state after an evaluation with this loss, as in PyTorch's ReduceLROnPlateau with mode "min" and a relative
// threshold. A NaN loss counts as no improvement. Schedules of other types leave the state as it is.
PlateauState plateau_after(const LrSchedule& schedule, PlateauState state, double loss);

}  // namespace dgc
