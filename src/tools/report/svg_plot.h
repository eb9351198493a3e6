#pragma once

#include <string>

#include "tools/report/report_curves.h"

namespace dgc {

// One of the plots as an <svg> element: axes with ticks at round numbers, curves and their bands cut off at the frame,
// and the last value of each curve written beside it. Colours and text sizes come from the page's style sheet.
std::string svg_plot(const ReportCurves& curves, const PlotData& plot, Over over);

// The page's style sheet gives its colours r0 ... r6 and its dashes d0 ... d3 to curves and to their samples in
// legends: 28 looks, and the first seven differ in colour.
std::string curve_class(size_t look);

}  // namespace dgc
