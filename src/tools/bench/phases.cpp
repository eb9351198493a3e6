#include "tools/bench/phases.h"

#include <algorithm>
#include <string_view>

namespace dgc {

Phases::Phases(Backend& backend) : backend_(backend) { backend.observer = this; }

void Phases::begin(const char* name) {
  const auto phase = std::ranges::find(kNames, std::string_view(name));
  if (phase == kNames.end()) {
    open_.push_back(nullptr);
    return;
  }
  measured_.push_back({static_cast<size_t>(phase - kNames.begin()), backend_.device()->make_stopwatch()});
  open_.push_back(measured_.back().stopwatch.get());
  open_.back()->start();
}

void Phases::end() {
  if (open_.back() != nullptr) open_.back()->stop();
  open_.pop_back();
}

std::vector<Phases::Phase> Phases::take() {
  std::vector<Phase> phases;
  for (const char* name : kNames) phases.push_back({name, 0});
  for (const Measured& m : measured_) phases[m.phase].milliseconds += m.stopwatch->milliseconds();
  measured_.clear();
  return phases;
}

}  // namespace dgc
