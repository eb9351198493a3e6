#pragma once

#include <string>
#include <vector>

#include "tools/report_data.h"

namespace dgc {

// The report as one self-contained HTML page: style, figures (SVG) and a short script for reading values off the curves
// are all inside. Everything can be read without the script. At most about 1 MB, however long the runs are.
std::string report_page(const std::vector<RunData>& runs);

// The page's style sheet and script (report_style.cpp).
extern const char* const kReportStyle;
extern const char* const kReportScript;

}  // namespace dgc
