#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

// What an option's value must be. CLI11's own checks let nan pass, take words for numbers' names, and print 300 digits.
namespace dgc {

CLI::Validator whole_number(int64_t least, int64_t most);
CLI::Validator number(double least, double most);
CLI::Validator share();  // at least 0 and less than 1
CLI::Validator one_of(std::vector<std::string> names);
// Of entries with a comma in between, none of them empty.
CLI::Validator list_of(const CLI::Validator& entry);

std::vector<std::string> split_list(const std::string& list);

}  // namespace dgc
