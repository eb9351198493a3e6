#include "commands/option_checks.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "json/nearest.h"
#include "run/run_directory.h"
#include "tensor/home_advice.h"

namespace dgc {
namespace {

template <class T>
std::optional<T> parse(const std::string& text) {
  if (text.size() > 1 && text[0] == '0' && text[1] != '.') return std::nullopt;  // which CLI11 would take as octal
  T value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end ? std::optional(value) : std::nullopt;
}

// `fits` must refuse nan.
template <class T>
CLI::Validator check(const std::string& what, const std::function<bool(T)>& fits) {
  return {[=](const std::string& text) {
            const std::optional<T> value = parse<T>(text);
            return value && fits(*value) ? std::string() : fmt::format("\"{}\" is no {}", text, what);
          },
          what};
}

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\n") == std::string::npos; }

}  // namespace

CLI::Validator whole_number(int64_t least, int64_t most) {
  return check<int64_t>(fmt::format("whole number from {} to {}", least, most),
                        [=](int64_t value) { return value >= least && value <= most; });
}

CLI::Validator number(double least, double most) {
  return check<double>(fmt::format("number from {} to {}", least, most),
                       [=](double value) { return value >= least && value <= most; });
}

CLI::Validator share() {
  return check<double>("number from 0 to below 1", [](double value) { return value >= 0 && value < 1; });
}

CLI::Validator one_of(const std::vector<std::string>& names) {
  const std::string all = CLI::detail::join(names, ", ");
  return {[=](const std::string& text) {
            if (std::ranges::find(names, text) != names.end()) return std::string();
            return fmt::format("\"{}\" is none of {}{}", text, all, did_you_mean(text, names));
          },
          all};
}

CLI::Validator not_empty() {
  return {[](const std::string& text) { return is_blank(text) ? std::string("it is empty") : std::string(); }, ""};
}

CLI::Validator run_folder() {
  return {[](const std::string& text) -> std::string {
            if (is_blank(text)) return "it is empty";
            if (text.find("{name}") == std::string::npos) return no_home_folder(text);
            return "{name} stands for the run's name in a config's output alone, as in --set output=runs/{name}";
          },
          ""};
}

CLI::Validator output_file() {
  return {[](const std::string& text) -> std::string {
            if (is_blank(text)) return "it is empty";
            if (text == "-") return "it has to be a file, and - is standard output";
            return is_file_of_run(text) ? fmt::format("{} is the run's own; give another file", text) : "";
          },
          ""};
}

CLI::Validator output_file_or_dash() {
  return {[](std::string& text) { return text == "-" ? std::string() : output_file()(text); }, ""};
}

CLI::Validator list_of(const CLI::Validator& entry) {
  return {[=](const std::string& list) {
            for (const std::string& one : split_list(list)) {
              if (std::string problem = entry(one); !problem.empty()) return problem;
            }
            return std::string();
          },
          "list, with commas: " + entry.get_description()};
}

std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> entries = {""};
  for (const char c : list) {
    if (c == ',') {
      entries.emplace_back();
    } else {
      entries.back() += c;
    }
  }
  return entries;
}

}  // namespace dgc
