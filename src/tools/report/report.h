#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/report/report_data.h"

namespace dgc {

// Writes one HTML file without any outside resource: curves over steps and epochs, results, differences of the configs.
void write_report(const std::vector<RunGroup>& groups, const std::filesystem::path& out);

// The results as plain text for a terminal, a column for each run; ends with a newline.
std::string final_table(const std::vector<RunGroup>& groups);

// A table as plain text, a row for each run; ends with a newline.
std::string summary_text(const SummaryTable& table);

// A report with a name of its own, and the table above the runs.
void write_summary_report(const std::string& name, const SummaryTable& table, const std::vector<RunGroup>& groups,
                          const std::filesystem::path& out);

}  // namespace dgc
