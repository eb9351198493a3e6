#pragma once

#include <stdexcept>
#include <string>

namespace dgc {

// Thrown when another rank has failed, or when its message is damaged. The message says which rank or worker, and why,
// as far as that is known.
struct PeerFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A PeerFailed whose cause the failed rank reports itself, so that no other rank need.
struct ToldByPeer : PeerFailed {
  ToldByPeer(const std::string& what, bool is_users) : PeerFailed(what), users(is_users) {}
  bool users;  // a UserError on the failed rank; false where that is not known
};

}  // namespace dgc
