#include "run/metric.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "run/number_text.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr std::array kAll = {&kTestLoss,      &kTestAccuracy,       &kTestTop5,           &kTestPerplexity,
                             &kValidLoss,     &kValidAccuracy,      &kValidTop5,          &kValidPerplexity,
                             &kWordErrorRate, &kCharacterErrorRate, &kValidWordErrorRate, &kValidCharacterErrorRate,
                             &kLeftOut};

auto place(const Metric* metric) { return std::ranges::find(kAll, metric); }

}  // namespace

std::span<const Metric* const> all_metrics() { return kAll; }

bool Metric::is_lost(double value) const {
  return (unit == Unit::loss || unit == Unit::perplexity) && !std::isfinite(value);
}

std::string Metric::text(double value) const {
  switch (unit) {
    case Unit::loss:
      return loss_text(value);
    case Unit::share:
      return percent_text(value);
    case Unit::perplexity:
      return perplexity_text(value);
    case Unit::count:
      return count_text(value);
  }
  return {};
}

Measures::Measures(std::initializer_list<Measure> measures) {
  for (const auto& [metric, value] : measures) set(*metric, value);
}

void Measures::set(const Metric& metric, double value) {
  DGC_CHECK(place(&metric) != kAll.end(), "a metric that all_metrics() lacks");
  auto at = std::ranges::find_if(measures_, [&](const Measure& m) { return place(m.first) >= place(&metric); });
  if (at == measures_.end() || at->first != &metric) at = measures_.insert(at, {&metric, value});
  at->second = value;
}

void Measures::set(const Measures& others) {
  for (const auto& [metric, value] : others.all()) set(*metric, value);
}

bool Measures::has(const Metric& metric) const {
  return std::ranges::find(measures_, &metric, &Measure::first) != measures_.end();
}

double Measures::operator[](const Metric& metric) const {
  const auto found = std::ranges::find(measures_, &metric, &Measure::first);
  return found == measures_.end() ? kNoNumber : found->second;
}

}  // namespace dgc
