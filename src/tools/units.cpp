#include "tools/units.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>

#include "tensor/errors.h"

namespace dgc {
namespace {

struct Unit {
  std::string_view name;
  double size;
};

std::optional<double> parse(const std::string& text, std::span<const Unit> units) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  for (const Unit& unit : units) {
    if (std::string_view(rest, static_cast<size_t>(end - rest)) == unit.name) return number * unit.size;
  }
  return std::nullopt;
}

}  // namespace

double parse_bandwidth(const std::string& text, const std::string& option) {
  constexpr Unit kUnits[] = {{"kbps", 1e3}, {"Mbps", 1e6}, {"Gbps", 1e9}};
  constexpr double kMost = 1e18;
  const std::optional<double> bits = parse(text, kUnits);
  if (!bits || !(*bits >= 1 && *bits <= kMost)) {
    throw_user_error(
        "{}: \"{}\" is no bandwidth; write a number of kbps, Mbps or Gbps, 1 bit per second at least, as in 1Gbps",
        option, text);
  }
  return *bits;
}

double parse_duration(const std::string& text, const std::string& option) {
  constexpr Unit kUnits[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  constexpr double kMost = 1e6;
  const std::optional<double> seconds = parse(text, kUnits);
  if (!seconds || !(*seconds >= 0 && *seconds <= kMost)) {
    throw_user_error("{}: \"{}\" is no duration; write a number and us, ms or s, as in 50us", option, text);
  }
  return *seconds;
}

}  // namespace dgc
