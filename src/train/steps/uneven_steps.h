#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <vector>

#include "train/steps/local_steps.h"
#include "train/steps/round_hub.h"

namespace dgc {

// Steps of the workers' own between exchanges for which nobody waits longer than exchange.wait says. What a rank's
// weights have moved by enters u and v when the RoundHub counts the rank as present, and its messages are applied by
// all ranks when they have come. A rank that is late takes over all exchanges that the others have made meanwhile, in
// each call of queue() up to the end of a round with steps, and then goes on from the same weights and the same step as
// they; the batches of the steps that it left out are not trained on.
class UnevenSteps final : public LocalSteps {
 public:
  explicit UnevenSteps(const StepContext&);  // the communicator must carry letters

  int64_t queue(const NextStep&) override;
  bool behind() const override { return arrived_; }
  Attendance attendance(int64_t /*steps*/) const override { return attendance_; }

 private:
  int64_t end_round(const NextStep&) override;
  int64_t take_over_round();
  void read(const RollCall&);
  void read(const Delivery&);
  std::optional<RoundLetter> next_letter();
  void write(RoundLetter);
  void look_around();
  void send_messages();
  void let_letters_leave();
  StepArgs step_args();
  void begin_at(int64_t step);
  bool has(const std::vector<int32_t>& ranks) const;
  void end_with(const std::vector<int32_t>& present);

  Mail& mail_;
  std::chrono::duration<double> wait_;
  std::optional<RoundHub> hub_;           // on rank 0
  std::deque<Mail::Letter> own_letters_;  // from the hub to rank 0
  std::vector<float*> moved_;             // the gradients to exchange
  bool arrived_ = false;                  // what the last round moved is not in the shared weights yet
  bool included_ = false;                 // it is, as the letters so far say
  bool over_ = false;                     // the letters so far end what take_over_round() waits for
  int64_t steps_ = 0;                     // of the round that it has read of
  Attendance attendance_;
};

}  // namespace dgc
