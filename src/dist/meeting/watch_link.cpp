#include "dist/meeting/watch_link.h"

#include <fmt/ranges.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <thread>

#include "dist/meeting/fixed_text.h"
#include "dist/meeting/interfaces.h"
#include "tensor/errors.h"
#include "tensor/machine_name.h"

namespace dgc {
namespace {

using std::chrono::milliseconds;

// The place where the ranks have met is known to work. On rank 0's own machine the loopback does, and elsewhere rank
// 0's machine has a name and addresses, one of which may lie in a network that both machines share.
std::vector<std::string> hosts_to_try(const WatchPlace& place, const std::string& met_at) {
  std::vector<std::string> hosts;
  const auto add = [&](const std::string& host) {
    if (std::ranges::count(hosts, host) == 0) hosts.push_back(host);
  };
  if (!met_at.empty()) add(met_at);
  if (get_text(place.machine) == machine_name()) std::ranges::for_each(kLoopback, add);
  add(get_text(place.machine));
  std::istringstream addresses(get_text(place.addresses));
  for (std::string address; addresses >> address;) add(address);
  return hosts;
}

// Joins the watch where it is this host's. The link is empty, and `trouble` says why, where it is not.
WatchLink join_at(const std::string& host, const WatchPlace& place, const WatchFrame& hello, const Wait& wait,
                  WatchFrame& welcome, Trouble& trouble) {
  const MeetingPoint point{host, static_cast<int>(place.port), ""};
  const std::vector<std::string> addresses = look_up(point, wait, trouble);
  if (addresses.empty()) return {};
  Socket socket = connect_to(addresses, point.port, wait, trouble);
  if (!socket) return {};
  auto session =
      introduce(socket, Secret(place.secret), Purpose::heartbeat, std::as_bytes(std::span(&hello, 1)), wait, trouble);
  if (!session) return {};
  trouble.text = "what answers there is not rank 0 of this run";
  const auto answer = std::as_writable_bytes(std::span(&welcome, 1));
  if (!receive_sealed(socket, *session, answer, wait).text.empty() || welcome.word != WatchWord::welcome) return {};
  return {std::move(socket), *session};
}

}  // namespace

std::string WatchFrame::who() const { return fmt::format("rank {} ({}, pid {})", rank, get_text(text), pid); }

WatchFrame watch_frame_of_this_process(WatchWord word, int rank, int size) {
  WatchFrame frame;
  frame.word = word;
  frame.rank = static_cast<uint32_t>(rank);
  frame.size = static_cast<uint32_t>(size);
  frame.pid = static_cast<uint32_t>(getpid());
  set_text(frame.text, machine_name());
  return frame;
}

WatchLink::Heard WatchLink::receive(WatchFrame& frame) {
  while (bytes_ < part_.size()) {
    const ssize_t got = recv(fd(), part_.data() + bytes_, part_.size() - bytes_, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Heard::nothing;
    if (got <= 0) return Heard::end;
    bytes_ += static_cast<size_t>(got);
  }
  bytes_ = 0;
  return session_->open(part_, std::as_writable_bytes(std::span(&frame, 1))) ? Heard::frame : Heard::forgery;
}

void WatchLink::send(const WatchFrame& frame) {
  if (!socket_ || torn_) return;
  const std::vector<std::byte> sealed = session_->seal(std::as_bytes(std::span(&frame, 1)));
  ssize_t sent = 0;
  do {
    sent = ::send(fd(), sealed.data(), sealed.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent > 0) session_->note_sent();
  torn_ = sent > 0 && static_cast<size_t>(sent) < sealed.size();
}

WatchPlace watch_place_of_this_machine(int port, std::span<const std::string> addresses, milliseconds timeout) {
  WatchPlace place;
  place.secret = make_secret().bytes();
  place.port = static_cast<uint32_t>(port);
  place.timeout_ms = static_cast<uint32_t>(timeout.count());
  set_text(place.machine, machine_name());
  std::string all;
  for (const std::string& address : addresses) {
    const bool room = all.size() + address.size() + 1 < sizeof(place.addresses);
    if (room && !is_loopback(address)) all += address + " ";  // the loopback's are the same on every machine
  }
  set_text(place.addresses, all);
  return place;
}

WatchLink join_watch(const WatchPlace& place, const std::string& met_at, const WatchFrame& hello, const Wait& wait,
                     WatchFrame& welcome) {
  constexpr milliseconds kPatience(5000), kPause(100);
  const std::vector<std::string> hosts = hosts_to_try(place, met_at);
  // The place where the ranks have met has half of the time, as it is known to work.
  const Deadline::duration left = wait.deadline - std::chrono::steady_clock::now();
  const auto share_of = [&](const std::string& host) {
    const auto parts = host == met_at ? 2 : 2 * std::max<int>(1, static_cast<int>(hosts.size()) - 1);
    return std::min<Deadline::duration>(kPatience, left / parts);
  };
  std::vector<std::string> troubles;
  while (true) {
    troubles.clear();
    for (const std::string& host : hosts) {
      Trouble trouble;
      const Wait until(std::chrono::steady_clock::now() + share_of(host), wait.look);
      if (WatchLink link = join_at(host, place, hello, until, welcome, trouble)) return link;
      troubles.push_back(fmt::format("{}: {}", host, trouble.text));
    }
    if (std::chrono::steady_clock::now() + kPause >= wait.deadline) break;
    wait.look();
    std::this_thread::sleep_for(kPause);
  }
  throw_user_error(
      "cannot reach rank 0's machine {} at port {} over TCP ({}), for the heartbeat by which ranks notice that another "
      "has failed: see whether rank 0 has ended; else open that network, or set exchange.failure_timeout_s to 0 to do "
      "without",
      get_text(place.machine), place.port, fmt::join(troubles, "; "));
}

}  // namespace dgc
