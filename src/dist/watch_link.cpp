#include "dist/watch_link.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <sstream>
#include <thread>

#include "dist/fixed_text.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

using std::chrono::milliseconds;

std::string machine_name() {
  char name[64] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

// Addresses of the interfaces that are up, without the loopback's, which are the same on every machine.
std::vector<std::string> addresses_of_this_machine() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::vector<std::string> found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET6_ADDRSTRLEN] = {};
    if (one->ifa_addr->sa_family == AF_INET) {
      inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof(text));
    } else if (one->ifa_addr->sa_family == AF_INET6) {
      const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
      if (!IN6_IS_ADDR_LINKLOCAL(&address)) inet_ntop(AF_INET6, &address, text, sizeof(text));
    }
    if (*text != '\0') found.emplace_back(text);
  }
  return found;
}

// On rank 0's own machine the loopback is enough. Elsewhere rank 0's machine is tried by its name and then by its
// addresses, one of which may lie in a network that both machines share.
std::vector<std::string> hosts_to_try(const WatchPlace& place) {
  std::vector<std::string> hosts;
  if (get_text(place.machine) == machine_name()) hosts.insert(hosts.end(), {"127.0.0.1", "::1"});
  hosts.push_back(get_text(place.machine));
  std::istringstream addresses(get_text(place.addresses));
  for (std::string address; addresses >> address;) hosts.push_back(address);
  return hosts;
}

}  // namespace

void WatchFrame::set_text(const std::string& all) { dgc::set_text(text, all); }

std::string WatchFrame::who() const { return fmt::format("rank {} ({}, pid {})", rank, get_text(text), pid); }

WatchFrame watch_frame_of_this_process(WatchWord word, int rank, int size, uint64_t secret) {
  WatchFrame frame;
  frame.secret = secret;
  frame.word = word;
  frame.rank = static_cast<uint32_t>(rank);
  frame.size = static_cast<uint32_t>(size);
  frame.pid = static_cast<uint32_t>(getpid());
  frame.set_text(machine_name());
  return frame;
}

WatchLink::Heard WatchLink::receive(WatchFrame& frame) {
  while (bytes_ < part_.size()) {
    const ssize_t got = recv(fd(), part_.data() + bytes_, part_.size() - bytes_, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Heard::nothing;
    if (got <= 0) return Heard::end;
    bytes_ += static_cast<size_t>(got);
    if (std::memcmp(part_.data(), &kWatchMagic, std::min(bytes_, sizeof(kWatchMagic))) != 0) return Heard::end;
  }
  bytes_ = 0;
  std::memcpy(&frame, part_.data(), sizeof(frame));
  frame.text[sizeof(frame.text) - 1] = '\0';
  return Heard::frame;
}

void WatchLink::send(const WatchFrame& frame) {
  if (!socket_ || torn_) return;
  ssize_t sent = 0;
  do {
    sent = ::send(fd(), &frame, sizeof(frame), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  torn_ = sent > 0 && static_cast<size_t>(sent) < sizeof(frame);
}

WatchPlace watch_place_of_this_machine(int port) {
  std::random_device random;
  WatchPlace place;
  place.secret = (uint64_t{random()} << 32) | random();
  place.port = static_cast<uint32_t>(port);
  set_text(place.machine, machine_name());
  std::string all;
  for (const std::string& address : addresses_of_this_machine()) {
    if (all.size() + address.size() + 1 < sizeof(place.addresses)) all += address + " ";
  }
  set_text(place.addresses, all);
  return place;
}

WatchLink join_watch(const WatchPlace& place, const WatchFrame& hello, const Wait& wait, WatchFrame& welcome) {
  constexpr milliseconds kPatience(5000), kPause(100);
  Trouble trouble;
  while (true) {
    for (const std::string& host : hosts_to_try(place)) {
      const MeetingPoint point{host, static_cast<int>(place.port), ""};
      const Wait until(std::chrono::steady_clock::now() + kPatience, wait.look);
      Socket socket = connect_to(point, until, trouble);
      if (!socket) continue;
      trouble.text = "it is another program that answers there";
      if (send_all(socket, std::as_bytes(std::span(&hello, 1)), until) &&
          receive_all(socket, std::as_writable_bytes(std::span(&welcome, 1)), until) && welcome.magic == kWatchMagic &&
          welcome.word == WatchWord::welcome && welcome.secret == place.secret) {
        return WatchLink(std::move(socket));
      }
    }
    if (std::chrono::steady_clock::now() + kPause >= wait.deadline) break;
    wait.look();
    std::this_thread::sleep_for(kPause);
  }
  throw_user_error(
      "rank {} does not reach rank 0's machine {} at port {} over TCP ({}), for the heartbeat by which ranks notice "
      "that another has failed: see whether rank 0 has ended; else open that network, or set "
      "exchange.failure_timeout_s to 0 to do without",
      hello.rank, get_text(place.machine), place.port, trouble.text);
}

}  // namespace dgc
