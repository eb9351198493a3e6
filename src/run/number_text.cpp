#include "run/number_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace dgc {
namespace {

constexpr const char* kUnknown = "–";

}  // namespace

std::string bytes_text(double bytes) {
  if (!std::isfinite(bytes)) return kUnknown;
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  if (bytes == std::round(bytes)) return fmt::format("{:.0f} {}", bytes, kUnits[unit]);
  return fmt::format("{:.{}f} {}", bytes, bytes < 10 ? 2 : bytes < 100 ? 1 : 0, kUnits[unit]);
}

std::string percent_text(double share) {
  return std::isfinite(share) ? fmt::format("{:.2f} %", 100 * share) : kUnknown;
}

std::string ratio_text(double ratio) {
  if (!std::isfinite(ratio)) return kUnknown;
  return fmt::format("{:.{}f}x", ratio, ratio < 10 ? 2 : 1);
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds)) return kUnknown;
  if (seconds < 99.5) return fmt::format("{:.0f} s", seconds);
  const auto minutes = static_cast<long>(std::lround(seconds / 60));
  if (minutes < 60) return fmt::format("{} min", minutes);
  return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

std::string rate_text(double per_second) {
  if (!std::isfinite(per_second)) return kUnknown;
  if (per_second >= 99.95) return count_text(per_second);
  return fmt::format("{:.{}f}", per_second, per_second < 1 ? 2 : 1);
}

std::string count_text(double count) {
  if (!std::isfinite(count)) return kUnknown;
  std::string digits = fmt::format("{:.0f}", count);
  const std::ptrdiff_t first = count < 0 ? 1 : 0;  // no comma comes right after a minus sign
  for (auto at = std::ssize(digits) - 3; at > first; at -= 3) digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

std::string loss_text(double loss) {
  if (!std::isfinite(loss)) return kUnknown;
  return std::fabs(loss) < 1000 ? fmt::format("{:.4f}", loss) : fmt::format("{:.3e}", loss);
}

std::string perplexity_text(double words) {
  if (!std::isfinite(words)) return kUnknown;
  return words < 1e5 ? fmt::format("{:.2f}", words) : fmt::format("{:.2e}", words);
}

}  // namespace dgc
