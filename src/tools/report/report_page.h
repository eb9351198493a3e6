#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/report_data.h"

namespace dgc {

// The report as one self-contained HTML page: style, figures (SVG), and a script that lets the reader choose, zoom and
// read curves, are all inside. The table and the figures can be read without the script. Below 200 kB for a dozen runs,
// however long they are. reload_s: a page that shall come anew after so many seconds, because the runs go on.
std::string report_page(const std::vector<RunGroup>& groups, std::optional<int> reload_s = {});

// The same page with this name, and at its top this table in the place of sentences, which would compare runs without
// regard to the references of a study; figures only where there are runs.
std::string summary_page(const std::string& name, const SummaryTable& table, const std::vector<RunGroup>& groups);

// The page's style sheet (report_style.cpp) and script (report.js).
extern const char* const kReportStyle;
extern const char* const kReportScript;

}  // namespace dgc
