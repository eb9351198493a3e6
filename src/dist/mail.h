#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace dgc {

// Letters between two different ranks, beside the collectives: the receiver need not be ready for them. The thread that
// uses a rank's communicator uses its mail. post() and take() throw PeerFailed when a rank has failed.
class Mail {
 public:
  using Letter = std::shared_ptr<const std::vector<std::byte>>;

  virtual ~Mail() = default;
  // Sends a letter and returns at once. It travels while this rank calls any of these three functions.
  virtual void post(int to, Letter) = 0;
  // The oldest letter of that rank that has come as a whole; nothing while there is none. Letters of one rank arrive in
  // the order in which they were posted.
  virtual std::optional<std::vector<std::byte>> take(int from) = 0;
  // Bytes of letters to that rank that have not left this one; between threads, that the other one has not taken.
  virtual size_t unsent(int to) = 0;
};

}  // namespace dgc
