#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace dgc {

// The rows of all runs' metrics.jsonl as one table in CSV (RFC 4180, but with lines that end in a newline alone): first
// the column run, with the directory as it was given, then kind, step, epoch and all other keys in the order in which
// they come. Numbers are written as in metrics.jsonl. A field is empty where a row has no such key or null. `write`
// gets one record after another, each with the newline at its end; the files are read twice, so that memory does not
// grow with them. Throws UserError when a directory is not a run's, or its file is damaged, before the first record
// unless the file is written to meanwhile.
void write_rows_csv(const std::vector<std::filesystem::path>& runs,
                    const std::function<void(const std::string& record)>& write);

}  // namespace dgc
