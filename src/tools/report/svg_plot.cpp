#include "tools/report/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "run/number_text.h"
#include "tools/report/html_escape.h"

namespace dgc {
namespace {

// User units; the page scales the figure to its column. Margins leave room for the larger text of a phone.
constexpr double kWidth = 560, kHeight = 330;
constexpr double kLeft = 74, kRight = 480, kTop = 14, kBottom = 276;
constexpr double kLabelHeight = 17;
constexpr size_t kMostLabels = 1 + static_cast<size_t>((kBottom - kTop) / kLabelHeight);

class Figure {
 public:
  explicit Figure(const Plot& plot)
      : plot_(plot), x_(AxisKind::kCount, 0, plot.x_high), y_(plot.y_kind, plot.y_low, plot.y_high) {}

  std::string draw() {
    add(R"(<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">)", kWidth, kHeight,
        html_escape(plot_.title + " over " + plot_.x_label));
    axes();
    // An inner <svg> cuts off what lies outside of it, with room for the markers on its edge.
    add(R"(<svg x="{0}" y="{1}" width="{2}" height="{3}" viewBox="{0} {1} {2} {3}">)", kLeft - 4, kTop - 4,
        kRight - kLeft + 8, kBottom - kTop + 8);
    // The first run is what the page is about: nothing is drawn over it.
    for (auto curve = plot_.curves.rbegin(); curve != plot_.curves.rend(); ++curve) band(*curve);
    for (auto curve = plot_.curves.rbegin(); curve != plot_.curves.rend(); ++curve) path(*curve, curve->faint, "faint");
    for (auto curve = plot_.curves.rbegin(); curve != plot_.curves.rend(); ++curve) line(*curve);
    add("</svg>");
    end_labels();
    if (nothing_to_draw()) {
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

  double px(double x) const { return kLeft + x_.place(x) * (kRight - kLeft); }
  // Points far outside are moved to just outside, which draws the same and is shorter to write.
  double py(double y) const { return kBottom - std::clamp(y_.place(y), -0.2, 1.2) * (kBottom - kTop); }

  std::string value_text(double value) const {
    switch (plot_.y_kind) {
      case AxisKind::kLogBytes:
        return bytes_text(value);
      case AxisKind::kPercent:
        return percent_text(value);
      case AxisKind::kSparsity:
        return fmt::format("{:.6g} %", 100 * value);
      default:
        return fmt::format("{:.3g}", value);
    }
  }

  void axes() {
    for (const Tick& tick : y_.ticks()) {
      const double y = py(tick.value);
      add(R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", kLeft, kRight, y, y);
      add(R"(<text class="tick y" x="{}" y="{:.1f}" dy=".35em">{}</text>)", kLeft - 8, y, tick.label);
    }
    for (const Tick& tick : x_.ticks()) {
      const double x = px(tick.value);
      add(R"(<line class="axis" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>)", x, x, kBottom, kBottom + 5);
      add(R"(<text class="tick x" x="{:.1f}" y="{}">{}</text>)", x, kBottom + 21, tick.label);
    }
    add(R"(<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>)", kLeft, kRight, kBottom, kBottom);
    add(R"(<text class="label x" x="{}" y="{}">{}</text>)", (kLeft + kRight) / 2, kHeight - 9, plot_.x_label);
  }

  void path(const Curve& curve, const Points& points, const char* style) {
    if (points.empty()) return;
    add(R"(<path class="{} {}" data-name="{}" d=")", style, curve_class(curve.look), html_escape(curve.name));
    bool pen_down = false;
    for (size_t i = 0; i < points.size(); ++i) {
      if (!std::isfinite(points[i].y)) {
        pen_down = false;
        continue;
      }
      add("{}{:.1f},{:.1f}", pen_down ? "L" : "M", px(points[i].x), py(points[i].y));
      // A lone point between gaps has no length; with round caps this draws a dot.
      const bool alone = !pen_down && (i + 1 == points.size() || !std::isfinite(points[i + 1].y));
      if (alone) add("h0");
      pen_down = true;
    }
    add(R"("/>)");
  }

  void band(const Curve& curve) {
    if (curve.band.empty()) return;
    add(R"(<polygon class="band {}" points=")", curve_class(curve.look));
    for (const Band& at : curve.band) add("{:.1f},{:.1f} ", px(at.x), py(at.greatest));
    for (auto at = curve.band.rbegin(); at != curve.band.rend(); ++at) add("{:.1f},{:.1f} ", px(at->x), py(at->least));
    add(R"("/>)");
  }

  void line(const Curve& curve) {
    path(curve, curve.line, "line");
    if (!curve.markers && curve.line.size() > 1) return;
    for (const Point& point : curve.line) {
      if (!std::isfinite(point.y)) continue;
      add(R"(<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="2.6"/>)", curve_class(curve.look), px(point.x), py(point.y));
    }
  }

  // Writes the last values at the right, each as near to its curve's end as the other values permit. Where there is no
  // room for all values, equal ones are written once, and then only some from the whole range.
  void end_labels() {
    struct Label {
      double y;
      std::string text;
      size_t look;
    };
    std::vector<Label> labels;
    for (const Curve& curve : plot_.curves) {
      const auto last =
          std::find_if(curve.line.rbegin(), curve.line.rend(), [](Point p) { return std::isfinite(p.y); });
      if (last == curve.line.rend()) continue;
      labels.push_back({std::clamp(py(last->y), kTop, kBottom), value_text(last->y), curve.look});
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

  bool nothing_to_draw() const {
    return std::all_of(plot_.curves.begin(), plot_.curves.end(), [](const Curve& curve) {
      return std::none_of(curve.line.begin(), curve.line.end(), [](Point p) { return std::isfinite(p.y); });
    });
  }

  const Plot& plot_;
  PlotScale x_, y_;
  std::string out_;
};

}  // namespace

std::string curve_class(size_t look) {
  constexpr size_t kColors = 7, kDashes = 4;
  return fmt::format("r{} d{}", look % kColors, look / kColors % kDashes);
}

std::string svg_plot(const Plot& plot) { return Figure(plot).draw(); }

}  // namespace dgc
