#include "tools/report/report_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "json/text.h"
#include "tasks/task.h"
#include "tools/report/svg_plot.h"

namespace dgc {
namespace {

constexpr size_t kCurvePlaces = 720, kMostPlaces = 360, kLeastPlaces = 40;
constexpr size_t kPlacesPerSmoothing = 150;  // 360 places are smoothed over 2 to either side, less than 150 not at all
constexpr size_t kMostGroupsWithNoise = 3;   // more bands would hide the curves

// Rounded to so many digits, because a page needs no more and shall be small.
double rounded(double value, int digits) {
  return std::isfinite(value) ? std::strtod(fmt::format("{:.{}g}", value, digits).c_str(), nullptr) : kNoNumber;
}
constexpr int kDigits = 4;

// What a curve shows of the rows from one of its places to the next.
enum class Between {
  last,
  mean,           // of rows whose values are noisy: a single run has a band from the least to the greatest
  mean_of_steps,  // each row counts as often as it has steps
};

struct StepPlot {
  const char *key, *name;
  std::optional<AxisKind> kind;  // empty: what suits the values
  Between between;
  bool shown;
  double (*value)(const StepMetrics&);

  bool is_noisy() const { return between == Between::mean; }
};
constexpr std::array kStepPlots = {
    StepPlot{"loss", "Training loss", {}, Between::mean, true, [](const StepMetrics& step) { return step.loss; }},
    StepPlot{
        "grad_norm", "Gradient norm", {}, Between::mean, false, [](const StepMetrics& step) { return step.grad_norm; }},
    StepPlot{
        "lr", "Learning rate", {}, Between::last, false, [](const StepMetrics& step) { return step.learning_rate; }},
    // With local steps, rounds at the ends of epochs are shorter.
    StepPlot{"sent_bytes", "Sent by each worker in a step", AxisKind::kLogBytes, Between::mean_of_steps, true,
             [](const StepMetrics& step) { return step.sent_per_step(); }},
    StepPlot{"sparsity", "Gradient sparsity", AxisKind::kSparsity, Between::last, true,
             [](const StepMetrics& step) { return step.sparsity; }}};

double steps_in(const StepMetrics& row) { return static_cast<double>(row.local_steps); }
double steps_in(const EvalMetrics&) { return 1; }

// What several runs, or several rows, say about one place.
struct Summary {
  double sum = 0, weights = 0, least = kNoNumber, greatest = kNoNumber;
  size_t count = 0;

