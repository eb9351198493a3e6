#pragma once

#include <array>
#include <string>
#include <vector>

#include "tools/report/plot_scale.h"
#include "tools/report/report_data.h"

// What the figures of a report show. The page's script (report.js) draws it over any axis, and svg_plot() for readers
// without JavaScript.
namespace dgc {

// What curves are drawn over. Seconds of training are those that steps took, without evaluations and checkpoints.
enum class Over { kEpochs, kSteps, kTime, kBytes };
struct PlotAxis {
  Over over;
  const char *key, *name, *one, *kind;  // one: before a single value; kind: a scale of the script's
};
inline constexpr std::array kPlotAxes = {
    PlotAxis{Over::kEpochs, "epoch", "epochs", "epoch", "linear"},
    PlotAxis{Over::kSteps, "step", "steps", "step", "linear"},
    PlotAxis{Over::kTime, "time", "training time", "after", "time"},
    PlotAxis{Over::kBytes, "bytes", "bytes sent per worker (log scale)", "sent", "bytes"}};

// Where curves have values: for each axis as many numbers, which never fall.
class Places {
 public:
  std::vector<double>& along(Over over) { return along_[static_cast<size_t>(over)]; }
  const std::vector<double>& along(Over over) const { return along_[static_cast<size_t>(over)]; }

 private:
  std::array<std::vector<double>, kPlotAxes.size()> along_;
};

struct PlottedGroup {
  std::string name;
  size_t seeds = 1;
  Places steps, evaluations;
};

// Of several seeds y is their mean, and low ... high their band. NaN: no value here, and a gap in the curve.
struct CurveData {
  size_t group = 0;                        // index into ReportCurves::groups; also the curve's look (curve_class())
  bool evaluated = false;                  // it lies at the group's evaluations, otherwise at its steps
  std::vector<double> y{}, low{}, high{};  // low and high: empty where there is no band
};

struct PlotData {
  std::string key, name;
  AxisKind kind = AxisKind::kLinear;
  bool noisy = false;                        // can be smoothed
  bool shown = true;                         // at first
  double low = kNoNumber, high = kNoNumber;  // what curves and the bands of seeds cover; NaN: there is no value
  std::vector<CurveData> curves{};

  std::string caption() const;
};

struct ReportCurves {
  std::vector<PlottedGroup> groups;
  std::vector<PlotData> plots;
  size_t smoothing = 0;  // noisy curves are drawn, at first, as means of values at most so many places away
};

// Places are steps at which any of a group's runs has a row: all groups together have about 720, and each from 40 to
// 360, or one for each row. Of losses and gradient norms a value is the mean of the rows since the place before, of
// bytes sent the mean per step; of all else it is the last row's. Runs without such a row are left out. A group's
// places lie along the axes where its longest run was at these steps. A band goes from the least to the greatest of
// several seeds, or of the rows of a single run where groups are few.
ReportCurves report_curves(const std::vector<RunGroup>& groups);

// All of it for the script, as one JSON object that is safe inside of a <script> element.
std::string curves_json(const ReportCurves& curves);

}  // namespace dgc
