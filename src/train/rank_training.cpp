#include "train/rank_training.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <filesystem>

#include "tensor/counted.h"
#include "tensor/errors.h"
#include "train/agreement.h"
#include "train/divergence.h"
#include "train/ranks/failure.h"
#include "train/ranks/interrupt.h"

namespace dgc {
namespace {

int64_t total_steps(const Config& config, const Rank& rank) {
  if (rank.stalled()) return rank.step();
  const int64_t all = rank.step() + config.training.epochs * rank.steps_per_epoch() - rank.position();
  return std::max(rank.step(), std::min(config.training.max_steps.value_or(all), all));
}

// Throws UserError when training from the rank's state to the step `steps` makes no sense.
void require_way(const Config& config, const std::filesystem::path& run, const Rank& rank, int64_t steps) {
  if (rank.unexchanged() > 0 && rank.step() >= steps) {
    throw_user_error(
        "{}: training.max_steps = {} ends it between two exchanges (exchange.every_steps); set it above {}",
        run.string(), config.training.max_steps.value_or(steps), rank.step());
  }
  if (!rank.flushed() || rank.step() >= steps) return;
  throw_user_error("{}: its residuals were sent at step {} (optimizer.flush_at_end) and it cannot go on to step {}",
                   run.string(), rank.step(), steps);
}

bool is_users(const std::exception& error) {
  const auto* const by_peer = dynamic_cast<const ToldByPeer*>(&error);
  return by_peer != nullptr ? by_peer->users : complaint(error).users;
}

}  // namespace

RankTraining::RankTraining(const Config& config, RunDirectory& run, const DataView& data, Backend& backend,
                           Communicator& communicator)
    : config_(config),
      run_(run),
      communicator_(communicator),
      device_(*backend.device()),
      rank_(config, data, backend, communicator),
      store_(run.path(), [&run](int64_t step) { run.hold(step); }) {
  in_unison(communicator_, device_, [this] {
    const std::string& file = config_.model.init_from;
    if (!run_.resumed_from() && !file.empty()) rank_.start_from({file, rank_.network()});
  });
}

void RankTraining::begin() {
  in_unison(communicator_, device_, [this] {
    if (run_.resumed_from()) {
      rank_.restore(*run_.resumed_from());
      store_.pass_over_newer(rank_.step());
    }
    steps_ = total_steps(config_, rank_);
    require_way(config_, run_.path(), rank_, steps_);
  });
  in_unison(communicator_, device_, [this] {
    if (communicator_.rank() != 0) return;
    const MetricsWriter::Start start{rank_.step(), rank_.unexchanged(), rank_.owes_evaluation()};
    if (!run_.resumed_from()) run_.describe();  // first, as only what has a config is a run directory
    reporter_.emplace(config_, run_.path(), start, steps_, global_batch(config_));
    if (run_.resumed_from()) run_.describe();  // last, as damaged metrics refuse the resume
    reporter_->begin();
  });
}

void RankTraining::train() {
  told_ = Clock::now();
  if (rank_.owes_evaluation() || owes_flush()) catch_up();
  while (rank_.step() < steps_) {
    rank_.train_step();
    tell_steps();
    const Due due = due_now();
    if (due.anything()) pause(due);
  }
  check_replicas();
  if (!eval_) evaluate_again();
  if (reporter_) tell_end();
  if (!unsaved_.empty()) throw_unsaved();
  in_unison(communicator_, device_, [this] {
    if (reporter_) reporter_->require_written();
  });
  if (!rank_.sound()) throw_diverged(store_, rank_.skipped());
}

RankTraining::Due RankTraining::due_now() const {
  // Where a rank may be late, only what follows an exchange that all have waited for can be done by all.
  Due found{rank_.planned(0, config_.exchange.wait ? rank_.met() : 1)};
  found.checks = communicator_.size() > 1 && due(rank_.step(), config_.check_replicas_every, rank_.met());
  // Where other ranks have not been asked to stop, they are in their next step by now, and cannot save this one.
  found.stops = rank_.asked_to_stop() || (communicator_.size() == 1 && rank_.lack());
  found.ends = rank_.step() == steps_;
  return found;
}

bool RankTraining::owes_flush() const {
  return rank_.step() >= steps_ && config_.optimizer.flush_at_end && !rank_.flushed();
}

// Does what an earlier attempt has left undone at the step that the run was resumed at: an evaluation that has failed,
// or, as the step has become the last one, sending the residuals.
void RankTraining::catch_up() {
  Due due = due_now();
  if (!due.anything()) return;
  due.saves = true;
  // What has stalled the run has been learnt from, so only the test set can be left to evaluate.
  due.learns = rank_.owes_evaluation() && !rank_.stalled();
  pause(due);
}

// Does what is due, which looks at the weights, so every queued step has to be done.
void RankTraining::pause(const Due& due) {
  rank_.finish_steps();
  tell_steps();
  const Clock::time_point paused = Clock::now();
  if (due.checks) check_replicas();
  if (due.evaluates && !due.ends) evaluate_midway();
  const bool last = rank_.step() == steps_;
  if (last) evaluate_at_end();
  // An evaluation that only max_steps causes changes no course, because a longer run would not have made it.
  if (due.evaluates && due.ends && due.learns) learn();
  if (reporter_ && (last || due.evaluates)) reporter_->eval(*eval_);
  if (due.stops || last || due.saves || (due.evaluates && config_.checkpoint.best && rank_.at_best())) {
    unsaved_ = save();
    if (reporter_ && !due.stops && !last) tell_save();
  }
  if (due.stops && !last) stop();
  told_ += Clock::now() - paused;
}

void RankTraining::evaluate_midway() {
  eval_ = evaluated(&Rank::evaluate);
  learn();
  if (!rank_.stalled()) return;
  steps_ = rank_.step();
  if (!reporter_) return;
  spdlog::info("the validation loss has not fallen since step {}, {} ago (training.stop_after): the run ends",
               rank_.best().step, counted(*config_.training.stop_after, "evaluation"));
}

void RankTraining::evaluate_at_end() {
  if (owes_flush()) rank_.flush();
  eval_ = evaluated(&Rank::evaluate_all);
}

// Saves before a signal, or a file that cannot be read, ends the run. That error is one rank's, and the others are
// told.
EvalMetrics RankTraining::evaluated(EvalMetrics (Rank::*evaluate)()) {
  std::exception_ptr end;
  bool stopped = false;
  try {
    return (rank_.*evaluate)();
  } catch (const Interrupted&) {
    stopped = true;
  } catch (const std::exception& error) {
    if (!is_users(error)) throw;
    end = std::current_exception();
  }
  rank_.owe_evaluation();
  unsaved_ = save();
  if (stopped) stop();
  in_unison(communicator_, device_, [&] {  // so that rank 0's log has the whole sentence, whoever's error it is
    try {
      throw_end(end);
    } catch (const ToldByPeer&) {
    }
  });
  throw_end(end);
}

// Throws what ends the run, with a word on whether its state is saved.
void RankTraining::throw_end(const std::exception_ptr& end) const {
  try {
    std::rethrow_exception(end);
  } catch (const ToldByPeer&) {
    throw;
  } catch (const std::exception& error) {
    if (!is_users(error)) throw;
    const std::string what = complaint(error).text;
    if (!unsaved_.empty()) {
      throw_user_error("{}; and the state of step {} could not be saved: {}; {}", what, rank_.step(), unsaved_,
                       way_on());
    }
    throw_user_error("{}; the state of step {} is saved: go on with --resume when that is mended", what, rank_.step());
  }
}

// Evaluates where the run was resumed at its end, with nothing to save.
void RankTraining::evaluate_again() {
  try {
    eval_ = rank_.evaluate_all();
  } catch (const Interrupted&) {
    if (reporter_) spdlog::info("stopped in the evaluation behind step {}, the last one, which is saved", rank_.step());
    throw;
  }
}

void RankTraining::learn() {
  rank_.adapt_learning_rate(*eval_);
  rank_.compare_with_best(*eval_);
}

// Returns why the state could not be saved, or "". Rows of metrics are on the disk before the checkpoint they belong
// to.
std::string RankTraining::save() {
  if (reporter_) {
    if (!run_.is_away()) reporter_->follow_name();  // else another run's file may be there
    reporter_->sync();
  }
  std::string problem = rank_.save(store_, config_.checkpoint.keep);
  away_ = !problem.empty() && holds_on_first(communicator_, device_, run_.is_away());
  return problem;
}

// What is under the run's name now may be another one's.
std::string RankTraining::newest() const {
  if (away_) return "this run's checkpoints went with its folder, which was moved or removed";
  const auto all = store_.list();
  return all.empty() ? "there is no checkpoint yet" : "the newest checkpoint is " + all.front().string();
}

std::string RankTraining::way_on() const {
  if (away_) return newest() + ": where it was moved, --resume goes on with the new folder as its --out";
  return newest() + ": make room, and --resume " +
         (store_.list().empty() ? "trains again from the beginning" : "goes on from there");
}

void RankTraining::throw_unsaved() const {
  // --resume does not cut off a last row that is all that is left of a run. On a full disk there may be none.
  const bool has_result = !away_ && has_result_alone(run_.path());
  throw_user_error("the run has ended at step {}, but its state could not be saved: {}; {}", rank_.step(), unsaved_,
                   has_result ? newest() + ": make room, and --overwrite trains it again" : way_on());
}

// A disk may stay full for thousands of saves.
void RankTraining::tell_save() {
  if (unsaved_.empty()) {
    if (failed_saves_ > 1)
      spdlog::info("step {} is saved, the first after {} that could not be", rank_.step(), failed_saves_);
    failed_saves_ = 0;
    return;
  }
  if (!std::has_single_bit(++failed_saves_)) return;
  spdlog::warn("step {} could not be saved: {}; training goes on, and {}{}", rank_.step(), unsaved_, newest(),
               failed_saves_ > 1 ? fmt::format("; {} saves in a row have failed", failed_saves_) : "");
}

void RankTraining::stop() {
  in_unison(communicator_, device_, [this] {
    if (rank_.lack()) throw_end(rank_.lack());
  });
  if (!unsaved_.empty()) throw_unsaved();
  if (reporter_) {
    spdlog::info("stopped at step {} of {}; the state is saved, go on with --resume", rank_.step(), steps_);
  }
  throw Interrupted();
}

void RankTraining::check_replicas() {
  in_unison(communicator_, device_, [this] { rank_.check_replicas(); });
}

void RankTraining::tell_steps() {
  while (const std::optional<StepMetrics> metrics = rank_.next_metrics()) {
    const Clock::time_point now = Clock::now();
    if (reporter_) reporter_->step(*metrics, std::chrono::duration<double>(now - told_).count());
    told_ = Clock::now();
    require_progress(config_, store_, rank_.skipped());  // throws at the same step on all ranks
  }
}

void RankTraining::tell_end() {
  const ExchangeTime time = rank_.exchange_time().value_or(ExchangeTime{});
  reporter_->final({.eval = *eval_,
                    .wall_seconds = rank_.wall_seconds(),
                    .peak_memory_bytes = static_cast<int64_t>(rank_.peak_bytes()),
                    .weights_xxh64 = rank_.weights_xxh64(),
                    .diverged = !rank_.sound(),
                    .exchange_ms = time.ms_per_step(),
                    .hidden_share = time.hidden_share()});
}

}  // namespace dgc
