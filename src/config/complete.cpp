#include "config/complete.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "config/check_value.h"
#include "config/data_types.h"
#include "config/model_types.h"
#include "config/table.h"
#include "tensor/errors.h"

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
  const DataType& data = data_type(c.data);
  if (!model.classes || !data.classes) return;  // known once built
  const int64_t wanted = model.classes(c.model), there = data.classes(c.data.images);
  if (wanted != there) {
    origin.refuse("model.classes", fmt::format("{}, but the data have {} classes", wanted, there));
  }
}

void check_batches(const TrainingOptions& training, const Origin& origin) {
  if (training.batch_per_worker % training.accumulate == 0) return;
  origin.refuse("training.accumulate",
                fmt::format("{} does not divide training.batch_per_worker, which is {}; set it to a divisor",
                            training.accumulate, training.batch_per_worker));
}

void check_optimization(const Config& c, const Origin& origin) {
  if (c.optimizer.dgc.sgd.nesterov && c.optimizer.dgc.sgd.momentum == 0) {
    origin.refuse("optimizer.nesterov", "needs an optimizer.momentum above 0");
  }
  const auto& milestones = c.learning_rate.milestones;
  if (std::adjacent_find(milestones.begin(), milestones.end(), std::greater_equal<>()) != milestones.end()) {
    origin.refuse("learning_rate.milestones", "must increase from one to the next");
  }
  if (c.learning_rate.type == LrSchedule::Type::plateau && c.learning_rate.end > c.learning_rate.base) {
    origin.refuse("learning_rate.end", "\"plateau\" lowers the rate, so this is at most learning_rate.base");
  }
  if (c.learning_rate.type == LrSchedule::Type::plateau && c.training.eval_every_epochs == 0) {
    origin.refuse("learning_rate.type", "\"plateau\" needs evaluations; set training.eval_every_epochs to 1 or more");
  }
}

void check_validation(const Config& c, const Origin& origin) {
  const auto require = [&](const char* key) {
    if (!has_validation_set(c.data)) {
      origin.refuse(key, "goes by a validation set, and there is none; set data.validation_split to 0.1, for example");
    }
    if (c.training.eval_every_epochs == 0) {
      origin.refuse(key, "needs evaluations; set training.eval_every_epochs to 1 or more");
    }
  };
  if (c.training.stop_after) require("training.stop_after");
  if (c.checkpoint.best) require("checkpoint.best");
}

void check_exchange(const Config& c, const Origin& origin) {
  if (c.exchange.dense_values == DenseValues::fp16 && c.optimizer.type != OptimizerType::sgd) {
    origin.refuse("exchange.dense_values",
                  "\"fp16\" is for optimizer.type \"sgd\"; with \"dgc\" use exchange.wire.values \"fp16\", and "
                  "exchange.small_tensors \"dense_fp16\" for 1-D tensors");
  }
  const ExchangeAlgorithm algorithm = c.optimizer.dgc.algorithm;
  if (algorithm != ExchangeAlgorithm::all_gather && c.optimizer.type != OptimizerType::dgc) {
    origin.refuse("exchange.algorithm",
                  fmt::format("\"{}\" is for messages, which optimizer.type \"dgc\" alone sends; leave it out",
                              kExchangeAlgorithmNames[static_cast<size_t>(algorithm)]));
  }
  const DgcOptions& dgc = c.optimizer.dgc;
  if (dgc.masked_momentum == MaskedMomentum::sent) {
    const auto refuse = [&](const char* reason) { origin.refuse("optimizer.masked_momentum", reason); };
    if (!dgc.momentum_correction || !dgc.factor_masking) {
      refuse(
          "\"sent\" is for momentum that is masked; leave it out, or leave momentum_correction and factor_masking on");
    }
    if (algorithm == ExchangeAlgorithm::split_reduce) {
      refuse("\"sent\" needs exchange.algorithm \"all_gather\", because \"split_reduce\" masks only what came back");
    }
  }
  if (algorithm == ExchangeAlgorithm::split_reduce && c.optimizer.dgc.wire != kCanonicalWire) {
    origin.refuse("exchange.wire",
                  "\"split_reduce\" sends \"fp32\" values with its own indices; leave it out, or set "
                  "exchange.algorithm to \"all_gather\"");
  }
  if (c.exchange.workers_per_group > 1 && c.optimizer.type != OptimizerType::dgc) {
    origin.refuse("exchange.workers_per_group",
                  "groups compress as one worker, and optimizer.type \"dgc\" alone compresses; leave it out");
  }
}

