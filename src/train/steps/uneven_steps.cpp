#include "train/steps/uneven_steps.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "dist/back_off.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

using Clock = RoundHub::Clock;

// What a rank has left to read lies in rank 0's memory: at most twice as much as the weights take, or this many bytes
// where the model is small.
constexpr size_t kUnread = size_t{1} << 24;

Mail& mail_of(Communicator& communicator) {
  DGC_CHECK(communicator.mail() != nullptr, "this communicator carries no letters");
  return *communicator.mail();
}

}  // namespace

UnevenSteps::UnevenSteps(const StepContext& context)
    : LocalSteps(context), mail_(mail_of(context.communicator)), wait_(context.config.exchange.wait.value()) {
  DGC_CHECK(context.memory.optimizer->carried() != nullptr,
            "workers may be late with an optimizer's carried steps alone");
  if (context.communicator.rank() != 0) return;
  const auto weights = float_bytes(context.memory.trained.extent());
  const auto send = [this](int rank, const Mail::Letter& letter) {
    rank == 0 ? own_letters_.push_back(letter) : mail_.post(rank, letter);
  };
  const auto unread = [this](int rank) {
    const auto add = [](size_t bytes, const Mail::Letter& letter) { return bytes + letter->size(); };
    return rank == 0 ? std::accumulate(own_letters_.begin(), own_letters_.end(), size_t{0}, add) : mail_.unsent(rank);
  };
  hub_.emplace(RoundHub::Options{context.communicator.size(), wait_, std::max(kUnread, 2 * weights)}, send, unread);
}

int64_t UnevenSteps::queue(const NextStep& next) {
  if (behind()) return take_over_round();
  look_around();
  return LocalSteps::queue(next);
}

int64_t UnevenSteps::end_round(const NextStep& next) {
  RankMemory& memory = context_.memory;
  memory.optimizer->prepare(next.sparsity);
  memory.record.begin({.step = next.input.step, .lr = outer_rate(), .stop = next.input.stop});
  moved_ = write_moved();
  memory.record.measure(moved_, memory.trained.extent());
  write(Arrival{.step = static_cast<int64_t>(next.input.step),
                .steps = end_count(),
                .everyone = next.everyone,
                .shares = memory.record.read_local()});
  arrived_ = true;
  included_ = false;
  return take_over_round();
}

// Until a round with steps has ended, or this rank is not behind any longer. Returns the steps of the round, or 0.
int64_t UnevenSteps::take_over_round() {
  for (steps_ = 0, over_ = false; !over_;) {
    const BackOff back_off;
    std::optional<RoundLetter> letter;
    for (look_around(); !(letter = next_letter()); look_around()) back_off.pause();
    if (const auto* roll = std::get_if<RollCall>(&*letter)) {
      read(*roll);
    } else if (const auto* delivery = std::get_if<Delivery>(&*letter)) {
      read(*delivery);
    } else {
      throw InternalError("rank 0 writes of roll calls and deliveries alone");
    }
  }
  if (steps_ > 0) context_.memory.record.finish();
  if (included_) arrived_ = false;
  let_letters_leave();
  return steps_;
}

void UnevenSteps::read(const RollCall& roll) {
  RankMemory& memory = context_.memory;
  steps_ = roll.steps;
  attendance_ = {.worker_steps = roll.worker_steps, .everyone = roll.everyone};
  begin_at(roll.step);
  memory.record.judge(roll.shares);
  if (has(roll.ranks)) {
    keep_results();
    if (!roll.skipped) send_messages();
    settle_moved();
    included_ = roll.skipped;
  }
  if (roll.skipped) end_with(roll.ranks);
}

void UnevenSteps::read(const Delivery& delivery) {
  included_ = included_ || has(delivery.ranks);
  if (delivery.late) {
    begin_at(delivery.step);
    over_ = included_;
  } else {
    end_with(delivery.ranks);
  }
  if (delivery.ranks.empty()) return;  // nothing moves the weights, not even momentum
  CarriedStep& step = *context_.memory.optimizer->carried();
  const size_t bytes = step.message_bytes();
  const auto local = static_cast<size_t>(local_workers());
  DGC_CHECK(delivery.messages.size() == delivery.ranks.size() * local * bytes, "messages of another size");
  std::vector<const std::byte*> from(static_cast<size_t>(context_.memory.record.workers()));
  const std::byte* message = delivery.messages.data();
  for (const int32_t rank : delivery.ranks) {
    for (size_t i = 0; i < local; ++i, message += bytes) from.at(static_cast<size_t>(rank) * local + i) = message;
  }
  step.receive(step_args(), from);
}

// The hub's next letter to this rank.
std::optional<RoundLetter> UnevenSteps::next_letter() {
  if (!hub_) {
    const auto letter = mail_.take(0);
    return letter ? std::optional(read_letter(*letter)) : std::nullopt;
  }
  if (own_letters_.empty()) return std::nullopt;
  const Mail::Letter letter = std::move(own_letters_.front());
  own_letters_.pop_front();
  return read_letter(*letter);
}

// Writes to the hub.
void UnevenSteps::write(RoundLetter letter) {
  hub_ ? hub_->receive(0, std::move(letter)) : mail_.post(0, to_letter(letter));
}

// On rank 0: hears what ranks have written, and writes what has become due.
void UnevenSteps::look_around() {
  if (!hub_) return;
  for (int rank = 1; rank < context_.communicator.size(); ++rank) {
    while (const auto letter = mail_.take(rank)) hub_->receive(rank, read_letter(*letter));
  }
  hub_->look_around(Clock::now());
}

void UnevenSteps::send_messages() {
  CarriedStep& step = *context_.memory.optimizer->carried();
  Messages mine;
  mine.bytes.resize(step.message_bytes() * static_cast<size_t>(local_workers()));
  step.send(step_args(), mine.bytes);
  write(std::move(mine));
}

// Letters travel only while rank 0 looks after them. Before it begins to compute, it gives those who came in time as
// long as it would wait for them.
void UnevenSteps::let_letters_leave() {
  if (!hub_ || behind()) return;
  const auto is_late = [&](int rank) { return std::ranges::count(attendance_.absent, rank) > 0; };
  const auto all_have_left = [&] {
    for (int rank = 1; rank < context_.communicator.size(); ++rank) {
      if (!is_late(rank) && mail_.unsent(rank) > 0) return false;
    }
    return true;
  };
  const BackOff back_off;
  const auto end = Clock::now() + wait_;
  while (!all_have_left() && Clock::now() < end) {
    look_around();
    back_off.pause();
  }
}

StepArgs UnevenSteps::step_args() {
  return {.gradients = moved_, .weights = context_.memory.weights, .record = context_.memory.record};
}

void UnevenSteps::begin_at(int64_t step) {
  context_.memory.record.begin({.step = static_cast<uint64_t>(step), .lr = outer_rate(), .stop = false});
}

bool UnevenSteps::has(const std::vector<int32_t>& ranks) const {
  return std::ranges::count(ranks, context_.communicator.rank()) > 0;
}

void UnevenSteps::end_with(const std::vector<int32_t>& present) {
  over_ = steps_ > 0 || included_;
  for (int32_t rank = 0; rank < context_.communicator.size(); ++rank) {
    if (std::ranges::count(present, rank) == 0) attendance_.absent.push_back(rank);
  }
}

}  // namespace dgc
