#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/report/study.h"

namespace dgc {

// Both functions take directories that `dgc train` wrote and throw a UserError when one is not such a directory, or has
// not finished a step yet. An unfinished run is shown as far as it got, and marked.

// Writes one HTML file without any outside resource: curves over steps and epochs, results, differences of the configs.
void write_report(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& out);

// The results as plain text for a terminal, a column for each run; ends with a newline.
std::string final_table(const std::vector<std::filesystem::path>& runs);

// A study's table as plain text, a row for each run; ends with a newline.
std::string study_text(const StudyTable& table);

// The report of a study's runs, below the study's table.
void write_study_report(const Study& study, const StudyTable& table, const std::vector<RunGroup>& groups,
                        const std::filesystem::path& out);

}  // namespace dgc
