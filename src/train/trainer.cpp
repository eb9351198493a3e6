#include "train/trainer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "config/config.h"
#include "config/model_types.h"
#include "run/run_directory.h"
#include "run/run_lock.h"
#include "tensor/errors.h"
#include "train/agreement.h"
#include "train/divergence.h"
#include "train/failure.h"
#include "train/interrupt.h"
#include "train/launched_config.h"
#include "train/meeting.h"
#include "train/on_ranks.h"
#include "train/reporter.h"

namespace dgc {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

int64_t total_steps(const Config& config, const Rank& rank) {
  if (rank.stalled()) return rank.step();
  const int64_t all = rank.step() + config.training.epochs * rank.steps_per_epoch() - rank.position();
  return config.training.max_steps ? std::min(*config.training.max_steps, all) : all;
}

std::string newest(const CheckpointStore& store) {
  const auto all = store.list();
  return all.empty() ? "there is no checkpoint yet" : "the newest checkpoint is " + all.front().string();
}

[[noreturn]] void throw_unsaved(const CheckpointStore& store, int64_t step, const std::string& why) {
  throw_user_error(
      "the run has ended at step {}, but its state could not be saved: {}; {}: make room and go on from there with "
      "--resume",
      step, why, newest(store));
}

// Throws what ends a run whose state is saved.
[[noreturn]] void throw_after_save(const std::exception_ptr& end, int64_t step) {
  try {
    std::rethrow_exception(end);
  } catch (const UserError& error) {
    throw_user_error("{}; the state of step {} is saved: go on with --resume when that is mended", error.what(), step);
  }
}

void tell_stalled(const Config& config, const Rank& rank) {
  spdlog::info(
      "the validation loss has not fallen since step {}, {} evaluations ago (training.stop_after): the run ends",
      rank.best().step, *config.training.stop_after);
}

void train_rank(const Config& config, RunDirectory& run, const DataView& data, Backend& backend,
                Communicator& communicator) {
  Rank rank(config, data, backend, communicator);
  Device& device = *backend.device();
  const CheckpointStore store(run.path(), [&] { run.hold(); });
  int64_t steps = 0;
  in_unison(communicator, device, [&] {
    if (run.resumed_from()) {
      rank.restore(*run.resumed_from());
    } else if (!config.model.init_from.empty()) {
      rank.start_from({config.model.init_from, rank.network()});
    }
    steps = total_steps(config, rank);
    if (rank.unexchanged() > 0 && rank.step() >= steps) {
      throw_user_error(
          "{}: training.max_steps = {} ends it between two exchanges (exchange.every_steps); set it above {}",
          run.path().string(), steps, rank.step());
    }
    if (!rank.flushed() || rank.step() >= steps) return;
    throw_user_error("{}: its residuals were sent at step {} (optimizer.flush_at_end) and it cannot go on to step {}",
                     run.path().string(), rank.step(), steps);
  });
  const auto check_replicas = [&] { in_unison(communicator, device, [&] { rank.check_replicas(); }); };
  std::optional<Reporter> reporter;
  if (communicator.rank() == 0) {
    reporter.emplace(config, run.path(), rank.step(), steps, global_batch(config));
  }

  Clock::time_point told = Clock::now();
  const auto tell = [&] {
    while (const std::optional<StepMetrics> metrics = rank.next_metrics()) {
      if (reporter) reporter->step(*metrics, seconds_since(told));
      told = Clock::now();
      require_progress(config, store, rank.skipped());  // throws at the same step on all ranks
    }
  };
  std::optional<EvalMetrics> eval;
  std::string unsaved;                                        // why the newest save failed
  const bool may_be_late = config.exchange.wait.has_value();  // then only where all have met can all do something
  // Returns why the state could not be saved, or "". Rows of metrics are on the disk before the checkpoint they belong
  // to.
  const auto save = [&] {
    if (reporter) reporter->sync();
    return rank.save(store, config.checkpoint.keep);
  };
  // Saves before a file that cannot be read ends the run. That error is rank 0's, and the others are told.
  const auto evaluated = [&](EvalMetrics (Rank::*evaluate)()) {
    std::exception_ptr end;
    try {
      return (rank.*evaluate)();
    } catch (const std::exception& error) {
      const auto* const by_peer = dynamic_cast<const ToldByPeer*>(&error);
      if (!(by_peer != nullptr ? by_peer->users : complaint(error).users)) throw;
      end = std::current_exception();
    }
    rank.owe_evaluation();
    if (!save().empty()) std::rethrow_exception(end);
    throw_after_save(end, rank.step());
  };
  // Whether a resumed run finds something to do at its step before it makes another one: an evaluation that has failed,
  // or, as the step has become the last one, residuals to send.
  bool unfinished =
      rank.owes_evaluation() || (rank.step() >= steps && config.optimizer.flush_at_end && !rank.flushed());
  while (rank.step() < steps || unfinished) {
    const bool finishes = std::exchange(unfinished, false);
    const bool learns = !finishes || rank.owes_evaluation();
    if (!finishes) {
      rank.train_step();
      tell();
    }

    const int64_t epoch_steps = rank.steps_per_epoch();
    const bool planned_end = rank.step() == steps;
    const bool evaluates = due(rank.position(), config.training.eval_every_epochs * epoch_steps);
    const bool saves = due(rank.position(), config.checkpoint.every_epochs * epoch_steps) ||
                       due(rank.step(), config.checkpoint.every_steps.value_or(0), may_be_late ? rank.met() : 1);
    const bool checks = communicator.size() > 1 && due(rank.step(), config.check_replicas_every, rank.met());
    // Where other ranks have not been asked to stop, they are in their next step by now, and cannot save this one.
    const bool stop = rank.asked_to_stop() || (communicator.size() == 1 && rank.lack());
    if (!(planned_end || evaluates || saves || checks || stop)) continue;

    // The code below looks at the weights, so every queued step has to be done.
    rank.finish_steps();
    tell();
    const Clock::time_point paused = Clock::now();
    if (checks) check_replicas();
    // An evaluation that only max_steps causes changes no course, because a longer run would not have made it.
    const auto learn = [&] {
      rank.adapt_learning_rate(*eval);
      rank.compare_with_best(*eval);
    };
    if (evaluates && !planned_end) {
      eval = evaluated(&Rank::evaluate);
      learn();
      if (rank.stalled()) {
        steps = rank.step();
        if (reporter) tell_stalled(config, rank);
      }
    }
    const bool last = rank.step() == steps;
    if (last) {
      if (config.optimizer.flush_at_end && !rank.flushed()) rank.flush();
      eval = evaluated(&Rank::evaluate_all);
      if (evaluates && planned_end && learns) learn();
    }
    if (reporter && (last || evaluates)) reporter->eval(*eval);
    if (finishes || stop || last || saves || (evaluates && config.checkpoint.best && rank.at_best())) {
      unsaved = save();
      if (!unsaved.empty() && !stop && !last && reporter) {
        spdlog::warn("step {} could not be saved: {}; training goes on, and {}", rank.step(), unsaved, newest(store));
      }
    }
    if (stop && !last) {
      if (!unsaved.empty()) throw_unsaved(store, rank.step(), unsaved);
      in_unison(communicator, device, [&] {
        if (rank.lack()) throw_after_save(rank.lack(), rank.step());
      });
      if (reporter) {
        spdlog::info("stopped at step {} of {}; the state is saved, go on with --resume", rank.step(), steps);
      }
      throw Interrupted();
    }
    told += Clock::now() - paused;
  }
  check_replicas();
  if (!eval) eval = rank.evaluate_all();  // the run was resumed at its end
  if (reporter) {
    const ExchangeTime time = rank.exchange_time().value_or(ExchangeTime{});
    reporter->final({.eval = *eval,
                     .wall_seconds = rank.wall_seconds(),
                     .peak_memory_bytes = static_cast<int64_t>(rank.peak_bytes()),
                     .weights_xxh64 = rank.weights_xxh64(),
                     .exchange_ms = 1000 * time.seconds / static_cast<double>(time.steps),
                     .hidden_share = time.hidden / time.seconds});
  }
  if (!unsaved.empty()) throw_unsaved(store, rank.step(), unsaved);
  if (!rank.sound()) throw_diverged(store, rank.skipped());
}

// Says that an earlier attempt has trained to the end; throws when that attempt diverged.
void tell_finished(const RunDirectory& run, bool first) {
  const Manifest& end = run.resumed_from()->manifest();
  if (!end.values.boolean(kSound).value_or(true)) {
    throw_diverged(CheckpointStore(run.path()),
                   {.step = end.step, .in_row = end.values.integer(kSkippedInRow).value_or(0)});
  }
  if (first) {
    spdlog::info("{} is finished: all its {} steps are done, and it stays as it is", run.path().string(), end.step);
  }
}

// What a rank has read before it meets the others.
struct Given {
  Config config;
  Datasets sets;
  Row facts;
  std::string initial_remark;  // InitialWeights::remark()

