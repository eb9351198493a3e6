#include "config/keys.h"

namespace dgc {

template <>
inline constexpr auto kEnumNames<OptimizerType> = std::to_array<std::string_view>({"sgd", "dgc"});
template <>
inline constexpr auto kEnumNames<LrSchedule::Type> =
    std::to_array<std::string_view>({"constant", "step", "cosine", "polynomial", "plateau", "exponential"});

void add_optimizer_keys(Keys& keys) {
  const std::vector<std::string> dgc = {"dgc"};
  auto optimizer = Section<Config>(keys).section("optimizer", &Config::optimizer);
  optimizer.select("type", &OptimizerOptions::type, "`sgd`: dense momentum SGD; `dgc`: Deep Gradient Compression");
  const auto options = optimizer.part(&OptimizerOptions::dgc);
  const auto sgd = options.part(&DgcOptions::sgd);
  sgd.add("momentum", &SgdOptions::momentum, "Share of the old momentum kept per step").at_least(0).less_than(1);
  sgd.add("nesterov", &SgdOptions::nesterov, "Nesterov's momentum");
  sgd.add(
         "weight_decay", &SgdOptions::weight_decay,
         "Times the weight, added to its gradient; never compressed, unless `exchange.every_steps` is above 1: then it "
         "is part of what the weights have moved by")
      .at_least(0)
      .at_most(1);
  sgd.add("clip_norm", &SgdOptions::clip_norm,
          "Largest norm of the gradient over all parameters; null: no clipping. `dgc` clips each worker's share, "
          "to this / sqrt(workers)")
      .more_than(0)
      .at_most(1e9);
  optimizer
      .add("max_skipped_steps", &OptimizerOptions::max_skipped_steps,
           "Steps in a row that may be skipped, as a gradient was not finite, before the run ends; with "
           "`exchange.every_steps` exchanges. `fp16` skips up to 16 while it looks for its first loss scale")
      .at_least(1)
      .free_on_resume();
  const auto sparsity = optimizer.part(&OptimizerOptions::sparsity);
  sparsity.add("sparsity", &SparsitySchedule::final, "Share of each compressed tensor that is NOT sent; 0 sends all")
      .only(dgc)
      .at_least(0)
      .less_than(1);
  const auto warmup = sparsity.section("warmup", &SparsitySchedule::warmup);
  warmup.add("epochs", &SparsityWarmup::epochs, "Length of the sparsity's warm-up; 0: none")
      .only(dgc)
      .at_least(0)
      .at_most(1000000);
  warmup
      .add("sparsity", &SparsityWarmup::sparsity,
           "Sparsities that share those epochs evenly, in turn; one above `sparsity` counts as `sparsity`")
      .only(dgc)
      .at_least(0)
      .less_than(1)
      .items(1);
  options
      .add("momentum_correction", &DgcOptions::momentum_correction,
           "Accumulate momentum locally; false: momentum over the sum of what was sent")
      .only(dgc);
  options
      .add("factor_masking", &DgcOptions::factor_masking,
           "Clear the local momentum where a value was sent; means nothing without `momentum_correction`")
      .only(dgc);
  options
      .add("masked_momentum", &DgcOptions::masked_momentum,
           "What becomes of the momentum that is cleared: `dropped`, as in the paper; `sent`: what it would still have "
           "added goes with the value, for models whose entries are often sent (docs/algorithm.md)")
      .only(dgc);
  optimizer
      .add("flush_at_end", &OptimizerOptions::flush_at_end,
           "Send every residual before the final evaluation, at the rate of the last step: next to nothing behind a "
           "schedule that ends near 0, and much at a full rate")
      .only(dgc);
}

void add_learning_rate_keys(Keys& keys) {
  auto rate = Section<Config>(keys).section("learning_rate", &Config::learning_rate);
  rate.select(
      "type", &LrSchedule::type,
      "`step`: times `factor` at each milestone; `cosine`, `polynomial`: from `base` to `end` over `training.epochs`, "
      "also where `max_steps` ends the run earlier; "
      "`plateau`: times `factor` when the evaluation loss stalls; `exponential`: times `factor` with every epoch");
  rate.add("base", &LrSchedule::base, "The rate at the start, after its warm-up")
      .must_be_given()
      .more_than(0)
      .at_most(1e6);
  rate.add("milestones", &LrSchedule::milestones, "Epochs, increasing; fractions are fine")
      .only({"step"})
      .must_be_given()
      .more_than(0)
      .at_most(1000000);
  rate.add("factor", &LrSchedule::factor, "See `type`").only({"step", "plateau"}).more_than(0).at_most(1);
  rate.add("factor", &LrSchedule::factor, "See `type`").only({"exponential"}).must_be_given().more_than(0).at_most(1);
  rate.add("power", &LrSchedule::power, "rate = end + (base - end) (1 - progress)^power")
      .only({"polynomial"})
      .more_than(0)
      .at_most(100);
  rate.add("end", &LrSchedule::end, "The last rate; for `plateau` the lowest")
      .only({"cosine", "polynomial", "plateau"})
      .at_least(0)
      .at_most(1e6);
  rate.add("patience", &LrSchedule::patience, "Evaluations without improvement that are tolerated")
      .only({"plateau"})
      .at_least(0)
      .at_most(1000000);
  rate.add("threshold", &LrSchedule::threshold, "Relative improvement of the loss that counts")
      .only({"plateau"})
      .at_least(0)
      .less_than(1);
  rate.add("warmup_epochs", &LrSchedule::warmup_epochs,
           "Straight line from `warmup_from` to the schedule's rate; 0: none")
      .at_least(0)
      .at_most(1000000);
  rate.add("warmup_from", &LrSchedule::warmup_from, "The rate of the first step").at_least(0).at_most(1e6);
}

}  // namespace dgc
