#pragma once

#include <string>
#include <vector>

namespace dgc {

// How values of an axis are laid out and labelled.
enum class AxisKind {
  kLinear,    // plain numbers from round to round
  kCount,     // plain numbers, 12k for 12,000
  kPercent,   // 0 ... 1, shown as 0 % ... 100 %
  kLog,       // decades, or less where the values lie near each other
  kLogBytes,  // powers of two, in B, KiB, MiB
  kSparsity,  // 0 ... 1, spread so that 90 %, 99 % and 99.9 % lie equally far apart
};

struct Tick {
  double value;
  std::string label;
};

// Maps values to 0 ... 1 along an axis, with ticks at round numbers.
class PlotScale {
 public:
  // Covers low ... high. Values that are not finite, equal or out of the kind's domain are widened to something
  // drawable.
  PlotScale(AxisKind kind, double low, double high);

  double place(double value) const;  // not clamped
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  double transform(double value) const;
  void round_ticks();
  void log_ticks(double base);
  void near_log_ticks(double low, double high);
  void sparsity_ticks();

  AxisKind kind_;
  double low_ = 0, high_ = 1;  // transformed
  std::vector<Tick> ticks_;
};

}  // namespace dgc
