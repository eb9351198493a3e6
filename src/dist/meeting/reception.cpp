#include "dist/meeting/reception.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace dgc {

Reception::Reception(std::vector<Socket> listeners, const Secret& secret, const Rules& rules)
    : listeners_(std::move(listeners)), secret_(secret), rules_(rules) {}

void Reception::add_to(std::vector<pollfd>& polled) const {
  for (const Socket& listener : listeners_) polled.push_back({listener.get(), POLLIN, 0});
  for (const Guest& guest : guests_) polled.push_back({guest.socket.get(), POLLIN, 0});
}

std::vector<Reception::Caller> Reception::receive() {
  const Clock::time_point now = Clock::now();
  std::vector<Caller> callers;
  std::erase_if(guests_, [&](Guest& guest) {
    std::string objection = listen_to(guest, callers);
    if (!guest.socket) return true;  // a caller now
    if (objection.empty() && now - guest.since > rules_.patience) objection = "it did not say who it is in time";
    if (objection.empty()) return false;
    turn_away(guest, objection);
    return true;
  });
  accept_all(now);
  return callers;
}

// Returns why the guest has to go; empty: not yet, or he is one of the callers.
std::string Reception::listen_to(Guest& guest, std::vector<Caller>& callers) {
  const ssize_t got = recv(guest.socket.get(), guest.said.data() + guest.bytes, guest.said.size() - guest.bytes, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? "" : "the connection broke off";
  if (got == 0) return "it left before it had said who it is";
  guest.bytes += static_cast<size_t>(got);
  const std::span said(guest.said);
  std::string objection = objection_to(said.first(std::min(guest.bytes, sizeof(Greeting))), rules_.purpose);
  if (!objection.empty() || guest.bytes < said.size()) return objection;
  Greeting caller;
  std::memcpy(&caller, said.data(), sizeof(caller));
  SealedSession session(secret_, SealedSession::Side::host, guest.host, caller);
  std::vector<std::byte> first(rules_.first_bytes);
  if (!session.open(said.subspan(sizeof(caller)), first)) return "it does not know the secret";
  callers.push_back({std::move(guest.socket), session, std::move(first)});
  return "";
}

void Reception::accept_all(Clock::time_point now) {
  for (const Socket& listener : listeners_) {
    for (size_t n = 0; n < rules_.most; ++n) {  // who connects without end must not keep this process here
      Guest guest;
      guest.socket = accept_from(listener, guest.peer);
      if (!guest.socket) {
        // The caller stays in the queue, and poll() would say so again at once.
        if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        break;
      }
      guest.host = make_greeting(rules_.purpose);
      guest.since = now;
      guest.said.resize(sizeof(Greeting) + rules_.first_bytes + kSealBytes);
      // The buffers of a fresh connection hold a greeting, so sending does not wait.
      if (!send_all(guest.socket, std::as_bytes(std::span(&guest.host, 1)), now)) continue;
      if (guests_.size() >= rules_.most) {
        turn_away(guests_.front(), "there were too many");
        guests_.erase(guests_.begin());
      }
      guests_.push_back(std::move(guest));
    }
  }
}

void Reception::turn_away(const Guest& guest, const std::string& why) {
  ++turned_away_;
  strangers_ = fmt::format("; {} {} turned away, the last one, from {}, because {}", turned_away_,
                           turned_away_ == 1 ? "stranger was" : "strangers were", guest.peer, why);
}

}  // namespace dgc
