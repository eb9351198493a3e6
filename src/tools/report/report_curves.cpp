#include "tools/report/report_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "json/text.h"
#include "run/number_text.h"
#include "tasks/task.h"
#include "tools/report/svg_plot.h"

namespace dgc {
namespace {

constexpr size_t kCurvePoints = 720, kMostPlaces = 360, kLeastPlaces = 40;

// Where a row lies along each axis.
struct Where {
  double epoch = 0, step = 0, time = 0, bytes = 0;
};

struct AxisColumn {
  const char *key, *name, *one, *kind;
  double Where::*at;
};
constexpr std::array kAxes = {AxisColumn{"epoch", "epochs", "epoch", "linear", &Where::epoch},
                              AxisColumn{"step", "steps", "step", "linear", &Where::step},
                              AxisColumn{"time", "training time", "after", "time", &Where::time},
                              AxisColumn{"bytes", "bytes sent per worker", "sent", "bytes", &Where::bytes}};

struct StepPlot {
  const char *key, *name, *kind;
  bool noisy;  // drawn as a mean with a band, and can be smoothed
  bool shown;
  double (*value)(const StepMetrics&);
};
constexpr std::array kStepPlots = {
    StepPlot{"loss", "Training loss", "auto", true, true, [](const StepMetrics& step) { return step.loss; }},
    StepPlot{"grad_norm", "Gradient norm", "auto", true, false, [](const StepMetrics& step) { return step.grad_norm; }},
    StepPlot{"lr", "Learning rate", "auto", false, false, [](const StepMetrics& step) { return step.learning_rate; }},
    StepPlot{"sent_bytes", "Sent by each worker in a step", "bytes", false, true,
             [](const StepMetrics& step) { return step.sent_per_step(); }},
    StepPlot{"sparsity", "Gradient sparsity", "sparsity", false, true,
             [](const StepMetrics& step) { return step.sparsity; }}};

// Rounded to so many digits, because the page needs no more and shall be small. NaN and infinity become null.
Json number_json(double value, int digits) {
  if (!std::isfinite(value)) return nullptr;
  const double rounded = std::strtod(fmt::format("{:.{}g}", value, digits).c_str(), nullptr);
  if (rounded == std::trunc(rounded) && std::fabs(rounded) < 1e15)
    return static_cast<int64_t>(rounded);  // without ".0"
  return rounded;
}

// Numbers of one kind along a curve.
class Column {
 public:
  explicit Column(int digits) : digits_(digits) {}
  void add(double value) { numbers_.push_back(number_json(value, digits_)); }
  Json json() && { return std::move(numbers_); }

 private:
  int digits_;
  Json numbers_ = Json::array();
};

// What several runs, or several steps, say about one place.
struct Summary {
  double sum = 0, least = kNoNumber, greatest = kNoNumber;
  size_t count = 0;

  void add(double value) {
    if (!std::isfinite(value)) return;
    sum += value;
    least = count == 0 ? value : std::min(least, value);
    greatest = count == 0 ? value : std::max(greatest, value);
    ++count;
  }
  double mean() const { return count == 0 ? kNoNumber : sum / static_cast<double>(count); }
};

struct CurveColumns {
  Column y{4}, low{3}, high{3};
  bool has_band = false;

  // band: as low and high, where there is one.
  void add(const Summary& summary, const Summary& band) {
    y.add(summary.mean());
    low.add(band.least);
    high.add(band.greatest);
    has_band = has_band || band.least < band.greatest;
  }
  Json json(const char* at) && {
    Json curve = {{"at", at}, {"y", std::move(y).json()}};
    if (!has_band) return curve;
    curve["low"] = std::move(low).json();
    curve["high"] = std::move(high).json();
    return curve;
  }
};

struct AxisColumns {
  std::array<Column, kAxes.size()> columns{Column(5), Column(7), Column(5), Column(5)};

  // The mean of all places, which are those of several runs.
  void add(const std::vector<Where>& places) {
    for (size_t a = 0; a < kAxes.size(); ++a) {
      Summary summary;
      for (const Where& where : places) summary.add(where.*kAxes[a].at);
      columns[a].add(summary.mean());
    }
  }
  Json json() && {
    Json out;
    for (size_t a = 0; a < kAxes.size(); ++a) out[kAxes[a].key] = std::move(columns[a]).json();
    return out;
  }
};

// In older files a step's time follows from its rate. A step without either takes as long as the one before.
std::vector<Where> places_of(const RunData& run) {
  const auto samples = static_cast<double>(global_batch(run.config));
  std::vector<Where> places;
  Where at;
  double seconds = 0;
  for (const StepMetrics& step : run.steps) {
    if (step.seconds > 0) {
      seconds = step.seconds;
    } else if (step.samples_per_s > 0) {
      seconds = static_cast<double>(step.local_steps) * samples / step.samples_per_s;
    }
    at.epoch = step.epoch;
    at.step = static_cast<double>(step.step);
    at.time += seconds;
    at.bytes += static_cast<double>(step.sent_bytes);
    places.push_back(at);
  }
  return places;
}

class GroupCurves {
 public:
  GroupCurves(const RunGroup& group, size_t most) : group_(group), most_(most) {
    for (const RunData& run : group.runs) places_.push_back(places_of(run));
  }

  Json json(size_t look) {
    add_steps();
    add_evaluations();
    return {{"name", group_.name},
            {"look", curve_class(look)},
            {"seeds", group_.runs.size()},
            {"steps", std::move(steps_)},
            {"evaluations", std::move(evaluations_)},
            {"curves", std::move(curves_)}};
  }

