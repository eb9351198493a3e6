#include "tools/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "run/number_text.h"
#include "tasks/task.h"
#include "tools/svg_plot.h"

namespace dgc {
namespace {

enum class Over { kEpochs, kSteps };

constexpr size_t kPagePoints = 4000;  // points per kind of curve, shared by the runs: the page stays below 1 MB

size_t points_per_curve(const std::vector<RunData>& runs) {
  return std::clamp<size_t>(kPagePoints / runs.size(), 40, 500);
}

Points step_points(const RunData& run, Over over, const std::function<double(const StepMetrics&)>& value) {
  Points points;
  for (const StepMetrics& step : run.steps) {
    points.push_back({over == Over::kEpochs ? step.epoch : static_cast<double>(step.step), value(step)});
  }
  return points;
}

Plot base_plot(const std::vector<RunData>& runs, Over over) {
  Plot plot;
  plot.x_label = over == Over::kEpochs ? "epochs" : "steps";
  for (size_t i = 0; i < runs.size(); ++i) {
    const StepMetrics& last = runs[i].steps.back();
    const double x_end = over == Over::kEpochs ? last.epoch : static_cast<double>(last.step);
    plot.x_high = i == 0 ? x_end : std::max(plot.x_high, x_end);
    plot.curves.push_back({.name = runs[i].full_name(), .look = i, .line = {}, .faint = {}});
  }
  return plot;
}

// The least and greatest finite value of the lines; NaN where no value is finite.
Point line_range(const Plot& plot) {
  Point range{kNoNumber, kNoNumber};
  for (const Curve& curve : plot.curves) {
    for (const Point& point : curve.line) {
      if (!std::isfinite(point.y)) continue;
      range.x = std::isnan(range.x) ? point.y : std::min(range.x, point.y);
      range.y = std::isnan(range.y) ? point.y : std::max(range.y, point.y);
    }
  }
  return range;
}

Plot loss_plot(const std::vector<RunData>& runs, Over over) {
  Plot plot = base_plot(runs, over);
  plot.title = "Training loss";
  const size_t most = points_per_curve(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto points = step_points(runs[i], over, [](const StepMetrics& step) { return step.loss; });
    const size_t window = points.size() / 60;
    plot.curves[i].line = moving_mean(points, window, most);
    if (window > 1) plot.curves[i].faint = envelope(points, most);
  }
  const Point range = line_range(plot);
  // A loss that falls a hundredfold is a flat line on a linear axis.
  const bool log = range.x > 0 && range.y > 100 * range.x;
  plot.y_kind = log ? AxisKind::kLog : AxisKind::kLinear;
  if (log) plot.title += " (log scale)";
  plot.y_low = log ? range.x : std::min(0.0, range.x);
  plot.y_high = range.y;
  return plot;
}

// The plot of one metric; only runs that are compared by this metric have points.
Plot metric_plot(const std::vector<RunData>& runs, Over over, const Metric& metric) {
  Plot plot = base_plot(runs, over);
  for (size_t i = 0; i < runs.size(); ++i) {
    Points points;
    const bool compared = task_of(runs[i].config).compared().curve == &metric;
    for (const EvalMetrics& eval : runs[i].evals) {
      points.push_back({over == Over::kEpochs ? eval.epoch : static_cast<double>(eval.step),
                        compared ? eval.measures[metric] : kNoNumber});
    }
    plot.curves[i].markers = points.size() <= 60;
    plot.curves[i].line = envelope(points, points_per_curve(runs));
  }
  const Point range = line_range(plot);
  plot.y_low = range.x;
  plot.y_high = range.y;
  plot.title = capitalized(metric.name);
  switch (metric.unit) {
    case Metric::Unit::share:
      plot.y_kind = AxisKind::kPercent;
      if (!metric.higher_is_better) plot.y_low = 0;
      break;
    case Metric::Unit::perplexity:
      plot.y_kind = AxisKind::kLog;
      plot.title += " (log scale)";
      break;
    default:
      break;
  }
  return plot;
}

Plot sparsity_plot(const std::vector<RunData>& runs, Over over) {
  Plot plot = base_plot(runs, over);
  plot.title = "Gradient sparsity (log scale of the share that is kept)";
  plot.y_kind = AxisKind::kSparsity;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto points = step_points(runs[i], over, [](const StepMetrics& step) { return step.sparsity; });
    plot.curves[i].line = levels(points, points_per_curve(runs));
  }
  plot.y_low = 0;
  plot.y_high = line_range(plot).y;
  return plot;
}

Plot bytes_plot(const std::vector<RunData>& runs, Over over) {
  Plot plot = base_plot(runs, over);
  plot.title = "Sent by each worker in a step (log scale)";
  plot.y_kind = AxisKind::kLogBytes;
  for (size_t i = 0; i < runs.size(); ++i) {
    // A step that sends nothing (one worker alone) has no place on a log axis.
    const auto points = step_points(runs[i], over, [](const StepMetrics& step) {
      return step.sent_bytes > 0 ? static_cast<double>(step.sent_bytes) : kNoNumber;
    });
    plot.curves[i].line = levels(points, points_per_curve(runs));
  }
  const Point range = line_range(plot);
  plot.y_low = range.x;
  plot.y_high = range.y;
  return plot;
}

std::string figure(const Plot& plot) {
  return fmt::format("<figure><figcaption>{}</figcaption><output><span></span></output>{}</figure>\n",
                     html_escape(plot.title), svg_plot(plot));
}

std::string figures(const std::vector<RunData>& runs, Over over) {
  std::string out = fmt::format("<section class=\"figures {}\">\n", over == Over::kEpochs ? "epochs" : "steps");
  out += figure(loss_plot(runs, over));
  for (const Metric* metric : all_metrics()) {
    const auto shows = [&](const RunData& run) { return task_of(run.config).compared().curve == metric; };
    if (std::ranges::any_of(runs, shows)) out += figure(metric_plot(runs, over, *metric));
  }
  out += figure(bytes_plot(runs, over));
  out += figure(sparsity_plot(runs, over));
  return out + "</section>\n";
}

std::string legend(const std::vector<RunData>& runs) {
  std::string out = "<ul class=\"legend\">";
  for (size_t i = 0; i < runs.size(); ++i) {
    out += fmt::format("<li><i class=\"{}\"></i>{}{}</li>", curve_class(i), html_escape(runs[i].name),
                       runs[i].final ? "" : fmt::format(" <em>unfinished: epoch {}</em>", runs[i].epochs_text()));
  }
  return out + "</ul>\n";
}

std::string html_table(const std::vector<RunData>& runs, const std::vector<TableRow>& rows, const char* style) {
  std::string out = fmt::format("<div class=\"wide\"><table class=\"{}\"><thead><tr><td></td>", style);
  for (size_t i = 0; i < runs.size(); ++i) {
    out += fmt::format("<th><i class=\"{}\"></i>{}</th>", curve_class(i), html_escape(runs[i].full_name()));
  }
  out += "</tr></thead><tbody>\n";
  for (const TableRow& row : rows) {
    out += fmt::format("<tr><th>{}</th>", html_escape(row.what));
    for (const std::string& cell : row.cells) out += fmt::format("<td>{}</td>", cell.empty() ? "–" : html_escape(cell));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string title(const std::vector<RunData>& runs) {
  constexpr size_t kNamed = 4;
  std::string names;
  for (size_t i = 0; i < std::min(kNamed, runs.size()); ++i) names += (i == 0 ? "" : ", ") + runs[i].name;
  return runs.size() <= kNamed ? names : fmt::format("{} and {} more", names, runs.size() - kNamed);
}

std::string lead(const std::vector<RunData>& runs) {
  constexpr size_t kShown = 4;
  const std::vector<std::string> sentences = comparisons(runs);
  std::string out;
  for (size_t i = 0; i < sentences.size(); ++i) {
    if (i == kShown) out += fmt::format("<details><summary>{} more</summary>\n", sentences.size() - kShown);
    out += "<p>" + html_escape(sentences[i]) + "</p>\n";
  }
  return out + (sentences.size() > kShown ? "</details>\n" : "");
}

std::string configs(const std::vector<RunData>& runs) {
  std::string out = "<h2>Configs</h2>\n";
  const auto differences = config_table(runs);
  if (!differences.empty()) {
    out += html_table(runs, differences, "configs");
  } else if (runs.size() > 1) {
    out += "<p>The configs do not differ.</p>\n";
  }
  for (const RunData& run : runs) {
    out += fmt::format("<details><summary>Resolved config of {}</summary><pre>{}</pre></details>\n",
                       html_escape(run.full_name()), html_escape(run.config_json));
  }
  return out;
}

}  // namespace

std::string report_page(const std::vector<RunData>& runs) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n"
      "<style>{1}</style></head>\n<body><main>\n<h1>{0}</h1>\n<div class=\"lead\">{2}</div>\n"
      "<input type=\"radio\" name=\"over\" id=\"by-epochs\" checked><label for=\"by-epochs\">over epochs</label>"
      "<input type=\"radio\" name=\"over\" id=\"by-steps\"><label for=\"by-steps\">over steps</label>\n"
      "{3}{4}{5}<p class=\"note\">Loss: a mean over 1/60 of the run, with the least and greatest values faint behind "
      "it. "
      "At the right of each figure: the last values. Point at a figure, or tap it, to read the curves there.</p>\n"
      "<h2>Results</h2>\n{6}<p class=\"note\">* mean over the steps after warm-up, at the run's full sparsity</p>\n{7}"
      "</main><script>{8}</script></body></html>\n",
      html_escape(title(runs)), kReportStyle, lead(runs), legend(runs), figures(runs, Over::kEpochs),
      figures(runs, Over::kSteps), html_table(runs, results_table(runs), "results"), configs(runs), kReportScript);
}

}  // namespace dgc
