#include "tools/report/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "run/file_io.h"
#include "run/number_text.h"
#include "tasks/task.h"
#include "tools/report/html_escape.h"
#include "tools/report/report_curves.h"
#include "tools/report/svg_plot.h"

namespace dgc {
namespace {

enum class Over { kEpochs, kSteps };

constexpr size_t kPagePoints = 360;  // points per kind of curve, shared by the runs: the page stays small

using Groups = std::vector<RunGroup>;

size_t points_per_curve(const Groups& groups) { return std::clamp<size_t>(kPagePoints / groups.size(), 30, 300); }

double x_of(Over over, const auto& row) { return over == Over::kEpochs ? row.epoch : static_cast<double>(row.step); }

std::vector<Points> all_points(const RunGroup& group, Over over,
                               const std::function<double(const StepMetrics&)>& value) {
  std::vector<Points> all;
  for (const RunData& run : group.runs) {
    all.emplace_back();
    for (const StepMetrics& step : run.steps) all.back().push_back({x_of(over, step), value(step)});
  }
  return all;
}

// Draws the mean of several runs, and a band from the least to the greatest of them. moving_mean() makes few points of
// many, at the same places in each.
void draw_together(Curve& curve, std::vector<Points> runs, size_t window, size_t most) {
  const Points longest = *std::ranges::max_element(runs, {}, &Points::size);
  for (Points& run : runs) {
    for (size_t i = run.size(); i < longest.size(); ++i) run.push_back({longest[i].x, kNoNumber});
    run = moving_mean(run, window, most);
  }
  for (size_t i = 0; i < runs[0].size(); ++i) {
    std::vector<double> values;
    for (const Points& run : runs) {
      if (std::isfinite(run[i].y)) values.push_back(run[i].y);
    }
    const double x = runs[0][i].x;
    curve.line.push_back({x, sample_of(values).mean});
    if (values.empty()) continue;
    const auto [least, greatest] = std::ranges::minmax(values);
    curve.band.push_back({x, least, greatest});
  }
}

Plot base_plot(const Groups& groups, Over over) {
  Plot plot;
  plot.x_label = over == Over::kEpochs ? "epochs" : "steps";
  plot.x_high = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const RunData& run : groups[i].runs) plot.x_high = std::max(plot.x_high, x_of(over, run.steps.back()));
    plot.curves.push_back({.name = groups[i].full_name(), .look = i, .line = {}, .faint = {}, .band = {}});
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

Plot loss_plot(const Groups& groups, Over over) {
  Plot plot = base_plot(groups, over);
  plot.title = "Training loss";
  const size_t most = points_per_curve(groups);
  for (size_t i = 0; i < groups.size(); ++i) {
    Curve& curve = plot.curves[i];
    const auto runs = all_points(groups[i], over, [](const StepMetrics& step) { return step.loss; });
    const size_t window = std::ranges::max(runs, {}, &Points::size).size() / 60;
    if (runs.size() > 1) {
      draw_together(curve, runs, window, most);
    } else {
      curve.line = moving_mean(runs[0], window, most);
      if (window > 1) curve.faint = envelope(runs[0], most);
    }
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

// The plot of one metric; only experiments that are compared by this metric have points.
Plot metric_plot(const Groups& groups, Over over, const Metric& metric) {
  Plot plot = base_plot(groups, over);
  for (size_t i = 0; i < groups.size(); ++i) {
    const bool compared = task_of(groups[i].config()).compared().curve == &metric;
    std::vector<Points> runs;
    for (const RunData& run : groups[i].runs) {
      runs.emplace_back();
      for (const EvalMetrics& eval : run.evals) {
        runs.back().push_back({x_of(over, eval), compared ? eval.measures[metric] : kNoNumber});
      }
    }
    plot.curves[i].markers = std::ranges::max(runs, {}, &Points::size).size() <= 60;
    if (runs.size() > 1) {
      draw_together(plot.curves[i], runs, 0, points_per_curve(groups));
    } else {
      plot.curves[i].line = envelope(runs[0], points_per_curve(groups));
    }
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

// A quantity that changes in stairs.
void draw_levels(Plot& plot, const Groups& groups, Over over, const std::function<double(const StepMetrics&)>& value) {
  const size_t most = points_per_curve(groups);
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto runs = all_points(groups[i], over, value);
    if (runs.size() > 1) {
      draw_together(plot.curves[i], runs, 0, most);
    } else {
      plot.curves[i].line = levels(runs[0], most);
    }
  }
}

Plot sparsity_plot(const Groups& groups, Over over) {
  Plot plot = base_plot(groups, over);
  plot.title = "Gradient sparsity (log scale of the share that is kept)";
  plot.y_kind = AxisKind::kSparsity;
  draw_levels(plot, groups, over, [](const StepMetrics& step) { return step.sparsity; });
  plot.y_low = 0;
  plot.y_high = line_range(plot).y;
  return plot;
}

Plot bytes_plot(const Groups& groups, Over over) {
  Plot plot = base_plot(groups, over);
  plot.title = "Sent by each worker in a step (log scale)";
  plot.y_kind = AxisKind::kLogBytes;
  // A step in which no exchange ended sends nothing, and has no place on a log axis.
  draw_levels(plot, groups, over,
              [](const StepMetrics& step) { return step.sent_bytes > 0 ? step.sent_per_step() : kNoNumber; });
  const Point range = line_range(plot);
  plot.y_low = range.x;
  plot.y_high = range.y;
  return plot;
}

std::string figure(const Plot& plot) {
  return fmt::format("<figure><figcaption>{}</figcaption>{}</figure>\n", html_escape(plot.title), svg_plot(plot));
}

std::string figures(const Groups& groups, Over over) {
  std::string out = fmt::format("<section class=\"figures {}\">\n", over == Over::kEpochs ? "epochs" : "steps");
  out += figure(loss_plot(groups, over));
  for (const Metric* metric : all_metrics()) {
    const auto shows = [&](const RunGroup& group) { return task_of(group.config()).compared().curve == metric; };
    if (std::ranges::any_of(groups, shows)) out += figure(metric_plot(groups, over, *metric));
  }
  out += figure(bytes_plot(groups, over));
  out += figure(sparsity_plot(groups, over));
  return out + "</section>\n";
}

std::string legend(const Groups& groups) {
  std::string out = "<ul class=\"legend\">";
  for (size_t i = 0; i < groups.size(); ++i) {
    out +=
        fmt::format("<li><i class=\"{}\"></i>{}{}</li>", curve_class(i), html_escape(groups[i].name),
                    groups[i].finished() ? "" : fmt::format(" <em>unfinished: epoch {}</em>", groups[i].epochs_text()));
  }
  return out + "</ul>\n";
}

std::string html_table(const Groups& groups, const std::vector<TableRow>& rows, const char* style) {
  std::string out = fmt::format("<div class=\"wide\"><table class=\"{}\"><thead><tr><td></td>", style);
  for (size_t i = 0; i < groups.size(); ++i) {
    out += fmt::format("<th><i class=\"{}\"></i>{}</th>", curve_class(i), html_escape(groups[i].full_name()));
  }
  out += "</tr></thead><tbody>\n";
  for (const TableRow& row : rows) {
    out += fmt::format("<tr><th>{}</th>", html_escape(row.what));
    for (const std::string& cell : row.cells) out += fmt::format("<td>{}</td>", cell.empty() ? "–" : html_escape(cell));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string title(const Groups& groups) {
  constexpr size_t kNamed = 4;
  std::string names;
  for (size_t i = 0; i < std::min(kNamed, groups.size()); ++i) names += (i == 0 ? "" : ", ") + groups[i].name;
  return groups.size() <= kNamed ? names : fmt::format("{} and {} more", names, groups.size() - kNamed);
}

std::string lead(const Groups& groups) {
  constexpr size_t kShown = 4;
  const std::vector<std::string> sentences = comparisons(groups);
  std::string out;
  for (size_t i = 0; i < sentences.size(); ++i) {
    if (i == kShown) out += fmt::format("<details><summary>{} more</summary>\n", sentences.size() - kShown);
    out += "<p>" + html_escape(sentences[i]) + "</p>\n";
  }
  return out + (sentences.size() > kShown ? "</details>\n" : "");
}

std::string configs(const Groups& groups) {
  std::string out = "<h2>Configs</h2>\n";
  const auto differences = config_table(groups);
  if (!differences.empty()) {
    out += html_table(groups, differences, "configs");
  } else if (groups.size() > 1) {
    out += "<p>The configs do not differ.</p>\n";
  }
  for (const RunGroup& group : groups) {
    out += fmt::format("<details><summary>Resolved config of {}</summary><pre>{}</pre></details>\n",
                       html_escape(group.full_name()), html_escape(group.runs.front().config_json));
  }
  return out;
}

// The figures of a reader without JavaScript. Others explore the same curves (report.js) in their place.
std::string static_figures(const Groups& groups) {
  return "<div class=\"static\"><input type=\"radio\" name=\"over\" id=\"by-epochs\" checked><label "
         "for=\"by-epochs\">over epochs</label>"
         "<input type=\"radio\" name=\"over\" id=\"by-steps\"><label for=\"by-steps\">over steps</label>\n" +
         figures(groups, Over::kEpochs) + figures(groups, Over::kSteps) +
         "<p class=\"note\">Loss: a mean over 1/60 of the run, with the least and greatest values faint behind it; of "
         "several seeds the mean, with a band from the least to the greatest. At the right of each figure: the last "
         "values.</p></div>\n";
}

// What the runs themselves show: curves, results, configs.
std::string runs_html(const Groups& groups) {
  return fmt::format(
      "<div class=\"lead\">{}</div>\n{}<div id=\"explore\"></div>\n{}"
      "<h2>Results</h2>\n{}<p class=\"note\">{}</p>\n{}"
      "<script type=\"application/json\" id=\"curves\">{}</script>\n",
      lead(groups), legend(groups), static_figures(groups), html_table(groups, results_table(groups), "results"),
      fmt::join(results_notes(), "<br>"), configs(groups), curves_json(groups));
}

std::string summary_html(const SummaryTable& table, const Groups& groups) {
  std::string out = "<div class=\"wide\"><table class=\"results study\"><thead><tr><td></td>";
  for (const std::string& column : table.columns) out += fmt::format("<th>{}</th>", html_escape(column));
  out += "</tr></thead><tbody>\n";
  for (const TableRow& row : table.rows) {
    const auto group = std::ranges::find(groups, row.what, &RunGroup::name);
    const std::string look =
        group == groups.end() ? "" : fmt::format("<i class=\"{}\"></i>", curve_class(group - groups.begin()));
    out += fmt::format("<tr><th>{}{}</th>", look, html_escape(row.what));
    for (const std::string& cell : row.cells) out += fmt::format("<td>{}</td>", html_escape(cell));
    out += "</tr>\n";
  }
  out += "</tbody></table></div>\n";
  for (const std::string& note : table.notes) out += fmt::format("<p class=\"note\">{}</p>\n", html_escape(note));
  return out;
}

// Nothing is loaded, and no script runs but the page's own: a nonce of the content allows it (Content Security Policy
// Level 3, W3C), so that what a run's name smuggled in would not run.
std::string page(const std::string& title, const std::string& content, std::optional<int> reload_s) {
  const std::string nonce = xxh64_hex(content.data(), content.size());
  const std::string reload = reload_s ? fmt::format(" data-reload=\"{}\"", *reload_s) : "";
  const std::string without_script =
      reload_s ? fmt::format("<noscript><meta http-equiv=\"refresh\" content=\"{}\"></noscript>\n", *reload_s) : "";
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"{2}><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'nonce-{3}'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n{4}<title>{0}</title>\n"
      "<style>{5}</style></head>\n<body><main>\n<h1>{0}</h1>\n{1}"
      "</main><script nonce=\"{3}\">{6}</script></body></html>\n",
      html_escape(title), content, reload, nonce, without_script, kReportStyle, kReportScript);
}

}  // namespace

std::string report_page(const Groups& groups, std::optional<int> reload_s) {
  return page(title(groups), runs_html(groups), reload_s);
}

std::string summary_page(const std::string& name, const SummaryTable& table, const Groups& groups) {
  return page(name, summary_html(table, groups) + (groups.empty() ? "" : runs_html(groups)), {});
}

}  // namespace dgc
