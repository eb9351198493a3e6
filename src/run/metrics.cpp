#include "run/metrics.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>
#include <system_error>

#include "tensor/errors.h"

namespace dgc {
namespace {

double number(const Row& row, const std::string& key, const std::string& where) {
  const RowValue* value = row.find(key);
  if (value != nullptr && std::holds_alternative<std::nullptr_t>(*value)) return kNoNumber;
  const auto number = row.number(key);
  if (!number)
    throw_user_error("{}: \"{}\" is missing or not a number; was this file written by dgc train?", where, key);
  return *number;
}

// The numbers in "1 3".
std::vector<int> ranks_in(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<int>(words), {}};
}

int64_t integer(const Row& row, const std::string& key, const std::string& where) {
  const auto integer = row.integer(key);
  if (!integer)
    throw_user_error("{}: \"{}\" is missing or not an integer; was this file written by dgc train?", where, key);
  return *integer;
}

Row evaluated_row(const char* kind, const EvalMetrics& metrics) {
  Row row;
  row.set("kind", kind).set("step", metrics.step).set("epoch", metrics.epoch);
  for (const auto& [metric, value] : metrics.measures.all()) {
    if (metric->unit == Metric::Unit::count && std::isfinite(value)) {
      row.set(metric->key, static_cast<int64_t>(value));
    } else {
      row.set(metric->key, value);
    }
  }
  return row;
}

// Steps for which there is no row. Rows come in the order of their steps.
class Gaps {
 public:
  void add(const StepMetrics& row) {
    if (row.step <= last_) return;
    const int64_t ahead = row.step - last_;
    leave_out(ahead - std::clamp<int64_t>(row.local_steps, 1, ahead));
    last_ = row.step;
  }
  void end(int64_t step) { leave_out(std::max<int64_t>(0, step - last_)); }

  int64_t steps() const { return steps_; }
  int64_t first() const { return first_; }

 private:
  void leave_out(int64_t steps) {
    if (steps_ == 0) first_ = last_ + 1;
    steps_ += steps;
  }

  int64_t last_ = 0, steps_ = 0, first_ = 0;
};

bool has_metrics(const std::filesystem::path& run) {
  std::error_code error;
  return std::filesystem::exists(run / kMetricsFile, error);
}

// Calls each(key, value) for what every row of a step has, in the row's order; newer() for what rows of older versions
// lack, derived() for what follows from other values, unusual() for what only rows have in which it is not as usual.
template <typename Step, typename Each>
void for_each_value_of_step(Step& step, const Each& each) {
  each("step", step.step);
  each("epoch", step.epoch);
  each("loss", step.loss);
  each("lr", step.learning_rate);
  each("sparsity", step.sparsity);
  each.newer("transport", step.transport);
  each("sent_bytes", step.sent_bytes);
  each("dense_bytes", step.dense_bytes);
  each.derived("ratio", step.ratio());
  each("samples_per_s", step.samples_per_s);
  each.newer("seconds", step.seconds);
  each("grad_norm", step.grad_norm);
  each.newer("skipped", step.skipped);
  each.unusual("local_steps", step.local_steps, 1);
  each.unusual("group_bytes", step.group_bytes, 0);
  each.unusual("left_out", step.left_out, 0);
}

struct StepToRow {
  Row& row;

  template <typename T>
  void operator()(const char* key, const T& value) const {
    row.set(key, value);
  }
  template <typename T>
  void newer(const char* key, const T& value) const {
    row.set(key, value);
  }
  void derived(const char* key, double value) const { row.set(key, value); }
  void unusual(const char* key, int64_t value, int64_t usual) const {
    if (value != usual) row.set(key, value);
  }
};

struct StepFromRow {
  const Row& row;
  const std::string& where;

