#pragma once

#include <cstddef>
#include <span>

namespace dgc {

struct StepArgs;

// An optimizer's step in two halves, between which the caller carries what each worker sends. So those of some workers
// may come late: what they held back stays in their messages until these are applied. Where all come in time, both
// halves together change the same bits as Optimizer::step().
class CarriedStep {
 public:
  virtual ~CarriedStep() = default;

  // What each worker sends in a step as prepared.
  virtual size_t message_bytes() const = 0;
  // Takes what the local workers send out of what they hold back, into host memory, one worker after the other. Waits
  // for the device.
  virtual void send(const StepArgs&, std::span<std::byte> messages) = 0;
  // Steps the weights with what some workers have sent. Waits for the device where it copies from host memory, and
  // queues the rest. from: a message in host memory for each of all workers,
  // null for the others. args.record is at the step for which the messages were made; args.gradients is not used.
  virtual void receive(const StepArgs&, std::span<const std::byte* const> from) = 0;
};

}  // namespace dgc
