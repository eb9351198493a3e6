#pragma once

#include <string>
#include <vector>

#include "tools/report_data.h"
#include "tools/study.h"

namespace dgc {

// The report as one self-contained HTML page: style, figures (SVG) and a short script for reading values off the curves
// are all inside. Everything can be read without the script. At most about 1 MB, however long the runs are.
std::string report_page(const std::vector<RunGroup>& groups);

// The same page with the study's name and table at its top; figures only where there are runs.
std::string study_page(const Study& study, const StudyTable& table, const std::vector<RunGroup>& groups);

// The page's style sheet and script (report_style.cpp).
extern const char* const kReportStyle;
extern const char* const kReportScript;

}  // namespace dgc
