#pragma once

#include <chrono>
#include <filesystem>
#include <vector>

#include "tools/report/report_data.h"

namespace dgc {

// Writes the report of runs that go on, and writes it anew whenever one has gone on, until all have ended. Only the
// last page, of runs that have all ended or after a signal, does not reload itself. A run that has not begun yet, or
// cannot be read at the moment, is left out, and the log says so once; nothing is written until one can be read. every:
// how long to wait between two looks. Returns what the last page shows. Throws Interrupted after a signal, and
// UserError where `out` cannot be written.
std::vector<RunGroup> follow_report(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& out,
                                    std::chrono::milliseconds every = std::chrono::seconds(5));

}  // namespace dgc
