#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

// Checks of an option's value. CLI11's own checks let nan pass, take some words for numbers, and print 300 digits.
namespace dgc {

CLI::Validator whole_number(int64_t least, int64_t most);
CLI::Validator number(double least, double most);
CLI::Validator share();  // at least 0 and less than 1
CLI::Validator one_of(const std::vector<std::string>& names);
CLI::Validator not_empty();
CLI::Validator run_folder();           // not empty, and neither ~/ nor {name}, which mean something elsewhere
CLI::Validator output_file();          // not empty, not -, and none of the files that a run writes for itself
CLI::Validator output_file_or_dash();  // the same, or - for standard output
// A list of entries with commas in between, each of which must pass `entry`.
CLI::Validator list_of(const CLI::Validator& entry);

std::vector<std::string> split_list(const std::string& list);

}  // namespace dgc
