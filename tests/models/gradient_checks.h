#pragma once

#include <catch.hpp>
#include <cmath>
#include <functional>
#include <vector>

#include "tests/models/net_memory.h"
#include "tests/models/network_facts.h"

namespace dgc {

// How the loss changes with an element of a parameter, by finite differences. w: the parameter's values.
inline double slope(const NetMemory& net, int parameter, std::vector<float>& w, size_t element,
                    const std::function<double()>& loss) {
  const float keep = w[element], eps = 1e-2f;
  const auto with = [&](float value) {
    w[element] = value;
    net.write(net.weights, parameter, w);
  };
  with(keep + eps);
  const double up = loss();
  with(keep - eps);
  const double down = loss();
  with(keep);
  return (up - down) / (2 * static_cast<double>(eps));
}

// Compares all gradients, which a backward pass has left, with finite differences of the loss, the largest of which is
// above `least` for every parameter, so that there is a gradient to get wrong.
inline void check_gradients(const NetMemory& net, double least, const std::function<double()>& loss) {
  for (int i = 0; i < net.layout.size(); ++i) {
    const auto analytic = net.read(net.gradients, i);
    auto w = net.read(net.weights, i);
    double worst = 0, largest = 0;
    for (size_t e = 0; e < w.size(); ++e) {
      const double numeric = slope(net, i, w, e, loss);
      worst = std::fmax(worst, std::fabs(numeric - static_cast<double>(analytic[e])));
      largest = std::fmax(largest, std::fabs(numeric));
    }
    CAPTURE(net.layout.spec(i).name);
    CHECK(largest > least);
    CHECK(worst < 0.01 * largest);
  }
}

// Checks that a backward pass announces every parameter once, the last one first, with its final gradient. The pass
// calls the function that `backward` gets.
inline void check_announcements(const NetMemory& net, const Network& network,
                                const std::function<void(const std::function<void(int)>&)>& backward) {
  std::vector<std::vector<float>> seen(static_cast<size_t>(net.layout.size()));
  int previous = net.layout.size(), announced = 0;
  backward([&](int first) {
    ++announced;
    CHECK(first < previous);  // parameters lie in the order of the layers
    for (int i = first; i < previous; ++i) seen[static_cast<size_t>(i)] = net.read(net.gradients, i);
    previous = first;
  });
  CHECK(previous == 0);
  CHECK(announced == layers_with_parameters(network));
  for (int i = 0; i < net.layout.size(); ++i) CHECK(seen[static_cast<size_t>(i)] == net.read(net.gradients, i));
}

}  // namespace dgc