  void add(double value, double weight = 1) {
    if (!std::isfinite(value)) return;
    sum += weight * value;
    weights += weight;
    least = count == 0 ? value : std::min(least, value);
    greatest = count == 0 ? value : std::max(greatest, value);
    ++count;
  }
  void add(const std::vector<double>& values) {
    for (const double value : values) add(value);
  }
  double mean() const { return count == 0 ? kNoNumber : sum / weights; }
};

// Where a run is after a row, along each axis.
using Where = std::array<double, kPlotAxes.size()>;

double step_of(const Where& where) { return where[static_cast<size_t>(Over::kSteps)]; }

// In older files a row's time follows from its rate. A row without either takes as long as the one before.
std::vector<Where> course_of(const RunData& run) {
  const auto samples = static_cast<double>(global_batch(run.config));
  std::vector<Where> course;
  double seconds = 0, time = 0, bytes = 0;
  for (const StepMetrics& step : run.steps) {
    if (step.seconds > 0) {
      seconds = step.seconds;
    } else if (step.samples_per_s > 0) {
      seconds = static_cast<double>(step.local_steps) * samples / step.samples_per_s;
    }
    time += seconds;
    bytes += static_cast<double>(step.sent_bytes);
    course.push_back({step.epoch, static_cast<double>(step.step), time, bytes});
  }
  return course;
}

// Between two rows a run counts as going on evenly.
Where where_at(const std::vector<Where>& course, double step) {
  const auto after = std::ranges::lower_bound(course, step, {}, step_of);
  const Where before = after == course.begin() ? Where{} : *std::prev(after);
  if (after == course.end()) return before;
  if (step_of(*after) == step) return *after;
  const double part = (step - step_of(before)) / (step_of(*after) - step_of(before));
  Where where;
  for (size_t a = 0; a < where.size(); ++a) where[a] = std::lerp(before[a], (*after)[a], part);
  return where;
}

// The steps at which any of the runs has a row; where they are too many, an even choice of them that has the last.
template <typename RowType>
std::vector<int64_t> steps_of(const std::vector<const RunData*>& runs, std::vector<RowType> RunData::*rows,
                              size_t most) {
  std::vector<int64_t> all;
  for (const RunData* run : runs) {
    for (const RowType& row : run->*rows) all.push_back(row.step);
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  const size_t count = std::min(all.size(), most);
  std::vector<int64_t> steps;
  for (size_t place = 0; place < count; ++place) steps.push_back(all[(place + 1) * all.size() / count - 1]);
  return steps;
}

// A group's runs, but where others have a result without those that have diverged, which no table counts either.
std::vector<const RunData*> drawn_of(const RunGroup& group) {
  std::vector<const RunData*> drawn;
  for (const RunData& run : group.runs) {
    if (!run.diverged || group.done() == 0) drawn.push_back(&run);
  }
  return drawn;
}

// The curves of one group.
class GroupCurves {
 public:
  GroupCurves(const RunGroup& group, size_t index, size_t most, bool noise)
      : name_(group.name),
        runs_(drawn_of(group)),
        index_(index),
        noise_(noise || runs_.size() > 1),
        steps_(steps_of(runs_, &RunData::steps, most)),
        evaluations_(steps_of(runs_, &RunData::evals, most)) {}

  PlottedGroup places() const {
    const auto longest = std::ranges::max_element(
        runs_, {}, [](const RunData* run) { return run->steps.empty() ? 0 : run->last_step(); });
    const std::vector<Where> course = course_of(**longest);
    return {name_, runs_.size(), places_along(course, steps_), places_along(course, evaluations_)};
  }

  CurveData of_steps(const StepPlot& plot) const {
    return curve(&RunData::steps, steps_, plot.between, plot.value, plot.kind == AxisKind::kSparsity ? 7 : kDigits);
  }
  CurveData of_evaluations(const Metric& metric) const {
    CurveData out = curve(&RunData::evals, evaluations_, Between::last,
                          [&](const EvalMetrics& eval) { return eval.measures[metric]; });
    out.evaluated = true;
    return out;
  }

 private:
  static Places places_along(const std::vector<Where>& course, const std::vector<int64_t>& steps) {
    Places places;
    for (const int64_t step : steps) {
      const Where where = where_at(course, static_cast<double>(step));
      for (size_t a = 0; a < where.size(); ++a) {
        const Over over = kPlotAxes[a].over;
        places.along(over).push_back(rounded(where[a], over == Over::kSteps ? 7 : 5));
      }
    }
    return places;
  }

  template <typename RowType>
  CurveData curve(std::vector<RowType> RunData::*rows, const std::vector<int64_t>& steps, Between between,
                  const auto& value, int digits = kDigits) const {
    CurveData out{.group = index_};
    std::vector<size_t> next(runs_.size(), 0);
    bool has_band = false;
    for (const int64_t step : steps) {
      Summary means, values;
      for (size_t r = 0; r < next.size(); ++r) {
        const std::vector<RowType>& all = runs_[r]->*rows;
        Summary of_run;
        for (; next[r] < all.size() && all[next[r]].step <= step; ++next[r]) {
          const RowType& row = all[next[r]];
          if (between == Between::last) of_run = {};
          of_run.add(value(row), between == Between::mean_of_steps ? steps_in(row) : 1);
        }
        const bool is_nothing = between == Between::mean_of_steps && of_run.sum == 0;  // it has no place on a log axis
        means.add(is_nothing ? kNoNumber : of_run.mean());
        if (between == Between::mean) values.add({of_run.least, of_run.greatest});
      }
      const Summary& band = runs_.size() > 1 ? means : values;
      out.y.push_back(rounded(means.mean(), digits));
      out.low.push_back(rounded(band.least, digits));
      out.high.push_back(rounded(band.greatest, digits));
      has_band = has_band || band.least < band.greatest;
    }
    if (!has_band || !noise_) out.low.clear(), out.high.clear();
    return out;
  }

  std::string name_;
  std::vector<const RunData*> runs_;
  size_t index_;
  bool noise_;
  std::vector<int64_t> steps_, evaluations_;
};

std::optional<AxisKind> scale_of(Metric::Unit unit) {
  switch (unit) {
    case Metric::Unit::share:
      return AxisKind::kPercent;
    case Metric::Unit::perplexity:
      return AxisKind::kLog;
    case Metric::Unit::loss:
    case Metric::Unit::count:
      break;
  }
  return {};
}

// People do not compare language models by the shares that their evaluations count as well (accuracy, top-5), but by
// perplexity.
bool draws(const Task& task, const Metric& metric) {
  constexpr auto kShare = Metric::Unit::share;
  if (metric.unit != kShare) return true;
  const std::vector<const Metric*> compared = task.compared().table;
  return std::ranges::find(compared, kShare, &Metric::unit) != compared.end();
}

class PlotMaker {
 public:
  explicit PlotMaker(const std::vector<RunGroup>& groups) : groups_(groups) {
    const size_t most = std::clamp(kCurvePlaces / groups.size(), kLeastPlaces, kMostPlaces);
    for (size_t i = 0; i < groups.size(); ++i) {
      curves_.emplace_back(groups[i], i, most, groups.size() <= kMostGroupsWithNoise);
      out_.groups.push_back(curves_.back().places());
      out_.smoothing =
          std::max(out_.smoothing, out_.groups.back().steps.along(Over::kSteps).size() / kPlacesPerSmoothing);
    }
  }

  ReportCurves make() && {
    for (const StepPlot& plot : kStepPlots) {
      if (plot.is_noisy()) add_step(plot);
    }
    for (const Metric* metric : all_metrics()) add_metric(*metric);
    for (const StepPlot& plot : kStepPlots) {
      if (!plot.is_noisy()) add_step(plot);
    }
    return std::move(out_);
  }

 private:
  void add_step(const StepPlot& plot) {
    PlotData made{.key = plot.key, .name = plot.name, .noisy = plot.is_noisy(), .shown = plot.shown};
    for (const GroupCurves& group : curves_) made.curves.push_back(group.of_steps(plot));
    add(std::move(made), plot.kind);
  }

  void add_metric(const Metric& metric) {
    PlotData made{.key = metric.key, .name = capitalized(metric.name)};
    made.shown = std::ranges::any_of(
        groups_, [&](const RunGroup& group) { return task_of(group.config()).compared().curve == &metric; });
    const auto has = [&](const EvalMetrics& eval) { return eval.measures.has(metric); };
    const auto measures = [&](const RunData& run) { return std::ranges::any_of(run.evals, has); };
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (!draws(task_of(groups_[i].config()), metric)) continue;
      if (std::ranges::any_of(groups_[i].runs, measures)) made.curves.push_back(curves_[i].of_evaluations(metric));
    }
    if (!made.curves.empty()) add(std::move(made), scale_of(metric.unit));
  }

  void add(PlotData plot, std::optional<AxisKind> kind) {
    Summary covered;
    for (const CurveData& curve : plot.curves) {
      covered.add(curve.y);
      if (out_.groups[curve.group].seeds == 1) continue;  // the noise of one run's steps would make its curve flat
      covered.add(curve.low);
      covered.add(curve.high);
    }
    plot.low = covered.least;
    plot.high = covered.greatest;
    // What falls a hundredfold is a flat line on a linear axis.
    const bool falls = plot.low > 0 && plot.high > 100 * plot.low;
    plot.kind = kind.value_or(falls ? AxisKind::kLog : AxisKind::kLinear);
    if (plot.kind == AxisKind::kSparsity) plot.low = 0;
    out_.plots.push_back(std::move(plot));
  }

  const std::vector<RunGroup>& groups_;
  std::vector<GroupCurves> curves_;
  ReportCurves out_;
};

// ---- JSON

// NaN becomes null, and whole numbers are written without ".0".
Json numbers_json(const std::vector<double>& numbers) {
  Json out = Json::array();
  for (const double number : numbers) {
    if (std::isnan(number)) {
      out.push_back(nullptr);
    } else if (number == std::trunc(number) && std::fabs(number) < 1e15) {
      out.push_back(static_cast<int64_t>(number));
    } else {
      out.push_back(number);
    }
  }
  return out;
}

Json places_json(const Places& places) {
  Json out;
  for (const PlotAxis& axis : kPlotAxes) out[axis.key] = numbers_json(places.along(axis.over));
  return out;
}

Json curve_json(const CurveData& curve) {
  Json out = {{"run", curve.group}, {"at", curve.evaluated ? "evaluations" : "steps"}, {"y", numbers_json(curve.y)}};
  if (curve.low.empty()) return out;
  out["low"] = numbers_json(curve.low);
  out["high"] = numbers_json(curve.high);
  return out;
}

const char* kind_name(AxisKind kind) {
  switch (kind) {
    case AxisKind::kPercent:
      return "percent";
    case AxisKind::kLog:
      return "log";
    case AxisKind::kLogBytes:
      return "bytes";
    case AxisKind::kSparsity:
      return "sparsity";
    case AxisKind::kLinear:
    case AxisKind::kCount:
      break;
  }
  return "linear";
}

}  // namespace

std::string PlotData::caption() const {
  const bool log = kind == AxisKind::kLog || kind == AxisKind::kLogBytes || kind == AxisKind::kSparsity;
  return log ? name + " (log scale)" : name;
}

ReportCurves report_curves(const std::vector<RunGroup>& groups) { return PlotMaker(groups).make(); }

std::string curves_json(const ReportCurves& curves) {
  Json out;
  out["smoothing"] = curves.smoothing;
  for (const PlotAxis& axis : kPlotAxes) {
    out["axes"].push_back({{"key", axis.key}, {"name", axis.name}, {"one", axis.one}, {"kind", axis.kind}});
  }
  for (const PlotData& plot : curves.plots) {
    Json drawn = Json::array();
    for (const CurveData& curve : plot.curves) drawn.push_back(curve_json(curve));
    out["plots"].push_back({{"key", plot.key},
                            {"name", plot.name},
                            {"caption", plot.caption()},
                            {"kind", kind_name(plot.kind)},
                            {"smooth", plot.noisy},
                            {"shown", plot.shown},
                            {"curves", std::move(drawn)}});
  }
  for (size_t i = 0; i < curves.groups.size(); ++i) {
    const PlottedGroup& group = curves.groups[i];
    out["runs"].push_back({{"name", group.name},
                           {"look", curve_class(i)},
                           {"seeds", group.seeds},
                           {"steps", places_json(group.steps)},
                           {"evaluations", places_json(group.evaluations)}});
  }
  // A browser ends a script where it reads "</script" or, after "<!--", elsewhere: so "<" is written in JSON's other
  // way.
  std::string text;
  for (const char c : json_text(out)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace dgc
