#include "dist/meeting/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <thread>

#include "dist/meeting/interfaces.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

using std::chrono::milliseconds;
using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Whether an error of getaddrinfo() lies in the name. The others are a name server's, which may have an answer later.
bool is_unknown(int error) {
  return error == EAI_NONAME || error == EAI_NODATA || error == EAI_ADDRFAMILY || error == EAI_FAMILY;
}

// The result is empty, and `trouble` says why, when there is no address.
Addresses resolve(const std::string& host, int port, int flags, Trouble& trouble) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    trouble = {error == EAI_SYSTEM ? error_text() : gai_strerror(error), is_unknown(error)};
    found = nullptr;
  }
  return {found, freeaddrinfo};
}

Socket open_socket(const addrinfo& address) {
  return Socket(socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
}

void set_option(const Socket& socket, int level, int option) {
  const int yes = 1;
  setsockopt(socket.get(), level, option, &yes, sizeof(yes));
}

std::vector<std::string> texts_of(const Addresses& found) {
  std::vector<std::string> texts;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    texts.push_back(numeric_address(one->ai_addr, one->ai_addrlen));
  }
  return texts;
}

constexpr milliseconds kBetweenLooks(100);

// Waits for `events` on the socket, or for the deadline. Returns whether the socket is ready.
bool wait_until_ready(const Socket& socket, short events, const Wait& wait) {
  while (true) {
    pollfd one{socket.get(), events, 0};
    const int left = milliseconds_until(wait.deadline);
    const int ready = poll(&one, 1, std::min<int>(left, kBetweenLooks.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (left == 0) return false;
    wait.look();
  }
}

// Whether an error of connect() lies in the address and not in the peer.
bool refuses_address(int error) {
  return error == EINVAL || error == EACCES || error == EAFNOSUPPORT || error == EADDRNOTAVAIL;
}

bool again(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// Where nobody listens at a port that the system may also give to the connecting end, the two ends can be one socket.
bool is_own_peer(const Socket& socket) {
  sockaddr_storage own{}, peer{};
  socklen_t own_size = sizeof(own), peer_size = sizeof(peer);
  return getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
         getpeername(socket.get(), reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 && own_size == peer_size &&
         std::memcmp(&own, &peer, own_size) == 0;
}

// Closed without a word, so that the port is free at once.
void reset_when_closed(const Socket& socket) {
  const linger at_once{1, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

// Returns 0, or the errno that says why there is no connection.
int finish_connect(const Socket& socket, const addrinfo& address, const Wait& wait) {
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  if (!wait_until_ready(socket, POLLOUT, wait)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

int port_of(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

// The socket is empty, and errno says why, where this cannot be.
Socket listener_at(const addrinfo& address) {
  Socket socket = open_socket(address);
  if (!socket) return {};
  set_option(socket, SOL_SOCKET, SO_REUSEADDR);                                      // a run may follow another at once
  if (address.ai_family == AF_INET6) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY);  // IPv4 has its own socket
  const bool listens =
      bind(socket.get(), address.ai_addr, address.ai_addrlen) == 0 && listen(socket.get(), SOMAXCONN) == 0;
  return listens ? std::move(socket) : Socket();
}

// `taken`: another program holds the port, and the ranks that use the same address would reach that program.
std::vector<Socket> listen_once(std::span<const std::string> addresses, int& port, std::string& problem, bool& taken) {
  std::vector<Socket> listeners;
  taken = false;
  problem = "no address";
  for (const std::string& text : addresses) {
    Trouble trouble;
    const Addresses address = resolve(text, port, AI_NUMERICHOST, trouble);
    if (!address) problem = trouble.text;
    if (!address) continue;
    Socket socket = listener_at(*address);
    const int error = errno;
    if (socket) {
      if (port == 0) port = port_of(socket);
      listeners.push_back(std::move(socket));
      continue;
    }
    problem = fmt::format("{}: {}", text, error_text(error));
    taken = error == EADDRINUSE || error == EACCES;
    if (taken) return {};
  }
  return listeners;
}

}  // namespace

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  constexpr int64_t kMost = 60000;  // a caller that waits longer asks again
  return static_cast<int>(std::clamp<int64_t>(left, 0, kMost));
}

std::vector<Socket> listen_at(std::span<const std::string> addresses, int& port, std::string& problem) {
  constexpr int kAttempts = 20;
  bool taken = true;
  for (int attempt = 0; attempt < kAttempts && taken; ++attempt) {
    int chosen = port;
    std::vector<Socket> listeners = listen_once(addresses, chosen, problem, taken);
    if (!listeners.empty()) {
      port = chosen;
      return listeners;
    }
    if (port != 0) break;  // a port that was free at the first address may be taken at the next one, but not this one
  }
  return {};
}

Socket accept_from(const Socket& listener, std::string& peer) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  const int accepted =
      accept4(listener.get(), reinterpret_cast<sockaddr*>(&address), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (accepted < 0) return {};
  peer = numeric_address(reinterpret_cast<sockaddr*>(&address), size);
  if (peer.empty()) peer = "an unknown address";
  return Socket(accepted);
}

// getaddrinfo() cannot be interrupted, and may wait long for a name server, so it runs in a thread of its own.
std::vector<std::string> look_up(const MeetingPoint& point, const Wait& wait, Trouble& trouble) {
  const Addresses numeric = resolve(point.host, point.port, AI_NUMERICHOST, trouble);
  if (numeric) return texts_of(numeric);
  struct Answer {
    std::vector<std::string> addresses;
    Trouble trouble;
  };
  auto promise = std::make_shared<std::promise<Answer>>();
  auto future = promise->get_future();
  std::thread([promise, host = point.host, port = point.port] {
    Answer answer;
    answer.addresses = texts_of(resolve(host, port, 0, answer.trouble));
    promise->set_value(std::move(answer));
  }).detach();
  while (future.wait_for(kBetweenLooks) != std::future_status::ready) {
    wait.look();
    if (std::chrono::steady_clock::now() < wait.deadline) continue;
    trouble = {"the name server does not answer"};
    return {};
  }
  Answer answer = future.get();
  trouble = answer.trouble;
  return std::move(answer.addresses);
}

Socket connect_to(std::span<const std::string> addresses, int port, const Wait& wait, Trouble& trouble) {
  trouble.of_place = true;
  for (size_t i = 0; i < addresses.size(); ++i) {
    Trouble none;
    const Addresses address = resolve(addresses[i], port, AI_NUMERICHOST, none);
    if (!address) trouble.text = none.text;
    if (!address) continue;
    Socket socket = open_socket(*address);
    // One that is silent leaves time for those behind it.
    const Deadline now = std::chrono::steady_clock::now();
    const Wait share(now + (wait.deadline - now) / static_cast<int>(addresses.size() - i), wait.look);
    int error = socket ? finish_connect(socket, *address, share) : errno;
    if (error == 0 && is_own_peer(socket)) {
      reset_when_closed(socket);
      error = ECONNREFUSED;
    }
    if (error == 0) return socket;
    trouble = {error_text(error), trouble.of_place && refuses_address(error)};
  }
  return {};
}

bool send_all(const Socket& socket, std::span<const std::byte> bytes, const Wait& wait) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(sent));
    } else if (!again(errno) || !wait_until_ready(socket, POLLOUT, wait)) {
      return false;
    }
  }
  return true;
}

bool receive_all(const Socket& socket, std::span<std::byte> bytes, const Wait& wait) {
  while (!bytes.empty()) {
    const ssize_t got = recv(socket.get(), bytes.data(), bytes.size(), 0);
    if (got == 0) return false;
    if (got > 0) {
      bytes = bytes.subspan(static_cast<size_t>(got));
    } else if (!again(errno) || !wait_until_ready(socket, POLLIN, wait)) {
      return false;
    }
  }
  return true;
}

}  // namespace dgc
