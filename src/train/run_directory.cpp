#include "train/run_directory.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "config/config.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.json";

// Keys that may change between one attempt and the next: no result depends on them, or, with another number of workers,
// Rank::restore() says what becomes of it.
constexpr std::array<std::string_view, 20> kFree = {"checkpoint.every_epochs",
                                                    "checkpoint.every_steps",
                                                    "checkpoint.keep",
                                                    "data.path",
                                                    "data.train",
                                                    "data.valid",
                                                    "data.test",
                                                    "data.vocabulary",
                                                    "data.threads",
                                                    "training.max_steps",
                                                    "check_replicas_every",
                                                    "optimizer.max_skipped_steps",
                                                    "exchange.communicator",
                                                    "exchange.failure_timeout_s",
                                                    "exchange.transport",
                                                    "exchange.overlap",
                                                    "exchange.bucket_mb",
                                                    "exchange.wire.indices",
                                                    "ranks",
                                                    "workers_per_rank"};

bool is_free(const std::string& key, const Config& config) {
  // A dense sum takes all of what workers selected, a split only the largest sums.
  if (key == "exchange.transport" && config.exchange.algorithm == ExchangeAlgorithm::split_reduce) return false;
  return std::ranges::find(kFree, key) != kFree.end();
}

void require_same_config(const fs::path& run, const Config& config) {
  for (const ConfigDifference& d : config_differences(run_config(run), config)) {
    if (is_free(d.path, config)) continue;
    throw_user_error("{}: was started with {} = {} and cannot be resumed with {}; start a new run with --out",
                     run.string(), d.path, d.a.empty() ? "nothing" : d.a, d.b.empty() ? "nothing" : d.b);
  }
}

}  // namespace

fs::path run_path(const Config& config, const TrainOptions& options) {
  return options.out.empty() ? fs::path(config.output) : options.out;
}

RunDirectory::RunDirectory(Joined, const Config& config, const TrainOptions& options)
    : path_(run_path(config, options)) {
  if (options.resume) checkpoint_ = newest_checkpoint(path_);
}

RunDirectory::RunDirectory(const Config& config, const TrainOptions& options) : path_(run_path(config, options)) {
  const bool exists = fs::exists(path_ / kConfig) || fs::exists(path_ / "checkpoints");
  if (exists && !options.resume) {
    throw_user_error("{} already holds a run: add --resume to go on with it, or --out DIR for a new one",
                     path_.string());
  }
  if (exists) {
    require_same_config(path_, config);
    log_.emplace(path_);
    checkpoint_ = newest_checkpoint(path_);
    if (!checkpoint_) spdlog::info("{} has no checkpoint yet: starting from the beginning", path_.string());
  }
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) throw_user_error("cannot create {}: {}", path_.string(), error.message());
  if (!log_) log_.emplace(path_);
  const fs::path temporary = path_ / ".config.json";
  write_file(temporary, resolved_json(config));
  fs::rename(temporary, path_ / kConfig);
}

Config run_config(const fs::path& run, const std::vector<std::string>& overrides) {
  if (!fs::exists(run / kConfig)) {
    throw_user_error("{} is not a run directory: it has no {}", run.string(), kConfig);
  }
  return load_config((run / kConfig).string(), overrides);
}

}  // namespace dgc
