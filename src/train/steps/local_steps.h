#pragma once

#include <utility>
#include <vector>

#include "optim/local_weights.h"
#include "train/steps/step_computation.h"

namespace dgc {

// Each worker takes steps on weights of its own, and what these have moved by is exchanged once in
// exchange.every_steps steps, as gradients are (docs/exchange.md). The steps from one exchange to the next are a round.
// A round that is skipped leaves nothing behind: the shared weights, the workers' statistics and state are those from
// before it, and momentum begins again at 0.
class LocalSteps : public StepComputation {
 public:
  explicit LocalSteps(const StepContext&);

  int64_t queue(const NextStep&) override;
  int64_t unexchanged() const override { return taken_; }
  double exchange_rate(double) const override { return options_.outer.learning_rate; }
  std::vector<NamedState> state() const override;
  void resume(int64_t unexchanged) override { taken_ = unexchanged; }

 protected:
  // Exchanges what the workers have moved by. Returns what queue() returns.
  virtual int64_t end_round(const NextStep&);
  // Writes what each local worker's weights have moved by in the place of its gradient, and the worker's losses into
  // the record. Returns the gradients.
  std::vector<float*> write_moved();
  // To be called before the next round, once what write_moved() wrote is compressed, or the round is skipped.
  void settle_moved();
  // The number of steps of the round, which has ended.
  int64_t end_count() { return std::exchange(taken_, 0); }
  float outer_rate() const { return static_cast<float>(options_.outer.learning_rate); }

 private:
  struct Worker {
    LocalWeights own;
    Arena loss;        // the LossStats of the round: three doubles, which a checkpoint keeps as six numbers of 32 bits
    Buffer step_loss;  // the LossStats of a step
  };

  void begin_round();
  void take_steps(Passes);
  void exchange_moved();
  StepControl* control() const { return static_cast<StepControl*>(control_.data()); }
  static LossStats* step_loss(const Worker& w) { return static_cast<LossStats*>(w.step_loss.data()); }
  static LossStats* round_loss(const Worker& w) { return reinterpret_cast<LossStats*>(w.loss.data()); }

  const ExchangeOptions& options_;
  ParamLayout loss_layout_;
  std::vector<Worker> workers_;
  Buffer control_;     // the StepControl of the workers' own steps
  int64_t taken_ = 0;  // steps of the current round
};

}  // namespace dgc
