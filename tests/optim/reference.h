#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "tests/optim/cluster.h"

// Both optimizers once more, in double precision and in the plainest words of the paper and of PyTorch's manual: the
// independent truth that the tests compare with. Each switch is a line that can be left out.
namespace dgc::test {

struct Reference {
  int workers = 1;
  double lr = 0.1, momentum = 0, weight_decay = 0;
  bool nesterov = false;
  std::optional<double> clip_norm;
  bool compress = true, correction = true, masking = true;
  bool momentum_sent = false;  // with correction and masking: what the masked momentum would still have added
  std::optional<double> small_tensors_sparsity;  // small tensors are one compressed tensor; none: they travel dense

  std::vector<double> run(int steps, const std::function<double(uint64_t)>& sparsity) {
    const std::vector<float> start = initial_weights();
    w.assign(start.begin(), start.end());
    m.assign(start.size(), 0);
    u.assign(static_cast<size_t>(workers), m);
    v = u;
    for (uint64_t step = 0; step < static_cast<uint64_t>(steps); ++step) take(step, sparsity(step));
    return w;
  }

  std::vector<double> w, m;
  std::vector<std::vector<double>> u, v;

 private:
  void take(uint64_t step, double sparsity) {
    const ParamLayout& layout = small_layout();
    std::vector<std::vector<double>> g(static_cast<size_t>(workers), std::vector<double>(w.size()));
    for (int worker = 0; worker < workers; ++worker) {
      auto& own = g[static_cast<size_t>(worker)];
      for_elements(layout, [&](int64_t e) {
        const auto i = static_cast<size_t>(e);
        own[i] = double{gradient_at(worker, step, e, static_cast<float>(w[i]))} / workers;
      });
      if (compress && clip_norm) clip(own, *clip_norm / std::sqrt(workers));
    }
    std::vector<double> mean(w.size());
    for (const auto& own : g) {
      for (size_t i = 0; i < w.size(); ++i) mean[i] += own[i];
    }
    if (!compress && clip_norm) clip(mean, *clip_norm);

    std::vector<size_t> small;
    for (int t = 0; t < layout.size(); ++t) {
      std::vector<size_t> elements(static_cast<size_t>(layout.numel(t)));
      std::iota(elements.begin(), elements.end(), static_cast<size_t>(layout.offset(t)));
      if (compress && layout.spec(t).shape.rank() >= 2) {
        compressed_step(elements, g, sparsity);
      } else if (compress && small_tensors_sparsity) {
        small.insert(small.end(), elements.begin(), elements.end());
      } else {
        for (const size_t i : elements) momentum_step(i, mean[i]);
      }
    }
    if (!small.empty()) compressed_step(small, g, std::min(sparsity, *small_tensors_sparsity));
  }

  void compressed_step(const std::vector<size_t>& elements, const std::vector<std::vector<double>>& g,
                       double sparsity) {
    std::vector<double> sum(w.size());
    for (size_t worker = 0; worker < g.size(); ++worker) send(worker, g[worker], elements, sparsity, sum);
    for (const size_t i : elements) {
      if (!correction) {
        momentum_step(i, sum[i]);
        continue;
      }
      // The decay's own momentum, the same on every worker; what was sent is plain SGD.
      const double decay = weight_decay * w[i];
      m[i] = momentum * m[i] + decay;
      w[i] -= lr * (sum[i] + (nesterov ? decay + momentum * m[i] : m[i]));
    }
  }

  void clip(std::vector<double>& g, double limit) const {
    double squares = 0;
    for (const double x : g) squares += x * x;
    if (std::sqrt(squares) <= limit) return;
    for (double& x : g) x *= limit / std::sqrt(squares);
  }

  void momentum_step(size_t i, double g) {
    const double d = g + weight_decay * w[i];
    m[i] = momentum * m[i] + d;
    w[i] -= lr * (nesterov ? d + momentum * m[i] : m[i]);
  }

  void send(size_t worker, const std::vector<double>& g, std::vector<size_t> order, double sparsity,
            std::vector<double>& sum) {
    auto& own_u = u[worker];
    auto& own_v = v[worker];
    for (const size_t i : order) {
      if (!correction) {
        own_v[i] += g[i];
      } else if (nesterov) {
        own_u[i] = momentum * (own_u[i] + g[i]);
        own_v[i] += own_u[i] + g[i];
      } else {
        own_u[i] = momentum * own_u[i] + g[i];
        own_v[i] += own_u[i];
      }
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return std::fabs(own_v[a]) > std::fabs(own_v[b]); });
    order.resize(static_cast<size_t>(std::max(1.0, std::round((1 - sparsity) * static_cast<double>(order.size())))));
    for (const size_t i : order) {
      sum[i] += own_v[i] + (momentum_sent ? momentum / (1 - momentum) * own_u[i] : 0);
      own_v[i] = 0;
      if (masking && correction) own_u[i] = 0;
    }
  }
};

inline double worst_difference(const std::vector<float>& got, const std::vector<double>& want) {
  double worst = 0;
  for (size_t i = 0; i < want.size(); ++i) worst = std::max(worst, std::fabs(got[i] - want[i]));
  return worst;
}

inline double worst_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::fabs(a[i] - b[i]));
  return worst;
}

}  // namespace dgc::test
