#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "optim/dgc/messages.h"

namespace dgc {

class OverlapMemory;

// What a local worker holds back after a step.
struct HeldBack {
  Arena* v = nullptr;
  Arena* u = nullptr;  // null: there is none
};

// Queues what the rules of compression read on the device, and returns the rules, one per local worker.
using MakeRules = std::function<std::vector<DgcCompressArgs>()>;

// How the selections of all workers become one step of the weights, in one layout. Every step calls compress(), run()
// and apply(); one that also works beside the backward pass begins with begin(), ready() and settle(), as Optimizer
// says. Each strategy asks MakeRules once in a step.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Before every step, on the host. Returns 0 or 1: a recorded step may be replayed where the number is the same.
  virtual uint64_t turn() { return 0; }
  virtual void begin(const MakeRules&) {}
  virtual void ready(int /*local_worker*/, int /*first_param*/) {}
  virtual void settle() {}

  virtual void compress(const MakeRules&) = 0;  // queued: local gradients into messages
  // Collective; queued. `apply` says all but the messages; its sum is an arena, all zero, or becomes another one that
  // holds the sum. The caller may queue other collectives afterwards, before apply().
  virtual void run(const StepArgs&, DgcApplyArgs& apply) = 0;
  virtual void apply(const DgcApplyArgs&) = 0;  // queued: changes the weights, and leaves an arena that was zero so

  virtual int64_t sent_bytes() const = 0;  // by each worker, of what is compressed
};

// Chooses the strategy of each layout, and keeps what outlives a layout.
class Exchanges {
 public:
  // held: what each local worker holds back, for layouts that overlap; empty: there are none.
  Exchanges(const OptimizerContext&, std::vector<HeldBack> held);
  ~Exchanges();

  void lay_out(const DgcLayout&);  // which need not outlive the call; between steps
  Exchange& current() const { return *current_; }

  std::optional<ExchangeTime> time() const;  // as Optimizer's exchange_time()

 private:
  OptimizerContext context_;
  Buckets buckets_;  // their memory only grows
  std::unique_ptr<Exchange> current_;
  std::unique_ptr<OverlapMemory> overlap_;  // destroyed first: its lane uses the buckets and the strategy
};

}  // namespace dgc
