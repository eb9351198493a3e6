#include "train/trainer.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <optional>
#include <string>

#include "config/model_types.h"
#include "run/run_directory.h"
#include "run/run_lock.h"
#include "run/run_state.h"
#include "tensor/counted.h"
#include "tensor/errors.h"
#include "train/agreement.h"
#include "train/divergence.h"
#include "train/rank_training.h"
#include "train/ranks/failure.h"
#include "train/ranks/interrupt.h"
#include "train/ranks/launched_config.h"
#include "train/ranks/meeting.h"
#include "train/ranks/on_ranks.h"

namespace dgc {
namespace {

// Says that an earlier attempt has trained to the end; throws when that attempt diverged.
void tell_finished(const RunDirectory& run, bool first) {
  const RunState end = read_run_state(*run.resumed_from());
  if (!end.sound) throw_diverged(CheckpointStore(run.path()), end.skipped);
  if (first) {
    spdlog::info("{} is finished: all its {} steps are done, and it stays as it is", run.path().string(), end.step);
  }
}

// Somebody may not have copied a class, or have written a layer with too many outputs. "": none is missing.
std::string remark_on_classes(int64_t outputs, int64_t known) {
  if (outputs <= known) return "";
  return fmt::format("the model has {} classes and the data {}: {} of its outputs never get an example", outputs, known,
                     outputs - known);
}

// What a rank has read before it meets the others, and what it was asked to do.
struct Given {
  const Launch& launch;
  const TrainOptions& options;
  Config config;
  Datasets sets;
  Row facts;
  std::string initial_remark;        // InitialWeights::remark()
  std::vector<std::string> remarks;  // on what the network cannot learn, or never sees

  Given(const Config& as_written, const Launch& launched, const TrainOptions& asked)
      : launch(launched), options(asked), config(with_launch(as_written, launch)), sets(open_sets(config)) {
    config = task_of(config).completed(config, sets);
    const Network network = make_network(config.model, sets.train->sample());
    check_fits(config, network, *sets.train);
    remarks = task_of(config).remarks(config, network, sets);
    const std::string on_classes = remark_on_classes(network.classes(), sets.train->classes());
    if (!on_classes.empty()) remarks.push_back(on_classes);
    facts = start_facts({config, options, sets.view()});
    // A resumed run has all weights in its checkpoint, and the file may be gone.
    const bool resumes = options.resume && !CheckpointStore(run_path(config, options)).list().empty();
    if (config.model.init_from.empty() || resumes) return;
    const InitialWeights initial(config.model.init_from, network);
    facts.set(kInitialWeights, initial.xxh64());
    initial_remark = initial.remark();
  }

  DataView view() const {
    DataView view = sets.view();
    view.train_xxh64 = training_set_xxh64(facts);
    return view;
  }
};

std::string description(const Given& given, const std::string& device) {
  const Config& config = given.config;
  const Task& task = task_of(config);
  const std::string held_back =
      config.data.validation_split > 0 ? fmt::format(", {} validation", given.sets.valid->size()) : "";
  return fmt::format("{}: {} x {} on {}, {} training{} and {} test {}", config.name,
                     counted(config.workers(), "worker"), task.batch_text(config), device, given.sets.train->size(),
                     held_back, given.sets.test->size(), task.size_text(given.sets));
}

// at_once: of a rank's workers.
void tell_workers(const Config& config, int64_t at_once) {
  if (config.workers() == 1) return;
  std::string rank;
  if (config.ranks > 1) rank = fmt::format("; a rank, a process or thread, runs {} of them", config.workers_per_rank);
  if (at_once > 1) rank += fmt::format("; {} of {} compute at the same time", at_once, config.workers_per_rank);
  spdlog::info("a worker is a replica with its own share of the data{}", rank);
}

void tell_start(const Given& given, const RunDirectory& run, const std::string& device,
                const std::string& communicator) {
  spdlog::info("{}, into {}", description(given, device), run.path().string());
  tell_remarks(given.sets);
  for (const std::string& remark : given.remarks) spdlog::warn(remark);
  if (!given.initial_remark.empty()) spdlog::info("model.init_from: {}", given.initial_remark);
  if (given.config.ranks > 1) spdlog::info("{} ranks exchange through {}", given.config.ranks, communicator);
}

// Opens the run directory that rank 0 has made or resumed in the processes of all other ranks.
void join(const Given& given, Communicator& communicator, Device& device, std::optional<RunDirectory>& run) {
  std::string lock;
  RunDirectory::Joined joined;
  if (communicator.rank() == 0) {
    lock = lock_text(run->path()).value_or("");
    joined = run->for_others();
  }
  lock = told_by_first(communicator, device, lock);
  joined.checkpoint = told_by_first(communicator, device, joined.checkpoint);
  joined.finished = holds_on_first(communicator, device, joined.finished);
  in_unison(communicator, device, [&] {
    if (given.launch.rank == 0) return;
    const std::filesystem::path path = run_path(given.config, given.options);
    require_same_directory(path, lock);
    run.emplace(joined, path);
  });
}

std::filesystem::path train(const Given& given, Communicator& peers) {
  const Config& config = given.config;
  const Launch& launch = given.launch;
  std::optional<RunDirectory> run;
  const InterruptGuard guard;
  const RankBody body = [&](Backend& backend, Communicator& communicator) {
    Device& device = *backend.device();
    in_unison(communicator, device, [&] { require_agreement(communicator, device, given.facts); });
    const bool first = communicator.rank() == 0;
    if (first) run.emplace(config, given.options, given.sets.view().vocabulary, given.sets.train->class_names());
    join(given, communicator, device, run);
    if (run->finished()) return tell_finished(*run, first);
    RankTraining training(config, *run, given.view(), backend, communicator);
    in_unison(communicator, device, [&] {
      if (!first) return;
      run->begin();
      tell_start(given, *run, device.name(), communicator.name());
      tell_workers(config, training.workers_at_once());
    });
    training.begin();
    training.train();
  };
  try {
    on_ranks(config, launch, peers, body);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    // main() prints it when log.txt is closed. Of several processes each has told its own already.
    if (launch.size == 1) spdlog::debug("{}", complaint(error).text);
    throw;
  }
  return launch.rank == 0 ? run->path() : std::filesystem::path();
}

}  // namespace

void require_no_launcher(const std::string& instead) {
  const Launch launch = read_ranks();
  if (launch.size == 1) return;
  throw_user_error("{} has started this process as one of {}, but {}", launch.launcher, launch.size,
                   fmt::format(fmt::runtime(instead), launch.size));
}

std::filesystem::path train(const ConfigSource& load, const TrainOptions& options) {
  const Launch launch = this_launch();
  const auto peers = make_peers(launch);
  std::filesystem::path path;
  as_rank(*peers, [&] {
    const auto host = make_cpu_device();
    std::optional<Given> given;
    in_unison(*peers, *host, [&] {
      RendezvousOptions meeting;
      const auto meet_as = [&](const ExchangeOptions& exchange) {
        if (exchange.failure_timeout_s > 0) meeting.timeout = std::chrono::seconds(exchange.failure_timeout_s);
        meeting.interface = exchange.interface;
      };
      meet_as({});  // until the config is known, and where there are no heartbeats
      or_decline(launch, *peers, meeting, [&] {
        const Config config = load();
        meet_as(config.exchange);
        given.emplace(config, launch, options);
      });
    });
    in_unison(*peers, *host, [&] { require_agreement(*peers, *host, given->facts); });
    path = train(*given, *peers);
  });
  return path;
}

}  // namespace dgc
