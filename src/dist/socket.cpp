#include "dist/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <memory>
#include <system_error>
#include <thread>

#include "tensor/errors.h"

namespace dgc {
namespace {

using std::chrono::milliseconds;
using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

std::string error_text(int error) { return std::generic_category().message(error); }

// A null host stands for all addresses of this machine. The result is empty, and `problem` says why, when the name is
// unknown.
Addresses resolve(const char* host, int port, int flags, std::string& problem) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host, std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    problem = error == EAI_SYSTEM ? error_text(errno) : gai_strerror(error);
    found = nullptr;
  }
  return {found, freeaddrinfo};
}

Socket open_socket(const addrinfo& address) {
  return Socket(socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
}

void set_option(const Socket& socket, int level, int option) {
  const int yes = 1;
  setsockopt(socket.fd(), level, option, &yes, sizeof(yes));
}

bool is_loopback(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

constexpr milliseconds kBetweenLooks(100);

// Waits for `events` on the socket, or for the deadline. Returns whether the socket is ready.
bool wait_until_ready(const Socket& socket, short events, const Wait& wait) {
  while (true) {
    pollfd one{socket.fd(), events, 0};
    const int left = milliseconds_until(wait.deadline);
    const int ready = poll(&one, 1, std::min<int>(left, kBetweenLooks.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (left == 0) return false;
    wait.look();
  }
}

// getaddrinfo() cannot be interrupted, and may wait long for a name server, so it runs in a thread of its own.
Addresses find(const MeetingPoint& point, const Wait& wait, Trouble& trouble) {
  trouble.of_place = true;
  Addresses numeric = resolve(point.host.c_str(), point.port, AI_NUMERICHOST, trouble.text);
  if (numeric) return numeric;
  struct Answer {
    Addresses addresses{nullptr, freeaddrinfo};
    std::string problem;
  };
  auto promise = std::make_shared<std::promise<Answer>>();
  auto future = promise->get_future();
  std::thread([promise, host = point.host, port = point.port] {
    Answer answer;
    answer.addresses = resolve(host.c_str(), port, 0, answer.problem);
    promise->set_value(std::move(answer));
  }).detach();
  while (future.wait_for(kBetweenLooks) != std::future_status::ready) {
    wait.look();
    if (std::chrono::steady_clock::now() < wait.deadline) continue;
    trouble.text = "the name server does not answer";
    return {nullptr, freeaddrinfo};
  }
  Answer answer = future.get();
  trouble.text = answer.problem;
  return std::move(answer.addresses);
}

// Whether an error of connect() lies in the address and not in the peer.
bool refuses_address(int error) {
  return error == EINVAL || error == EACCES || error == EAFNOSUPPORT || error == EADDRNOTAVAIL;
}

bool again(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// Returns 0, or the errno that says why there is no connection.
int finish_connect(const Socket& socket, const addrinfo& address, const Wait& wait) {
  if (connect(socket.fd(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  if (!wait_until_ready(socket, POLLOUT, wait)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  constexpr int64_t kMost = 60000;  // a caller that waits longer asks again
  return static_cast<int>(std::clamp<int64_t>(left, 0, kMost));
}

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

std::vector<Socket> listen_at(const MeetingPoint& at) {
  std::string problem = "no address";
  const char* host = is_loopback(at.host) ? at.host.c_str() : nullptr;
  const Addresses addresses = resolve(host, at.port, AI_PASSIVE, problem);
  std::vector<Socket> listeners;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    Socket socket = open_socket(*address);
    bool listening = static_cast<bool>(socket);
    if (listening) {
      set_option(socket, SOL_SOCKET, SO_REUSEADDR);  // a run may follow another at once
      if (address->ai_family == AF_INET6) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY);  // IPv4 has its own socket
      listening = bind(socket.fd(), address->ai_addr, address->ai_addrlen) == 0 && listen(socket.fd(), SOMAXCONN) == 0;
    }
    const int error = errno;
    if (listening) {
      listeners.push_back(std::move(socket));
    } else {
      problem = error_text(error);
      if (error == EADDRINUSE || error == EACCES) {  // other ranks would reach the process that holds the port
        listeners.clear();
        break;
      }
    }
  }
  if (listeners.empty()) {
    throw_user_error("rank 0 cannot listen at {}: {}; choose another port with DGC_RENDEZVOUS or MASTER_PORT", at.url(),
                     problem);
  }
  return listeners;
}

Socket listen_at_free_port(int& port) {
  int error = 0;
  for (const int family : {AF_INET6, AF_INET}) {  // IPv6's socket takes IPv4 too, but not every machine has IPv6
    Socket socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_storage address{};
    address.ss_family = static_cast<sa_family_t>(family);  // the rest, zero: any address, any port
    socklen_t size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    const int no = 0;
    if (family == AF_INET6) setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    if (socket && bind(socket.fd(), at, size) == 0 && listen(socket.fd(), SOMAXCONN) == 0 &&
        getsockname(socket.fd(), at, &size) == 0) {
      port = ntohs(family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(at)->sin6_port
                                      : reinterpret_cast<sockaddr_in*>(at)->sin_port);
      return socket;
    }
    error = errno;
  }
  throw_user_error("cannot listen at any port of this machine: {}", error_text(error));
}

Socket accept_from(const Socket& listener) {
  return Socket(accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

bool is_known(const MeetingPoint& point, const Wait& wait, Trouble& trouble) {
  return find(point, wait, trouble) != nullptr;
}

Socket connect_to(const MeetingPoint& point, const Wait& wait, Trouble& trouble) {
  const Addresses addresses = find(point, wait, trouble);
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    Socket socket = open_socket(*address);
    const int error = socket ? finish_connect(socket, *address, wait) : errno;
    if (error == 0) return socket;
    trouble = {error_text(error), trouble.of_place && refuses_address(error)};
  }
  return {};
}

bool send_all(const Socket& socket, std::span<const std::byte> bytes, const Wait& wait) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
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
    const ssize_t got = recv(socket.fd(), bytes.data(), bytes.size(), 0);
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
