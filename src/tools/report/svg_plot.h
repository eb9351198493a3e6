#pragma once

#include <string>
#include <vector>

#include "tools/report/plot_scale.h"
#include "tools/report/plot_series.h"

namespace dgc {

// The least and the greatest value at a place.
struct Band {
  double x = 0, least = 0, greatest = 0;
};

struct Curve {
  std::string name;  // plain text; svg_plot() escapes it
  size_t look = 0;   // its colour and dashes: curve_class()
  Points line;
  Points faint;              // drawn behind the line; may be empty
  std::vector<Band> band{};  // filled behind the line; may be empty
  bool markers = false;      // a dot at each point of the line
};

struct Plot {
  std::string title;
  AxisKind y_kind = AxisKind::kLinear;
  double y_low = 0, y_high = 1;  // the axis covers at least this range; curves are clipped
  std::string x_label;
  double x_high = 1;  // the x axis starts at 0
  std::vector<Curve> curves;
};

// One figure as an <svg> element: axes with ticks at round numbers, curves clipped to the frame, and the last value of
// each curve written beside it. Colours and text sizes come from the page's style sheet.
std::string svg_plot(const Plot& plot);

// The page's style sheet gives its colours r0 ... r6 and its dashes d0 ... d3 to curves and to their samples in
// legends: 28 looks, and the first seven differ in colour.
std::string curve_class(size_t look);

}  // namespace dgc