  void operator()(const char* key, int64_t& value) const { value = integer(row, key, where); }
  void operator()(const char* key, double& value) const { value = number(row, key, where); }
  void newer(const char* key, std::string& value) const { value = row.text(key).value_or(value); }
  void newer(const char* key, double& value) const { value = row.number(key).value_or(value); }
  void newer(const char* key, bool& value) const { value = row.boolean(key).value_or(value); }
  void derived(const char* /*key*/, double /*value*/) const {}
  void unusual(const char* key, int64_t& value, int64_t usual) const { value = row.integer(key).value_or(usual); }
};

}  // namespace

void TrafficCounter::add(const StepMetrics& step) {
  if (step.sparsity > highest_sparsity_) {
    highest_sparsity_ = step.sparsity;
    at_highest_ = {};
  }
  auto count = [&](Sums& sums) {
    sums.steps += static_cast<double>(step.local_steps);
    sums.sent += static_cast<double>(step.sent_bytes);
    sums.dense += static_cast<double>(step.dense_bytes);
  };
  count(all_);
  if (step.sparsity == highest_sparsity_) count(at_highest_);
}

TrafficMeans TrafficCounter::means() const {
  auto ratio = [](double a, double b) { return b > 0 ? a / b : kNoNumber; };
  return {ratio(all_.sent, all_.steps), ratio(all_.dense, all_.sent), ratio(at_highest_.sent, at_highest_.steps),
          ratio(at_highest_.dense, at_highest_.sent)};
}

Row to_row(const StepMetrics& step) {
  Row row;
  row.set("kind", "step");
  for_each_value_of_step(step, StepToRow{row});
  if (!step.absent_ranks.empty()) row.set("absent_ranks", fmt::format("{}", fmt::join(step.absent_ranks, " ")));
  return row;
}

Row to_row(const EvalMetrics& eval) { return evaluated_row("eval", eval); }

Row to_row(const FinalMetrics& final, const TrafficMeans& traffic) {
  Row row = evaluated_row("final", final.eval);
  row.set("mean_sent_bytes", traffic.sent_bytes)
      .set("mean_ratio", traffic.ratio)
      .set("mean_sent_bytes_after_warmup", traffic.sent_bytes_after_warmup)
      .set("mean_ratio_after_warmup", traffic.ratio_after_warmup)
      .set("samples_per_s", final.samples_per_s)
      .set("wall_seconds", final.wall_seconds)
      .set("peak_memory_bytes", final.peak_memory_bytes)
      .set("weights_xxh64", final.weights_xxh64);
  if (!std::isnan(final.exchange_ms)) {
    row.set("exchange_ms", final.exchange_ms).set("hidden_share", final.hidden_share);
  }
  if (final.diverged) row.set("diverged", true);
  return row;
}

StepMetrics step_from_row(const Row& row, const std::string& where) {
  StepMetrics step;
  for_each_value_of_step(step, StepFromRow{row, where});
  step.absent_ranks = ranks_in(row.text("absent_ranks").value_or(""));
  return step;
}

EvalMetrics eval_from_row(const Row& row, const std::string& where) {
  EvalMetrics eval{.step = integer(row, "step", where), .epoch = number(row, "epoch", where)};
  for (const Metric* metric : all_metrics()) {
    // Rows of older versions have null for what was not measured.
    const RowValue* value = row.find(metric->key);
    if (value != nullptr) eval.measures.set(*metric, number(row, metric->key, where));
  }
  if (eval.measures.all().empty()) number(row, kTestLoss.key, where);  // throws, as the row has no metric
  return eval;
}

FinalMetrics final_from_row(const Row& row, const std::string& where) {
  FinalMetrics final{.eval = eval_from_row(row, where)};
  final.samples_per_s = number(row, "samples_per_s", where);
  final.wall_seconds = number(row, "wall_seconds", where);
  final.peak_memory_bytes = integer(row, "peak_memory_bytes", where);
  final.weights_xxh64 = row.text("weights_xxh64").value_or("");
  final.exchange_ms = row.number("exchange_ms").value_or(kNoNumber);
  final.hidden_share = row.number("hidden_share").value_or(kNoNumber);
  final.diverged = row.boolean("diverged").value_or(false);
  return final;
}

