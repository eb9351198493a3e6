#pragma once

#include <cstdint>
#include <string>

namespace dgc {

// "1 utterance", "3 utterances". many: the plural, where it is not `one` with an s.
inline std::string counted(int64_t count, const std::string& one, const std::string& many = "") {
  const std::string plural = many.empty() ? one + "s" : many;
  return std::to_string(count) + " " + (count == 1 ? one : plural);
}

}  // namespace dgc
