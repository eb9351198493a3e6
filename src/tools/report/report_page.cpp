#include "tools/report/report_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "run/file_io.h"
#include "tools/report/html_escape.h"
#include "tools/report/report_curves.h"
#include "tools/report/svg_plot.h"

namespace dgc {
namespace {

using Groups = std::vector<RunGroup>;

std::string figures(const ReportCurves& curves, Over over) {
  std::string out = fmt::format("<section class=\"figures {}\">\n", over == Over::kEpochs ? "epochs" : "steps");
  for (const PlotData& plot : curves.plots) {
    if (!plot.shown) continue;
    out += fmt::format("<figure><figcaption>{}</figcaption>{}</figure>\n", html_escape(plot.caption()),
                       svg_plot(curves, plot, over));
  }
  return out + "</section>\n";
}

std::string state_of(const RunGroup& group) {
  if (group.has_ended()) {
    const auto diverged = std::ranges::count_if(group.runs, &RunData::diverged);
    return group.done() == 0 ? "diverged" : fmt::format("{} of {} diverged", diverged, group.runs.size());
  }
  return fmt::format("unfinished: epoch {}", group.epochs_text());
}

std::string legend(const Groups& groups) {
  std::string out = "<ul class=\"legend\">";
  for (size_t i = 0; i < groups.size(); ++i) {
    out += fmt::format("<li><i class=\"{}\"></i>{}{}</li>", curve_class(i), html_escape(groups[i].name),
                       groups[i].finished() ? "" : fmt::format(" <em>{}</em>", state_of(groups[i])));
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
std::string static_figures(const ReportCurves& curves) {
  return "<div class=\"static\"><input type=\"radio\" name=\"over\" id=\"by-epochs\" checked><label "
         "for=\"by-epochs\">over epochs</label>"
         "<input type=\"radio\" name=\"over\" id=\"by-steps\"><label for=\"by-steps\">over steps</label>\n" +
         figures(curves, Over::kEpochs) + figures(curves, Over::kSteps) + "</div>\n";
}

// What the runs themselves show: curves, results, configs.
std::string runs_html(const Groups& groups) {
  const ReportCurves curves = report_curves(groups);
  return fmt::format(
      "{}<div id=\"explore\"></div>\n{}"
      "<p class=\"note\">A band goes from the least to the greatest value: of several seeds, around their mean, or of "
      "one run's steps, where a point stands for several. Where one seed has ended earlier, the mean goes on with the "
      "others. A band is smoothed as its curve is. At the right of each figure: the last values.</p>\n"
      "<h2>Results</h2>\n{}<p class=\"note\">{}</p>\n{}"
      "<script type=\"application/json\" id=\"curves\">{}</script>\n",
      legend(groups), static_figures(curves), html_table(groups, results_table(groups), "results"),
      fmt::join(results_notes(groups), "<br>"), configs(groups), curves_json(curves));
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
  const std::string nonce = xxh64_hex(content);
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
  return page(title(groups), "<div class=\"lead\">" + lead(groups) + "</div>\n" + runs_html(groups), reload_s);
}

std::string summary_page(const std::string& name, const SummaryTable& table, const Groups& groups) {
  return page(name, summary_html(table, groups) + (groups.empty() ? "" : runs_html(groups)), {});
}

}  // namespace dgc
