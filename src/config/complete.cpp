#include "config/complete.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>

#include "config/check_value.h"
#include "config/data_types.h"
#include "config/model_types.h"
#include "config/table.h"
#include "tensor/errors.h"
#include "tensor/home_advice.h"

namespace dgc {
namespace {

std::string run_name(const std::string& file) {
  std::string name = std::filesystem::path(file).stem().string();
  constexpr size_t kLongest = 100;
  name.resize(std::min(name.size(), kLongest));
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-' && c != '+') c = '_';
  }
  return name.empty() || !std::isalnum(static_cast<unsigned char>(name[0])) ? "run" + name : name;
}

std::string one_of(std::vector<std::string> names) {
  const std::string last = quoted({names.back()});
  names.pop_back();
  return names.empty() ? last : quoted(names) + " or " + last;
}

void check_kind(const Config& c, const Origin& origin) {
  const ModelType& model = model_type(c.model);
  const DataType& data = data_type(c.data);
  if (model.reads == data.kind) return;
  if (model.reads != DataKind::images) {
    const auto there = names_of(data_types(), [&](const DataType& d) { return d.kind == model.reads; });
    origin.refuse("data.type", fmt::format("model.type \"{}\" does not read it; use {}", model.name, one_of(there)));
  }
  const auto there = names_of(model_types(), [&](const ModelType& m) { return m.reads == data.kind; });
  origin.refuse("model.type", fmt::format("data.type \"{}\" needs {}", data.name, one_of(there)));
}

void check_classes(const Config& c, const Origin& origin) {
  const ModelType& model = model_type(c.model);
  const std::optional<int64_t> there = image_classes(c.data);
  if (!model.classes || !there) return;  // known once built
  const int64_t wanted = model.classes(c.model);
  if (wanted != *there) {
    origin.refuse("model.classes", fmt::format("{}, but the data have {} classes", wanted, *there));
  }
}

void check_batches(const TrainingOptions& training, const Origin& origin) {
  if (training.batch_per_worker % training.accumulate == 0) return;
  origin.refuse("training.accumulate",
                fmt::format("{} does not divide training.batch_per_worker, which is {}; set it to a divisor",
                            training.accumulate, training.batch_per_worker));
}

void check_ranks(const Config& c, const Origin& origin) {
  if (c.ranks > 1 && c.exchange.communicator == CommunicatorType::single) {
    origin.refuse("exchange.communicator",
                  fmt::format("\"single\" has one rank, but ranks is {}; use \"threads\"", c.ranks));
  }
}

// Words of the rules below.
bool compresses(const Config& c) { return compresses(c.optimizer.type); }
bool gathers(const Config& c) { return c.optimizer.dgc.algorithm == ExchangeAlgorithm::all_gather; }
bool sums_on_the_way(const Config& c) { return c.optimizer.dgc.transport == Transport::dense; }
bool sends_masked_momentum(const Config& c) { return c.optimizer.dgc.masked_momentum == MaskedMomentum::sent; }
bool has_groups(const Config& c) { return c.exchange.workers_per_group > 1; }
bool has_local_steps(const Config& c) { return c.exchange.every_steps > 1; }
double momentum_of_shared_step(const Config& c) {
  return has_local_steps(c) ? c.exchange.outer.momentum : c.optimizer.dgc.sgd.momentum;
}
bool waits(const Config& c) { return c.exchange.wait.has_value(); }
bool overlaps(const Config& c) { return c.exchange.overlap == Overlap::on; }
bool has_plateaus(const Config& c) { return c.learning_rate.type == LrSchedule::Type::plateau; }
bool evaluates(const Config& c) { return c.training.eval_every_epochs > 0; }

constexpr const char* kNoValidation =
    "goes by a validation set, and there is none; set data.validation_split to 0.1, for example";
constexpr const char* kNoEvaluations = "needs evaluations; set training.eval_every_epochs to 1 or more";

// Keys that contradict one another: `key` is refused with `sentence` where the rule is broken. Of several broken rules
// the first is named.
struct Rule {
  const char* key;
  bool (*broken)(const Config&);
  const char* sentence;
};
constexpr Rule kRules[] = {
    {"optimizer.nesterov",
     [](const Config& c) { return c.optimizer.dgc.sgd.nesterov && c.optimizer.dgc.sgd.momentum == 0; },
     "needs an optimizer.momentum above 0"},
    {"learning_rate.milestones",
     [](const Config& c) {
       const auto& epochs = c.learning_rate.milestones;
       return std::ranges::adjacent_find(epochs, std::greater_equal<>()) != epochs.end();
     },
     "must increase from one to the next"},
    {"learning_rate.end", [](const Config& c) { return has_plateaus(c) && c.learning_rate.end > c.learning_rate.base; },
     "\"plateau\" lowers the rate, so this is at most learning_rate.base"},
    {"learning_rate.type", [](const Config& c) { return heeds_losses(c.learning_rate.type) && !evaluates(c); },
     "its rates depend on evaluations; set training.eval_every_epochs to 1 or more"},
    {"training.stop_after", [](const Config& c) { return c.training.stop_after && !has_validation_set(c.data); },
     kNoValidation},
    {"training.stop_after", [](const Config& c) { return c.training.stop_after && !evaluates(c); }, kNoEvaluations},
    {"checkpoint.best", [](const Config& c) { return c.checkpoint.best && !has_validation_set(c.data); },
     kNoValidation},
    {"checkpoint.best", [](const Config& c) { return c.checkpoint.best && !evaluates(c); }, kNoEvaluations},
    {"exchange.dense_values",
     [](const Config& c) {
       return c.exchange.dense_values == DenseValues::fp16 && c.optimizer.type != OptimizerType::sgd;
     },
     "\"fp16\" is for optimizer.type \"sgd\"; with \"dgc\" use exchange.wire.values \"fp16\", and "
     "exchange.small_tensors \"dense_fp16\" for 1-D tensors"},
    {"exchange.algorithm", [](const Config& c) { return !gathers(c) && !compresses(c); },
     "\"split_reduce\" is for messages, which optimizer.type \"dgc\" alone sends; leave it out"},
    {"optimizer.masked_momentum",
     [](const Config& c) {
       const DgcOptions& dgc = c.optimizer.dgc;
       return sends_masked_momentum(c) && !(dgc.momentum_correction && dgc.factor_masking);
     },
     "\"sent\" is for momentum that is masked; leave it out, or leave momentum_correction and factor_masking on"},
    {"optimizer.masked_momentum", [](const Config& c) { return sends_masked_momentum(c) && !gathers(c); },
     "\"sent\" needs exchange.algorithm \"all_gather\", because \"split_reduce\" masks only what came back"},
    {"exchange.wire", [](const Config& c) { return !gathers(c) && c.optimizer.dgc.wire != kCanonicalWire; },
     "\"split_reduce\" sends \"fp32\" values with its own indices; leave it out, or set exchange.algorithm to "
     "\"all_gather\""},
    {"exchange.workers_per_group", [](const Config& c) { return has_groups(c) && !compresses(c); },
     "groups compress as one worker, and optimizer.type \"dgc\" alone compresses; leave it out"},
    {"exchange.wait", [](const Config& c) { return waits(c) && !has_local_steps(c); },
     "is for ranks that take steps of their own between exchanges; leave it out, or set exchange.every_steps above 1"},
    {"exchange.wait", [](const Config& c) { return waits(c) && !compresses(c); },
     "is for the messages of optimizer.type \"dgc\"; leave it out, so that all ranks wait for all"},
    {"exchange.wait", [](const Config& c) { return waits(c) && sums_on_the_way(c); },
     "exchange.transport \"dense\" sums what all ranks send on its way; leave it out, so that all ranks wait for all"},
    {"exchange.wait", [](const Config& c) { return waits(c) && !gathers(c); },
     "exchange.algorithm \"split_reduce\" needs all ranks at once; leave it out, so that all ranks wait for all"},
    {"exchange.wait",
     [](const Config& c) { return waits(c) && c.optimizer.dgc.small_tensors == SmallTensors::dense_fp16; },
     "is for exchange.small_tensors \"dense\" or \"sparse\"; leave it out, so that all ranks wait for all"},
    {"exchange.wait", [](const Config& c) { return waits(c) && c.exchange.communicator == CommunicatorType::nccl; },
     "exchange.communicator \"nccl\" has all ranks in every exchange, and \"mpi\" has not; leave it out, so that all "
     "ranks wait for all"},
    {"exchange.outer", [](const Config& c) { return c.exchange.outer != OuterOptions{} && !has_local_steps(c); },
     "is for workers that take steps of their own between exchanges; leave it out, or set exchange.every_steps above "
     "1"},
    {"exchange.outer.nesterov",
     [](const Config& c) { return c.exchange.outer.nesterov && c.exchange.outer.momentum == 0; },
     "needs an exchange.outer.momentum above 0"},
    {"exchange.every_steps", [](const Config& c) { return has_local_steps(c) && has_groups(c); },
     "the workers of exchange.workers_per_group add up their gradients in every step; set it to 1"},
    {"exchange.every_steps", [](const Config& c) { return has_local_steps(c) && overlaps(c); },
     "exchange.overlap \"on\" is for gradients that are exchanged in every step; set it to 1"},
    {"exchange.every_steps", [](const Config& c) { return has_local_steps(c) && c.precision == Precision::fp16; },
     "precision \"fp16\" has a loss scale that all workers find together, in every step; set it to 1"},
    {"exchange.overlap", [](const Config& c) { return overlaps(c) && !compresses(c); },
     "\"on\" is for optimizer.type \"dgc\"; use \"auto\""},
    {"exchange.overlap", [](const Config& c) { return overlaps(c) && c.optimizer.dgc.sgd.clip_norm; },
     "\"on\" and optimizer.clip_norm exclude each other: the norm is known after the last gradient; use \"auto\""},
    {"exchange.overlap", [](const Config& c) { return overlaps(c) && sums_on_the_way(c); },
     "\"on\" is for messages, and exchange.transport is \"dense\"; use \"auto\""},
    {"exchange.overlap", [](const Config& c) { return overlaps(c) && !gathers(c); },
     "\"on\" is for exchange.algorithm \"all_gather\"; use \"auto\""},
    {"exchange.overlap", [](const Config& c) { return overlaps(c) && has_groups(c); },
     "\"on\" and exchange.workers_per_group exclude each other: a group's gradient is known after all of its workers'; "
     "use \"auto\""},
    {"workers_at_once", [](const Config& c) { return overlaps(c) && c.workers_at_once > 1; },
     "exchange.overlap \"on\" is for workers that compute one after another; set it to 1, or use \"auto\""}};

}  // namespace