  Given(const Config& as_written, const Launch& launch, const TrainOptions& options)
      : config(with_launch(as_written, launch)), sets(open_sets(config)) {
    config = task_of(config).completed(config, sets);
    const Network network = make_network(config.model, sets.train->sample());
    check_fits(config, network, *sets.train);
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
  return fmt::format("{}: {} workers x {} on {}, {} training{} and {} test {}", config.name,
                     config.ranks * config.workers_per_rank, task.batch_text(config), device, given.sets.train->size(),
                     held_back, given.sets.test->size(), task.size_text(given.sets));
}

void tell_start(const Given& given, const RunDirectory& run, const std::string& device,
                const std::string& communicator) {
  spdlog::info("{}, into {}", description(given, device), run.path().string());
  tell_remarks(given.sets);
  if (!given.initial_remark.empty()) spdlog::info("model.init_from: {}", given.initial_remark);
  const int64_t ranks = given.config.ranks;
  if (ranks > 1) spdlog::info("{} ranks exchange through {}", ranks, communicator);
  if (ranks * given.config.workers_per_rank == 1) return;
  const std::string rank = fmt::format("; a rank, a process or thread, runs {} of them", given.config.workers_per_rank);
  spdlog::info("a worker is a replica with its own share of the data{}", ranks > 1 ? rank : "");
}

// Opens the run directory that rank 0 has made or resumed in the processes of all other ranks.
void join(const Given& given, const Launch& launch, Communicator& communicator, Device& device,
          const TrainOptions& options, std::optional<RunDirectory>& run) {
  std::string lock;
  RunDirectory::Joined joined;
  if (communicator.rank() == 0) {
    lock = lock_text(run->path()).value_or("");
    joined = run->for_others();
  }
  lock = told_by_first(communicator, device, lock);
  joined.checkpoint = told_by_first(communicator, device, joined.checkpoint);
  joined.finished = !told_by_first(communicator, device, joined.finished ? "finished" : "").empty();
  in_unison(communicator, device, [&] {
    if (launch.rank == 0) return;
    const std::filesystem::path path = run_path(given.config, options);
    require_same_directory(path, lock);
    run.emplace(joined, path);
  });
}

std::filesystem::path train(const Given& given, const Launch& launch, Communicator& peers,
                            const TrainOptions& options) {
  const Config& config = given.config;
  std::optional<RunDirectory> run;
  const InterruptGuard guard;
  on_ranks(config, launch, peers, [&](Backend& backend, Communicator& communicator) {
    Device& device = *backend.device();
    in_unison(communicator, device, [&] { require_agreement(communicator, device, given.facts); });
    if (communicator.rank() == 0) {
      run.emplace(config, options, given.sets.view().vocabulary, given.sets.train->class_names());
      if (!run->finished()) tell_start(given, *run, device.name(), communicator.name());
    }
    join(given, launch, communicator, device, options, run);
    if (run->finished()) return tell_finished(*run, communicator.rank() == 0);
    train_rank(config, *run, given.view(), backend, communicator);
  });
  return launch.rank == 0 ? run->path() : std::filesystem::path();
}

}  // namespace

void require_no_launcher(const std::string& instead) {
  const Launch launch = read_launch();
  if (launch.size == 1) return;
  throw_user_error("{} has started this process as one of {}, but {}", launch.launcher, launch.size,
                   fmt::format(fmt::runtime(instead), launch.size));
}

std::filesystem::path train(const ConfigSource& load, const TrainOptions& options) {
  const Launch launch = read_launch();
  const auto peers = make_peers(launch);
  std::filesystem::path path;
  as_rank(*peers, [&] {
    const auto host = make_cpu_device();
    std::optional<Given> given;
    in_unison(*peers, *host, [&] {
      const std::chrono::seconds timeout(ExchangeOptions{}.failure_timeout_s);  // the config's own may be wrong
      or_decline(launch, *peers, timeout, [&] { given.emplace(load(), launch, options); });
    });
    in_unison(*peers, *host, [&] { require_agreement(*peers, *host, given->facts); });
    path = train(*given, launch, *peers, options);
  });
  return path;
}

std::filesystem::path train(const Config& config, const TrainOptions& options) {
  return train([&] { return config; }, options);
}

}  // namespace dgc
