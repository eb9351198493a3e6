#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "optim/dgc/messages.h"

namespace dgc {

class OverlapMemory;

// What a local worker holds back after a step.
struct Residuals {
  Arena* v = nullptr;
  Arena* u = nullptr;  // null: the worker has none
};

// Queues the work whose results the rules of compression read on the device, and returns the rules, one per local
// worker.
using MakeRules = std::function<std::vector<DgcCompressArgs>()>;

// A strategy that turns the selections of all workers into one step of the weights, in one layout. Every step calls
// compress(), run() and apply(), but for a carried one (CarriedStep), whose messages others carry: it calls no run(). A
// step that overlaps the backward pass calls begin(), ready() and settle() first, as Optimizer says. Each strategy
// calls MakeRules once in a step.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Called before every step, on the host. Returns 0 or 1: a recorded step may be replayed for steps with the same
  // number.
  virtual uint64_t turn() { return 0; }
  virtual void begin(const MakeRules&) {}
  virtual void ready(int /*local_worker*/, int /*first_param*/) {}
  virtual void settle() {}
  virtual bool overlaps() const { return false; }

  virtual void compress(const MakeRules&) = 0;  // queued; makes messages of the local gradients
  // Collective; queued. `apply` has all fields but the header and the messages, and apply.sum is an arena of zeros.
  // run() leaves that arena alone, fills it with the sum, or replaces it by another arena that holds the sum. The
  // caller may queue other collectives between run() and apply().
  virtual void run(const StepArgs&, DgcApplyArgs& apply) = 0;
  // Queued. Changes the weights, and leaves zeros in the arena that run() was given.
  virtual void apply(const DgcApplyArgs&) = 0;

  virtual int64_t sent_bytes() const = 0;  // bytes that each worker sends in a step for compressed tensors
};

// Chooses the strategy of each layout, and keeps what outlives a layout.
class Exchanges {
 public:
  // residuals: what each local worker holds back, which only layouts that overlap need; empty if no layout overlaps.
  Exchanges(const OptimizerContext&, std::vector<Residuals> residuals);
  ~Exchanges();

  void lay_out(const DgcLayout&);  // called between steps; the layout need not outlive the call
  Exchange& current() const { return *current_; }
  Buckets& buckets() { return buckets_; }

  std::optional<ExchangeTime> time() const;  // see Optimizer::exchange_time()

 private:
  OptimizerContext context_;
  Buckets buckets_;  // their memory only grows
  std::unique_ptr<Exchange> current_;
  std::unique_ptr<OverlapMemory> overlap_;  // declared last, so destroyed first: its lane uses the members above
};

}  // namespace dgc
