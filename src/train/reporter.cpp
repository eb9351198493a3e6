#include "train/reporter.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>

#include "tensor/counted.h"

namespace dgc {
namespace {

// The log shows the losses and the metrics that people compare for this kind of data.
bool is_told(const Metric* metric, const Task& task) {
  const std::vector<const Metric*> compared = task.compared().table;
  return metric->unit == Metric::Unit::loss || std::ranges::find(compared, metric) != compared.end();
}

// The reporter does not know which they are: ranks tell each other numbers alone.
constexpr const char* kFewerSteps = "such a one has fewer steps than characters (data/README.md)";

}  // namespace

Reporter::Reporter(const Config& config, const std::filesystem::path& run, const MetricsWriter::Start& start,
                   int64_t steps, int64_t batch)
    : config_(config),
      task_(task_of(config)),
      metrics_(run, start),
      events_(run, start.step),
      steps_(steps),
      batch_(batch) {}

Reporter::~Reporter() {
  sum_up_skipped();
  sum_up_absent();
}

void Reporter::step(StepMetrics m, double seconds) {
  const double samples = m.present * static_cast<double>(m.local_steps * batch_);
  m.samples_per_s = samples / seconds;
  m.seconds = seconds;
  train_seconds_ += seconds;
  train_samples_ += samples;
  left_out_ += m.left_out;
  metrics_.write(m);
  events_.scalar("train/loss", m.step, m.loss);
  events_.scalar("train/learning_rate", m.step, m.learning_rate);
  events_.scalar("train/grad_norm", m.step, m.grad_norm);
  events_.scalar("exchange/sparsity", m.step, m.sparsity);
  events_.scalar("exchange/sent_bytes", m.step, static_cast<double>(m.sent_bytes));
  tell_skipped(m);
  tell_absent(m);
  progress_.update({.step = m.step,
                    .steps = steps_,
                    .epoch = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(m.epoch))),
                    .epochs = config_.training.epochs,
                    .loss = m.loss,
                    .samples_per_s = samples_per_s(),
                    .samples = task_.samples()});
}

// Logs a line when skipping begins and one when it ends, because a run that diverges skips thousands of steps.
void Reporter::tell_skipped(const StepMetrics& m) {
  if (!m.skipped) return sum_up_skipped();
  if (first_skipped_ == 0) {
    first_skipped_ = m.step - m.local_steps + 1;
    const bool one = m.local_steps == 1;
    spdlog::warn("{}: a gradient is not finite; all workers skip {}, and the next ones while that lasts",
                 one ? fmt::format("step {}", m.step) : fmt::format("steps {} to {}", first_skipped_, m.step),
                 one ? "this step" : "these steps");
  }
  last_skipped_ = m.step;
}

// Warns when a rank is late for the first time, because a slow one is late again and again.
void Reporter::tell_absent(const StepMetrics& m) {
  ++exchanges_;
  for (const int rank : m.absent_ranks) {
    ++absences_[rank];
    if (!known_as_late_.insert(rank).second) continue;
    spdlog::warn("step {}: rank {} is late for the exchange and will be in a later one (exchange.wait)", m.step, rank);
  }
}

void Reporter::sum_up_absent() {
  for (const auto& [rank, times] : absences_) {
    spdlog::info("rank {} was late for {} of the last {} exchanges", rank, times, exchanges_);
  }
  absences_.clear();
  exchanges_ = 0;
}

void Reporter::sum_up_skipped() {
  if (first_skipped_ == 0) return;
  const int64_t count = last_skipped_ - first_skipped_ + 1;
  spdlog::warn("{} skipped, as gradients were not finite",
               count == 1 ? fmt::format("step {} was", first_skipped_)
                          : fmt::format("steps {} to {}, {} in all, were", first_skipped_, last_skipped_, count));
  first_skipped_ = 0;
}

// Warns once, as a run that has diverged seldom recovers.
void Reporter::tell_not_finite(const EvalMetrics& m) {
  for (const auto& [metric, value] : m.measures.all()) {
    if (told_not_finite_ || !metric->is_lost(value)) continue;
    spdlog::warn("step {}: the {} is not finite; where it stays so, the run ends with exit code 2", m.step,
                 metric->name);
    told_not_finite_ = true;
  }
}

void Reporter::eval(const EvalMetrics& m) {
  metrics_.write(m);
  std::string line = fmt::format("epoch {}  step {}", std::round(100 * m.epoch) / 100, m.step);
  for (const auto& [metric, value] : m.measures.all()) {
    if (!std::isnan(value)) events_.scalar(metric->tag, m.step, value);
    if (is_told(metric, task_)) line += fmt::format("  {} {}", metric->name, metric->text(value));
  }
  spdlog::info(line);
  tell_not_finite(m);
  sum_up_absent();
  if (left_out_ > 0) {
    spdlog::warn("{} since the last evaluation {}, and taught nothing; {}", counted(left_out_, "utterance"),
                 left_out_ == 1 ? "was too short for its transcript" : "were too short for their transcripts",
                 kFewerSteps);
  }
  if (const double left_out = m.measures[kLeftOut]; left_out > 0) {
    spdlog::warn("the test loss leaves out {} that {}; {}", counted(static_cast<int64_t>(left_out), "utterance"),
                 left_out == 1 ? "is too short for its transcript" : "are too short for their transcripts",
                 kFewerSteps);
  }
  left_out_ = 0;
}

void Reporter::final(FinalMetrics m) {
  m.samples_per_s = samples_per_s();
  metrics_.write(m);
}

}  // namespace dgc
