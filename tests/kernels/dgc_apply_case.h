#pragma once

#include <vector>

#include "tests/kernels/dgc_case.h"

namespace dgc::test {

// Messages of several workers for the same segments, and the arenas that they are applied to.
struct ApplyCase {
  ApplyCase(const std::vector<Size>& sizes, int worker_count) : ApplyCase(compressed(sizes, worker_count)) {}
  explicit ApplyCase(std::vector<DgcCase> all) : workers(std::move(all)) {
    const DgcCase& layout = workers[0];
    for (auto* arena : {&w, &m}) arena->assign(layout.v.size(), kSentinel);
    sum.assign(w.size(), 0);
    fill_normal(workers[0], w, 90, 0.1f);
    for (const DgcSegment& s : layout.segments) std::fill_n(m.begin() + s.offset, s.numel, 0.f);
    control.step = layout.step;
    control.lr = 0.1f;
  }

  static std::vector<DgcCase> compressed(const std::vector<Size>& sizes, int worker_count) {
    std::vector<DgcCase> workers;
    for (int worker = 0; worker < worker_count; ++worker) {
      DgcCase c(sizes);
      c.header.worker = static_cast<uint32_t>(worker);
      fill_normal(c, c.g, 40 + static_cast<uint32_t>(worker), 1000);
      reference_compress(c, Rule{});
      workers.push_back(std::move(c));
    }
    return workers;
  }

  // G by definition: every worker's entries in worker order.
  std::vector<float> expected_sum() const {
    std::vector<float> total(sum.size(), 0);
    for (const DgcCase& c : workers) {
      for (const Entry& e : entries_of(c)) total[static_cast<size_t>(e.element)] += e.value;
    }
    return total;
  }

  std::vector<DgcCase> workers;
  std::vector<float> sum, m, w;
  std::vector<DgcRange> ranges;
  std::vector<float> dense_sum;
  StepControl control;
};

// rule: momentum, weight_decay and the switches.
inline void apply(Backend& backend, ApplyCase& c, DgcApplyArgs rule) {
  const DgcCase& layout = c.workers[0];
  std::vector<std::byte> all;
  for (const DgcCase& worker : c.workers) all.insert(all.end(), worker.message.begin(), worker.message.end());
  std::vector<StepControl> controls{c.control};
  const DgcTableMemory table = table_of(backend, layout.segments);
  const Copy messages(backend, all);
  const Copy control(backend, controls);
  const Copy sum(backend, c.sum), m(backend, c.m), w(backend, c.w), dense_sum(backend, c.dense_sum);
  const Copy ranges(backend, c.ranges);
  rule.table = table.table();
  rule.messages = messages.data();
  rule.workers = static_cast<int32_t>(c.workers.size());
  rule.header = layout.header;
  rule.control = control.data();
  rule.sum = sum.data();
  rule.m = m.data();
  rule.w = w.data();
  rule.dense.ranges = ranges.data();
  rule.dense.count = static_cast<int32_t>(c.ranges.size());
  rule.dense.numel = static_cast<int64_t>(c.dense_sum.size());
  rule.dense_sum = dense_sum.data();
  backend.dgc_apply(rule);
  sum.fetch(), m.fetch(), w.fetch(), control.fetch();
  c.control = controls[0];
}

}  // namespace dgc::test
