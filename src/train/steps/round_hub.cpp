#include "train/steps/round_hub.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "tensor/errors.h"

namespace dgc {

RoundHub::RoundHub(const Options& options, Send send, Unread unread)
    : options_(options),
      send_(std::move(send)),
      unread_(std::move(unread)),
      guests_(static_cast<size_t>(options.ranks)) {}

void RoundHub::receive(int rank, RoundLetter letter) {
  Guest& guest = guests_.at(static_cast<size_t>(rank));
  if (auto* arrival = std::get_if<Arrival>(&letter)) {
    DGC_CHECK(guest.place == Place::away, "a rank arrives once in a round");
    guest.arrival = std::move(*arrival);
    guest.place = Place::arrived;
    return;
  }
  auto* messages = std::get_if<Messages>(&letter);
  DGC_CHECK(messages != nullptr && !guest.messages, "ranks write of their arrival and then their messages");
  DGC_CHECK(guest.place == Place::present || guest.place == Place::late, "messages of a rank that is not present");
  guest.messages = std::move(*messages);
}

void RoundHub::look_around(Clock::time_point now) {
  do {
    if (!round_) deliver_late();
  } while (round_ ? ends_round(now) : ends_arrivals(now));
}

bool RoundHub::ends_arrivals(Clock::time_point now) {
  const bool begins = std::ranges::any_of(guests_, [this](const Guest& g) { return is_in_time(g); });
  const bool may_begin = std::ranges::any_of(guests_, [](const Guest& g) { return g.place == Place::away; });
  if (!begins && may_begin) return false;
  const bool everyone = waits_for_all();
  const auto is_there = [](const Guest& g) { return g.place == Place::arrived; };
  const auto is_missing = [&](const Guest& g) { return !is_there(g) && (everyone || !g.was_absent); };
  const Phase phase{.there = std::ranges::count_if(guests_, is_there),
                    .missing = std::ranges::count_if(guests_, is_missing),
                    .all = options_.ranks,
                    .everyone = everyone};
  if (!is_over(phase, now)) return false;
  if (begins) {
    for (Guest& guest : guests_) guest.was_absent = !is_there(guest);
  }
  call_roll(everyone);
  return true;
}

bool RoundHub::ends_round(Clock::time_point now) {
  const auto has_come = [](const Guest& g) { return g.place == Place::present && g.messages; };
  const auto waits = [](const Guest& g) { return g.place == Place::arrived || (g.place == Place::late && g.messages); };
  const auto come = std::ranges::count_if(guests_, has_come), waiting = std::ranges::count_if(guests_, waits);
  const auto counted = std::ssize(round_->ranks);
  const Phase phase{
      .there = come + waiting, .missing = counted - come, .all = counted + waiting, .everyone = round_->everyone};
  if (!is_over(phase, now)) return false;
  deliver();
  return true;
}

bool RoundHub::is_in_time(const Guest& guest) const {
  return guest.place == Place::arrived && guest.arrival.step > last_step_;
}

bool RoundHub::is_over(const Phase& phase, Clock::time_point now) {
  if (2 * phase.there < phase.all) return false;
  if (!since_) since_ = now;
  if (phase.missing > 0 && (phase.everyone || now - *since_ < options_.wait)) return false;
  since_.reset();
  return true;
}

bool RoundHub::waits_for_all() const {
  for (int rank = 0; rank < options_.ranks; ++rank) {
    const Guest& guest = guests_[static_cast<size_t>(rank)];
    if (unread_(rank) > options_.most_unread) return true;
    if (guest.place != Place::arrived) continue;
    if (guest.arrival.everyone && is_in_time(guest)) return true;
    if (std::ranges::any_of(guest.arrival.shares, [](const WorkerShare& s) { return s.stop != 0; })) return true;
  }
  return false;
}

void RoundHub::deliver_late() {
  std::map<int64_t, Delivery> by_step;
  for (size_t rank = 0; rank < guests_.size(); ++rank) {
    Guest& guest = guests_[rank];
    if (guest.place != Place::late || !guest.messages) continue;
    Delivery& delivery = by_step[guest.step];
    delivery.step = guest.step;
    delivery.late = true;
    delivery.ranks.push_back(static_cast<int32_t>(rank));
    delivery.messages.insert(delivery.messages.end(), guest.messages->bytes.begin(), guest.messages->bytes.end());
    guest.messages.reset();
    guest.place = Place::away;
  }
  for (const auto& [step, delivery] : by_step) send_all(delivery);
}

void RoundHub::call_roll(bool everyone) {
  RollCall roll{.step = last_step_, .everyone = everyone};
  double squares = 0;
  for (size_t rank = 0; rank < guests_.size(); ++rank) {
    Guest& guest = guests_[rank];
    if (guest.place != Place::arrived) continue;
    if (is_in_time(guest)) std::tie(roll.step, roll.steps) = {guest.arrival.step, guest.arrival.steps};
    roll.ranks.push_back(static_cast<int32_t>(rank));
    roll.worker_steps += guest.arrival.steps * std::ssize(guest.arrival.shares);
    for (const WorkerShare& share : guest.arrival.shares) {
      roll.shares.push_back(share);
      squares += share.square;
    }
  }
  roll.skipped = !std::isfinite(squares);  // what Backend::judge_step finds too
  for (const int32_t rank : roll.ranks) {
    Guest& guest = guests_[static_cast<size_t>(rank)];
    guest.place = roll.skipped ? Place::away : Place::present;
    guest.step = roll.step;
  }
  send_all(roll);
  if (roll.skipped) {
    last_step_ = roll.step;
  } else {
    round_ = std::move(roll);
  }
}

void RoundHub::deliver() {
  Delivery delivery{.step = round_->step};
  for (const int32_t rank : round_->ranks) {
    Guest& guest = guests_[static_cast<size_t>(rank)];
    guest.was_absent = !guest.messages;
    guest.place = guest.was_absent ? Place::late : Place::away;
    if (guest.was_absent) continue;
    delivery.ranks.push_back(rank);
    delivery.messages.insert(delivery.messages.end(), guest.messages->bytes.begin(), guest.messages->bytes.end());
    guest.messages.reset();
  }
  send_all(delivery);
  last_step_ = round_->step;
  round_.reset();
}

void RoundHub::send_all(const RoundLetter& letter) {
  const Mail::Letter shared = to_letter(letter);
  for (int rank = 0; rank < options_.ranks; ++rank) send_(rank, shared);
}

}  // namespace dgc