void complete(Config& config, const Origin& origin) {
  if (config.name.empty()) config.name = run_name(origin.file);
  const std::string place = "{name}";
  for (size_t at = 0; (at = config.output.find(place, at)) != std::string::npos; at += config.name.size()) {
    config.output.replace(at, place.size(), config.name);
  }
  config.workers_at_once = std::min(config.workers_at_once, config.workers_per_rank);
  check_kind(config, origin);
  model_type(config.model).complete(config, origin);
  check_data(config.data, origin);
  check_classes(config, origin);
  check_batches(config.training, origin);
  for (const Rule& rule : kRules) {
    if (rule.broken(config)) origin.refuse(rule.key, rule.sentence);
  }
  check_ranks(config, origin);
}

void require_meant(const Config& config, const Origin& origin) {
  if (sends_masked_momentum(config) && momentum_of_shared_step(config) == 0) {
    origin.refuse("optimizer.masked_momentum",
                  "\"sent\" needs a momentum above 0: optimizer.momentum, or exchange.outer.momentum where "
                  "exchange.every_steps is above 1");
  }
  require_parts_once(config.data, origin);
  if (const std::string advice = no_home_folder(config.output); !advice.empty()) origin.refuse("output", advice);
  if (config.output.find_first_of("{}") != std::string::npos) {
    origin.refuse("output", "{name} alone stands for something, the run's name; leave out all other braces");
  }
}

}  // namespace dgc