bool has_steps(const std::filesystem::path& run) {
  if (!has_metrics(run)) return false;
  try {
    JsonLineReader lines((run / kMetricsFile).string());
    while (const std::optional<Row> row = lines.next()) {
      const auto kind = row->text("kind");
      if (kind == "step" || kind == "final") return true;  // a run that lost its rows ends with a final one alone
    }
    return false;
  } catch (const UserError&) {
    return true;
  }
}

std::optional<RunEnd> end_of(const std::filesystem::path& run) {
  if (!has_metrics(run)) return std::nullopt;
  const std::optional<Row> last = last_json_row((run / kMetricsFile).string());
  if (!last || last->text("kind") != "final" || !last->integer("step")) return std::nullopt;
  const RowValue* const loss = last->find(kTestLoss.key);
  const bool finite = loss == nullptr || !std::holds_alternative<std::nullptr_t>(*loss);
  return RunEnd{*last->integer("step"), last->number("epoch").value_or(0),
                finite && !last->boolean("diverged").value_or(false)};
}

MetricsWriter::MetricsWriter(const std::filesystem::path& run, const Start& start) : file_(run / kMetricsFile) {
  const int64_t step = start.step;
  if (step == 0) return;
  const std::string path = file_.path().string();
  JsonLineReader lines(path);
  Gaps gaps;
  bool whole = step <= start.unexchanged;  // all rows up to the step are kept, or there is none yet
  try {
    while (const std::optional<Row> row = lines.next()) {
      const int64_t row_step = integer(*row, "step", lines.place());
      const bool is_made_again = start.owes_evaluation && row_step == step && row->text("kind") == "eval";
      if (row_step > step || row->text("kind") == "final" || is_made_again) break;
      if (row->text("kind") == "step") {
        const StepMetrics metrics = step_from_row(*row, lines.place());
        traffic_.add(metrics);
        gaps.add(metrics);
      }
      kept_ = lines.bytes();
      ends_with_newline_ = lines.ended_with_newline();
      whole = row_step >= step - start.unexchanged;  // steps behind the last exchange have no row yet
    }
  } catch (const UserError& error) {
    if (!whole) {
      throw_user_error("{}; remove this line to go on without it: the run's means will leave it out", error.what());
    }
    spdlog::warn("{}; this line and what follows it are cut off, as the run goes on from step {}", error.what(), step);
  }
  gaps.end(step - start.unexchanged);
  if (gaps.steps() > 0) {
    spdlog::warn(
        "{}: there is no row for {} of the {} steps so far, of which the first is {}; the run's means will leave them "
        "out",
        path, gaps.steps(), step, gaps.first());
  }
}

void MetricsWriter::write(const StepMetrics& step) {
  traffic_.add(step);
  append(to_row(step));
}

void MetricsWriter::write(const EvalMetrics& eval) { append(to_row(eval)); }

void MetricsWriter::write(const FinalMetrics& final) { append(to_row(final, traffic_.means())); }

void MetricsWriter::require_written() const {
  if (file_.nameless()) {
    throw_user_error(
        "the run has ended and its state is saved, but its result could not be written to {}: remove what another "
        "program has put there; --resume writes the result",
        file_.path().string());
  }
  if (file_.waiting() == 0) return;
  throw_user_error(
      "the run has ended and its state is saved, but the last {} bytes of {} could not be written: make room; --resume "
      "writes the result",
      file_.waiting(), file_.path().string());
}

void MetricsWriter::begin() {
  if (!kept_) return;
  file_.cut(*kept_);
  if (!ends_with_newline_) file_.append("\n");
  kept_.reset();
}

void MetricsWriter::append(const Row& row) {
  begin();
  file_.append(to_json_line(row) + "\n");
}

}  // namespace dgc
