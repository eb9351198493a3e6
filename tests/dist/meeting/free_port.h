#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <catch.hpp>

#include "dist/meeting/socket.h"

namespace dgc::test {

// A port that was free a moment ago.
inline int free_port() {
  const Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  REQUIRE(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

}  // namespace dgc::test
