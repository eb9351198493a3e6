#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/report/report_data.h"

namespace dgc {

// Both functions take directories that `dgc train` wrote and throw a UserError when one is not such a directory, or has
// not finished a step yet. An unfinished run is shown as far as it got, and marked.

// Writes one HTML file without any outside resource: curves over steps and epochs, results, differences of the configs.
void write_report(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& out);

// The results as plain text for a terminal, a column for each run; ends with a newline.
std::string final_table(const std::vector<std::filesystem::path>& runs);

// A table as plain text, a row for each run; ends with a newline.
std::string summary_text(const SummaryTable& table);

// A report with a name of its own, and the table above the runs.
void write_summary_report(const std::string& name, const SummaryTable& table, const std::vector<RunGroup>& groups,
                          const std::filesystem::path& out);

}  // namespace dgc