void check_wait(const Config& c, const Origin& origin) {
  if (!c.exchange.wait) return;
  const auto refuse = [&](const std::string& because) {
    origin.refuse("exchange.wait", because + "; leave it out, so that all ranks wait for all");
  };
  if (c.exchange.every_steps == 1) {
    origin.refuse("exchange.wait",
                  "is for ranks that take steps of their own between exchanges; leave it out, or set "
                  "exchange.every_steps above 1");
  }
  const DgcOptions& dgc = c.optimizer.dgc;
  if (c.optimizer.type != OptimizerType::dgc) refuse("is for the messages of optimizer.type \"dgc\"");
  if (dgc.transport == Transport::dense) refuse("exchange.transport \"dense\" sums what all ranks send on its way");
  if (dgc.algorithm != ExchangeAlgorithm::all_gather)
    refuse("exchange.algorithm \"split_reduce\" needs all ranks at once");
  if (dgc.small_tensors == SmallTensors::dense_fp16) {
    refuse("is for exchange.small_tensors \"dense\" or \"sparse\"");
  }
  if (c.exchange.communicator == CommunicatorType::nccl) {
    refuse("exchange.communicator \"nccl\" has all ranks in every exchange, and \"mpi\" has not");
  }
}

void check_local_steps(const Config& c, const Origin& origin) {
  if (c.exchange.every_steps == 1) {
    if (c.exchange.outer == OuterOptions{}) return;
    origin.refuse("exchange.outer",
                  "is for workers that take steps of their own between exchanges; leave it out, or set "
                  "exchange.every_steps above 1");
  }
  if (c.exchange.outer.nesterov && c.exchange.outer.momentum == 0) {
    origin.refuse("exchange.outer.nesterov", "needs an exchange.outer.momentum above 0");
  }
  const auto refuse = [&](const std::string& because) {
    origin.refuse("exchange.every_steps", fmt::format("{}; set it to 1", because));
  };
  if (c.exchange.workers_per_group > 1) {
    refuse("the workers of exchange.workers_per_group add up their gradients in every step");
  }
  if (c.exchange.overlap == Overlap::on) {
    refuse("exchange.overlap \"on\" is for gradients that are exchanged in every step");
  }
  if (c.precision == Precision::fp16) {
    refuse("precision \"fp16\" has a loss scale that all workers find together, in every step");
  }
}

void check_overlap(const Config& c, const Origin& origin) {
  if (c.exchange.overlap != Overlap::on) return;
  const char* const key = "exchange.overlap";
  if (c.optimizer.type != OptimizerType::dgc) origin.refuse(key, "\"on\" is for optimizer.type \"dgc\"; use \"auto\"");
  if (c.optimizer.dgc.sgd.clip_norm) {
    origin.refuse(key,
                  "\"on\" and optimizer.clip_norm exclude each other: the norm is known after the last gradient; use "
                  "\"auto\"");
  }
  if (c.optimizer.dgc.transport == Transport::dense) {
    origin.refuse(key, "\"on\" is for messages, and exchange.transport is \"dense\"; use \"auto\"");
  }
  if (c.optimizer.dgc.algorithm != ExchangeAlgorithm::all_gather) {
    origin.refuse(key, "\"on\" is for exchange.algorithm \"all_gather\"; use \"auto\"");
  }
  if (c.exchange.workers_per_group > 1) {
    origin.refuse(key,
                  "\"on\" and exchange.workers_per_group exclude each other: a group's gradient is known after all of "
                  "its workers'; use \"auto\"");
  }
}

void complete_workers(Config& c, const Origin& origin) {
  c.workers_at_once = std::min(c.workers_at_once, c.workers_per_rank);
  if (c.workers_at_once > 1 && c.exchange.overlap == Overlap::on) {
    origin.refuse(
        "workers_at_once",
        "exchange.overlap \"on\" is for workers that compute one after another; set it to 1, or use \"auto\"");
  }
}

void check_ranks(const Config& c, const Origin& origin) {
  if (c.ranks > 1 && c.exchange.communicator == CommunicatorType::single) {
    origin.refuse("exchange.communicator",
                  fmt::format("\"single\" has one rank, but ranks is {}; use \"threads\"", c.ranks));
  }
}

}  // namespace

void complete(Config& config, const Origin& origin) {
  if (config.name.empty()) config.name = run_name(origin.file);
  const std::string place = "{name}";
  for (size_t at = 0; (at = config.output.find(place, at)) != std::string::npos; at += config.name.size()) {
    config.output.replace(at, place.size(), config.name);
  }
  model_type(config.model).complete(config, origin);
  check_kind(config, origin);
  check_classes(config, origin);
  data_type(config.data).check(config.data, origin);
  check_batches(config.training, origin);
  check_optimization(config, origin);
  check_validation(config, origin);
  check_exchange(config, origin);
  check_wait(config, origin);
  check_local_steps(config, origin);
  check_overlap(config, origin);
  complete_workers(config, origin);
  check_ranks(config, origin);
}

}  // namespace dgc
