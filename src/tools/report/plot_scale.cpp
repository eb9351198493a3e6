#include "tools/report/plot_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "run/number_text.h"

namespace dgc {
namespace {

constexpr double kLeastKept = 1e-7;  // keeps a sparsity of 1 at a finite place
constexpr double kLeast = 1e-30;     // keeps 0 on a log axis at a finite place

// The smallest 1, 2 or 5 times a power of ten that is not below `step`.
double round_step(double step) {
  const double decade = std::pow(10.0, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * decade >= step * 0.999999) return factor * decade;
  }
  return 10 * decade;
}

std::string count_label(double value) {
  if (value != 0 && std::fabs(value) < 1e-3) return fmt::format("{:.2g}", value);
  if (std::fabs(value) < 1e4) return fmt::format("{:.6g}", value);
  if (std::fabs(value) < 1e6) return fmt::format("{:.6g}k", value / 1e3);
  if (std::fabs(value) < 1e9) return fmt::format("{:.6g}M", value / 1e6);
  if (std::fabs(value) < 1e12) return fmt::format("{:.6g}G", value / 1e9);
  return fmt::format("{:.3g}", value);
}

}  // namespace

PlotScale::PlotScale(AxisKind kind, double low, double high) : kind_(kind) {
  if (!std::isfinite(low) || !std::isfinite(high) || low > high) low = 0, high = 1;
  if (kind == AxisKind::kLog || kind == AxisKind::kLogBytes) {
    low = std::max(low, kLeast);
    high = std::max(high, low);
  }
  low_ = transform(low);
  high_ = transform(high);
  switch (kind) {
    case AxisKind::kLinear:
    case AxisKind::kCount:
    case AxisKind::kPercent:
      round_ticks();
      break;
    case AxisKind::kLog:
      if (high < 100 * low) {
        near_log_ticks(low, high);
      } else {
        log_ticks(10);
      }
      break;
    case AxisKind::kLogBytes:
      log_ticks(2);
      break;
    case AxisKind::kSparsity:
      sparsity_ticks();
      break;
  }
}

double PlotScale::transform(double value) const {
  switch (kind_) {
    case AxisKind::kLog:
      return std::log10(std::max(value, kLeast));
    case AxisKind::kLogBytes:
      return std::log2(std::max(value, kLeast));
    case AxisKind::kSparsity:
      return -std::log10(std::max(1 - value, kLeastKept));
    case AxisKind::kLinear:
    case AxisKind::kCount:
    case AxisKind::kPercent:
      break;
  }
  return value;
}

double PlotScale::place(double value) const { return (transform(value) - low_) / (high_ - low_); }

// The y axes grow to the next tick; a count (the x axis) ends where the data ends.
void PlotScale::round_ticks() {
  if (high_ - low_ < 1e-9 * std::max(1.0, std::fabs(high_))) {
    const double pad = kind_ == AxisKind::kPercent ? 0.05 : std::max(0.5, std::fabs(high_) * 0.5);
    if (low_ - pad >= 0) low_ -= pad;
    const bool is_all = kind_ == AxisKind::kPercent && high_ <= 1 && high_ + pad > 1;  // there are no more than 100 %
    high_ = is_all ? 1 : high_ + pad;
  }
  const double step = round_step((high_ - low_) / 5);
  if (kind_ != AxisKind::kCount) {
    low_ = std::floor(low_ / step + 1e-6) * step;
    high_ = std::ceil(high_ / step - 1e-6) * step;
  }
  const auto first = static_cast<int64_t>(std::ceil(low_ / step - 1e-6));
  const auto last = static_cast<int64_t>(std::floor(high_ / step + 1e-6));
  for (int64_t n = first; n <= last; ++n) {
    const double value = static_cast<double>(n) * step;
    const bool percent = kind_ == AxisKind::kPercent;
    ticks_.push_back({value, percent ? fmt::format("{:.4g} %", 100 * value) : count_label(value)});
  }
}

void PlotScale::log_ticks(double base) {
  low_ = std::floor(low_ + 1e-9);
  high_ = std::max(std::ceil(high_ - 1e-9), low_ + 2);
  const double stride = std::ceil((high_ - low_) / 6);
  high_ = low_ + std::ceil((high_ - low_) / stride) * stride;
  for (int n = 0; low_ + n * stride <= high_; ++n) {
    const double value = std::pow(base, low_ + n * stride);
    ticks_.push_back({value, base == 2 ? bytes_text(value) : count_label(value)});
  }
}

// Ticks of an axis shorter than two decades: 1, 2 and 5 times each power of ten; within an octave, equal steps.
void PlotScale::near_log_ticks(double low, double high) {
  if (high / low <= 2) {
    const double step = round_step(std::max((high - low) / 5, low / 50));  // the step is at most half of low
    const auto first = static_cast<int64_t>(std::floor(low / step + 1e-6));
    const auto last = std::max(static_cast<int64_t>(std::ceil(high / step - 1e-6)), first + 1);
    for (int64_t n = first; n <= last; ++n) {
      ticks_.push_back({static_cast<double>(n) * step, count_label(static_cast<double>(n) * step)});
    }
  } else {
    double value = 0;
    for (double decade = std::pow(10.0, std::floor(low_)); value < high * 0.999999; decade *= 10) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        value = factor * decade;
        if (value <= low * 1.000001) ticks_.clear();  // the axis begins at the last tick that is not above `low`
        ticks_.push_back({value, count_label(value)});
        if (value >= high * 0.999999) break;
      }
    }
  }
  low_ = transform(ticks_.front().value);
  high_ = transform(ticks_.back().value);
}

void PlotScale::sparsity_ticks() {
  high_ = std::max(high_, 1.0);
  low_ = std::min(low_, high_ - 1);
  for (const double sparsity : {0.0, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999}) {
    if (transform(sparsity) < low_ - 1e-9 || transform(sparsity) > high_ + 1e-9) continue;
    ticks_.push_back({sparsity, fmt::format("{:.7g} %", 100 * sparsity)});
  }
}

}  // namespace dgc