 private:
  void add_steps() {
    const size_t longest = std::ranges::max(places_, {}, &std::vector<Where>::size).size();
    const size_t count = std::min(longest, most_);
    AxisColumns axes;
    std::array<CurveColumns, kStepPlots.size()> curves;
    for (size_t place = 0; place < count; ++place) {
      const size_t begin = place * longest / count, end = (place + 1) * longest / count;
      std::vector<Where> there;
      for (const auto& places : places_) {
        if (end <= places.size()) there.push_back(places[end - 1]);
      }
      axes.add(there);
      for (size_t p = 0; p < kStepPlots.size(); ++p) add_steps_to(curves[p], kStepPlots[p], begin, end);
    }
    steps_ = std::move(axes).json();
    for (size_t p = 0; p < kStepPlots.size(); ++p) {
      curves_[kStepPlots[p].key] = std::move(curves[p]).json("steps");
    }
  }

  // One place of a curve, for which steps begin ... end - 1 stand.
  void add_steps_to(CurveColumns& curve, const StepPlot& plot, size_t begin, size_t end) const {
    Summary means, values;
    for (const RunData& run : group_.runs) {
      if (end > run.steps.size()) continue;
      Summary of_run;
      for (size_t i = plot.noisy ? begin : end - 1; i < end; ++i) of_run.add(plot.value(run.steps[i]));
      means.add(of_run.mean());
      values.add(of_run.least);
      values.add(of_run.greatest);
    }
    curve.add(means, group_.runs.size() > 1 ? means : values);
  }

  void add_evaluations() {
    const auto longest = std::ranges::max_element(group_.runs, {}, [](const RunData& run) { return run.evals.size(); });
    const size_t all = longest->evals.size(), count = std::min(all, most_);
    AxisColumns axes;
    std::vector<CurveColumns> curves(all_metrics().size());
    for (size_t place = 0; place < count; ++place) {
      const size_t i = (place + 1) * all / count - 1;
      std::vector<Where> there;
      for (size_t r = 0; r < group_.runs.size(); ++r) {
        if (i < group_.runs[r].evals.size()) there.push_back(place_of(r, group_.runs[r].evals[i]));
      }
      axes.add(there);
      for (size_t m = 0; m < curves.size(); ++m) {
        Summary means;
        for (const RunData& run : group_.runs) {
          if (i < run.evals.size()) means.add(run.evals[i].measures[*all_metrics()[m]]);
        }
        curves[m].add(means, means);
      }
    }
    evaluations_ = std::move(axes).json();
    for (size_t m = 0; m < curves.size(); ++m) {
      const Metric& metric = *all_metrics()[m];
      const auto has = [&](const RunData& run) {
        return std::ranges::any_of(run.evals, [&](const EvalMetrics& eval) { return eval.measures.has(metric); });
      };
      if (std::ranges::any_of(group_.runs, has)) curves_[metric.key] = std::move(curves[m]).json("evaluations");
    }
  }

  // An evaluation lies where the step before it lies.
  Where place_of(size_t run, const EvalMetrics& eval) const {
    const std::vector<Where>& places = places_[run];
    const auto after = std::ranges::upper_bound(places, static_cast<double>(eval.step), {}, &Where::step);
    Where where = after == places.begin() ? Where{} : *std::prev(after);
    where.epoch = eval.epoch;
    where.step = static_cast<double>(eval.step);
    return where;
  }

  const RunGroup& group_;
  size_t most_;
  std::vector<std::vector<Where>> places_;  // of each run's steps
  Json steps_, evaluations_, curves_ = Json::object();
};

const char* scale_of(Metric::Unit unit) {
  switch (unit) {
    case Metric::Unit::share:
      return "percent";
    case Metric::Unit::perplexity:
      return "log";
    default:
      return "auto";
  }
}

Json plots_json(const std::vector<RunGroup>& groups, const Json& runs) {
  Json plots = Json::array();
  const auto add_steps = [&](bool noisy) {
    for (const StepPlot& plot : kStepPlots) {
      if (plot.noisy != noisy) continue;
      plots.push_back(
          {{"key", plot.key}, {"name", plot.name}, {"kind", plot.kind}, {"smooth", plot.noisy}, {"shown", plot.shown}});
    }
  };
  add_steps(true);
  for (const Metric* metric : all_metrics()) {
    if (std::ranges::none_of(runs, [&](const Json& run) { return run.at("curves").contains(metric->key); })) continue;
    const bool shown = std::ranges::any_of(
        groups, [&](const RunGroup& group) { return task_of(group.config()).compared().curve == metric; });
    plots.push_back({{"key", metric->key},
                     {"name", capitalized(metric->name)},
                     {"kind", scale_of(metric->unit)},
                     {"smooth", false},
                     {"shown", shown}});
  }
  add_steps(false);
  return plots;
}

}  // namespace

std::string curves_json(const std::vector<RunGroup>& groups) {
  const size_t most = std::clamp(kCurvePoints / groups.size(), kLeastPlaces, kMostPlaces);
  Json out;
  for (const AxisColumn& axis : kAxes) {
    out["axes"].push_back({{"key", axis.key}, {"name", axis.name}, {"one", axis.one}, {"kind", axis.kind}});
  }
  Json runs = Json::array();
  for (size_t i = 0; i < groups.size(); ++i) runs.push_back(GroupCurves(groups[i], most).json(i));
  out["plots"] = plots_json(groups, runs);
  out["runs"] = std::move(runs);
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
