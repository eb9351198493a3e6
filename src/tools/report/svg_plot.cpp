#include "tools/report/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "run/number_text.h"
#include "tools/report/html_escape.h"
#include "tools/report/statistics.h"

namespace dgc {
namespace {

// User units; the page scales the figure to its column. Margins leave room for the larger text of a phone.
constexpr double kWidth = 560, kHeight = 330;
constexpr double kLeft = 74, kRight = 480, kTop = 14, kBottom = 276;
constexpr double kLabelHeight = 17;
constexpr size_t kMostLabels = 1 + static_cast<size_t>((kBottom - kTop) / kLabelHeight);

// The mean of the numbers at most `half` places away; report.js has the same.
std::vector<double> smoothed(const std::vector<double>& values, size_t half) {
  std::vector<double> out;
  for (size_t i = 0; i < values.size(); ++i) {
    std::vector<double> near;
    const size_t end = std::min(values.size(), i + half + 1);
    for (size_t n = i < half ? 0 : i - half; n < end; ++n) near.push_back(values[n]);
    out.push_back(std::isfinite(values[i]) ? sample_of(near).mean : values[i]);
  }
  return out;
}

double last_place(const ReportCurves& curves, Over over) {
  double end = 0;
  for (const PlottedGroup& group : curves.groups) {
    const std::vector<double>& places = group.steps.along(over);
    if (!places.empty()) end = std::max(end, places.back());
  }
  return end;
}

class Figure {
 public:
  Figure(const ReportCurves& all, const PlotData& plot, Over over)
      : all_(all),
        plot_(plot),
        over_(over),
        x_(AxisKind::kCount, 0, last_place(all, over)),
        y_(plot.kind, plot.low, plot.high) {
    // The first run is what the page is about: nothing is drawn over it.
    for (auto curve = plot.curves.rbegin(); curve != plot.curves.rend(); ++curve) curves_.push_back(*curve);
    for (CurveData& curve : curves_) {
      for (auto* values : {&curve.y, &curve.low, &curve.high}) {
        if (plot.noisy) *values = smoothed(*values, all.smoothing);
      }
    }
  }

  std::string draw() {
    const char* over = kPlotAxes[static_cast<size_t>(over_)].name;
    add(R"(<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{} over {}">)", kWidth, kHeight,
        html_escape(plot_.caption()), over);
    axes(over);
    // An inner <svg> cuts off what lies outside of it.
    add(R"(<svg x="{0}" y="{1}" width="{2}" height="{3}" viewBox="{0} {1} {2} {3}">)", kLeft - 4, kTop - 4,
        kRight - kLeft + 8, kBottom - kTop + 8);
    for (const CurveData& curve : curves_) band(curve);
    for (const CurveData& curve : curves_) line(curve);
    for (const CurveData& curve : curves_) marker(curve);
    add("</svg>");
    end_labels();
    if (std::isnan(plot_.high)) {
      add(R"(<text class="empty" x="{}" y="{}">no data yet</text>)", (kLeft + kRight) / 2, (kTop + kBottom) / 2);
    }
    add("</svg>");
    return out_;
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format(format, std::forward<Args>(args)...);
  }

  std::string px(double x) const { return fmt::format("{:.1f}", kLeft + x_.place(x) * (kRight - kLeft)); }
  // Points far outside are moved to just outside, which draws the same and is shorter to write.
  double y_at(double y) const { return kBottom - std::clamp(y_.place(y), -0.2, 1.2) * (kBottom - kTop); }
  std::string py(double y) const { return fmt::format("{:.1f}", y_at(y)); }

  const std::vector<double>& places(const CurveData& curve) const {
    const PlottedGroup& group = all_.groups[curve.group];
    return (curve.evaluated ? group.evaluations : group.steps).along(over_);
  }

  std::string value_text(double value) const {
    switch (plot_.kind) {
      case AxisKind::kLogBytes:
        return bytes_text(value);
      case AxisKind::kPercent:
        return fmt::format("{:.4g} %", 100 * value);
      case AxisKind::kSparsity:
        return fmt::format("{:.7g} %", 100 * value);
      case AxisKind::kLinear:
      case AxisKind::kCount:
      case AxisKind::kLog:
        break;
    }
    return fmt::format("{:.4g}", value);
  }

  void axes(const char* over) {
    for (const Tick& tick : y_.ticks()) {
      const std::string y = py(tick.value);
      add(R"(<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>)", kLeft, kRight, y, y);
      add(R"(<text class="tick y" x="{}" y="{}" dy=".35em">{}</text>)", kLeft - 8, y, tick.label);
    }
    for (const Tick& tick : x_.ticks()) {
      const std::string x = px(tick.value);
      add(R"(<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>)", x, x, kBottom, kBottom + 5);
      add(R"(<text class="tick x" x="{}" y="{}">{}</text>)", x, kBottom + 21, tick.label);
    }
    add(R"(<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>)", kLeft, kRight, kBottom, kBottom);
    add(R"(<text class="label x" x="{}" y="{}">{}</text>)", (kLeft + kRight) / 2, kHeight - 9, over);
  }

