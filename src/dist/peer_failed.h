#pragma once

#include <stdexcept>
#include <string>

namespace dgc {

// Thrown by a collective when another rank has failed. The message says which rank and, where that is known, why.
struct PeerFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A PeerFailed whose cause the failed rank reports itself, so that no other rank need.
struct ToldByPeer : PeerFailed {
  ToldByPeer(const std::string& what, bool is_users) : PeerFailed(what), users(is_users) {}
  bool users;  // a UserError on the failed rank; false where that is not known
};

}  // namespace dgc