  void band(const CurveData& curve) {
    if (curve.low.empty()) return;
    const std::vector<double>& x = places(curve);
    const auto is_there = [](double y) { return std::isfinite(y); };
    const bool one = std::ranges::count_if(curve.high, is_there) == 1;  // which has no width, and is drawn as a line
    add(R"(<polygon class="band {}{}{}" points=")", one ? "one " : "",
        all_.groups[curve.group].seeds == 1 ? "noise " : "", curve_class(curve.group));
    const auto corner = [&](size_t i, double y) {
      if (std::isfinite(y)) add("{},{} ", px(x[i]), py(y));
    };
    for (size_t i = 0; i < x.size(); ++i) corner(i, curve.high[i]);
    for (size_t i = x.size(); i-- > 0;) corner(i, curve.low[i]);
    add(R"("/>)");
  }

  void line(const CurveData& curve) {
    add(R"(<path class="line {}" d=")", curve_class(curve.group));
    const std::vector<double>& x = places(curve);
    const auto at = [&](size_t i) { return i < x.size() && std::isfinite(curve.y[i]) ? py(curve.y[i]) : ""; };
    std::string before;  // empty: the pen is up
    for (size_t i = 0; i < x.size(); ++i) {
      const std::string here = at(i), after = at(i + 1);
      const bool inside = here == before && here == after;  // of a level, which its ends draw
      if (!here.empty() && !inside) add("{}{},{}", before.empty() ? "M" : "L", px(x[i]), here);
      // A lone point between gaps has no length; with round caps this draws a dot.
      if (!here.empty() && before.empty() && after.empty()) add("h0");
      before = here;
    }
    add(R"("/>)");
  }

  // A curve of a single point would be a dot as small as a line is wide.
  void marker(const CurveData& curve) {
    const auto is_there = [](double y) { return std::isfinite(y); };
    if (std::ranges::count_if(curve.y, is_there) != 1) return;
    const auto at = static_cast<size_t>(std::ranges::find_if(curve.y, is_there) - curve.y.begin());
    add(R"(<circle class="{}" cx="{}" cy="{}" r="4" fill="currentColor"/>)", curve_class(curve.group),
        px(places(curve)[at]), py(curve.y[at]));
  }

  // Writes the last values at the right, each as near to its curve's end as the other values permit. Where there is no
  // room for all values, equal ones are written once, and then only some from the whole range; report.js does the same.
  void end_labels() {
    struct Label {
      double y;
      std::string text;
      size_t look;
    };
    std::vector<Label> labels;
    for (auto curve = curves_.rbegin(); curve != curves_.rend(); ++curve) {
      const auto last = std::find_if(curve->y.rbegin(), curve->y.rend(), [](double y) { return std::isfinite(y); });
      if (last == curve->y.rend()) continue;
      labels.push_back({std::clamp(y_at(*last), kTop, kBottom), value_text(*last), curve->group});
    }
    std::stable_sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.y < b.y; });
    if (labels.size() > kMostLabels) {
      const auto same = [](const Label& a, const Label& b) { return a.text == b.text; };
      labels.erase(std::unique(labels.begin(), labels.end(), same), labels.end());
    }
    if (labels.size() > kMostLabels) {
      std::vector<Label> some;
      for (size_t i = 0; i < kMostLabels; ++i) some.push_back(labels[i * (labels.size() - 1) / (kMostLabels - 1)]);
      labels = std::move(some);
    }
    for (size_t i = 1; i < labels.size(); ++i) labels[i].y = std::max(labels[i].y, labels[i - 1].y + kLabelHeight);
    double floor = kBottom;
    for (auto label = labels.rbegin(); label != labels.rend(); ++label, floor -= kLabelHeight) {
      label->y = std::min(label->y, floor);
    }
    for (const Label& label : labels) {
      add(R"(<text class="end {}" x="{}" y="{:.1f}" dy=".35em">{}</text>)", curve_class(label.look), kRight + 7,
          label.y, label.text);
    }
  }

  const ReportCurves& all_;
  const PlotData& plot_;
  Over over_;
  PlotScale x_, y_;
  std::vector<CurveData> curves_;  // as they are drawn, the last first
  std::string out_;
};

}  // namespace

std::string curve_class(size_t look) {
  constexpr size_t kColors = 7, kDashes = 4;
  return fmt::format("r{} d{}", look % kColors, look / kColors % kDashes);
}

std::string svg_plot(const ReportCurves& curves, const PlotData& plot, Over over) {
  return Figure(curves, plot, over).draw();
}

}  // namespace dgc
